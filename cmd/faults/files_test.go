package faults

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// capsPart runs its arguments without the capabilities that open every file.
const capsPart = "without rights over files"

func init() {
	parts[capsPart] = func() error {
		for _, c := range []uintptr{unix.CAP_DAC_OVERRIDE, unix.CAP_DAC_READ_SEARCH} {
			// Not root: there is nothing to give up.
			if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil && !errors.Is(err, unix.EPERM) {
				return err
			}
		}
		os.Unsetenv(partVar)
		return syscall.Exec(os.Args[1], os.Args[1:], os.Environ())
	}
}

// Fault 7: what is named like a session and is none: a FIFO, a directory, a
// socket, links in circles and to nowhere, a file that may not be read, a device;
// and names that are no text. None of it keeps a session beside it from being
// told, or makes the daemon open what blocks.
func TestOddFiles(t *testing.T) {
	w := newWorld(t)
	f := &figures{Fault: "7 files: odd ones", Unit: "odd files",
		How: "FIFO, directory, socket, device, link circles, no permission, names with newlines and invalid UTF-8, beside three sessions"}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	d := w.startWith(func(cmd *exec.Cmd) {
		cmd.Args = append([]string{"faults", cmd.Path}, cmd.Args[1:]...)
		cmd.Path = self
		cmd.Env = append(cmd.Env, partVar+"="+capsPart)
	}, "--sweep", "1s")
	d.ready()
	s := w.read(0)
	crowd := w.crowd(3)
	odd := w.idle(1)[0] // its session is an odd file each time
	odd.name = "odd"
	w.until("every agent", func() bool { return len(w.agents()) == 4 })
	projects := w.path(".claude", "projects")
	dir := filepath.Dir(crowd[0].path())
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	session := func(in string) string { return filepath.Join(in, newUUID()+".jsonl") }
	for _, tt := range []struct {
		name string
		make func(path string) error
		says string // in the log, where it is the first that is so
	}{
		{"FIFO", func(path string) error { return syscall.Mkfifo(path, 0o600) }, "not a regular file"},
		{"directory", func(path string) error { return os.Mkdir(path, 0o700) }, ""},
		{"socket", func(path string) error {
			l, err := net.Listen("unix", filepath.Join(w.dir, "s"))
			if err == nil {
				t.Cleanup(func() { l.Close() })
				err = os.Rename(filepath.Join(w.dir, "s"), path)
			}
			return err
		}, ""},
		{"link to itself", func(path string) error { return os.Symlink(path, path) }, ""},
		{"link to nowhere", func(path string) error { return os.Symlink("/nowhere/at/all", path) }, ""},
		{"link to a device", func(path string) error { return os.Symlink("/dev/zero", path) }, ""},
		{"link to a terminal", func(path string) error { return os.Symlink("/dev/tty", path) }, ""},
		{"not to be read", func(path string) error { return os.WriteFile(path, []byte("{}\n"), 0) }, "permission denied"},
		{"empty", func(path string) error { return os.WriteFile(path, nil, 0o600) }, ""},
	} {
		f.Tried++
		path := session(dir)
		must(tt.make(path))
		// A process that calls it its session.
		odd.session = strings.TrimSuffix(filepath.Base(path), ".jsonl")
		odd.cwd = crowd[0].cwd
		must(odd.register())
		began := time.Now()
		for _, p := range crowd {
			p.turn(t, 100)
		}
		s.heard(f, crowd)
		f.recovered(time.Since(began))
		if t.Failed() {
			t.Fatalf("beside %s", tt.name)
		}
		if tt.says != "" { // it was tried, not passed by
			w.until("words about a "+tt.name, func() bool { return w.said(tt.says) })
		}
	}
	// Names that are no text, and circles of directories.
	for _, name := range []string{"a\nb", "\xff\xfe", "tab\there", strings.Repeat("x", 255), "circle"} {
		f.Tried++
		in := filepath.Join(projects, name)
		if name == "circle" {
			must(os.Symlink(projects, in))
			must(os.Symlink(in, filepath.Join(dir, "circle")))
			continue
		}
		must(os.Mkdir(in, 0o700))
		must(os.WriteFile(filepath.Join(in, name[:1]+".jsonl"), []byte("{}\n"), 0o600))
		// A session in such a directory is a session.
		p := crowd[1]
		p.session, p.folder = newUUID(), in
		must(p.register())
		began := time.Now()
		p.turn(t, 100)
		s.heard(f, crowd)
		f.recovered(time.Since(began))
		if t.Failed() {
			t.Fatalf("in %q", name)
		}
	}
	for _, p := range crowd {
		p.turn(t, 100)
	}
	s.heard(f, crowd)
	d.stop()
	f.report(t)
}

