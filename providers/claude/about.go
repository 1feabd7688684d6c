package claude

import "steno/providers"

// About describes Claude Code.
func (Provider) About() providers.About {
	return providers.About{Name: "Claude Code", Programs: []string{"claude"}, Version: "2.1.332"}
}
