package ipc

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// peer is who is at the other end of a connection.
type peer struct {
	uid int
	// apart is a peer that is not certainly in our network and user namespaces:
	// a sandbox or a container that was given the socket.
	apart bool
}

// openToAll are the methods that a peer in another namespace may call: who is
// there, and what the daemon can do.
var openToAll = map[string]bool{"Hello": true, "Capabilities": true, "Catalog": true}

// errNoRoom is returned with the user of a peer that could not be looked at any
// further because this process or the system has no descriptor left: ask again.
var errNoRoom = errors.New("no room to look at the peer")

// peerOf is the peer of a Unix socket, as the kernel noted it when the
// connection was made (SO_PEERCRED).
func peerOf(conn net.Conn) (peer, error) {
	uc, ok := conn.(*net.UnixConn)
	if !ok {
		return peer{}, errors.New("peer credentials: not a unix socket")
	}
	raw, err := uc.SyscallConn()
	if err != nil {
		return peer{}, fmt.Errorf("peer credentials: %w", err)
	}
	var peerErr error
	var p peer
	err = raw.Control(func(fd uintptr) {
		var cred *syscall.Ucred
		if cred, peerErr = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED); peerErr == nil {
			p.uid = int(cred.Uid)
			p.apart, peerErr = isApart(int(fd), int(cred.Pid), p.uid)
		}
	})
	if err = errors.Join(err, peerErr); err != nil {
		return p, fmt.Errorf("peer credentials: %w", err)
	}
	return p, nil
}

// isApart says whether a peer is in another network or user namespace. What
// cannot be told counts as apart: a process that has ended, one of a process
// namespace that is not below ours, one that hides from its own user. Another
// user's root always hides from us; it is served as root. The error is
// errNoRoom.
func isApart(conn, pid, uid int) (bool, error) {
	same, err := sameNamespaces(conn, pid)
	return judge(same, err, uid, os.Geteuid())
}

// judge decides by what a daemon of a user could see of a peer.
func judge(same bool, err error, uid, daemon int) (apart bool, noRoom error) {
	switch {
	case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE), errors.Is(err, unix.ENOMEM):
		return true, fmt.Errorf("%w: %w", errNoRoom, err)
	case err != nil && uid == 0 && daemon != 0:
		return false, nil
	}
	return err != nil || !same, nil
}

// namespaces are those that a peer has to share.
var namespaces = [...]string{"net", "user"}

// ownNamespaces are this process's own, which it never leaves.
var ownNamespaces = sync.OnceValues(func() (own [len(namespaces)]os.FileInfo, err error) {
	for i, kind := range namespaces {
		if own[i], err = os.Stat(filepath.Join("/proc/self/ns", kind)); err != nil {
			return own, err
		}
	}
	return own, nil
})

func sameNamespaces(conn, pid int) (bool, error) {
	if pid <= 0 {
		return false, errors.New("no process id")
	}
	ours, err := ownNamespaces()
	if err != nil {
		return false, err
	}
	same := true
	for i, kind := range namespaces {
		theirs, err := os.Stat(filepath.Join("/proc", strconv.Itoa(pid), "ns", kind))
		if err != nil {
			return false, err
		}
		same = same && os.SameFile(theirs, ours[i])
	}
	// The pid may have been another's by then. Linux before 6.5 has no handle on
	// the peer, and there this stays possible.
	handle, err := unix.GetsockoptInt(conn, unix.SOL_SOCKET, unix.SO_PEERPIDFD)
	if errors.Is(err, unix.ENOPROTOOPT) {
		return same, nil
	}
	if err != nil {
		return false, err
	}
	defer unix.Close(handle)
	return same, unix.PidfdSendSignal(handle, 0, nil, 0)
}
