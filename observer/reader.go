package observer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"steno/observer/tail"
	"steno/providers"
	"steno/store"
)

// reader reads one bound artifact: where it stands in the file and what the
// provider made of the records so far. One worker at a time uses it.
type reader struct {
	artifact providers.Artifact
	provider providers.Provider
	file     providers.Cursor
	proj     providers.Projector
	rest     []providers.Record // of the last batch, not projected yet
	batch    int                // bytes of the last batch
	more     bool               // the file had more than the last batch
	resets   uint32
	blank    bool // the projector has not learned yet what stood before the checkpoint
	// notBefore is when the process started, or when the file was found to be
	// another one: records dated before it are history. They feed attribution
	// and give no event (D11).
	notBefore time.Time
	clock     // when the reader was made
	// undated drafts wait here for the date of the next dated one: at most
	// maxDrafts, and about maxUndated bytes of text.
	undated      []providers.Draft
	undatedBytes int
	// The checkpoint that may be saved: after the last record that left
	// nothing held.
	safe    int64
	state   []byte
	mark    []byte // of safe
	unsaved bool   // mark is newer than what was given to be committed
}

// result is what one refresh of an artifact gives.
type result struct {
	drafts []providers.Draft
	turn   providers.Turn
	// source is the restart point to commit with the drafts; nil when it did
	// not move.
	source *store.Source
	more   bool          // there is more to read at once
	quiet  time.Duration // call again with settle after this much silence; 0 = not needed
	look   time.Duration // how often the projector wants the process looked at; 0 = not
	drift  []string      // record types that the provider does not know
	read   bool          // records were projected
	gone   bool          // the file is not there
	err    error
}

// checkpoint is Source.Mark: the cursor's mark, and what else a restart needs.
type checkpoint struct {
	Mark   []byte `json:"mark"`
	Resets uint32 `json:"resets,omitempty"`
}

// resume makes a reader that goes on from a saved restart point.
func resume(a providers.Artifact, p providers.Provider, src store.Source, notBefore time.Time, stats *tail.Stats) (*reader, error) {
	var c checkpoint
	if err := json.Unmarshal(src.Mark, &c); err != nil {
		return nil, fmt.Errorf("decode checkpoint: %w", err)
	}
	r, err := newReader(a, p, c.Mark, src.State, notBefore, stats)
	if err != nil {
		return nil, fmt.Errorf("decode checkpoint: %w", err)
	}
	r.resets = c.Resets
	return r, nil
}

func newReader(a providers.Artifact, p providers.Provider, mark, state []byte, notBefore time.Time, stats *tail.Stats) (*reader, error) {
	c, err := cursor(a, p, mark, stats)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	return &reader{
		artifact: a, provider: p, clock: clockAt(now),
		file: c, proj: p.Projector(a, state),
		safe: c.Offset(), state: state, mark: mark, notBefore: notBefore,
	}, nil
}

// attach makes a reader for an artifact that is seen for the first time. With
// fromStart it begins before the first record; otherwise after the last record
// that ended at or before limit (at the end when limit is negative), and learns
// where the session stands from the records before.
func attach(a providers.Artifact, p providers.Provider, fromStart bool, limit int64, notBefore time.Time, stats *tail.Stats) (*reader, error) {
	if fromStart {
		return newReader(a, p, nil, nil, notBefore, stats)
	}
	m, err := markAtEnd(a, p, limit)
	if err != nil {
		return nil, err
	}
	r, err := newReader(a, p, m, nil, notBefore, stats)
	if err != nil {
		return nil, err
	}
	r.unsaved = true
	return r, r.rewind()
}

// rewind lets the projector learn from the records before the checkpoint.
func (r *reader) rewind() error {
	w, ok := r.proj.(providers.Rewinder)
	if !ok {
		return nil
	}
	b, err := backward(r.artifact, r.provider, r.mark)
	if err != nil {
		return err
	}
	defer b.Close()
	for {
		rec, ok, err := b.Next()
		if err != nil {
			return err
		}
		if !ok || w.Rewind(rec) {
			w.Rewound()
			r.state = r.proj.State()
			return nil
		}
	}
}

