package main

import (
	"steno/providers"
	"steno/providers/claude"
	"steno/providers/codex"
	"steno/providers/copilot"
	"steno/providers/gemini"
	"steno/providers/kimi"
	"steno/providers/opencode"
)

// allProviders is the one list of the programs that Steno observes.
func allProviders() []providers.Provider {
	return []providers.Provider{
		claude.Provider{},
		codex.Provider{},
		copilot.Provider{},
		gemini.Provider{},
		kimi.Provider{},
		opencode.Provider{},
	}
}
