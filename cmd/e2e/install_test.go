//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// cacheVar names the directory where the programs are installed.
const cacheVar = "STENO_E2E_CACHE"

// Bounds of the cache.
const (
	installing = 10 * time.Minute    // an installation takes at most
	unused     = 14 * 24 * time.Hour // an installation that no run used for so long is removed
)

// cacheDir is outside of the tree.
func cacheDir() (string, error) {
	if dir := os.Getenv(cacheVar); dir != "" {
		return filepath.Abs(dir)
	}
	base, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find a cache directory (set %s): %w", cacheVar, err)
	}
	return filepath.Join(base, "steno-e2e"), nil
}

// wanted is what npm is to install: its files, and how it is called.
type wanted struct {
	files map[string][]byte
	npm   []string
}

// pinnedWanted is what the tree pins.
func pinnedWanted() (wanted, error) {
	w := wanted{files: map[string][]byte{}, npm: []string{"ci"}}
	for _, name := range []string{"package.json", "package-lock.json"} {
		data, err := os.ReadFile(filepath.Join(moduleRoot, "testdata/e2e", name))
		if err != nil {
			return w, err
		}
		w.files[name] = data
	}
	return w, nil
}

// newestWanted is the newest published version of everything that is pinned.
func newestWanted() (wanted, error) {
	pins, err := pinnedWanted()
	if err != nil {
		return pins, err
	}
	var p struct {
		Dependencies map[string]string `json:"dependencies"`
	}
	if err := json.Unmarshal(pins.files["package.json"], &p); err != nil {
		return pins, fmt.Errorf("read the pins: %w", err)
	}
	for name := range p.Dependencies {
		out, err := npm("", "view", name, "version")
		if err != nil {
			return pins, fmt.Errorf("ask for the newest %s: %w", name, err)
		}
		p.Dependencies[name] = strings.TrimSpace(string(out))
	}
	text, err := json.MarshalIndent(map[string]any{"name": "steno-e2e-latest", "private": true, "dependencies": p.Dependencies}, "", "  ")
	return wanted{files: map[string][]byte{"package.json": text}, npm: []string{"install"}}, err
}

// npm runs npm in a directory and gives what it printed.
func npm(dir string, args ...string) ([]byte, error) {
	runtime.LockOSThread() // its death would end npm
	defer runtime.UnlockOSThread()
	ctx, cancel := context.WithTimeout(context.Background(), times(installing))
	defer cancel()
	cmd := exec.CommandContext(ctx, "npm", args...)
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("npm %s: %w: %s%s", args[0], err, out, stderr.Bytes())
	}
	return out, nil
}

// install brings what is wanted into the cache, once, and gives the directory of
// its modules. The file that is returned is locked for as long as it is open, so
// that no other run removes them.
func install(w wanted) (modules string, hold *os.File, err error) {
	cache, err := cacheDir()
	if err != nil {
		return "", nil, err
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", nil, fmt.Errorf("make the cache: %w", err)
	}
	clean(cache)
	sum := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(w.files)) {
		sum.Write(w.files[name])
	}
	dir := filepath.Join(cache, hex.EncodeToString(sum.Sum(nil)[:6]))
	hold, err = os.OpenFile(dir+".lock", os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return "", nil, fmt.Errorf("lock the cache: %w", err)
	}
	defer func() {
		if err != nil {
			hold.Close()
		}
	}()
	if err := flock(hold, syscall.LOCK_SH); err != nil {
		return "", nil, err
	}
	if why := broken(dir); why != nil {
		if err := flock(hold, syscall.LOCK_EX); err != nil {
			return "", nil, err
		}
		if why = broken(dir); why != nil { // nobody else did it in the meantime
			fmt.Printf("e2e: installing into %s: %v\n", dir, why)
			if err := w.installInto(dir); err != nil {
				return "", nil, err
			}
		}
		if err := flock(hold, syscall.LOCK_SH); err != nil {
			return "", nil, err
		}
	}
	now := time.Now()
	if err := os.Chtimes(hold.Name(), now, now); err != nil {
		return "", nil, fmt.Errorf("mark the installation as used: %w", err)
	}
	return filepath.Join(dir, "node_modules"), hold, nil
}

