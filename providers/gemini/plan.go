package gemini

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// maxPlan bounds a plan's file, in bytes. A longer one is no plan.
const maxPlan = 256 << 10

// readPlan reads the plan that a call of exit_plan_mode names: a file in
// <project>/<session>/plans, beside the chats of path (0.61.0: the tool accepts
// no other place). No link and no ".." leads out of that directory. It is ""
// when there is no such file; the reason makes no difference to anybody.
func readPlan(path, session, file string) string {
	if file == "" || !filepath.IsLocal(file) {
		return ""
	}
	if session == "" {
		session = sessionOf(path)
	}
	if session == "" {
		return ""
	}
	project, err := os.OpenRoot(filepath.Dir(filepath.Dir(path)))
	if err != nil {
		return ""
	}
	defer project.Close()
	plans, err := project.OpenRoot(filepath.Join(session, "plans"))
	if err != nil {
		return ""
	}
	defer plans.Close()
	b, err := readSmall(plans, file, maxPlan)
	if err != nil {
		return ""
	}
	return string(b)
}

var errNotSmall = errors.New("not a small regular file")

// readSmall reads a regular file of at most max bytes. It does not wait, should
// somebody have put a pipe there.
func readSmall(root *os.Root, name string, max int64) ([]byte, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > max {
		return nil, errNotSmall
	}
	b, err := io.ReadAll(io.LimitReader(f, max+1))
	if err == nil && int64(len(b)) > max {
		return nil, errNotSmall
	}
	return b, err
}

// readHead reads the first bytes of a regular file, and its size and time.
func readHead(path string, most int64) ([]byte, fs.FileInfo, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, errNotSmall
	}
	b, err := io.ReadAll(io.LimitReader(f, most))
	return b, info, err
}
