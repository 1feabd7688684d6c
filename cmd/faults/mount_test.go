package faults

import (
	"os"
	"syscall"
	"testing"
)

// mounts is inside with mounts that nobody else sees.
func mounts(t *testing.T) bool {
	t.Helper()
	if !inside(t, syscall.CLONE_NEWNS) {
		return false
	}
	if err := syscall.Mount("none", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		missing(t, "mounts cannot be made private: "+err.Error())
	}
	return true
}

// mountTmpfs mounts a file system in memory that is gone at the end of the test.
func mountTmpfs(t *testing.T, at, options string) {
	t.Helper()
	if err := os.MkdirAll(at, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("none", at, "tmpfs", 0, options); err != nil {
		missing(t, "tmpfs cannot be mounted: "+err.Error())
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(at, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

// remount makes such a file system read-only, or writable again.
func remount(at string, readOnly bool) error {
	flags := uintptr(syscall.MS_REMOUNT)
	if readOnly {
		flags |= syscall.MS_RDONLY
	}
	return syscall.Mount("none", at, "tmpfs", flags, "")
}