func flock(f *os.File, how int) error {
	for {
		err := syscall.Flock(int(f.Fd()), how)
		if err == nil {
			return nil
		}
		if !errors.Is(err, syscall.EINTR) {
			return fmt.Errorf("lock the cache: %w", err)
		}
	}
}

// installInto makes the installation beside its place and moves it there when it
// is whole, so that what was interrupted never looks like one.
func (w wanted) installInto(dir string) error {
	old, err := filepath.Glob(dir + ".new-*")
	if err != nil {
		return err
	}
	for _, left := range old { // by a run that was ended; the lock is ours
		if err := os.RemoveAll(left); err != nil {
			return fmt.Errorf("clean the cache: %w", err)
		}
	}
	fresh, err := os.MkdirTemp(filepath.Dir(dir), filepath.Base(dir)+".new-")
	if err != nil {
		return fmt.Errorf("make room in the cache: %w", err)
	}
	defer os.RemoveAll(fresh)
	if err := os.Chmod(fresh, 0o755); err != nil {
		return err
	}
	for name, data := range w.files {
		if err := os.WriteFile(filepath.Join(fresh, name), data, 0o644); err != nil {
			return fmt.Errorf("fill the cache: %w", err)
		}
	}
	if _, err := npm(fresh, append(w.npm, "--ignore-scripts", "--no-audit", "--no-fund")...); err != nil {
		return fmt.Errorf("install the programs: %w", err)
	}
	sum, err := digest(fresh)
	if err != nil {
		return fmt.Errorf("install the programs: %w", err)
	}
	if err := os.WriteFile(filepath.Join(fresh, mark), sum, 0o644); err != nil {
		return fmt.Errorf("fill the cache: %w", err)
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("clean the cache: %w", err)
	}
	return os.Rename(fresh, dir)
}

// mark is the file that an installation gets when it is whole. It has its digest.
const mark = "installed"

// broken tells why a directory is not a whole installation, or nil.
func broken(dir string) error {
	want, err := os.ReadFile(filepath.Join(dir, mark))
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("there is none yet, or half of one")
	}
	if err != nil {
		return err
	}
	got, err := digest(dir)
	if err != nil {
		return err
	}
	if !bytes.Equal(got, want) {
		return errors.New("it is not what was installed")
	}
	return nil
}

// digest is of the names, sizes and modes of all that is installed; npm has
// checked the contents. It fails if a program is not there.
func digest(dir string) ([]byte, error) {
	modules := filepath.Join(dir, "node_modules")
	sum := sha256.New()
	err := filepath.WalkDir(modules, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		size := info.Size()
		if info.IsDir() {
			size = 0 // file systems disagree
		}
		fmt.Fprintf(sum, "%s %d %o\n", path[len(modules):], size, info.Mode())
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, p := range programs() {
		for name, path := range p.links {
			info, err := os.Stat(inModules(modules, path))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			if !info.Mode().IsRegular() || info.Mode()&0o111 == 0 || info.Size() == 0 {
				return nil, fmt.Errorf("%s is no program", name)
			}
		}
	}
	return []byte(hex.EncodeToString(sum.Sum(nil)) + "\n"), nil
}

// clean removes the installations that no run used for long. What it cannot
// remove stays.
func clean(cache string) {
	locks, err := filepath.Glob(filepath.Join(cache, "*.lock"))
	if err != nil {
		return
	}
	for _, path := range locks {
		info, err := os.Stat(path)
		if err != nil || time.Since(info.ModTime()) < unused {
			continue
		}
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			continue
		}
		if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			_ = os.RemoveAll(strings.TrimSuffix(path, ".lock")) // the lock stays: another run may wait for it
		}
		f.Close()
	}
}
