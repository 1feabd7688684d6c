package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"steno/ipc"
	"steno/ipc/wire"
)

func (a *app) catalogCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "catalog",
		Short: "print which agents live, in which pane, in which state",
		Args:  cobra.NoArgs,
	}
	format := formatFlag(cmd)
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
		catalog, err := client.Catalog(cmd.Context())
		if err != nil {
			return err
		}
		if asJSON {
			return a.printJSON(catalog)
		}
		return a.printCatalog(cmd.Context(), client, catalog)
	}
	return cmd
}

func (a *app) printCatalog(ctx context.Context, client *ipc.Client, catalog wire.Catalog) error {
	panes, err := client.Panes(ctx)
	if err != nil {
		return err
	}
	labels := paneLabels(panes)
	t := newTable(a.out)
	t.row("PANE", "NAME", "HARNESS", "STATUS", "TURN", "AGENT")
	for _, e := range catalog.Agents {
		t.row(paneLabel(labels, e.PaneID), e.Name, e.Harness, e.Status, e.TurnState, e.AgentID)
	}
	if err := t.flush(); err != nil {
		return err
	}
	if len(catalog.Agents) == 0 {
		fmt.Fprintf(a.errw, "steno: hint: %s\n", noAgentHint)
	}
	return nil
}

// noAgentHint is what to do when there is nothing to see.
const noAgentHint = "no agent found: start one in a tmux pane or a terminal; steno doctor shows what is seen"
