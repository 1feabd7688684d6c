package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"time"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"steno/ipc"
	"steno/ipc/wire"
	"steno/observer"
	"steno/observer/watch"
	"steno/store"
)

// serveSettings are the settings that only the daemon uses.
var serveSettings = []string{"log_level", "retention_events", "retention_bytes", "tmux", "tmux_sockets", "sweep", "throttle", "watch_budget"}

// logFile is the event log's name in the state directory.
const logFile = "events.db"

func (a *app) serveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "run the daemon",
		Long: `Runs the daemon: it watches the agents of this user and serves their events on a
socket until it gets SIGTERM or SIGINT. The first signal lets it commit what it has
read, the second ends it at once.`,
		Args: cobra.NoArgs,
	}
	follow := cmd.Flags().Bool("follow", false, "also print each event as a line")
	recoverLog := cmd.Flags().Bool("recover", false, "move a corrupt event log aside and start a new one")
	a.settingFlags(cmd, serveSettings...)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := a.load(false)
		if err != nil {
			return err
		}
		if *follow && c.origin["log_level"] == "default" {
			c.LogLevel = "warn" // the event lines say the rest
		}
		s := &service{app: a, config: c, log: a.logger(c.LogLevel), follow: *follow}
		return s.run(cmd.Context(), *recoverLog)
	}
	return cmd
}

// service is one run of the daemon.
type service struct {
	*app
	*config
	log    zerolog.Logger
	follow bool
}

// run takes what the daemon needs in order (lock, event log, socket), serves
// until ctx ends or a part fails, and gives everything back in reverse.
func (s *service) run(ctx context.Context, recoverLog bool) (err error) {
	lock, err := lockStateDir(s.StateDir)
	if err != nil {
		return err
	}
	defer lock.Close()
	log, err := s.openLog(ctx, recoverLog)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	l, socket, err := s.listen()
	if err != nil {
		return err
	}
	defer l.Close() // the server has closed it already, unless it never ran
	notify := newNotifier(s.component("systemd"))
	obs, err := observer.New(observer.Options{
		Store: log, Providers: allProviders(), Env: providerEnv(s.getenv), Extra: s.Roots,
		TmuxPath: s.Tmux, TmuxSockets: s.TmuxSockets,
		Sweep: s.Sweep, Throttle: s.Throttle, Watch: watch.Options{Budget: s.WatchBudget},
		Heartbeat: notify.alive, Version: versionText(), Log: s.component("observer"),
	})
	if err != nil {
		return err
	}
	stats, err := log.Stats(ctx)
	if err != nil {
		return err
	}
	live := located{Observer: obs, stateDir: s.StateDir, socket: socket}
	server := ipc.NewServer(ipc.Options{Store: log, Live: live, Log: s.log, Version: versionText()})

	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return part(ctx, "observe", obs.Run(ctx)) })
	g.Go(func() error { return part(ctx, "serve clients", server.Serve(ctx, l)) })
	g.Go(func() error { s.report(ctx, obs, log, notify); return nil })
	if s.follow {
		dial := func(ctx context.Context) (*ipc.Client, error) { return ipc.Dial(ctx, live.socket) }
		g.Go(func() error { return part(ctx, "print events", s.print(ctx, uint64(stats.Latest), dial)) })
		g.Go(func() error { s.hint(ctx, obs.Swept(), dial); return nil })
	}
	return g.Wait()
}

func (s *service) component(name string) zerolog.Logger {
	return s.log.With().Str(logComponent, name).Logger()
}

