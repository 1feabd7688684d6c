package codex

import "steno/providers"

// About describes Codex CLI.
func (Provider) About() providers.About {
	return providers.About{
		Name: "Codex CLI", Programs: []string{"codex"}, Version: "0.171.0",
		Hints: []string{
			`terminals of the shared daemon are bound by the program's log, which is short and late: "thread-id" in [tui] terminal_title would name the session at once`,
		},
	}
}
