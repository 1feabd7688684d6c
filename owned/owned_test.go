package owned

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

const stranger = 4711 // no user of a test machine

// TestMain lets the test binary be another user's process; see TestAnyUmask.
func TestMain(m *testing.M) {
	if dir := os.Getenv("STENO_OWNED_DIR"); dir != "" {
		syscall.Umask(0o777)
		for range 2 {
			if err := makeBoth(dir); err != nil {
				fmt.Println(err)
				os.Exit(1)
			}
		}
		return
	}
	if target, path, ok := strings.Cut(os.Getenv("STENO_OWNED_TOGGLE"), ":"); ok {
		toggle(target, path)
	}
	os.Exit(m.Run())
}

// stranded is this test binary as another user's process, from a copy in dir that he
// may read.
func stranded(t *testing.T, dir string, env ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Open("/proc/self/exe")
	must(t, err)
	defer self.Close()
	program, err := os.OpenFile(filepath.Join(dir, "program"), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755)
	must(t, err)
	_, err = io.Copy(program, self)
	must(t, err)
	must(t, program.Close())
	cmd := exec.CommandContext(t.Context(), program.Name())
	cmd.Env, cmd.Dir = append(env, "GORACE=atexit_sleep_ms=0"), "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: stranger, Gid: stranger}}
	return cmd
}

func makeBoth(dir string) error {
	if err := MakeDir(filepath.Join(dir, "a", "b", "c")); err != nil {
		return err
	}
	f, err := OpenFile(filepath.Join(dir, "a", "b", "c", "lock"))
	if err != nil {
		return err
	}
	return f.Close()
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func checkModes(t *testing.T, dir string) {
	t.Helper()
	for name, want := range map[string]fs.FileMode{"a": 0o700, "a/b": 0o700, "a/b/c": 0o700, "a/b/c/lock": 0o600} {
		if fi, err := os.Stat(filepath.Join(dir, name)); err != nil || fi.Mode().Perm() != want {
			t.Errorf("%s: %v, %v, want mode %#o", name, fi.Mode(), err, want)
		}
	}
}

// The modes do not depend on the umask, not even for a user whom it would keep out
// of what was just made, and who finds a file that was made so.
func TestAnyUmask(t *testing.T) {
	for _, mask := range []int{0, 0o022, 0o277, 0o777} {
		dir := t.TempDir()
		old := syscall.Umask(mask)
		err := makeBoth(dir)
		syscall.Umask(old)
		must(t, err)
		checkModes(t, dir)
	}
	if os.Getuid() != 0 {
		return // the above was such a user
	}
	dir, err := os.MkdirTemp("", "owned") // open to others, as t.TempDir is not
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	must(t, os.Chmod(dir, 0o755))
	home := filepath.Join(dir, "home")
	must(t, os.Mkdir(home, 0o755))
	must(t, os.MkdirAll(filepath.Join(home, "a", "b", "c"), 0o700))
	must(t, os.WriteFile(filepath.Join(home, "a", "b", "c", "lock"), nil, 0o600))
	must(t, os.Chmod(filepath.Join(home, "a", "b", "c", "lock"), 0))
	for _, name := range []string{"", "a", "a/b", "a/b/c", "a/b/c/lock"} {
		must(t, os.Chown(filepath.Join(home, name), stranger, stranger))
	}
	if out, err := stranded(t, dir, "STENO_OWNED_DIR="+home).CombinedOutput(); err != nil {
		t.Fatalf("as another user: %v: %s", err, out)
	}
	checkModes(t, home)
	must(t, os.RemoveAll(filepath.Join(home, "a")))
	// By a link of root, as /var/run is one.
	link := filepath.Join(dir, "link")
	must(t, os.Symlink(home, link))
	if out, err := stranded(t, dir, "STENO_OWNED_DIR="+link).CombinedOutput(); err != nil {
		t.Fatalf("as another user, from nothing: %v: %s", err, out)
	}
	checkModes(t, home)
}

// Links of this user and of root are followed, wherever they are on the way; those
// of others are not, and nothing is made behind them.
func TestLinks(t *testing.T) {
	dir := t.TempDir()
	at := func(names ...string) string { return filepath.Join(append([]string{dir}, names...)...) }
	must(t, os.MkdirAll(at("real", "deep"), 0o700))
	must(t, os.Symlink(at("real"), at("whole")))
	must(t, os.Symlink("real/deep/../deep", at("relative")))
	must(t, os.Symlink("whole", at("twice")))
	must(t, os.Symlink("nowhere", at("dangling")))
	must(t, os.Symlink("circle", at("circle")))
	// A way up from where a link led, not from where it stands.
	must(t, os.MkdirAll(at("real", "beside"), 0o700))
	must(t, os.Mkdir(at("elsewhere"), 0o700))
	must(t, os.Symlink(at("real", "deep"), at("elsewhere", "in")))
	must(t, os.Symlink("elsewhere/in/../beside", at("up")))
	for _, good := range []string{at("whole", "x"), at("relative"), at("relative", "y", "z"), at("twice", "deep", "v"), at("up", "u")} {
		if err := MakeDir(good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{at("dangling"), at("dangling", "x"), at("circle"), at("circle", "x")} {
		if err := MakeDir(bad); err == nil {
			t.Errorf("%s was made", bad)
		}
	}
	if os.Getuid() != 0 {
		t.Log("needs root to make another user's links")
		return
	}
	for _, tt := range []struct{ link, path string }{
		{at("whole"), at("whole")},
		{at("whole"), at("whole", "made")},
		{at("whole"), at("whole", "deep", "made")},
		{at("whole"), at("twice", "made")}, // behind a link of ours
		{at("relative"), at("relative", "made")},
	} {
		must(t, os.Lchown(tt.link, stranger, stranger))
		if err := MakeDir(tt.path); !errors.Is(err, ErrUnsafe) {
			t.Errorf("%s: %v, want ErrUnsafe", tt.path, err)
		}
		must(t, os.Lchown(tt.link, 0, 0))
	}
	if _, err := os.Lstat(at("real", "beside", "u")); err != nil {
		t.Error(err)
	}
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if strings.Contains(path, "made") {
			t.Errorf("%s was made", path)
		}
		return err
	})
	must(t, err)
}

func TestMakeDirRefuses(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	must(t, os.WriteFile(at("file"), []byte("mine"), 0o600))
	for name, mode := range map[string]fs.FileMode{"group": 0o770, "all": 0o777, "others": 0o702} {
		must(t, os.Mkdir(at(name), 0o700))
		must(t, os.Chmod(at(name), mode))
	}
	refused := []string{"file", "group", "all", "others"}
	if os.Getuid() == 0 {
		must(t, os.Mkdir(at("theirs"), 0o700))
		must(t, os.Chown(at("theirs"), stranger, stranger))
		refused = append(refused, "theirs")
	}
	for _, name := range refused {
		if err := MakeDir(at(name)); !errors.Is(err, ErrUnsafe) {
			t.Errorf("%s: %v, want ErrUnsafe", name, err)
		}
	}
	for _, path := range []string{at("file") + "/x", "/proc/none/x"} {
		if err := MakeDir(path); err == nil {
			t.Errorf("%s was made", path)
		}
	}
	must(t, os.Mkdir(at("readable"), 0o700))
	must(t, os.Chmod(at("readable"), 0o755))
	if err := MakeDir(at("readable")); err != nil {
		t.Errorf("one that others may read: %v", err)
	}
	t.Chdir(dir)
	for range 2 { // made, and found
		if err := MakeDir("relative/x"); err != nil {
			t.Error(err)
		}
	}
	if err := MakeDir("group"); !errors.Is(err, ErrUnsafe) {
		t.Errorf("a relative path: %v, want ErrUnsafe", err)
	}
}

func TestOpenFile(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	must(t, os.WriteFile(at("victim"), []byte("precious"), 0o644))
	must(t, os.Symlink(at("victim"), at("link")))
	must(t, os.Symlink(at("missing"), at("dangling")))
	must(t, syscall.Mkfifo(at("fifo"), 0o600))
	must(t, os.Mkdir(at("dir"), 0o700))
	refused := []string{"link", "dangling", "fifo", "dir"}
	if os.Getuid() == 0 {
		must(t, os.WriteFile(at("theirs"), nil, 0o600))
		must(t, os.Chown(at("theirs"), stranger, stranger))
		refused = append(refused, "theirs")
	}
	for _, name := range refused {
		if f, err := OpenFile(at(name)); err == nil {
			f.Close()
			t.Errorf("%s was opened", name)
		}
	}
	if _, err := os.Lstat(at("missing")); err == nil {
		t.Error("the target of a link was made")
	}
	f, err := OpenFile(at("victim"))
	must(t, err)
	defer f.Close()
	if b, err := io.ReadAll(f); err != nil || string(b) != "precious" {
		t.Errorf("content %q, %v", b, err)
	}
	if fi, err := f.Stat(); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", fi.Mode(), err)
	}
}

