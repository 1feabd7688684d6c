package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"steno/ipc/wire"
)

func (a *app) agentListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "list agents with what is known of each",
		Args:  cobra.NoArgs,
	}
	format := formatFlag(cmd)
	verbose := cmd.Flags().BoolP("verbose", "v", false, "add process, session file and problems")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		asJSON, err := a.wantsJSON(*format)
		if err != nil {
			return err
		}
		client, err := a.client(cmd.Context())
		if err != nil {
			return err
		}
		defer client.Close()
		agents, err := client.ListAgents(cmd.Context())
		if err != nil {
			return err
		}
		if asJSON {
			return a.printJSON(agents)
		}
		panes, err := client.Panes(cmd.Context())
		if err != nil {
			return err
		}
		return a.printAgents(agents, panes, *verbose)
	}
	return cmd
}

func (a *app) printAgents(agents []wire.AgentListEntry, panes []wire.Pane, verbose bool) error {
	labels := paneLabels(panes)
	places := map[uint64]string{}
	for _, p := range panes {
		places[p.PaneID] = p.Place
	}
	t := newTable(a.out)
	head := []string{"PANE", "PLACE", "NAME", "HARNESS", "STATUS", "TURN", "DIRECTORY"}
	if verbose {
		head = append(head, "PID", "SESSION", "PROBLEM")
	}
	t.row(head...)
	for _, e := range agents {
		cells := []string{
			paneLabel(labels, e.PaneID), places[e.PaneID], e.Metadata.Name, strings.ToLower(e.Runtime.Harness),
			strings.ToLower(e.Runtime.Status), snake(e.Runtime.TurnState), a.shorten(e.Metadata.DeclaredCWD),
		}
		if verbose {
			pid := ""
			if e.Metadata.AdoptedPID != nil {
				pid = fmt.Sprint(*e.Metadata.AdoptedPID)
			}
			cells = append(cells, pid, a.shorten(value(e.Runtime.SessionPath)), value(e.Runtime.ObserverError))
		}
		t.row(cells...)
	}
	if err := t.flush(); err != nil {
		return err
	}
	if len(agents) == 0 {
		fmt.Fprintf(a.errw, "steno: hint: %s\n", noAgentHint)
	}
	return nil
}

// snake writes a variant name the way the catalog does: WaitingOnUser is
// waiting_on_user.
func snake(s string) string {
	var b strings.Builder
	for i, r := range s {
		if r >= 'A' && r <= 'Z' {
			if i > 0 {
				b.WriteByte('_')
			}
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	return b.String()
}
