package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"steno/ipc/wire"
)

func (a *app) requestCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "request",
		Short: "read requests whose final answer is returned",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.requestWatchCommand())
	return cmd
}

func (a *app) requestWatchCommand() *cobra.Command {
	var (
		after uint64
		once  bool
		poll  int64
	)
	cmd := &cobra.Command{
		Use:   "watch",
		Short: "print requests that have ended, one a line",
		Args:  cobra.NoArgs,
	}
	cmd.Flags().Uint64Var(&after, "after", 0, "`position` in the stream of ended requests")
	cmd.Flags().BoolVar(&once, "once", false, "print what is there, at most 100, and end")
	cmd.Flags().Int64Var(&poll, "poll-ms", 250, "`milliseconds` between two looks, 50 to 60000")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if poll < 50 || poll > 60_000 {
			return usageError{fmt.Errorf("--poll-ms %d: want 50 to 60000", poll)}
		}
		ctx := cmd.Context()
		client, err := a.client(ctx)
		if err != nil {
			return err
		}
		defer client.Close()
		for {
			ended, err := client.Requests(ctx, after)
			if err != nil {
				return err
			}
			for _, r := range ended {
				if r.TerminalEventSequence == nil || *r.TerminalEventSequence <= after {
					return errors.New("the daemon's stream of requests is out of order")
				}
				after = *r.TerminalEventSequence
				if err := a.printJSON(r); err != nil {
					return err
				}
			}
			if once {
				return nil
			}
			if len(ended) == wire.MaxRequests {
				continue // more may be there already
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(time.Duration(poll) * time.Millisecond):
			}
		}
	}
	return cmd
}