// part names the part that failed. That ctx has ended is no failure.
func part(ctx context.Context, doing string, err error) error {
	if err == nil || ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// openLog opens the event log. One that cannot be opened is never dropped.
func (s *service) openLog(ctx context.Context, recoverLog bool) (*store.Store, error) {
	log, err := store.Open(ctx, store.Options{
		Path:         filepath.Join(s.StateDir, logFile),
		RetainEvents: s.RetentionEvents, RetainBytes: s.RetentionBytes,
		Recover: recoverLog,
	})
	switch {
	case errors.Is(err, store.ErrCorrupt):
		return nil, hintError{err, "steno serve --recover moves it aside and starts a new log above its numbers"}
	case errors.Is(err, store.ErrNewer):
		return nil, hintError{err, "install the newer steno again, or use another --state-dir"}
	case errors.Is(err, store.ErrForeign):
		return nil, hintError{err, "move that file away, or use another --state-dir"}
	case errors.Is(err, store.ErrNotWritable), errors.Is(err, store.ErrFull):
		return nil, hintError{err, hintWritable}
	}
	return log, err
}

// listen takes the socket of the service manager, or makes its own, and says
// where it is.
func (s *service) listen() (net.Listener, string, error) {
	inherited, err := activation.Listeners()
	if err != nil {
		return nil, "", fmt.Errorf("take socket of service manager: %w", err)
	}
	// A descriptor that is no socket leaves a nil listener without an error.
	inherited = slices.DeleteFunc(inherited, func(l net.Listener) bool { return l == nil })
	if len(inherited) == 0 {
		l, err := ipc.Listen(s.Socket)
		if errors.Is(err, ipc.ErrInUse) {
			return nil, "", hintError{fmt.Errorf("listen on %s: %w", s.Socket, err), "stop the other daemon, or give this one its own --socket"}
		}
		if err != nil {
			return nil, "", fmt.Errorf("listen on %s: %w", s.Socket, err)
		}
		return l, s.Socket, nil
	}
	unix, ok := inherited[0].(*net.UnixListener)
	if !ok || len(inherited) > 1 {
		for _, l := range inherited {
			l.Close()
		}
		return nil, "", fmt.Errorf("the service manager gave %d sockets, want one Unix stream socket", len(inherited))
	}
	return unix, unix.Addr().String(), nil
}

// statusEvery is how often the service manager's status line may change.
const statusEvery = 5 * time.Second

// report tells the service manager and the log how far the daemon is.
func (s *service) report(ctx context.Context, obs *observer.Observer, log *store.Store, notify *notifier) {
	began := time.Now()
	select {
	case <-ctx.Done():
	case <-obs.Swept():
		notify.started(s.summary(ctx, obs, log))
		s.log.Info().Str(logVersion, versionText()).Str(logStateDir, s.StateDir).Str(logSocket, s.Socket).
			Dur("first_sweep_ms", time.Since(began)).Msg("ready")
	}
	for last := ""; ctx.Err() == nil; {
		select {
		case <-ctx.Done():
		case <-time.After(statusEvery):
			if now := s.summary(ctx, obs, log); now != last {
				notify.status(now)
				last = now
			}
		}
	}
	notify.stopping()
	s.log.Info().Msg("stopping")
}

// summary is the state of the daemon in one line.
func (s *service) summary(ctx context.Context, obs *observer.Observer, log *store.Store) string {
	if !log.Working() {
		return "the event log does not work, see the log"
	}
	stats, err := log.Stats(ctx)
	if err != nil {
		return "the event log cannot be read, see the log"
	}
	processes, bound := 0, 0
	for _, p := range obs.Status().Providers {
		processes += p.Processes
		bound += p.Bound
	}
	return fmt.Sprintf("%d agents, %d with a session, %d events up to %d", processes, bound, stats.Events, stats.Latest)
}

// noAgentAfter is how long --follow waits before it says that nothing is there.
const noAgentAfter = 3 * time.Second

// print writes each new event as a line, as a client of our own socket. While
// the terminal is stopped it blocks, and only it; the daemon's end then waits
// for it, until a second signal.
func (s *service) print(ctx context.Context, after uint64, dial func(context.Context) (*ipc.Client, error)) error {
	lines := s.linePrinter(dial)
	fmt.Fprintf(s.errw, "steno: following events after %d; Ctrl-C ends\n", after)
	return ipc.Follow(ctx, ipc.FollowOptions{
		Dial: dial, After: after, Limit: wire.MaxLimit, Wait: wire.MaxWait * time.Millisecond,
	}, func(page wire.Page) error { return lines.page(ctx, page) })
}

// hint says what to do when no agent is found.
func (s *service) hint(ctx context.Context, swept <-chan struct{}, dial func(context.Context) (*ipc.Client, error)) {
	select {
	case <-ctx.Done():
		return
	case <-swept:
	}
	select {
	case <-ctx.Done():
		return
	case <-time.After(noAgentAfter):
	}
	client, err := dial(ctx)
	if err != nil {
		return // Follow reports it
	}
	defer client.Close()
	catalog, err := client.Catalog(ctx)
	if err != nil {
		return
	}
	for _, e := range catalog.Agents {
		if e.Alive {
			return
		}
	}
	fmt.Fprintf(s.errw, "steno: hint: %s\n", noAgentHint)
}

// located adds what only this package knows to the observer's status.
type located struct {
	*observer.Observer
	stateDir, socket string
}

func (l located) Status() wire.Status {
	status := l.Observer.Status()
	status.StateDir, status.Socket = l.stateDir, l.socket
	return status
}
