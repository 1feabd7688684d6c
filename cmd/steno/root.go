package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"steno/ipc"
)

// root is the whole command tree.
func (a *app) root() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "steno",
		Short: "Steno writes down what the coding agents in your terminal say",
		Long: `Steno watches the files that coding agents (Claude Code, Codex) leave on disk, finds
out which process in which pane owns each session, and keeps every turn exactly
once in a durable log that programs can follow.`,
		Version:           versionText(),
		SilenceErrors:     true,
		SilenceUsage:      true,
		DisableAutoGenTag: true,
		Args:              cobra.NoArgs,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRun:  func(*cobra.Command, []string) { a.started = true },
	}
	cmd.SetIn(a.in)
	cmd.SetOut(a.out)
	cmd.SetErr(a.errw)
	cmd.SetVersionTemplate("steno {{.Version}}\n")
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })

	a.flags = map[string]string{}
	p := cmd.PersistentFlags()
	p.BoolVar(&a.json, "json", false, "print JSON even on a terminal")
	a.settingFlags(cmd, "config", "state_dir", "socket")
	// Consumers put it in front; stripPrefix takes it away there.
	p.BoolVar(&a.skipConfig, "skip-config", a.skipConfig, "do not read the configuration file")

	cmd.AddCommand(a.serveCommand(), a.agentCommand(), a.listCommand(), a.statusCommand(),
		a.doctorCommand(), a.explainCommand(), a.configCommand(), a.versionCommand())
	return cmd
}

// settingFlag puts the value of a flag where loadConfig looks for it. The check
// comes with the others, in loadConfig.
type settingFlag struct {
	app *app
	key string
}

func (f settingFlag) String() string { return "" }
func (f settingFlag) Type() string   { return "string" }
func (f settingFlag) Set(s string) error {
	f.app.flags[f.key] = s
	return nil
}

// client connects to the daemon.
func (a *app) client(ctx context.Context) (*ipc.Client, error) {
	c, err := a.load(true)
	if err != nil {
		return nil, err
	}
	client, err := ipc.Dial(ctx, c.Socket)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", c.Socket, err)
	}
	return client, nil
}

// load finds the effective settings.
func (a *app) load(client bool) (*config, error) {
	return loadConfig(sources{getenv: a.getenv, flags: a.flags, skipFile: a.skipConfig, client: client})
}

// ask makes one request on a connection of its own.
func ask[T any](ctx context.Context, a *app, request func(context.Context, *ipc.Client) (T, error)) (T, error) {
	client, err := a.client(ctx)
	if err != nil {
		var none T
		return none, err
	}
	defer client.Close()
	return request(ctx, client)
}

// shorten writes the home directory as ~, for people.
func (a *app) shorten(path string) string {
	home := a.getenv("HOME")
	if home == "" || home == "/" {
		return path
	}
	if rel, err := filepath.Rel(home, path); err == nil && filepath.IsLocal(rel) {
		if rel == "." {
			return "~"
		}
		return "~" + string(os.PathSeparator) + rel
	}
	return path
}
