package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"steno/ipc"
	"steno/ipc/wire"
)

func (a *app) explainCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain PANE|AGENT",
		Short: "print why an agent is bound to its session, or why not",
		Args:  cobra.ExactArgs(1),
	}
	format := formatFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		asJSON, err := a.wantsJSON(*format)
		if err != nil {
			return err
		}
		why, err := ask(cmd.Context(), a, func(ctx context.Context, c *ipc.Client) (wire.Explanation, error) {
			return c.Explain(ctx, args[0])
		})
		if e, ok := errors.AsType[*ipc.Error](err); ok && e.Code == ipc.CodeNotFound {
			return hintError{fmt.Errorf("no pane or agent %q", args[0]), "steno list and steno agent list name them"}
		}
		if err != nil {
			return err
		}
		if asJSON {
			return a.printJSON(why)
		}
		return a.printExplanation(why)
	}
	return cmd
}

func (a *app) printExplanation(w wire.Explanation) error {
	t := newTable(a.out)
	t.row("pane", fmt.Sprintf("%d, %s", w.PaneID, w.Place))
	if w.Harness != "" {
		t.row("agent", fmt.Sprintf("%s (%s), pid %d", w.Name, w.Harness, w.PID))
	}
	if w.AgentID != "" {
		t.row("id", w.AgentID)
	}
	if w.Bound {
		t.row("session", w.Session)
		t.row("file", a.shorten(w.Artifact))
	} else {
		t.row("session", "none: "+w.Reason)
	}
	if w.Activity != "" {
		activity := w.Activity
		if w.Waiting != "" {
			activity += " for " + w.Waiting
		}
		t.row("activity", activity)
	}
	for _, e := range w.Evidence {
		verdict := "counts"
		if !e.Accepted {
			verdict = "does not count"
			if e.Reason != "" {
				verdict += ": " + e.Reason
			}
		}
		t.row("evidence", fmt.Sprintf("rank %d, %s, session %s: %s", e.Rank, e.Source, e.Session, verdict))
	}
	return t.flush()
}
