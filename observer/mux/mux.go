package mux

import "errors"

var (
	// ErrNoTmux is returned when the tmux program cannot be found.
	ErrNoTmux = errors.New("tmux program not found")
	// ErrNoServer is in a Listing whose socket nobody listens on: left over
	// from a server that ended.
	ErrNoServer = errors.New("no server on this socket")
	// ErrTimeout is in a Listing whose server did not answer in time. It says
	// nothing about the panes.
	ErrTimeout = errors.New("server did not answer in time")
	// ErrSocket is in a Listing whose path is not a socket of this uid.
	ErrSocket = errors.New("not a socket of this user")
	// ErrFormat is in a Listing whose output was not what was asked for.
	ErrFormat = errors.New("unexpected output")
	// ErrTooMuch is in a Listing whose output went over a bound.
	ErrTooMuch = errors.New("output over the bound")
)

// Server is the identity of one multiplexer server. A server that is started
// again on the same socket is another one.
type Server struct {
	Socket  string // path, as it was found
	PID     int
	Started int64 // unix seconds
}

// Pane is one pane as the multiplexer shows it.
type Pane struct {
	Server Server
	Number int    // N of %N; unique in the server, never reused by it
	TTY    string // path of its terminal, "/dev/pts/3"
	PID    int    // the process that the server started in it

	Session     string // name of the first session that shows it
	Window      string // "@N"
	WindowIndex int
	PaneIndex   int
	WindowName  string
	AutoName    bool // the window's name follows the running command (automatic-rename)

	Title   string
	CWD     string // as tmux sees it, for display; "" when tmux does not know
	Command string // name of the foreground command

	Active bool // active pane of an active window
	Dead   bool // its process ended and the pane was kept (remain-on-exit)
	InMode bool // a mode such as copy mode takes the keys
}

// Listing is what one server said.
type Listing struct {
	Server Server // PID and Started are 0 when the server has no pane or Err is set
	Panes  []Pane // by number; nil when Err is set
	Err    error  // why the panes are not known
}
