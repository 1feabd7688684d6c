package providers

// Role says what an artifact is good for.
type Role uint8

const (
	// Transcript holds a session's records; it is read once it is bound.
	Transcript Role = iota
	// Registry is written about running processes; a change asks for the
	// binding of its provider to be looked at again. It is never tailed.
	Registry
)

// Artifact is a file that an agent program writes: JSONL, one JSON object a
// line, ended by 0x0A alone.
type Artifact struct {
	Provider string
	Path     string // absolute
	Role     Role
	Session  string // native session id if the path tells it, else ""
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
