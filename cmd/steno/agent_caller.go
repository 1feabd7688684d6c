package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"steno/ipc"
	"steno/ipc/wire"
)

// caller is what a command knows about where it runs.
type caller struct {
	pane    *uint64 // pane id
	socket  string  // tmux server and its name for the pane, instead of pane
	muxPane string
	thread  string // Codex thread
}

func (a *app) callerCommand() *cobra.Command {
	var (
		pane   uint64
		thread string
	)
	cmd := &cobra.Command{
		Use:   "caller",
		Short: "print the agent that this command runs in",
		Long: `Prints the agent that this command runs in, found by TMUX and TMUX_PANE, else by
WAKTERM_PANE, and by CODEX_THREAD_ID. The flags replace the environment. The pane
decides; a thread alone has to belong to exactly one live agent. When it cannot
decide it prints nothing and fails.`,
		Args: cobra.NoArgs,
	}
	cmd.Flags().Uint64Var(&pane, "pane", 0, "pane `id` instead of the environment")
	cmd.Flags().StringVar(&thread, "codex-thread", "", "Codex thread `id` instead of the environment")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		var who caller
		if cmd.Flags().Changed("pane") || cmd.Flags().Changed("codex-thread") {
			who.thread = thread
			if cmd.Flags().Changed("pane") {
				who.pane = &pane
			}
		} else {
			var err error
			if who, err = callerFromEnv(a.getenv); err != nil {
				return err
			}
		}
		if who.pane == nil && who.muxPane == "" && who.thread == "" {
			return errors.New("cannot tell the caller: none of TMUX_PANE, WAKTERM_PANE and CODEX_THREAD_ID is set")
		}
		found, err := ask(cmd.Context(), a, func(ctx context.Context, c *ipc.Client) (wire.Caller, error) {
			return resolveCaller(ctx, c, who)
		})
		if err != nil {
			return err
		}
		return a.printJSON(found)
	}
	return cmd
}

// callerFromEnv reads the environment. TMUX_PANE is exact together with TMUX,
// so it wins over WAKTERM_PANE, which another multiplexer around this one sets
// for its own panes.
func callerFromEnv(getenv func(string) string) (caller, error) {
	who := caller{thread: getenv("CODEX_THREAD_ID")}
	socket, _, _ := strings.Cut(getenv("TMUX"), ",")
	if name := getenv("TMUX_PANE"); name != "" && socket != "" {
		who.socket, who.muxPane = socket, name
		return who, nil
	}
	if v := getenv("WAKTERM_PANE"); v != "" {
		id, err := strconv.ParseUint(v, 10, 64)
		if err != nil {
			return who, errors.New("cannot tell the caller: WAKTERM_PANE is not a number")
		}
		who.pane = &id
	}
	return who, nil
}

// resolveCaller finds the one live agent. A thread id beside a pane only has to
// agree when it belongs to a live agent; otherwise it is ignored.
func resolveCaller(ctx context.Context, c *ipc.Client, who caller) (wire.Caller, error) {
	var byThread []string
	if who.thread != "" {
		agents, err := c.ListAgents(ctx)
		if err != nil {
			return wire.Caller{}, err
		}
		byThread = threadAgents(agents, who.thread)
		if len(byThread) > 1 {
			return wire.Caller{}, fmt.Errorf("cannot tell the caller: %d live agents have this Codex thread", len(byThread))
		}
	}
	if who.muxPane != "" {
		panes, err := c.Panes(ctx)
		if err != nil {
			return wire.Caller{}, err
		}
		if who.pane = findPane(panes, who.socket, who.muxPane); who.pane == nil {
			return wire.Caller{}, fmt.Errorf("cannot tell the caller: the daemon does not see pane %s of this tmux server", who.muxPane)
		}
	}
	catalog, err := c.Catalog(ctx)
	if err != nil {
		return wire.Caller{}, err
	}
	by := wire.ByCodexThread
	matches := func(e wire.CatalogEntry) bool { return slices.Contains(byThread, e.AgentID) }
	if who.pane != nil {
		by = wire.ByPane
		matches = func(e wire.CatalogEntry) bool { return e.PaneID == *who.pane }
	}
	for _, e := range catalog.Agents {
		if !e.Alive || e.IncarnationID == nil || !matches(e) {
			continue
		}
		if who.pane != nil && len(byThread) == 1 && byThread[0] != e.AgentID {
			return wire.Caller{}, errors.New("cannot tell the caller: pane and Codex thread name different agents")
		}
		return wire.Caller{Schema: wire.SchemaAPI, ResolvedBy: by, Agent: e}, nil
	}
	return wire.Caller{}, errors.New("cannot tell the caller: no live agent is there")
}

// threadAgents lists the live Codex agents whose session is the thread.
func threadAgents(agents []wire.AgentListEntry, thread string) []string {
	var ids []string
	for _, e := range agents {
		if !e.Runtime.Alive || e.Runtime.Harness != wire.Variant(wire.HarnessCodex) {
			continue
		}
		app := e.Metadata.CodexAppServer
		path := filepath.Base(value(e.Runtime.SessionPath))
		if app != nil && app.ThreadID == thread || strings.HasSuffix(path, "-"+thread+".jsonl") {
			ids = append(ids, e.Metadata.AgentID)
		}
	}
	return ids
}

func findPane(panes []wire.Pane, socket, name string) *uint64 {
	real := func(p string) string {
		if r, err := filepath.EvalSymlinks(p); err == nil {
			return r
		}
		return p
	}
	for _, p := range panes {
		if p.MuxPane == name && (p.Socket == socket || real(p.Socket) == real(socket)) {
			return &p.PaneID
		}
	}
	return nil
}