// refresh reads and projects what is new, at most maxDrafts drafts at a time.
// With settle, what waits for silence is decided once nothing is left to read.
func (r *reader) refresh(settle bool, now time.Time) result {
	var out result
	if out.err = r.learn(); out.err != nil {
		return out
	}
	if len(r.rest) == 0 {
		if !r.fill(&out, now) {
			if h, ok := r.proj.(providers.Holder); ok && out.gone {
				// Nothing will follow that decides what is held.
				if settle {
					r.admit(&out, h.Settle(), now)
				}
				out.quiet = h.Quiet()
				r.ask(&out)
			}
			out.turn = r.proj.Turn()
			return out
		}
	}
	holder, _ := r.proj.(providers.Holder)
	moved := false
	for len(r.rest) > 0 && len(out.drafts) < maxDrafts {
		rec := r.rest[0]
		r.rest = r.rest[1:]
		out.read = true
		r.admit(&out, r.proj.Project(rec), now)
		if holder == nil || !holder.Held() {
			r.safe, moved = rec.End, true
			if holder != nil {
				r.state = r.proj.State()
			}
		}
	}
	if holder == nil && moved {
		r.state = r.proj.State()
	}
	out.more = len(r.rest) > 0 || r.more
	if holder != nil && !out.more {
		if settle && !out.read && (holder.Quiet() > 0 || holder.Held()) {
			r.admit(&out, holder.Settle(), now)
			if !holder.Held() {
				r.safe, r.state, moved = r.file.Offset(), r.proj.State(), true
			}
		}
		out.quiet = holder.Quiet()
	}
	r.ask(&out)
	if !out.more {
		// Nothing dated follows: what has no date is new.
		r.flush(&out)
	}
	out.turn = r.proj.Turn()
	if moved {
		out.err = r.advance()
	}
	if len(r.rest) == 0 {
		r.rest = nil // an empty slice would keep the batch
		r.file.Release()
	}
	if len(r.undated) == 0 {
		// Otherwise the date of the next record decides what became of the
		// drafts that wait, and the restart point must not pass them.
		r.save(&out)
	}
	return out
}

// ask takes what the projector says about itself.
func (r *reader) ask(out *result) {
	if a, ok := r.proj.(providers.Attendant); ok {
		out.look = a.Look()
	}
	if s, ok := r.proj.(providers.Surveyor); ok {
		out.drift = append(out.drift, s.Drift()...)
	}
}

// see reads what is new. If that is nothing, the projector decides by a look at
// the process that was taken before: everything that stood in the artifact then
// has been projected. Nothing follows in a file that was deleted; what is held of
// it is decided, too, and the checkpoint stays in front of it.
func (r *reader) see(w providers.Witness, silent time.Duration, now time.Time) result {
	out := r.refresh(false, now)
	a, ok := r.proj.(providers.Attendant)
	if !ok || out.read || out.more || out.err != nil && !out.gone || len(r.undated) > 0 {
		return out
	}
	before := a.Held()
	r.admit(&out, a.See(w, silent), now)
	r.flush(&out)
	if !out.gone && !a.Held() && (before || len(out.drafts) > 0) {
		r.safe, r.state = r.file.Offset(), r.proj.State()
		if out.err = r.advance(); out.err == nil {
			r.save(&out)
		}
	}
	out.turn, out.quiet, out.look = r.proj.Turn(), a.Quiet(), a.Look()
	return out
}

// advance takes the mark of the checkpoint while its bytes are at hand.
func (r *reader) advance() error {
	m, err := r.file.MarkAt(r.safe)
	if err != nil {
		return fmt.Errorf("mark: %w", err)
	}
	r.mark, r.unsaved = m, true
	return nil
}

// fill reads the next batch. It says whether there is anything to project.
func (r *reader) fill(out *result, now time.Time) bool {
	batch, err := r.file.Read(readChunk)
	if err != nil {
		out.gone = errors.Is(err, fs.ErrNotExist)
		out.err = err
		return false
	}
	if batch.Reset != "" {
		r.reset(out, batch.Reset, now)
		return false
	}
	r.rest, r.more = batch.Records, batch.More
	r.batch = 0
	for _, rec := range r.rest {
		r.batch += len(rec.Data)
	}
	return true
}

// kept is how many bytes of the file are still in memory. The caller is not
// the worker: no job is under way.
func (r *reader) kept() int {
	if r == nil || len(r.rest) == 0 {
		return 0
	}
	return r.batch
}