// Fault 7: 20,000 sessions appear at once, as when a backup is unpacked, while
// three agents write.
func TestManyFiles(t *testing.T) {
	w := newWorld(t)
	const dirs = 100
	n := pick(5000, 20000)
	f := &figures{Fault: "7 files: many at once", Unit: "files", Tried: n, How: "files of old sessions appear in 100 directories while 3 agents write"}
	d := w.startWith(plain(t))
	d.ready()
	s := w.read(0)
	crowd := w.crowd(3)
	w.until("every agent", func() bool { return len(w.agents()) == len(crowd) })
	before, start := d.cpu(), time.Now()
	old := &claude{cwd: "/", session: newUUID()}
	record := append(old.prompt(newUUID())[0], '\n')
	for i := range n {
		dir := w.path(".claude", "projects", fmt.Sprint("old", i%dirs))
		if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, newUUID()+".jsonl"), record, 0o600)); err != nil {
			t.Fatal(err)
		}
		if i%(n/5) == 0 {
			began := time.Now()
			for _, p := range crowd {
				p.turn(t, 100)
			}
			s.heard(f, crowd)
			f.recovered(time.Since(began))
		}
	}
	w.until("all of them", func() bool {
		for _, p := range w.status().Providers {
			if p.ID == "claude" {
				return p.Artifacts >= n
			}
		}
		return false
	})
	for _, p := range crowd {
		p.turn(t, 100)
	}
	s.heard(f, crowd)
	if d.peak() > mostMemory {
		t.Errorf("%d MiB in memory, at most %d", d.peak()>>20, mostMemory>>20)
	}
	f.Note = fmt.Sprintf("%.1f CPU seconds a minute meanwhile, at most %d MiB in memory", perMinute(d.cpu()-before, time.Since(start)), d.peak()>>20)
	d.stop()
	f.report(t)
}

