package main

import (
	"fmt"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/rs/zerolog"
)

// notifier speaks to the service manager, if there is one. Its ping is called
// from the end of the pipeline, so a pipeline that hangs is restarted.
type notifier struct {
	log      zerolog.Logger
	send     func(state string) error
	watchdog time.Duration // 0 when no watchdog is set
	now      func() time.Time

	mu       sync.Mutex // guards what follows
	ready    bool
	pinged   time.Time
	extended time.Time
	failed   bool
}

// extendBy is how much more time a start is given at each sign of life: the
// first sweep of a large home may take longer than the manager's own limit.
const extendBy = 30 * time.Second

func newNotifier(log zerolog.Logger) *notifier {
	n := &notifier{
		log: log, now: time.Now,
		send: func(state string) error { _, err := daemon.SdNotify(false, state); return err },
	}
	var err error
	if n.watchdog, err = daemon.SdWatchdogEnabled(false); err != nil {
		log.Warn().Err(err).Msg("watchdog settings cannot be read")
	}
	return n
}

// alive is the sign of life of the committer.
func (n *notifier) alive() {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := n.now()
	if !n.ready && now.Sub(n.extended) >= extendBy/3 {
		n.extended = now
		n.tell(fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d", extendBy.Microseconds()))
	}
	// The manager recommends half of its limit. Signs of life come once a
	// second, so a quarter leaves room for a late one.
	if n.watchdog > 0 && now.Sub(n.pinged) >= n.watchdog/4 {
		n.pinged = now
		n.tell(daemon.SdNotifyWatchdog)
	}
}

// started says that clients are served and the first sweep is done.
func (n *notifier) started(status string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ready = true
	n.tell(daemon.SdNotifyReady + "\nSTATUS=" + status)
}

func (n *notifier) status(s string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.tell("STATUS=" + s)
}

func (n *notifier) stopping() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.tell(daemon.SdNotifyStopping)
}

// tell logs the first failure of a row. The caller holds mu.
func (n *notifier) tell(state string) {
	err := n.send(state)
	if err != nil && !n.failed {
		n.log.Warn().Err(err).Msg("service manager cannot be told")
	}
	n.failed = err != nil
}
