package bind

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

const (
	maxWatched   = 4096
	watchedShare = 4  // of the descriptors that this process may have, one in so many is for a watch
	exitEvents   = 64 // taken from the kernel at once
)

var (
	// ErrClosed is returned by Watch and Run after Run or Close has ended the
	// watching.
	ErrClosed = errors.New("exit watch is closed")
	// ErrTooMany is returned by Watch when 4,096 processes are watched, or a
	// quarter as many as this process may have descriptors.
	ErrTooMany = errors.New("too many watched processes")
)

// Exit says that exactly this process has ended.
type Exit struct {
	PID        int
	StartTicks uint64
}

// Exits tells when processes end, as soon as they do, without polling. A
// process counts as ended when it is a zombie. Needs Linux 5.3 (pidfd_open).
type Exits struct {
	epoll, wake int
	most        int // processes that are watched at once
	out         chan Exit
	done        chan struct{} // closed by Close

	mu      sync.Mutex // guards what follows
	fds     map[int]Exit
	byExit  map[Exit]int
	gone    []Exit // to be sent: they had ended before they could be watched
	running bool
	closed  bool
	freed   bool
}

// NewExits makes a watch without processes. Run it, or Close it.
func NewExits() (*Exits, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make exit watch: %w", err)
	}
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err == nil {
		err = unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, wake, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(wake)})
		if err != nil {
			unix.Close(wake)
		}
	}
	if err != nil {
		unix.Close(epoll)
		return nil, fmt.Errorf("make exit watch: %w", err)
	}
	return &Exits{
		epoll: epoll, wake: wake, most: mostWatched(),
		out:  make(chan Exit), // unbuffered: what was not taken is known not to be
		done: make(chan struct{}),
		fds:  make(map[int]Exit), byExit: make(map[Exit]int),
	}, nil
}

// mostWatched leaves descriptors for everything else: an exit that is not watched
// is seen a little later, but a file that cannot be opened is not read.
func mostWatched() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return maxWatched
	}
	return int(min(maxWatched, limit.Cur/watchedShare))
}

// C gives one Exit for each watched process, while Run runs. It is closed when
// Run returns.
func (x *Exits) C() <-chan Exit { return x.out }

// Watch adds a process. One that has ended already, or whose pid belongs to
// another process by now, gives its Exit at once. To watch a process twice is
// the same as once. On an error (no descriptors left, an old kernel) nothing is
// watched, and the caller has to look for itself.
func (x *Exits) Watch(pid int, start uint64) error {
	who := Exit{pid, start}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return ErrClosed
	}
	if _, ok := x.byExit[who]; ok {
		return nil
	}
	if len(x.fds)+len(x.gone) >= x.most {
		return ErrTooMany
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return x.ended(who)
	}
	if err != nil {
		return fmt.Errorf("watch process: %w", err)
	}
	// The descriptor belongs to whoever has the pid. Only when the start is
	// right after that, it is the process that was meant.
	now, err := startTicks(pid)
	if err == nil && now == start {
		err = unix.EpollCtl(x.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)})
		if err == nil {
			x.fds[fd], x.byExit[who] = who, fd
			return nil
		}
	}
	unix.Close(fd)
	if err == nil || errors.Is(err, ErrGone) {
		return x.ended(who)
	}
	return fmt.Errorf("watch process: %w", err)
}

// startTicks reads field 22 of a process's stat.
func startTicks(pid int) (uint64, error) {
	var buf [maxStat]byte
	data, err := readProc("/proc/"+strconv.Itoa(pid)+"/stat", buf[:])
	if err != nil {
		return 0, gone(err)
	}
	line, err := parseStat(data)
	return line.start, err
}

// ended queues an exit for Run. The caller holds mu.
func (x *Exits) ended(who Exit) error {
	x.gone = append(x.gone, who)
	return x.poke()
}

// poke wakes Run. The caller holds mu and has seen that nothing is freed.
func (x *Exits) poke() error {
	var one [8]byte
	binary.NativeEndian.PutUint64(one[:], 1)
	// A full counter (EAGAIN) wakes as well.
	if _, err := retry(func() (int, error) { return unix.Write(x.wake, one[:]) }); err != nil && err != unix.EAGAIN {
		return fmt.Errorf("wake exit watch: %w", err)
	}
	return nil
}

// Run sends exits until ctx ends or Close is called; then it returns nil, and
// everything is released.
func (x *Exits) Run(ctx context.Context) error {
	x.mu.Lock()
	if x.closed || x.running {
		x.mu.Unlock()
		return ErrClosed
	}
	x.running = true
	x.mu.Unlock()

	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		x.Close()
	})
	defer func() {
		if !stop() {
			<-stopped
		}
		x.release()
		close(x.out)
	}()
	var events [exitEvents]unix.EpollEvent
	for {
		n, err := retry(func() (int, error) { return unix.EpollWait(x.epoll, events[:], -1) })
		if err != nil {
			return fmt.Errorf("wait for exits: %w", err)
		}
		exits, closed := x.take(events[:n])
		if closed {
			return nil
		}
		for _, e := range exits {
			select {
			case x.out <- e:
			case <-x.done:
				return nil
			}
		}
	}
}

// take removes what has ended.
func (x *Exits) take(events []unix.EpollEvent) (exits []Exit, closed bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, ev := range events {
		fd := int(ev.Fd)
		if fd == x.wake {
			var count [8]byte
			unix.Read(fd, count[:]) // only to make it unreadable again
			continue
		}
		who, ok := x.fds[fd]
		if !ok {
			continue
		}
		delete(x.fds, fd)
		delete(x.byExit, who)
		x.drop(fd)
		exits = append(exits, who)
	}
	exits = append(exits, x.gone...)
	x.gone = nil
	return exits, x.closed
}

// Close ends Run, or releases everything when Run is not running. It may be
// called more than once and does not wait.
func (x *Exits) Close() {
	x.mu.Lock()
	running := x.running
	if !x.closed {
		x.closed = true
		close(x.done)
		if running {
			// The counter cannot be closed while Run runs: this does not fail.
			_ = x.poke()
		}
	}
	x.mu.Unlock()
	if !running {
		x.release()
	}
}

func (x *Exits) release() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.closed {
		x.closed = true
		close(x.done)
	}
	if x.freed {
		return
	}
	x.freed = true
	for fd := range x.fds {
		x.drop(fd)
	}
	clear(x.fds)
	clear(x.byExit)
	x.gone = nil
	unix.Close(x.wake)
	unix.Close(x.epoll)
}

// drop ends the watch of one descriptor. It leaves the epoll set first: a child
// between fork and exec may hold a copy, which would keep it in there.
func (x *Exits) drop(fd int) {
	_ = unix.EpollCtl(x.epoll, unix.EPOLL_CTL_DEL, fd, nil) // it is in the set: fds says so
	unix.Close(fd)
}
