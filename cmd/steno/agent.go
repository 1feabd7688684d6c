package main

import (
	"context"

	"github.com/spf13/cobra"

	"steno/ipc"
	"steno/ipc/wire"
)

// agentCommand groups the commands of the Agent API.
func (a *app) agentCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "agent",
		Short: "read agents and their events",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.eventsCommand(), a.catalogCommand(), a.capabilitiesCommand(), a.agentListCommand(),
		a.callerCommand(), a.admitCommand(), a.requestCommand())
	return cmd
}

func (a *app) capabilitiesCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "capabilities",
		Short: "print what the daemon can do",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			caps, err := ask(cmd.Context(), a, func(ctx context.Context, c *ipc.Client) (wire.Capabilities, error) {
				return c.Capabilities(ctx)
			})
			if err != nil {
				return err
			}
			return a.printJSON(caps)
		},
	}
}
