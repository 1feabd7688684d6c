package watch

import (
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// foreign are the file systems whose files change without an event here,
// by the magic that statfs gives.
var foreign = map[uint32]string{
	0x01021997: "9p",
	0x00006969: "nfs",
	0x65735546: "fuse",
	0xff534d42: "cifs",
	0xfe534d42: "smb",
	0x0000517b: "smb",
	0x53464846: "drvfs",
	0x786f4256: "vboxsf",
	0x5346414f: "afs",
	0x00c36400: "ceph",
	0x0bd00bd0: "lustre",
}

// alien says whether a directory lies on such a file system.
func alien(dir string) (string, bool) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return "", false
	}
	name, ok := foreign[uint32(st.Type)]
	return name, ok
}

// systemBudget is how many watches the system allows this user.
func systemBudget() int {
	b, err := os.ReadFile("/proc/sys/fs/inotify/max_user_watches")
	if err != nil {
		return defaultBudget
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil || n < 1 {
		return 1
	}
	return n
}

// inode names a file whatever its path is.
type inode struct{ dev, ino uint64 }

func inodeOf(fi fs.FileInfo) inode {
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		return inode{uint64(st.Dev), st.Ino}
	}
	return inode{}
}

// openDir opens a directory and nothing else: a FIFO or a device is refused by
// the system before it is opened.
func openDir(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK, 0)
}
