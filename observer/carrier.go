package observer

import (
	"strings"
	"time"

	"steno/providers"
)

// wake refreshes the bound sessions of a database one of whose files changed.
// Which of them has new rows only a look can tell.
func (o *Observer) wake(carrier *artifact, now time.Time) {
	for a := range o.live {
		if a.Framing == providers.Rows && strings.HasPrefix(a.Path, carrier.Of+"/") {
			o.stir(a, now)
		}
	}
}

// ofSession is the artifact with its session, which a binding may know where
// the path does not tell.
func (a *artifact) ofSession(session string) providers.Artifact {
	out := a.Artifact
	if out.Session == "" {
		out.Session = session
	}
	return out
}
