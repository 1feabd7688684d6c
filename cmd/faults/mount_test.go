package faults

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
)

const ownProcesses = syscall.CLONE_NEWPID | syscall.CLONE_NEWNS

// alone runs the present test again where there are no processes but its own: a
// daemon reads what all agents of its user write, those of other tests too. It
// is true in there. When the test ends, so does every process in there. Where
// the system does not allow that, the test runs as it is, only slower.
func alone(t *testing.T) bool {
	t.Helper()
	if os.Getenv(insideVar) == "" && !canBeAlone() {
		return true
	}
	return mounts(t)
}

// mounts is alone for a test that mounts file systems, and cannot do without.
func mounts(t *testing.T) bool {
	t.Helper()
	if !inside(t, ownProcesses) {
		return false
	}
	if err := ownProc(); err != nil {
		missing(t, err.Error())
	}
	return true
}

// canBeAlone tries it.
var canBeAlone = sync.OnceValue(func() bool {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), partVar+"=alone")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | ownProcesses,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	return cmd.Run() == nil
})

func init() { parts["alone"] = ownProc }

// ownProc makes /proc that of the present namespace of processes.
func ownProc() error {
	if err := syscall.Mount("none", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := syscall.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	return nil
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
