package providertest

import (
	"bytes"
	"time"

	"steno/providers"
)

// Step is what one record, or one silence, gave.
type Step struct {
	After  int // index of the record that was read last; -1 before the first
	What   string
	Drafts []providers.Draft
}

// What a Step can be.
const (
	FromRecord = ""
	FromSettle = "settle"
	FromIdle   = "idle"
	FromLook   = "look"
)

// Look is one look at the process, as an Attendant is given it.
type Look struct {
	Activity providers.Activity
	Quiet    time.Duration // the artifact has been silent for it
	Child    time.Time     // when the youngest child process began; zero when there is none
}

// Script says where the silences are while an artifact is played.
type Script struct {
	Settle map[int]bool      // the artifact was silent for Quiet after this record
	Idle   map[int]time.Time // the program said idle after this record
	Looks  map[int][]Look    // the process was looked at after this record, in order
	End    bool              // a last Settle after the last record, as at the end of the process
}

// firstLook is when the first of all looks happens.
var firstLook = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// Play projects the records with the silences of s. Each record's bytes are
// overwritten after the call, as a tailer's buffer is.
func Play(p providers.Projector, recs []providers.Record, s Script) []Step {
	var steps []Step
	for i, r := range recs {
		steps = append(steps, Step{After: i, Drafts: project(p, r)})
		for n, l := range s.Looks[i] {
			if a, ok := p.(providers.Attendant); ok && a.Held() {
				w := providers.Witness{At: firstLook.Add(time.Duration(i*100+n) * time.Second), Activity: l.Activity, Child: l.Child}
				steps = append(steps, Step{After: i, What: FromLook, Drafts: a.See(w, l.Quiet)})
			}
		}
		if s.Settle[i] {
			steps = append(steps, Step{After: i, What: FromSettle, Drafts: settle(p)})
		}
		if at, ok := s.Idle[i]; ok {
			if idler, ok := p.(providers.Idler); ok {
				steps = append(steps, Step{After: i, What: FromIdle, Drafts: idler.Idle(at)})
			}
		}
	}
	if s.End {
		steps = append(steps, Step{After: len(recs) - 1, What: FromSettle, Drafts: settle(p)})
	}
	return steps
}

// Drafts are the drafts of all steps in order.
func Drafts(steps []Step) []providers.Draft {
	var out []providers.Draft
	for _, s := range steps {
		out = append(out, s.Drafts...)
	}
	return out
}

func project(p providers.Projector, r providers.Record) []providers.Draft {
	if r.Gap != providers.Whole {
		return p.Project(r)
	}
	r.Data = bytes.Clone(r.Data)
	out := p.Project(r)
	for i := range r.Data {
		r.Data[i] = '#'
	}
	return out
}

func settle(p providers.Projector) []providers.Draft {
	if h, ok := p.(providers.Holder); ok && h.Held() {
		return h.Settle()
	}
	return nil
}

func held(p providers.Projector) bool {
	h, ok := p.(providers.Holder)
	return ok && h.Held()
}
