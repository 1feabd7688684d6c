package observer

import (
	"os"
	"path/filepath"
	"time"

	"steno/providers"
)

const (
	// maxNamings bounds the processes whose namings are remembered.
	maxNamings = 256
	// leftover is how old a file may be whose name still counts: an older one
	// was left behind by a crash, and its process may be anybody by now.
	leftover = 2 * time.Second
)

// named is a process of a provider as its program numbers it.
type named struct {
	provider string
	pid      int
}

// naming is the newest session that a file's name gave a process.
type naming struct {
	providers.Naming
	at time.Time
}

// heed remembers what the name of a path that a hint told of says about a
// process.
func (o *Observer) heed(path string, now time.Time) {
	for _, r := range o.claims.roots {
		n, ok := r.provider.(providers.Namer)
		if !ok {
			continue
		}
		rel, ok := r.below(path)
		if !ok {
			continue
		}
		what, ok := n.Names(r.Root, filepath.ToSlash(rel))
		if !ok || what.PID <= 0 || what.Session == "" {
			continue
		}
		if info, err := os.Lstat(path); err == nil && now.Sub(info.ModTime()) > leftover {
			return
		}
		key := named{r.provider.ID(), what.PID}
		if _, known := o.namings[key]; !known && len(o.namings) >= maxNamings {
			o.forgetOldestNaming()
		}
		o.namings[key] = naming{what, now}
		o.probeSoon(now)
		return
	}
}

func (o *Observer) forgetOldestNaming() {
	var oldest named
	var at time.Time
	for key, n := range o.namings {
		if at.IsZero() || n.at.Before(at) {
			oldest, at = key, n.at
		}
	}
	delete(o.namings, oldest)
}

// evidence is what the naming says for a process that began before it; a later
// one has the number of an earlier one.
func (n naming) evidence(p providers.Process, known []providers.Session) (providers.Evidence, bool) {
	if n.at.Before(p.Started) {
		return providers.Evidence{}, false
	}
	e := providers.Evidence{Rank: providers.Exact, Session: n.Session, Source: n.Source, At: n.at}
	for _, s := range known {
		if s.ID != n.Session {
			continue
		}
		e.Path = s.Path
		switch {
		case s.Internal != "":
			e.Refused = s.Internal
		case s.CWD != "" && p.CWD != "" && realPath(s.CWD) != realPath(p.CWD):
			// The number is that of a process in another namespace.
			e.Refused = "a process of this number works in another directory"
		}
	}
	return e, true
}

// doubted lets the provider say that a naming proves nothing.
func doubted(pv providers.Provider, e *providers.Evidence, pr providers.Process, n naming, known []providers.Session) {
	if d, ok := pv.(providers.Doubter); ok && e.Refused == "" {
		e.Refused = d.Doubt(pr, n.Naming, n.at, known)
	}
}

// argued keeps the evidence of a process's arguments: a program may overwrite
// them while it runs.
func (p *prober) argued(by claimant, rows []providers.Evidence) []providers.Evidence {
	var now []providers.Evidence
	for _, e := range rows {
		if e.Rank == providers.Arguments && e.Refused == "" {
			now = append(now, e)
		}
	}
	if len(now) > 0 {
		p.arguments[by] = now
		return rows
	}
	return append(rows, p.arguments[by]...)
}
