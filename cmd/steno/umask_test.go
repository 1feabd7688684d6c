package main

import (
	"io/fs"
	"os/exec"
	"path/filepath"
	"testing"

	"steno/ipc/wire"
)

// Whatever the umask, everything that the daemon makes is for its user alone, and
// it starts again with it.
func TestUmask(t *testing.T) {
	for _, mask := range []string{"000", "022", "777"} {
		t.Run(mask, func(t *testing.T) {
			w := newWorld(t)
			w.prepare = func(cmd *exec.Cmd) {
				cmd.Args = append([]string{"sh", "-c", "umask " + mask + "; exec \"$@\"", "sh", cmd.Path}, cmd.Args[1:]...)
				cmd.Path = "/bin/sh"
			}
			d := w.serve(nil)
			f := w.follow(0)
			a := w.agent("claude", "one")
			id := w.entry("one").AgentID
			a.do("all")
			f.until("the turn", func(events []wire.Event) bool { return count(events, id, isFinal) > 0 })
			seen := 0
			for _, dir := range []string{".local", "run/steno"} {
				err := filepath.WalkDir(filepath.Join(w.dir, dir), func(path string, e fs.DirEntry, err error) error {
					if err != nil {
						return err
					}
					info, err := e.Info()
					if err != nil {
						return err
					}
					want := fs.FileMode(0o600)
					if e.IsDir() {
						want = 0o700
					}
					if info.Mode().Perm() != want {
						t.Errorf("%s has mode %v", path, info.Mode())
					}
					seen++
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			}
			if seen < 9 { // directories, lock, database with its log and shared memory, socket with its lock
				t.Errorf("%d files and directories", seen)
			}
			d.kill()
			w.serve(nil).stop()
		})
	}
}
