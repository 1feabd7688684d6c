package ipc

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"steno/ipc/wire"
	"steno/store"
)

// apartEnv is the socket that a client in another process asks.
const apartEnv = "STENO_IPC_ASK"

// TestAskAll is the part of that client: it asks for everything and prints each
// method with the code of its answer.
func TestAskAll(t *testing.T) {
	path := os.Getenv(apartEnv)
	if path == "" {
		t.Skip("only in a process of TestOtherNamespace")
	}
	c, err := Dial(t.Context(), path)
	if err != nil {
		fmt.Println("answer Hello", err)
		return
	}
	defer c.Close()
	for _, method := range allMethods() {
		_, err := call[any](t.Context(), c, method, wire.ExplainParams{Target: "maple"})
		var e *Error
		if errors.As(err, &e) {
			fmt.Println("answer", method, e.Code)
		} else {
			fmt.Println("answer", method, err)
		}
	}
}

func allMethods() []string {
	var out []string
	for m := range methods {
		out = append(out, m)
	}
	slices.Sort(out)
	return out
}

// A client in another network or user namespace reads the catalog and the
// capabilities, and nothing else.
func TestOtherNamespace(t *testing.T) {
	s := openLog(t, store.Options{})
	s.add(t, wire.AssistantMessage, agentA, "a secret")
	var log notes
	d := serve(t, Options{Store: s, Log: log.logger()})
	maps := func(a *syscall.SysProcAttr) {
		a.Cloneflags |= syscall.CLONE_NEWUSER
		a.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		a.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	for _, tt := range []struct {
		name  string
		apart bool
		enter func(*syscall.SysProcAttr)
	}{
		{"none", false, func(*syscall.SysProcAttr) {}},
		{"user", true, maps},
		{"user and network", true, func(a *syscall.SysProcAttr) { maps(a); a.Cloneflags |= syscall.CLONE_NEWNET }},
		{"network", true, func(a *syscall.SysProcAttr) {
			a.Cloneflags |= syscall.CLONE_NEWNET
			if os.Getuid() != 0 {
				maps(a) // only root makes the one without the other
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestAskAll$")
			cmd.Env = append(os.Environ(), apartEnv+"="+d.path)
			cmd.SysProcAttr = new(syscall.SysProcAttr)
			tt.enter(cmd.SysProcAttr)
			out, err := cmd.CombinedOutput()
			if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSPC) {
				t.Skipf("this system allows no new namespace: %v", err)
			}
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			var got, want []string
			for line := range strings.Lines(string(out)) {
				if strings.HasPrefix(line, "answer ") {
					got = append(got, strings.TrimSpace(line))
				}
			}
			for _, m := range allMethods() {
				answer := "answer " + m + " <nil>"
				if tt.apart && m != "Hello" && m != "Capabilities" && m != "Catalog" {
					answer = "answer " + m + " unauthorized"
				}
				want = append(want, answer)
			}
			if !slices.Equal(got, want) {
				t.Errorf("answers:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
	if n := strings.Count(log.String(), "another namespace"); n > 1 {
		t.Errorf("%d lines in the log, want at most 1:\n%s", n, log.String())
	}
	if strings.Contains(log.String(), "secret") {
		t.Error("the log has content")
	}
}

// What cannot be told counts as apart.
func TestPeerThatCannotBeTold(t *testing.T) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fds[0])
	defer unix.Close(fds[1])
	ended := exec.Command("true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	for pid, want := range map[int]bool{os.Getpid(): false, 0: true, -1: true, ended.Process.Pid: true, 1 << 30: true} {
		if got, err := isApart(fds[0], pid, 4711); got != want || err != nil {
			t.Errorf("process %d is apart: %v %v, want %v", pid, got, err, want)
		}
	}
}

// The process that a connection came from has ended, and another one has its
// number: what is known of that one counts for nothing.
func TestPeerHasEnded(t *testing.T) {
	path := filepath.Join(shortDir(t), "s")
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestAskAll$")
	cmd.Env = append(os.Environ(), apartEnv+"="+path)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	conn, err := ln.AcceptUnix()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	raw, err := conn.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	ask := func(pid int) (apart bool) {
		t.Helper()
		if e := raw.Control(func(fd uintptr) { apart, err = isApart(int(fd), pid, os.Getuid()) }); e != nil || err != nil {
			t.Fatal(e, err)
		}
		return apart
	}
	if err := raw.Control(func(fd uintptr) {
		_, err = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PEERPIDFD)
	}); err != nil {
		t.Fatal(err)
	}
	if errors.Is(err, unix.ENOPROTOOPT) {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		t.Skip("this kernel gives no handle on a peer")
	}
	if ask(cmd.Process.Pid) {
		t.Error("a living process of ours is apart")
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	if !ask(os.Getpid()) {
		t.Error("what is known of another process counts for one that has ended")
	}
}

// Another user's root cannot be looked at by a daemon that is not root, and is
// served all the same; everybody else whom one cannot look at is apart.
func TestWhoCannotBeLookedAt(t *testing.T) {
	hidden, none := os.ErrPermission, unix.EMFILE
	for _, tt := range []struct {
		same        bool
		err         error
		uid, daemon int
		apart, room bool
	}{
		{true, nil, 1000, 1000, false, true},
		{false, nil, 1000, 1000, true, true},
		{false, nil, 0, 1000, true, true},
		{false, hidden, 1000, 1000, true, true},
		{false, hidden, 0, 1000, false, true},
		{false, hidden, 0, 0, true, true},
		{true, unix.ESRCH, 1000, 1000, true, true},
		{false, none, 1000, 1000, true, false},
		{false, none, 0, 1000, true, false},
	} {
		apart, err := judge(tt.same, tt.err, tt.uid, tt.daemon)
		if apart != tt.apart || (err == nil) != tt.room || err != nil && !errors.Is(err, errNoRoom) {
			t.Errorf("%+v: apart %v, %v", tt, apart, err)
		}
	}
}

// A daemon without a free descriptor cannot hold on to the peer. That is no word
// about the peer.
func TestPeerWithoutDescriptors(t *testing.T) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fds[0])
	defer unix.Close(fds[1])
	if _, err := unix.GetsockoptInt(fds[0], unix.SOL_SOCKET, unix.SO_PEERPIDFD); errors.Is(err, unix.ENOPROTOOPT) {
		t.Skip("this kernel gives no handle on a peer")
	}
	if _, err := ownNamespaces(); err != nil {
		t.Fatal(err)
	}
	var limit, none unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	none.Max = limit.Max
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &none); err != nil {
		t.Fatal(err)
	}
	_, err = isApart(fds[0], os.Getpid(), os.Getuid())
	if back := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); back != nil {
		t.Fatal(back)
	}
	if !errors.Is(err, errNoRoom) {
		t.Errorf("without descriptors: %v, want %v", err, errNoRoom)
	}
}

