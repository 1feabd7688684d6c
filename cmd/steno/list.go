package main

import (
	"context"
	"fmt"
	"net/url"

	"github.com/spf13/cobra"

	"steno/ipc"
	"steno/ipc/wire"
)

func (a *app) listCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "list panes",
		Args:  cobra.NoArgs,
	}
	format := formatFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		asJSON, err := a.wantsJSON(*format)
		if err != nil {
			return err
		}
		panes, err := ask(cmd.Context(), a, func(ctx context.Context, c *ipc.Client) ([]wire.Pane, error) {
			return c.Panes(ctx)
		})
		if err != nil {
			return err
		}
		if asJSON {
			return a.printJSON(panes)
		}
		labels := paneLabels(panes)
		t := newTable(a.out)
		t.row("PANE", "ID", "PLACE", "WORKSPACE", "AGENT PID", "TITLE", "DIRECTORY")
		for _, p := range panes {
			pid := ""
			if p.AgentPID != 0 {
				pid = fmt.Sprint(p.AgentPID)
			}
			t.row(paneLabel(labels, p.PaneID), fmt.Sprint(p.PaneID), p.Place, p.Workspace, pid,
				firstLine(p.EffectiveTitle, 40), a.shorten(pathOf(p.CWD)))
		}
		return t.flush()
	}
	return cmd
}

// pathOf is the path of a file URL.
func pathOf(s string) string {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "file" {
		return s
	}
	return u.Path
}
