package providers

import "time"

// StateMax bounds what a projector may remember, in bytes.
const StateMax = 4 << 10

// Turn is the newest turn of a session as its records tell.
type Turn struct {
	ID    string // "" when no turn is known
	State TurnState
}

// Projector turns the records of one artifact, in file order, into drafts. It
// belongs to one goroutine at a time.
type Projector interface {
	// Project takes the next record. A gap record must clear what the
	// projector knows of the current turn and its texts, release what it
	// holds, and give Record.Failure among its drafts.
	Project(Record) []Draft
	// Turn is where the session stands after the records so far.
	Turn() Turn
	// State is what a new projector needs to go on from here, at most StateMax
	// bytes. It is only saved while Held is false (see Holder).
	State() []byte
}

// Holder is a Projector that has to see what follows before it can decide some
// records. While Held is true the observer leaves the saved offset and state
// where they were before the first held record, so that a crash reads those
// records again. Whatever was already given is given again then, with the same
// keys, which does no harm. What can be decided by a few ids alone is better
// kept in the state than held.
type Holder interface {
	// Held says whether a record is held.
	Held() bool
	// Quiet is how long the artifact has to be silent before Settle is due;
	// zero when nothing waits for silence. At most 10 s.
	Quiet() time.Duration
	// Settle decides everything that waited for silence. Held is false
	// afterwards. The observer calls it after Quiet, and when the process has
	// ended and its last record was read.
	Settle() []Draft
}

// Rewinder is a Projector that can learn where a session stands from the
// records before a point, newest first. It is used on a fresh projector when
// observation starts at the tail of an artifact that existed before.
type Rewinder interface {
	// Rewind takes the next older record (or gap) and says whether it knows
	// enough. It gives no drafts. Afterwards Turn, and attribution of later
	// records, are as if the whole artifact had been projected.
	Rewind(Record) (done bool)
	// Rewound ends the rewinding: done was true, or the start of the file or
	// the limit of the look-back was reached.
	Rewound()
}

// Idler is a Projector whose program publishes a live status beside the
// records. Idle is called once when that status has said "idle" and both the
// status and the artifact have been unchanged for 5 s.
type Idler interface {
	Idle(at time.Time) []Draft
}

// Witness is what is seen of a session's process beside its records.
type Witness struct {
	At       time.Time // when it was looked at: after every record that was projected so far
	Activity Activity  // what the program publishes about itself; NoActivity when that is nothing, or not known
	Since    time.Time // Activity has been the same since
	Child    time.Time // when the youngest child process of it began; zero when there is none
}

// Attendant is a Holder that what its process shows can decide, too. The
// observer looks at the process while Look says so; it calls Settle only after
// Quiet, as for every Holder, and at the end of the process.
type Attendant interface {
	Holder
	// Look is how long after the last record, and then how often, the process
	// is to be looked at: at least 100 ms, zero when no look can decide
	// anything.
	Look() time.Duration
	// See takes one look, after the artifact has been silent for quiet.
	See(w Witness, quiet time.Duration) []Draft
}

// Surveyor is a Projector that notices records which its provider has never
// seen: the program has changed since.
type Surveyor interface {
	// Drift lists the types of such records since the last call, at most 16,
	// each at most 64 bytes of letters, digits and "._-/:$". It never holds
	// anything that could be content.
	Drift() []string
}

// Reverter is a Projector whose program takes a turn back by writing the
// artifact anew without it. Reverted is called on the projector of the old
// records when the observer finds other records in the place of those that it
// read, after Settle if something was held; now is where the session stands in
// the new ones. It gives what that proves of the turn that was open.
type Reverter interface {
	Reverted(now Turn) []Draft
}
