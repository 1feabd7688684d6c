package bind

import (
	"fmt"
	"strconv"

	"golang.org/x/sys/unix"
)

// TTYDevice returns the number of the terminal at path in the encoding of
// Process.TTY (field 7 of /proc/<pid>/stat): minor bits 0-7, major, minor bits
// from 8 on.
func TTYDevice(path string) (uint64, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return 0, fmt.Errorf("look at terminal: %w", err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFCHR {
		return 0, fmt.Errorf("look at terminal: not a character device")
	}
	dev := uint64(st.Rdev) //nolint:unconvert // its width differs between architectures
	return encodeTTY(unix.Major(dev), unix.Minor(dev)), nil
}

func encodeTTY(major, minor uint32) uint64 {
	return uint64(minor&0xff | major<<8 | (minor&^0xff)<<12)
}

func decodeTTY(tty uint64) (major, minor uint32) {
	v := uint32(tty)
	return v >> 8 & 0xfff, v&0xff | v>>12&0xfff00
}

// ttyName names a terminal, and numbers it: the number of a pseudo terminal, or
// one from 2^31 on for any other terminal.
func ttyName(tty uint64) (string, uint32) {
	major, minor := decodeTTY(tty)
	switch {
	case major >= 136 && major <= 143: // Unix98 pseudo terminals
		n := (major-136)<<20 + minor
		return "/dev/pts/" + strconv.FormatUint(uint64(n), 10), n
	case major == 4 && minor < 64:
		return "/dev/tty" + strconv.FormatUint(uint64(minor), 10), 1<<31 | uint32(tty)
	}
	return fmt.Sprintf("tty %d:%d", major, minor), 1<<31 | uint32(tty)
}