// Another user is refused with one line, and logged once.
func TestOtherUser(t *testing.T) {
	s := openLog(t, store.Options{})
	var log notes
	uid := 4711
	var mu sync.Mutex
	d := serve(t, Options{Store: s, Log: log.logger(), peer: func(net.Conn) (peer, error) {
		mu.Lock()
		defer mu.Unlock()
		switch uid {
		case -1:
			return peer{}, errors.New("no credentials")
		case -2:
			return peer{uid: os.Getuid()}, errNoRoom
		case -3:
			return peer{uid: 4712}, errNoRoom
		}
		return peer{uid: uid}, nil
	}})
	for _, tt := range []struct {
		uid  int
		code Code
	}{{4711, CodeUnauthorized}, {4711, CodeUnauthorized}, {-1, CodeUnauthorized}, {-2, CodeTooMany}, {-3, CodeUnauthorized}, {0, ""}, {os.Getuid(), ""}} {
		mu.Lock()
		uid = tt.uid
		mu.Unlock()
		c, err := Dial(t.Context(), d.path)
		var e *Error
		switch {
		case tt.code == "" && err != nil:
			t.Errorf("uid %d: %v", tt.uid, err)
		case tt.code != "" && (!errors.As(err, &e) || e.Code != tt.code):
			t.Errorf("uid %d: %v, want %s", tt.uid, err, tt.code)
		}
		if c != nil {
			c.Close()
		}
	}
	if n := strings.Count(log.String(), "4711"); n != 1 {
		t.Errorf("%d log lines about the user, want 1:\n%s", n, log.String())
	}
}

// The kernel's word about the peer is what counts. Only root can put on
// another user's clothes, and an abstract socket has no file modes in between.
func TestPeerCredentials(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root to become another user")
	}
	s := NewServer(Options{Store: openLog(t, store.Options{}), Live: &stub{}, UID: 4712})
	name := fmt.Sprintf("@steno-test-%d", os.Getpid())
	ln, err := net.Listen("unix", name)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	for _, uid := range []int{4711, 4712, 0} {
		conns := make(chan net.Conn, 1)
		go func() {
			// The thread ends with the goroutine, and its user with it.
			runtime.LockOSThread()
			defer close(conns)
			if uid != 0 {
				if _, _, e := syscall.RawSyscall(syscall.SYS_SETRESUID, uintptr(uid), uintptr(uid), uintptr(uid)); e != 0 {
					t.Error(e)
					return
				}
			}
			conn, err := net.Dial("unix", name)
			if err != nil {
				t.Error(err)
				return
			}
			conns <- conn
		}()
		theirs, ok := <-conns
		if !ok {
			t.FailNow()
		}
		ours, err := ln.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := peerOf(ours); err != nil || got.uid != uid {
			t.Errorf("peerOf = %+v, %v, want %d", got, err, uid)
		}
		if _, got := s.admit(ours); got != (uid != 4711) {
			t.Errorf("user %d is served: %v", uid, got)
		}
		ours.Close()
		theirs.Close()
	}
	if _, err := peerOf(&net.TCPConn{}); err == nil {
		t.Error("a TCP connection has a user")
	}
}
