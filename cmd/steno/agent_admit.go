package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"steno/ipc/wire"
)

const maxPrompt = 1 << 20

func (a *app) admitCommand() *cobra.Command {
	p := wire.AdmitParams{Paste: true}
	var exact, noPaste bool
	cmd := &cobra.Command{
		Use:   "admit TARGET [TEXT]",
		Short: "ask to write a prompt; prints the receipt",
		Long: `Asks the daemon to write a prompt to one exact incarnation of an agent and prints
the receipt. This version of Steno only observes: every receipt says that nothing
was written. The text comes from standard input when it is not given.`,
		Args: cobra.RangeArgs(1, 2),
	}
	f := cmd.Flags()
	f.BoolVar(&exact, "exact-agent-id", false, "TARGET is an agent id, never a name")
	f.StringVar(&p.IncarnationID, "incarnation", "", "incarnation `id` of the agent (required)")
	f.StringVar(&p.RequestID, "request-id", "", "`UUID` of this request (required)")
	f.BoolVar(&noPaste, "no-paste", false, "type instead of pasting")
	f.BoolVar(&p.ReturnFinal, "return-final", false, "return the final answer through the request stream")
	f.Uint64Var(&p.TimeoutMS, "final-timeout-ms", 0, "`milliseconds` until the final is given up; needs --return-final")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case p.IncarnationID == "" || p.RequestID == "":
			return usageError{errors.New("--incarnation and --request-id are required")}
		case p.TimeoutMS != 0 && !p.ReturnFinal:
			return usageError{errors.New("--final-timeout-ms needs --return-final")}
		}
		p.Paste = !noPaste
		if len(args) == 2 {
			p.Prompt = args[1]
		} else {
			text, err := io.ReadAll(io.LimitReader(a.in, maxPrompt+1))
			if err != nil {
				return fmt.Errorf("read prompt: %w", err)
			}
			p.Prompt = string(text)
		}
		if len(p.Prompt) > maxPrompt {
			return fmt.Errorf("the prompt is longer than %d bytes", maxPrompt)
		}
		client, err := a.client(cmd.Context())
		if err != nil {
			return err
		}
		defer client.Close()
		p.AgentID = args[0]
		if !exact {
			catalog, err := client.Catalog(cmd.Context())
			if err != nil {
				return err
			}
			if p.AgentID, err = resolveTarget(catalog, args[0]); err != nil {
				return err
			}
		}
		receipt, err := client.Admit(cmd.Context(), p)
		if err != nil {
			return err
		}
		return a.printJSON(receipt)
	}
	return cmd
}

// resolveTarget wants an agent id, or a name that exactly one agent has.
func resolveTarget(catalog wire.Catalog, target string) (string, error) {
	var named []string
	for _, e := range catalog.Agents {
		if e.AgentID == target {
			return target, nil
		}
		if e.Name == target {
			named = append(named, e.AgentID)
		}
	}
	switch len(named) {
	case 0:
		return "", fmt.Errorf("no agent has the id or name %q", target)
	case 1:
		return named[0], nil
	}
	return "", fmt.Errorf("%d agents have the name %q: give the agent id", len(named), target)
}
