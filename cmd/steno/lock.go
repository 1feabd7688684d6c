package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"steno/owned"
)

// hintWritable is for a state directory that cannot be written.
const hintWritable = "make the state directory writable for this user, with free space"

// hintUnsafe is for a state directory that is not this user's alone.
const hintUnsafe = "use a directory of your own that nobody else may write in (chmod go-w)"

// lockStateDir makes the state directory and takes the lock of its one daemon.
// The lock ends with the process, whatever ends it, so the file may stay.
func lockStateDir(dir string) (*os.File, error) {
	if err := owned.MakeDir(dir); err != nil {
		if errors.Is(err, owned.ErrUnsafe) {
			return nil, hintError{fmt.Errorf("make state directory: %w", err), hintUnsafe}
		}
		return nil, unwritable(fmt.Errorf("make state directory: %w", err))
	}
	f, err := owned.OpenFile(filepath.Join(dir, "lock"))
	if err != nil {
		return nil, unwritable(fmt.Errorf("open lock of state directory: %w", err))
	}
	if err := takeLock(f); err != nil {
		defer f.Close()
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("lock state directory %s: %w", dir, err)
		}
		holder := ""
		if data, err := io.ReadAll(io.LimitReader(f, 32)); err == nil {
			if pid, err := strconv.Atoi(strings.TrimSpace(string(data))); err == nil {
				holder = fmt.Sprintf(" (pid %d)", pid)
			}
		}
		return nil, hintError{
			fmt.Errorf("another steno%s already uses the state directory %s", holder, dir),
			"stop it, or give this one its own --state-dir and --socket",
		}
	}
	// Only for the message above; the lock itself is the flock.
	if err := f.Truncate(0); err != nil {
		f.Close()
		return nil, unwritable(fmt.Errorf("write lock of state directory: %w", err))
	}
	if _, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0); err != nil {
		f.Close()
		return nil, unwritable(fmt.Errorf("write lock of state directory: %w", err))
	}
	return f, nil
}

// unwritable adds what to do about a state directory that cannot be written.
func unwritable(err error) error {
	for _, no := range []error{unix.EROFS, unix.EACCES, unix.EPERM, unix.ENOSPC, unix.EDQUOT} {
		if errors.Is(err, no) {
			return hintError{err, hintWritable}
		}
	}
	return err
}

// A daemon that was killed may hold its lock for a moment: while the kernel ends
// it, or in a child that it had forked and that has not become tmux yet.
const (
	lockWait = time.Second
	lockTry  = 20 * time.Millisecond
)

// takeLock locks f, and waits lockWait for another holder to go.
func takeLock(f *os.File) error {
	for deadline := time.Now().Add(lockWait); ; time.Sleep(lockTry) {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) || time.Now().After(deadline) {
			return err
		}
	}
}