// Fault 7: the identity tricks of the field list, on the file that is read: what
// is written before is told once, what is written after is told, and what the
// daemon cannot know is a failure that says so.
func TestIdentityTricks(t *testing.T) {
	w := newWorld(t)
	f := &figures{Fault: "7 files: identity", Unit: "tricks",
		How: "renamed over, copied and truncated, rewritten in place, removed and made again, moved away and back, linked, half a line cut off"}
	d := w.serve("--sweep", "1s")
	s := w.read(0)
	crowd := w.crowd(1)
	p := crowd[0]
	w.until("the agent", func() bool { return len(w.agents()) == 1 })
	p.turn(t, 9000)
	s.heard(f, crowd)
	// A reader may see a copy before it is whole: that is a file of another
	// content for a moment, which is told.
	const never, may, must = 0, 1, 2
	for range pick(1, 10) {
		for _, tt := range []struct {
			name  string
			fails int // whether a failure is told
			do    func(path string, data []byte) error
		}{
			{"C8 renamed over, same content", never, func(path string, data []byte) error {
				return errors.Join(os.WriteFile(path+".tmp", data, 0o600), os.Rename(path+".tmp", path))
			}},
			{"moved away and back", never, func(path string, data []byte) error {
				return errors.Join(os.Rename(path, path+".aside"), os.Rename(path+".aside", path))
			}},
			{"C20 moved away, and a copy put back", may, func(path string, data []byte) error {
				return errors.Join(os.Rename(path, path+".zst"), os.WriteFile(path, data, 0o600), os.Remove(path+".zst"))
			}},
			{"a hard link, and the first name removed and made from it", never, func(path string, data []byte) error {
				return errors.Join(os.Link(path, path+".link"), os.Remove(path), os.Rename(path+".link", path))
			}},
			{"C6 copied and truncated", must, func(path string, data []byte) error {
				return errors.Join(os.WriteFile(path+".1", data, 0o600), os.Truncate(path, 0), os.Remove(path+".1"))
			}},
			{"C1 rewritten in place, same size", must, func(path string, data []byte) error {
				for i := range data {
					if data[i] == 'w' { // "word" of the answers
						data[i] = 'v'
					}
				}
				return writeOver(path, data)
			}},
			{"C3 removed and made again", must, func(path string, data []byte) error {
				return errors.Join(os.Remove(path), os.WriteFile(path, []byte("{\"type\":\"mode\"}\n"), 0o600))
			}},
			{"B5 half a line, cut off again", never, func(path string, data []byte) error {
				half := p.text("", "[m:half:1]")[0]
				if err := p.write(half[:len(half)/2]); err != nil {
					return err
				}
				time.Sleep(20 * time.Millisecond) // so that the half may be read
				return os.Truncate(path, int64(len(data)))
			}},
		} {
			f.Tried++
			p.turn(t, 9000)
			s.heard(f, crowd)
			path := p.path()
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			failures := s.failures()
			began := time.Now()
			if err := tt.do(path, data); err != nil {
				t.Fatal(err)
			}
			if tt.fails == must {
				w.until("a failure for "+tt.name, func() bool { return s.failures() > failures })
			}
			p.turn(t, 100)
			s.heard(f, crowd)
			f.recovered(time.Since(began))
			if n := s.failures() - failures; n > 1 || n == 1 && tt.fails == never {
				t.Errorf("%s: %d failures", tt.name, n)
			}
			if t.Failed() {
				t.Fatal(tt.name)
			}
		}
	}
	d.stop()
	f.report(t)
}

// writeOver writes over a file without cutting it first.
func writeOver(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

// failures counts the observer failures that were told of this world's agents.
func (s *story) failures() int {
	n := 0
	for _, tokens := range s.tokens(s.w.agents()) {
		for _, token := range tokens {
			if strings.HasPrefix(token, "failure ") {
				n++
			}
		}
	}
	return n
}

// Fault 7: the disk of the sessions is unmounted for a while.
func TestUnmounted(t *testing.T) {
	if !inside(t, syscall.CLONE_NEWNS) {
		return
	}
	w := newWorld(t)
	f := &figures{Fault: "7 files: unmounted", Unit: "unmounts", Tried: pick(1, 20),
		How: "the sessions' file system is unmounted for some sweeps, in a namespace of its own; the sessions go on after it is back"}
	disk, projects := w.path("disk"), w.path(".claude", "projects")
	if err := errors.Join(os.MkdirAll(disk, 0o700), os.MkdirAll(projects, 0o700)); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("none", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		missing(t, fmt.Sprint("nothing can be mounted: ", err))
	}
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=16m"); err != nil {
		missing(t, fmt.Sprint("no tmpfs: ", err))
	}
	mount := func() {
		t.Helper()
		if err := syscall.Mount(disk, projects, "", syscall.MS_BIND, ""); err != nil {
			t.Fatal(err)
		}
	}
	mount()
	t.Cleanup(func() {
		_ = syscall.Unmount(projects, syscall.MNT_DETACH) // it may not be mounted
		_ = syscall.Unmount(disk, syscall.MNT_DETACH)
	})
	d := w.serve("--sweep", "1s")
	s := w.read(0)
	crowd := w.crowd(3)
	w.until("every agent", func() bool { return len(w.agents()) == len(crowd) })
	for range f.Tried {
		for _, p := range crowd {
			p.turn(t, 100)
		}
		s.heard(f, crowd)
		if err := syscall.Unmount(projects, syscall.MNT_DETACH); err != nil {
			t.Fatal(err)
		}
		sweeps := w.status().Watch.Sweeps
		w.until("two sweeps without it", func() bool { return w.status().Watch.Sweeps > sweeps+2 })
		mount()
		began := time.Now()
		for _, p := range crowd {
			p.turn(t, 100)
		}
		s.heard(f, crowd)
		f.recovered(time.Since(began))
	}
	d.stop()
	f.report(t)
}
