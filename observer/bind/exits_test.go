package bind

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func descriptors(t *testing.T) int {
	t.Helper()
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}

// started starts a process that lives until it is killed.
func started(t *testing.T, name string, args ...string) (*exec.Cmd, uint64) {
	t.Helper()
	cmd := exec.Command(name, args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // most tests have ended it
		_ = cmd.Wait()
	})
	start, err := startTicks(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	return cmd, start
}

// running runs a watch until the test stops it.
func running(t *testing.T) (x *Exits, stop func() error) {
	t.Helper()
	x, err := NewExits()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { err = x.Run(ctx) }) // joined by stop
	stop = sync.OnceValue(func() error { cancel(); wg.Wait(); return err })
	t.Cleanup(func() { _ = stop() }) // the tests that look at it call it themselves
	return x, stop
}

func next(t *testing.T, x *Exits) Exit {
	t.Helper()
	select {
	case e, ok := <-x.C():
		if !ok {
			t.Fatal("closed")
		}
		return e
	case <-time.After(deadline):
		t.Fatalf("no exit in %v", deadline)
	}
	return Exit{}
}

func TestExits(t *testing.T) {
	goroutines, fds := runtime.NumGoroutine(), descriptors(t)
	x, stop := running(t)
	var want []Exit
	for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		cmd, start := started(t, "sleep", "1000")
		e := Exit{cmd.Process.Pid, start}
		if err := x.Watch(e.PID, e.StartTicks); err != nil {
			t.Fatal(err)
		}
		if err := x.Watch(e.PID, e.StartTicks); err != nil { // twice is once
			t.Fatal(err)
		}
		if err := cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		// It is not collected yet: a zombie has ended.
		if got := next(t, x); got != e {
			t.Fatalf("exit %+v, want %+v", got, e)
		}
		_ = cmd.Wait()                                       // it was killed
		if err := x.Watch(e.PID, e.StartTicks); err != nil { // it is gone
			t.Fatal(err)
		}
		want = append(want, e)
		if got := next(t, x); got != e {
			t.Fatalf("exit %+v, want %+v", got, e)
		}
	}

	// A pid that belongs to another process by now.
	cmd, start := started(t, "sleep", "1000")
	if err := x.Watch(cmd.Process.Pid, start+1); err != nil {
		t.Fatal(err)
	}
	if got := next(t, x); got != (Exit{cmd.Process.Pid, start + 1}) {
		t.Fatalf("exit %+v", got)
	}
	// Many at once, each told exactly once, while the reader is slow.
	if err := x.Watch(cmd.Process.Pid, start); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		for _, e := range want {
			if err := x.Watch(e.PID, e.StartTicks); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 40 {
		if got := next(t, x); !slices.Contains(want, got) {
			t.Fatalf("exit %+v of a process that lives", got)
		}
	}
	if err := x.Watch(0, 1); err == nil {
		t.Error("pid 0 is watched")
	}
	if err := stop(); err != nil {
		t.Errorf("Run = %v", err)
	}
	if _, ok := <-x.C(); ok {
		t.Error("an exit after the end")
	}
	if err := x.Watch(cmd.Process.Pid, start); !errors.Is(err, ErrClosed) {
		t.Errorf("Watch after the end = %v", err)
	}
	if err := x.Run(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("second Run = %v", err)
	}
	x.Close()
	_ = cmd.Process.Kill() // so that its descriptor is given back before the count
	_ = cmd.Wait()
	until(t, "goroutines are joined", func() bool { return runtime.NumGoroutine() <= goroutines })
	if now := descriptors(t); now > fds {
		t.Errorf("%d descriptors, before %d", now, fds)
	}
}

// What wakes the watch is taken, or it would never sleep again.
func TestExitsSleepAgain(t *testing.T) {
	x, _ := running(t)
	for range 3 { // gone before it was watched: told by a wake
		if err := x.Watch(1<<22-1, 1); err != nil {
			t.Fatal(err)
		}
		next(t, x)
	}
	cmd, start := started(t, "sleep", "60")
	if err := errors.Join(x.Watch(cmd.Process.Pid, start), cmd.Process.Kill()); err != nil {
		t.Fatal(err)
	}
	next(t, x)
	fds := []unix.PollFd{{Fd: int32(x.epoll), Events: unix.POLLIN}}
	if n, err := unix.Poll(fds, 0); n != 0 || err != nil {
		t.Errorf("%d descriptors are ready, %v: want none", n, err)
	}
}