// reset goes on at the new tail baseline after the file turned out not to be
// the one that was read so far. Nothing is replayed. What the old file left
// undecided is decided now, unless the new one shows the same turn going on:
// then the records that end it are still to come.
func (r *reader) reset(out *result, why providers.Reset, now time.Time) {
	before, at := r.proj, r.safe
	r.resets++
	r.proj = r.provider.Projector(r.artifact, nil)
	r.more = false
	r.safe, r.state = r.file.Offset(), nil
	if out.err = r.advance(); out.err == nil {
		r.blank = true
		out.err = r.learn()
	}
	if h, ok := before.(providers.Holder); ok && (h.Held() || h.Quiet() > 0) && !goesOn(before.Turn(), r.proj.Turn()) {
		r.admit(out, h.Settle(), now)
	}
	if v, ok := before.(providers.Reverter); ok && !r.blank {
		r.admit(out, v.Reverted(r.proj.Turn()), now)
	}
	r.flush(out)
	out.drafts = append(out.drafts, providers.Draft{
		Key:         fmt.Sprintf("reset/%d/%d", r.resets, at),
		Kind:        providers.ObserverFailure,
		Recoverable: true,
		Detail:      fmt.Sprintf("%s artifact was %s before %s %d: observation goes on at its end", r.artifact.Provider, why, unit(r.artifact.Framing), at),
	})
	// A program that rewrites its file may have emptied it first and write the
	// old records again now. It dates by the millisecond: what has this one's is
	// new.
	r.notBefore = later(r.notBefore, now.Truncate(time.Millisecond))
	r.save(out)
}

// goesOn says whether a turn is still open in another version of its file.
func goesOn(was, is providers.Turn) bool {
	return is.ID != "" && is.ID == was.ID && is.State == providers.WaitingOnAgent
}

// learn rewinds a projector that knows nothing of the records before the
// checkpoint. A file that has changed again meanwhile is found out by the next
// read.
func (r *reader) learn() error {
	if !r.blank {
		return nil
	}
	err := r.rewind()
	if err != nil && !errors.Is(err, tail.ErrChanged) {
		return err
	}
	r.blank = false
	return nil
}

// save puts the checkpoint into the result if it is newer than the last one.
func (r *reader) save(out *result) {
	if !r.unsaved || out.err != nil {
		return
	}
	b, err := json.Marshal(checkpoint{Mark: r.mark, Resets: r.resets})
	if err != nil {
		out.err = fmt.Errorf("encode checkpoint: %w", err)
		return
	}
	r.unsaved = false
	out.source = &store.Source{
		Path: r.artifact.Path, Provider: r.artifact.Provider, Session: r.artifact.Session,
		Mark: b, State: r.state, Offset: r.safe,
	}
}

// idle asks the projector what it makes of a program that says it is idle.
func (r *reader) idle(at time.Time) result {
	i, ok := r.proj.(providers.Idler)
	if !ok || len(r.rest) > 0 {
		out := result{turn: r.proj.Turn(), quiet: r.quiet()}
		r.ask(&out)
		return out
	}
	var out result
	out.drafts = i.Idle(at)
	r.ask(&out)
	out.turn, out.quiet = r.proj.Turn(), r.quiet()
	if h, ok := r.proj.(providers.Holder); len(out.drafts) > 0 && (!ok || !h.Held()) {
		r.safe, r.state = r.file.Offset(), r.proj.State()
		if out.err = r.advance(); out.err == nil {
			r.save(&out)
		}
	}
	return out
}

// quiet is how much silence what is held waits for.
func (r *reader) quiet() time.Duration {
	if h, ok := r.proj.(providers.Holder); ok {
		return h.Quiet()
	}
	return 0
}

// epoch is the earliest date that is believed; anything before it is a broken
// clock, and such a record counts as undated.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// history is the date before which a record is history. When somebody set the
// clock back, new records are dated before the process began: the border moves
// with the clock.
func (r *reader) history(now time.Time) time.Time { return r.notBefore.Add(-r.back(now)) }

// admit takes the drafts that are new: D11 decides by the record's own date,
// and a draft without one takes that of the next dated one.
func (r *reader) admit(out *result, drafts []providers.Draft, now time.Time) {
	history := r.history(now)
	for _, d := range drafts {
		switch {
		case d.At.Before(epoch):
			d.At = time.Time{}
			r.undated = append(r.undated, d)
			r.undatedBytes += len(d.Text) + len(d.Detail)
			if len(r.undated) >= maxDrafts || r.undatedBytes >= maxUndated {
				r.flush(out) // no date is near
			}
		case d.At.Before(history):
			r.undated, r.undatedBytes = nil, 0
		default:
			r.flush(out)
			out.drafts = append(out.drafts, d)
		}
	}
}

// flush takes the drafts that waited for a date as new.
func (r *reader) flush(out *result) {
	out.drafts = append(out.drafts, r.undated...)
	r.undated, r.undatedBytes = nil, 0
}

// unit is what an offset of a framing counts.
func unit(f providers.Framing) string {
	switch f {
	case providers.Rows:
		return "row"
	case providers.Document:
		return "version"
	}
	return "byte"
}