// toggle makes a link at path and removes it again, until the test ends it.
func toggle(target, path string) {
	for {
		_ = os.Symlink(target, path) // something else may be there
		_ = os.Remove(path)
	}
}

// A link that another user puts there between two looks is not followed, either.
func TestLinkThatComesAndGoes(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root to run as another user")
	}
	if b, err := os.ReadFile("/proc/sys/fs/protected_symlinks"); err != nil || strings.TrimSpace(string(b)) != "0" {
		t.Log("the kernel does not follow such links here: whatever this package does, the test passes")
	}
	dir, err := os.MkdirTemp("", "owned")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	must(t, os.Chmod(dir, 0o755))
	shared, target := filepath.Join(dir, "shared"), filepath.Join(dir, "target")
	must(t, os.Mkdir(shared, 0o700))
	must(t, os.Chmod(shared, 0o777|fs.ModeSticky))
	must(t, os.Mkdir(target, 0o700))
	path := filepath.Join(shared, "state")
	cmd := stranded(t, dir, "STENO_OWNED_TOGGLE="+target+":"+path)
	must(t, cmd.Start())
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	made, refused := 0, 0
	for end := time.Now().Add(20 * time.Second); (made < 500 || refused < 500) && time.Now().Before(end); {
		switch err := MakeDir(filepath.Join(path, "made")); {
		case errors.Is(err, ErrUnsafe):
			refused++
		case err == nil:
			made++
			must(t, os.Remove(filepath.Join(path, "made")))
			must(t, os.Remove(path))
		}
		if left, err := os.ReadDir(target); err != nil || len(left) > 0 {
			t.Fatalf("behind the link of another user: %v, %v (made %d, refused %d)", left, err, made, refused)
		}
	}
	if made == 0 || refused == 0 {
		t.Fatalf("made %d, refused %d: nobody raced", made, refused)
	}
}
