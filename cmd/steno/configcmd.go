package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// effective is one setting as "steno config" prints it.
type effective struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Origin string `json:"origin"`
}

func (a *app) configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "print the settings in effect and where each comes from",
		Long: `Prints the settings in effect and where each comes from. A flag beats the
environment (STENO_ and the key in capitals), which beats the configuration file,
which beats the default.`,
		Args: cobra.NoArgs,
	}
	format := formatFlag(cmd)
	a.settingFlags(cmd, serveSettings...)
	cmd.RunE = func(*cobra.Command, []string) error {
		asJSON, err := a.wantsJSON(*format)
		if err != nil {
			return err
		}
		c, err := a.load(true)
		if err != nil {
			return err
		}
		list := c.effective()
		if asJSON {
			return a.printJSON(list)
		}
		t := newTable(a.out)
		for _, e := range list {
			t.row(e.Key, "=", e.Value, "# "+e.Origin)
		}
		return t.flush()
	}
	return cmd
}

// effective lists the settings. The further roots of each agent follow.
func (c *config) effective() []effective {
	var out []effective
	for _, s := range settings {
		out = append(out, effective{s.key, s.get(c), c.origin[s.key]})
	}
	for _, id := range slices.Sorted(maps.Keys(c.Roots)) {
		out = append(out, effective{fmt.Sprintf("roots.%s", id), strings.Join(c.Roots[id], ","), c.origin["roots"]})
	}
	return out
}
