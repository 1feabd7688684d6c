package gemini

import (
	"testing"

	"steno/providers"
)

func TestReason(t *testing.T) {
	for body, want := range map[string]providers.Reason{
		// The program has no code there, only its own words (0.61.0).
		"[API Error: You have exhausted your daily quota on this model.]\nPlease wait and try again later.": providers.UsageLimit,
		"[API Error: terminated]":                                            providers.ProviderError,
		"Model stream ended without a finish reason.":                        providers.ProviderError,
		`[API Error: {"error":{"code":429,"message":"You have exhausted"}}]`: providers.RateLimited,
		`You have exhausted your daily quota on this model.`:                 providers.ProviderError,
	} {
		if got := reason(body); got != want {
			t.Errorf("%q: %s, want %s", body, got, want)
		}
	}
}
