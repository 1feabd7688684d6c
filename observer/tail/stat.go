package tail

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Info is what a file's inode tells.
type Info struct {
	Dev, Ino uint64
	Size     int64     // bytes
	Changed  time.Time // of its content or its inode; nobody can set it, as they can its modification time
	Born     time.Time // zero when the file system keeps no birth time
	Regular  bool      // false for directories, FIFOs, sockets and devices
}

// Stat asks for the inode that path names, symbolic links followed. It opens
// nothing.
func Stat(path string) (Info, error) {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, unix.AT_STATX_SYNC_AS_STAT, unix.STATX_BASIC_STATS|unix.STATX_BTIME, &st)
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
		return plainStat(path) // old kernels, and sandboxes that do not know statx
	}
	if err != nil {
		return Info{}, fmt.Errorf("stat artifact: %w", &fs.PathError{Op: "statx", Path: path, Err: err})
	}
	in := Info{
		Dev:     unix.Mkdev(st.Dev_major, st.Dev_minor),
		Ino:     st.Ino,
		Size:    int64(st.Size),
		Changed: time.Unix(st.Ctime.Sec, int64(st.Ctime.Nsec)),
		Regular: st.Mode&unix.S_IFMT == unix.S_IFREG,
	}
	if st.Mask&unix.STATX_BTIME != 0 && (st.Btime.Sec != 0 || st.Btime.Nsec != 0) {
		in.Born = time.Unix(st.Btime.Sec, int64(st.Btime.Nsec))
	}
	return in, nil
}

func plainStat(path string) (Info, error) {
	fi, err := os.Stat(path)
	if err != nil {
		return Info{}, fmt.Errorf("stat artifact: %w", err)
	}
	in := Info{Size: fi.Size(), Regular: fi.Mode().IsRegular()}
	if sys, ok := fi.Sys().(*syscall.Stat_t); ok {
		in.Dev, in.Ino, in.Changed = uint64(sys.Dev), sys.Ino, time.Unix(sys.Ctim.Unix())
	}
	return in, nil
}
