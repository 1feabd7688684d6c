package watch

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Directories are made, renamed and removed as fast as the system can; when it
// is over, each one that counts must have its watch.
func TestChurn(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	for round := range uint64(4) {
		rnd := rand.New(rand.NewPCG(seed, round))
		base := t.TempDir()
		root := filepath.Join(base, "up", "root")
		must(t, os.Mkdir(filepath.Join(base, "away"), 0o755))
		w := start(t, Options{MaxDirty: 1 << 20, look: time.Hour})
		g := newGather(t, w, Root{root, 2}, Root{filepath.Join(root, "0", "1"), 2})
		some := func() string {
			p := root
			for range rnd.IntN(4) {
				p = filepath.Join(p, fmt.Sprint(rnd.IntN(3)))
			}
			return p
		}
		for range 400 {
			switch p := some(); rnd.IntN(6) {
			case 0:
				os.RemoveAll(p)
			case 1:
				os.Rename(p, some()) // often not possible, which is as well
			case 2:
				os.Rename(p, filepath.Join(base, "away", fmt.Sprint(rnd.IntN(9))))
			default:
				os.MkdirAll(p, 0o755)
			}
		}
		for _, d := range []string{"", "0", "1", "0/1", "1/2", "2/2", "0/1/2", "0/1/2/0"} {
			p := filepath.Join(root, d, fmt.Sprint("last", round))
			put(t, p)
			g.until(fmt.Sprintf("event for %s, seed %d", p, seed), func() bool { return g.paths[p] || g.swept[p] })
			// Once more: the first may have been found by the scan of a new directory.
			delete(g.paths, p)
			must(t, os.WriteFile(p, []byte("more"), 0o600))
			g.until(fmt.Sprintf("second event for %s, seed %d", p, seed), func() bool { return g.paths[p] })
		}
		// And no other one has: neither a directory that is gone nor an ancestor.
		have := countDirs(t, root, 2)
		for _, d := range []string{"0/1/0", "0/1/1", "0/1/2"} { // by the second root alone
			have += countDirs(t, filepath.Join(root, d), 1)
		}
		g.health(fmt.Sprintf("%d watches, seed %d", have, seed), func(h Health) bool { return h.Watches == have })
		must(t, os.RemoveAll(filepath.Join(base, "up")))
		g.health(fmt.Sprintf("the ancestor alone, seed %d", seed), func(h Health) bool { return h.Watches == 1 })
	}
}

// countDirs counts dir, if it is there, and the directories to depth levels below it.
func countDirs(t *testing.T, dir string, depth int) int {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return 0
	}
	must(t, err)
	n := 1
	for _, e := range entries {
		if e.IsDir() && depth > 0 {
			n += countDirs(t, filepath.Join(dir, e.Name()), depth-1)
		}
	}
	return n
}
