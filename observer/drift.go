package observer

import (
	"maps"
	"slices"
	"strings"
)

// maxDrift bounds the record types that are remembered of each provider.
const maxDrift = 64

// drifted remembers record types that a provider does not know. Anything that
// does not look like the name of a type is not kept: it might be content.
func (o *Observer) drifted(provider string, types []string) {
	for _, name := range types {
		known := o.drift[provider]
		if !typeName(name) || known[name] || len(known) >= maxDrift {
			continue
		}
		if known == nil {
			known = map[string]bool{}
			o.drift[provider] = known
		}
		known[name] = true
		o.opt.Log.Info().Str("provider", provider).Str("type", name).
			Msg("a record type that was never seen before: the program is newer than what Steno knows of it")
	}
}

func (o *Observer) driftOf(provider string) []string {
	return append([]string{}, slices.Sorted(maps.Keys(o.drift[provider]))...)
}

func typeName(s string) bool {
	return len(s) > 0 && len(s) <= 64 && strings.IndexFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("._-/:$", r)
	}) < 0
}
