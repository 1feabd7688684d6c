package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"steno/ipc"
	"steno/ipc/wire"
)

func (a *app) eventsCommand() *cobra.Command {
	var (
		after         uint64
		limit         int
		wait          int64
		follow        bool
		kinds, agents []string
	)
	cmd := &cobra.Command{
		Use:   "events",
		Short: "print events after a cursor",
		Long: `Prints one page of events after a cursor. With --follow it goes on: each page is
one line of JSON and flushed, empty pages at least every --wait-ms. A follower ends
with code 0 after it printed a page of status cursor_too_old, and looks for a
restarted daemon for 30 s without losing its place.`,
		Args: cobra.NoArgs,
	}
	f := cmd.Flags()
	f.Uint64Var(&after, "after", 0, "`cursor`: the first event printed is above it")
	f.IntVar(&limit, "limit", wire.DefaultLimit, "most `events` of a page, 1 to 1000")
	f.BoolVarP(&follow, "follow", "f", false, "go on with new events")
	f.Int64Var(&wait, "wait-ms", wire.MaxWait, "longest time without a page, in `milliseconds`; only with --follow")
	f.StringSliceVar(&kinds, "kinds", nil, "only events of these `kinds`")
	f.StringSliceVar(&agents, "agent", nil, "only events of these agents, by `id` or name")
	format := formatFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		asJSON, err := a.wantsJSON(*format)
		if err != nil {
			return err
		}
		switch {
		case limit < 1 || limit > wire.MaxLimit:
			return usageError{fmt.Errorf("--limit %d: want 1 to %d", limit, wire.MaxLimit)}
		case wait < 0:
			return usageError{fmt.Errorf("--wait-ms %d: want 0 or more", wait)}
		case cmd.Flags().Changed("wait-ms") && !follow:
			return usageError{errors.New("--wait-ms needs --follow")}
		}
		ctx := cmd.Context()
		c, err := a.load(true)
		if err != nil {
			return err
		}
		dial := func(ctx context.Context) (*ipc.Client, error) { return ipc.Dial(ctx, c.Socket) }
		if agents, err = resolveAgents(ctx, dial, agents); err != nil {
			return err
		}
		each := func(page wire.Page) error { return a.printJSON(page) }
		if !asJSON {
			lines := a.linePrinter(dial)
			each = func(page wire.Page) error { return lines.page(ctx, page) }
		}
		if !follow {
			page, err := ask(ctx, a, func(ctx context.Context, c *ipc.Client) (wire.Page, error) {
				return c.ReadEvents(ctx, wire.ReadParams{After: after, Limit: limit, Kinds: kinds, Agents: agents})
			})
			if err != nil {
				return err
			}
			return each(page)
		}
		return ipc.Follow(ctx, ipc.FollowOptions{
			Dial: dial, After: after, Limit: limit, Kinds: kinds, Agents: agents,
			Wait: time.Duration(min(wait, wire.MaxWait)) * time.Millisecond,
		}, each)
	}
	return cmd
}

// resolveAgents turns names into agent ids. An id of an agent that is no longer
// listed is as good as one that is: its events may still be kept.
func resolveAgents(ctx context.Context, dial func(context.Context) (*ipc.Client, error), names []string) ([]string, error) {
	if len(names) == 0 {
		return nil, nil
	}
	client, err := dial(ctx)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	catalog, err := client.Catalog(ctx)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, name := range names {
		found := false
		for _, e := range catalog.Agents {
			if e.AgentID == name || e.Name == name {
				ids = append(ids, e.AgentID)
				found = true
			}
		}
		if !found && !looksLikeID(name) {
			return nil, fmt.Errorf("no agent has the name %q", name)
		}
		if !found {
			ids = append(ids, name)
		}
	}
	return ids, nil
}

// looksLikeID says whether s has the shape of an agent id, a UUID.
func looksLikeID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i, c := range s {
		if hyphen := i == 8 || i == 13 || i == 18 || i == 23; hyphen != (c == '-') {
			return false
		}
		if c != '-' && !strings.ContainsRune("0123456789abcdefABCDEF", c) {
			return false
		}
	}
	return true
}
