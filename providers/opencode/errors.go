package opencode

import (
	"strings"

	"steno/providers"
)

// reason is the category of a message's error (D9). Only the status, the name
// and one word of the text decide; the text itself goes nowhere.
func reason(e *failed) providers.Reason {
	switch e.Name {
	case "ProviderAuthError":
		return providers.AuthenticationFailed
	case "ContextOverflowError":
		return providers.ContextLimit
	case "ContentFilterError":
		return providers.PolicyBlocked
	}
	switch s := int(e.Data.Status); {
	case s == 401 || s == 403:
		return providers.AuthenticationFailed
	case s == 429:
		return providers.RateLimited
	case s == 400 || s == 404:
		return providers.InvalidRequest
	case s == 529, s == 503 && overloaded(e):
		return providers.ModelAtCapacity
	case s >= 500 && s < 600:
		return providers.ProviderUnavailable
	case s == 0 && bool(e.Data.Retryable):
		return providers.ProviderUnavailable
	}
	return providers.ProviderError
}

// overloaded says whether the provider speaks of overload.
func overloaded(e *failed) bool {
	return strings.Contains(strings.ToLower(e.Data.Message), "overload") ||
		strings.Contains(strings.ToLower(e.Data.Body), "overload")
}