// Nobody reads: the end does not wait for that.
func TestExitsStopUnread(t *testing.T) {
	for _, how := range []string{"context", "close"} {
		x, stop := running(t)
		for range 3 {
			if err := x.Watch(1<<22-1, 1); err != nil { // nobody has this pid with this start
				t.Fatal(err)
			}
		}
		until(t, "it runs", func() bool {
			x.mu.Lock()
			defer x.mu.Unlock()
			return x.running
		})
		if how == "close" {
			x.Close()
		}
		done := make(chan error, 1)
		go func() { done <- stop() }() // joined by the receive below
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("%s: Run = %v", how, err)
			}
		case <-time.After(deadline):
			t.Fatalf("%s: Run did not end", how)
		}
	}
}

func TestExitsNeverRun(t *testing.T) {
	fds := descriptors(t)
	x, err := NewExits()
	if err != nil {
		t.Fatal(err)
	}
	cmd, start := started(t, "sleep", "1000")
	if err := x.Watch(cmd.Process.Pid, start); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // it was killed
	x.Close()
	x.Close()
	if now := descriptors(t); now > fds {
		t.Errorf("%d descriptors, before %d", now, fds)
	}
	if err := x.Run(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("Run after Close = %v", err)
	}
	// What was watched before Run is told when it runs.
	if x, err = NewExits(); err != nil {
		t.Fatal(err)
	}
	if err := x.Watch(cmd.Process.Pid, start); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { err = x.Run(ctx) })
	if got := next(t, x); got != (Exit{cmd.Process.Pid, start}) {
		t.Errorf("exit %+v", got)
	}
	cancel()
	wg.Wait()
	if err != nil {
		t.Errorf("Run = %v", err)
	}
}

// The process of another parent, which nobody here can wait for.
func TestExitOfAGrandchild(t *testing.T) {
	x, _ := running(t)
	cmd := exec.Command("sh", "-c", "sleep 1000 >/dev/null 2>&1 & echo $!")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil {
		t.Fatal(err)
	}
	start, err := startTicks(pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Watch(pid, start); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if got := next(t, x); got != (Exit{pid, start}) {
		t.Errorf("exit %+v", got)
	}
}

func TestExitsBound(t *testing.T) {
	x, err := NewExits()
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	x.most = maxWatched // whatever the limit of descriptors is here
	for i := range maxWatched {
		if err := x.Watch(1<<22-1, uint64(i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := x.Watch(1<<22-1, maxWatched); !errors.Is(err, ErrTooMany) {
		t.Errorf("Watch over the bound = %v", err)
	}
}

// Watched processes leave most of the descriptors to everything else.
func TestExitsLeaveDescriptors(t *testing.T) {
	var old syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	low := old
	low.Cur = 64
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &low); err != nil {
		t.Fatal(err)
	}
	x, err := NewExits()
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	var all []Exit
	for range 20 {
		cmd, start := started(t, "sleep", "1000")
		all = append(all, Exit{cmd.Process.Pid, start})
	}
	before := descriptors(t)
	for i, e := range all {
		if err := x.Watch(e.PID, e.StartTicks); (err == nil) != (i < 16) || err != nil && !errors.Is(err, ErrTooMany) {
			t.Fatalf("process %d: %v", i, err)
		}
	}
	if n := descriptors(t) - before; n != 16 {
		t.Errorf("%d descriptors for watches, want a quarter of 64", n)
	}
}

func TestExitsWithoutDescriptors(t *testing.T) {
	var old syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	x, err := NewExits()
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	low := old
	low.Cur = 3 // below what is open: every new descriptor is refused
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &low); err != nil {
		t.Fatal(err)
	}
	watch := x.Watch(os.Getpid(), 1)
	_, fresh := NewExits()
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(watch, syscall.EMFILE) || !errors.Is(fresh, syscall.EMFILE) {
		t.Errorf("Watch = %v, NewExits = %v, want EMFILE", watch, fresh)
	}
}
