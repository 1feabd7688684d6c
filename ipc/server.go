package ipc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sys/unix"

	"steno/ipc/wire"
	"steno/store"
)

// Store is the part of the event log that is served. *store.Store has it.
type Store interface {
	Page(context.Context, store.Query) (store.Page, error)
	Agents(context.Context) (store.Seq, []store.Agent, error)
	Stats(context.Context) (store.Stats, error)
	// Changed is closed by the next commit that adds events.
	Changed() <-chan struct{}
	// Working says whether the log could be read and written last, Err why not.
	Working() bool
	Err() error
}

// Live is what only the observer knows.
type Live interface {
	// Status is the daemon's state. Its Store, Clients, Version and PID are
	// filled in by the server.
	Status() wire.Status
	Panes(context.Context) ([]wire.Pane, error)
	// Explain returns wire.ErrNotFound for a target that nothing matches.
	Explain(ctx context.Context, target string) (wire.Explanation, error)
}

// Options configures a Server. Store and Live are needed.
type Options struct {
	Store Store
	Live  Live
	Log   zerolog.Logger
	// UID is the user that is served beside root; 0 is the daemon's own.
	UID int
	// MaxConns is the most connections at a time; 0 is 256, or a quarter of the
	// process's limit of descriptors where that is less.
	MaxConns int
	// WriteTimeout is how long a client may take to read one answer; 0 is 5 s.
	WriteTimeout time.Duration
	// LineTimeout is how long a client may take to send one request once its
	// first byte is there; 0 is 30 s.
	LineTimeout time.Duration
	// Version is the program's version.
	Version string
	// Now is the clock of the catalog; nil is time.Now.
	Now func() time.Time

	peer func(net.Conn) (peer, error) // nil is peerOf
}

// Server answers requests. The zero value is of no use; call NewServer.
type Server struct {
	o     Options
	quiet limiter

	mu    sync.Mutex // guards conns
	conns int
}

// NewServer makes a server of the options.
func NewServer(o Options) *Server {
	if o.UID == 0 {
		o.UID = os.Getuid()
	}
	if o.MaxConns <= 0 {
		o.MaxConns = mostConns()
	}
	if o.WriteTimeout <= 0 {
		o.WriteTimeout = 5 * time.Second
	}
	if o.LineTimeout <= 0 {
		o.LineTimeout = 30 * time.Second
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.peer == nil {
		o.peer = peerOf
	}
	o.Log = o.Log.With().Str("component", "ipc").Logger()
	return &Server{o: o, quiet: limiter{now: o.Now}}
}

// mostConns leaves descriptors for what the daemon is there for.
func mostConns() int {
	const most, share = 256, 4
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return most
	}
	return int(min(most, max(limit.Cur/share, 1)))
}

// Serve answers the connections of ln until ctx ends, and closes ln. It may be
// called for several listeners at a time. At the end every waiting request is
// answered with what there is, every connection is closed, and every goroutine
// has ended. The error is nil when ctx ended it.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	// Owned by Serve, joined by wg: the end of ctx ends Accept.
	wg.Go(func() {
		<-ctx.Done()
		ln.Close()
	})
	for delay := time.Duration(0); ; {
		conn, err := ln.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			if errors.Is(err, net.ErrClosed) {
				return fmt.Errorf("accept: %w", err)
			}
			// Out of descriptors, most likely: that passes.
			s.report("accept", err)
			delay = min(max(2*delay, 10*time.Millisecond), time.Second)
			if pause(ctx, delay) != nil {
				return nil
			}
			continue
		}
		delay = 0
		p, ok := s.admit(conn)
		if !ok {
			continue
		}
		// Owned by Serve, joined by wg.
		wg.Go(func() {
			defer s.leave()
			newSession(s, conn, p).run(ctx)
		})
	}
}

// admit decides whether conn is served. One that is not gets an error line,
// which always fits in the buffer of a new socket, and is closed.
func (s *Server) admit(conn net.Conn) (peer, bool) {
	refuse := func(e *Error) (peer, bool) {
		conn.SetWriteDeadline(time.Now().Add(time.Second))
		conn.Write(encodeError(nil, e))
		conn.Close()
		return peer{}, false
	}
	p, err := s.o.peer(conn)
	noRoom := errors.Is(err, errNoRoom)
	if err != nil {
		s.report("peer", err)
	}
	if err != nil && !noRoom {
		return refuse(&Error{CodeUnauthorized, "the user of this connection cannot be told"})
	}
	if p.uid != 0 && p.uid != s.o.UID {
		if s.quiet.first(fmt.Sprint("uid ", p.uid)) {
			s.o.Log.Warn().Int("uid", p.uid).Msg("connection of another user refused")
		}
		return refuse(&Error{CodeUnauthorized, "only the user who runs the daemon is served"})
	}
	if noRoom {
		return refuse(&Error{CodeTooMany, "the daemon has too many files open; ask again"})
	}
	s.mu.Lock()
	full := s.conns >= s.o.MaxConns
	if !full {
		s.conns++
	}
	s.mu.Unlock()
	if full {
		s.report("connections", errors.New("all connections are in use"))
		return refuse(&Error{CodeTooMany, fmt.Sprintf("all %d connections are in use", s.o.MaxConns)})
	}
	if p.apart && s.quiet.first("apart") {
		s.o.Log.Warn().Msg("a client in another namespace gets the catalog only")
	}
	return p, true
}

func (s *Server) leave() {
	s.mu.Lock()
	s.conns--
	s.mu.Unlock()
}

// clients is the number of connections served now.
func (s *Server) clients() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conns
}

// report logs a fault of ours: at once, and then once a minute with a count.
func (s *Server) report(what string, err error) {
	if n, ok := s.quiet.pass(what); ok {
		s.o.Log.Warn().Str("request", what).Int("repeats", n).Err(err).Msg("request failed")
	}
}
