package bind

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// maxOpen bounds the descriptors that are looked at in one process.
const maxOpen = 4096

// ErrGone is returned when the process does not exist (any more).
var ErrGone = errors.New("process is gone")

// readProc reads at most len(buf) bytes of a file of /proc.
func readProc(path string, buf []byte) ([]byte, error) {
	fd, err := retry(func() (int, error) { return unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0) })
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	n := 0
	for n < len(buf) {
		m, err := retry(func() (int, error) { return unix.Read(fd, buf[n:]) })
		if err != nil {
			return nil, err
		}
		if m == 0 {
			break
		}
		n += m
	}
	return buf[:n], nil
}

func retry(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if err != unix.EINTR {
			return n, err
		}
	}
}

// link reads a link of /proc, "" when that is not allowed.
func link(path string) string {
	var buf [4096]byte
	n, err := unix.Readlink(path, buf[:])
	if err != nil || n <= 0 {
		return ""
	}
	return string(buf[:n])
}

// program is the target of an exe link. The kernel marks a program whose file
// was replaced, as by an update while it runs; it is still that program.
func program(path string) string { return strings.TrimSuffix(link(path), " (deleted)") }

// gone tells a vanished process from one that cannot be read.
func gone(err error) error {
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESRCH) {
		return ErrGone
	}
	return err
}

// Open lists the regular files that the process holds open, by path, sorted,
// each once, and for each the largest file offset of its descriptors, in bytes.
// Files that were deleted are left out. Of a process with more than 4,096
// descriptors only that many are looked at.
func (s *Scanner) Open(pid int) ([]string, map[string]int64, error) {
	dir := s.proc + "/" + strconv.Itoa(pid) + "/fd"
	f, err := os.Open(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("list open files: %w", gone(err))
	}
	defer f.Close()
	names, err := f.Readdirnames(maxOpen)
	if err != nil && err != io.EOF {
		return nil, nil, fmt.Errorf("list open files: %w", gone(err))
	}
	var paths []string
	at := make(map[string]int64)
	for _, name := range names {
		target := link(dir + "/" + name)
		if !strings.HasPrefix(target, "/") {
			continue // socket:[1], pipe:[2], anon_inode:...
		}
		var st unix.Stat_t
		if err := unix.Stat(dir+"/"+name, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG || st.Nlink == 0 {
			continue
		}
		paths = append(paths, target)
		if pos, ok := s.position(strconv.Itoa(pid), name); ok {
			at[target] = max(at[target], pos)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths), at, nil
}

// position is the file offset of a descriptor.
func (s *Scanner) position(pid, fd string) (int64, bool) {
	b := make([]byte, 256) // pos is the first line
	f, err := os.Open(s.proc + "/" + pid + "/fdinfo/" + fd)
	if err != nil {
		return 0, false
	}
	defer f.Close()
	n, _ := f.Read(b)
	line, _, _ := strings.Cut(string(b[:n]), "\n")
	text, ok := strings.CutPrefix(line, "pos:")
	if !ok {
		return 0, false
	}
	pos, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	return pos, err == nil && pos >= 0
}
