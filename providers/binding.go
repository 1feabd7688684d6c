package providers

import (
	"context"
	"time"
)

// Process is one process as /proc shows it.
type Process struct {
	PID, PPID, PGID, SID int
	TTY                  uint64 // device number of the controlling terminal; 0 = none
	TPGID                int    // foreground process group of that terminal; -1 = none
	StartTicks           uint64 // /proc/<pid>/stat field 22, in clock ticks since boot
	Started              time.Time
	State                byte // R, S, D, T, Z, ...
	Comm                 string
	Exe                  string   // target of /proc/<pid>/exe, "" when unreadable
	Args                 []string // at most 64, each cut to 4 KiB
	CWD                  string
	Env                  map[string]string // only the variables that some provider asked for, see Names
	Title                string            // title of its pane as the multiplexer reports it, "" when unknown
	Pane                 string            // "%N" of its tmux pane, "" outside of tmux
	Open                 []string          // targets of /proc/<pid>/fd that are regular files; filled on request only
	Positions            map[string]int64  // by target: the largest file offset of its descriptors, in bytes; filled with Open
}

// Part is what a process is to a harness.
type Part uint8

const (
	// NotMine is a process of something else.
	NotMine Part = iota
	// Launcher starts the worker and waits (npm's node scripts).
	Launcher
	// Worker is the harness itself; its life is an incarnation.
	Worker
	// Helper belongs to the program and never owns a pane (shared daemons).
	Helper
)

// Session is what is known of a session from its artifact, without tailing it.
type Session struct {
	ID       string
	Path     string
	CWD      string    // as recorded, "" when not known
	Born     time.Time // when the artifact appeared; zero when not known
	Internal string    // why this session can never own a pane (a subagent, a reviewer); "" when it can
}

// Rank orders evidence; lower is stronger.
type Rank uint8

const (
	Exact     Rank = 1 // the program's own record names this process, or the process holds the artifact open
	Young     Rank = 2 // the program's own log proves it, as long as the log is young
	Arguments Rank = 3 // an id in the command line, until something newer is proved
	Agreement Rank = 4 // one process and one session agree on directory and time
	Movement  Rank = 5 // bytes written by one candidate and no other
)

// Activity is a live status that a program publishes about itself.
type Activity string

const (
	NoActivity Activity = ""
	Busy       Activity = "busy"
	Idle       Activity = "idle"
	Waiting    Activity = "waiting" // for the user, in a dialog
)

// Evidence says that a process owns a session.
type Evidence struct {
	Rank     Rank
	Session  string
	Path     string    // artifact, "" when it does not exist yet
	Source   string    // fixed words: which record says so
	At       time.Time // of two pieces of one source the newer counts; zero = unordered
	Refused  string    // why it does not count, "" when it does
	Activity Activity
	Waiting  string    // what the user is asked for, in the program's fixed words
	Since    time.Time // when Activity last changed
}

// Binder is a Provider that recognises its processes and finds evidence.
type Binder interface {
	// EnvKeys are the variables that Roots, Recognise or Evidence read from a
	// process's environment.
	EnvKeys() []string
	// Recognise says what a process is to this harness. It is pure.
	Recognise(Process) Part
	// NeedsOpen says whether Evidence wants Process.Open.
	NeedsOpen() bool
	// Describe reads what the artifact's first complete record tells. Pure.
	Describe(a Artifact, first []byte) Session
	// Evidence lists what speaks for p owning a session, refused pieces with
	// their reason included. It may read small files of the program, and only
	// returns an error when it could not look: that is "unknown", not "none".
	Evidence(ctx context.Context, p Process, known []Session) ([]Evidence, error)
}

// Resumer is a Binder that can tell from a command line that its process goes
// on with an earlier session, also where it does not name which. Such a
// process may register under a new session first and change to the old one
// when it has loaded it (Claude Code 2.1.197 with --continue).
type Resumer interface {
	Resumes(Process) bool
}

// Titler is a Provider whose program publishes its state in its terminal's
// title. A title is evidence of state, never of content.
type Titler interface {
	// TitleActivity reads the state; NoActivity when the title is not one that
	// the program is known to write. waiting is what the user is asked for, in
	// the program's fixed words, "" when it does not say. It is pure.
	TitleActivity(title string) (state Activity, waiting string)
}

// Naming is what the name of a file tells.
type Naming struct {
	PID     int    // of the process that made it, as the program sees itself
	Session string // native session id
	Source  string // fixed words, as in Evidence
}

// Namer is a Binder whose program makes, for a moment, files whose very names
// tell which of its processes writes for which session. The observer asks it
// for each path that a hint names, whether or not the file is still there, and
// remembers what it was told, with the time of the hint, as Exact evidence for
// the process.
type Namer interface {
	// Names is pure. rel is relative to the root's Dir, slash separated.
	Names(root Root, rel string) (Naming, bool)
}

// Doubter is a Namer that knows names which prove nothing. Doubt says in fixed
// words why a naming does not count for the process, "" when it does. at is the
// time of its hint.
type Doubter interface {
	Doubt(p Process, n Naming, at time.Time, known []Session) (why string)
}
