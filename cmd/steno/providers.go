package main

import (
	"steno/providers"
	"steno/providers/claude"
	"steno/providers/codex"
)

// allProviders is the one list of the programs that Steno observes.
func allProviders() []providers.Provider {
	return []providers.Provider{
		claude.Provider{},
		codex.Provider{},
	}
}
