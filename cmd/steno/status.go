package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"steno/ipc"
	"steno/ipc/wire"
)

func (a *app) statusCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status",
		Short: "print the state of the daemon",
		Args:  cobra.NoArgs,
	}
	format := formatFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		asJSON, err := a.wantsJSON(*format)
		if err != nil {
			return err
		}
		status, err := ask(cmd.Context(), a, func(ctx context.Context, c *ipc.Client) (wire.Status, error) {
			return c.Status(ctx)
		})
		if err != nil {
			return err
		}
		if asJSON {
			return a.printJSON(status)
		}
		return a.printStatus(status)
	}
	return cmd
}

func (a *app) printStatus(s wire.Status) error {
	t := newTable(a.out)
	t.row("daemon", fmt.Sprintf("steno %s, pid %d, up %s", s.Version, s.PID, time.Since(s.StartedAt.Time).Round(time.Second)))
	t.row("socket", fmt.Sprintf("%s, %d clients", a.shorten(s.Socket), s.Clients))
	log := fmt.Sprintf("%d events (%d to %d), %s of at most %d events and %s", s.Store.Events, s.Store.Oldest,
		s.Store.Latest, size(s.Store.Bytes), s.Store.RetainEvents, size(s.Store.RetainBytes))
	if !s.Store.Working {
		log = "does not work: " + s.Store.Error
	}
	t.row("log", log)
	t.row("state", a.shorten(s.StateDir))
	watch := fmt.Sprintf("%s, %d watches of at most %d", s.Watch.Mode, s.Watch.Watches, s.Watch.Budget)
	if s.Watch.Reason != "" {
		watch += ": " + s.Watch.Reason
	}
	t.row("files", watch)
	for _, m := range s.Mux {
		line := fmt.Sprintf("%s, %d panes", a.shorten(m.Socket), m.Panes)
		if m.Error != "" {
			line = fmt.Sprintf("%s: %s", a.shorten(m.Socket), m.Error)
		}
		t.row("tmux", line)
	}
	for _, p := range s.Providers {
		t.row(p.ID, fmt.Sprintf("%d processes, %d bound to a session, %d session files, %d failures",
			p.Processes, p.Bound, p.Artifacts, p.Failures))
	}
	return t.flush()
}

// size writes bytes for people.
func size(n int64) string {
	const units = "KMGT"
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	f, i := float64(n)/1024, 0
	for f >= 1024 && i < len(units)-1 {
		f, i = f/1024, i+1
	}
	return fmt.Sprintf("%.1f %ciB", f, units[i])
}
