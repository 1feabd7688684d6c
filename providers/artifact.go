package providers

// Role says what an artifact is good for.
type Role uint8

const (
	// Transcript holds a session's records; it is read once it is bound.
	Transcript Role = iota
	// Registry is written about running processes; a change asks for the
	// binding of its provider to be looked at again. It is never tailed.
	Registry
	// Carrier belongs to a database that holds the records of many sessions;
	// a change says that some session of Artifact.Of may have new rows, and
	// asks for the binding to be looked at again. It is never opened by path.
	Carrier
)

// Framing says how an artifact is divided into records.
type Framing uint8

const (
	// Lines is JSONL: one JSON object a line, ended by 0x0A alone. A position
	// is a byte offset.
	Lines Framing = iota
	// Document is one JSON object that is rewritten as a whole: each version
	// of it that was seen is one record, at most MaxDocument bytes.
	Document
	// Rows are the rows of one session in a database, read by the provider
	// itself, which is a RowReader. A position counts rows.
	Rows
)

// Artifact is what an agent program writes of one session, or about itself.
type Artifact struct {
	Provider string
	Path     string // absolute; of Rows: the database's path, "/", the session
	Role     Role
	Framing  Framing
	Session  string // native session id if the path tells it, else ""
	Of       string // Carrier: the database, as a path relative to the root
}

// Env is what a provider may know about the surroundings of its program.
type Env struct {
	Home string
	// Getenv reads a variable of the environment in question: the daemon's
	// own, or that of one running agent. It must not be nil.
	Getenv func(string) string
	// Extra are further roots of this provider from the configuration.
	Extra []string
}

// Root is a directory below which a provider's artifacts may appear. It need
// not exist yet.
type Root struct {
	Provider string
	Name     string // the provider's own word for it, for Claim
	Dir      string // absolute
	Depth    int    // levels of directories below Dir that can hold artifacts; 0 = Dir alone
}

// Provider knows one program's artifacts.
type Provider interface {
	// ID is the harness name on the wire: "claude", "codex".
	ID() string
	// Roots lists where artifacts may appear in this environment.
	Roots(Env) []Root
	// Claim says whether the path (relative to the root's Dir, slash
	// separated) is an artifact of this provider. It is pure.
	Claim(root Root, rel string) (Artifact, bool)
	// Projector makes the projector of one artifact, from the state that an
	// earlier one gave, or from nothing when state is empty. A state that
	// cannot be read counts as empty.
	Projector(a Artifact, state []byte) Projector
}

// About describes a provider's program for people: steno doctor prints it.
type About struct {
	Name     string   // as its makers write it
	Programs []string // names of its executable
	Version  string   // newest version whose artifacts the provider was tried with
	Hints    []string // what a user may set so that the evidence gets better; fixed sentences
}

// Describer is a Provider that says what it is about.
type Describer interface {
	About() About
}
