package kimi

import (
	"strings"

	"steno/providers"
	"steno/providers/scan"
)

// category is the category of turn.ended's error, by its code and its HTTP
// status. Of the message not a word is read. Recorded with 2.1.0:
// provider.api_error, provider.auth_error, provider.filtered, context.overflow;
// the other codes stand in the program.
func category(failure []byte) providers.Reason {
	code := scan.Text(scan.Member(failure, "code"))
	switch code {
	case "provider.auth_error", "auth.login_required":
		return providers.AuthenticationFailed
	case "provider.filtered":
		return providers.PolicyBlocked
	case "context.overflow":
		return providers.ContextLimit
	case "provider.rate_limit":
		return providers.RateLimited
	case "provider.overloaded":
		return providers.ModelAtCapacity
	case "provider.connection_error":
		return providers.ProviderUnavailable
	case "provider.api_error":
		status := number(scan.Member(scan.Member(failure, "details"), "statusCode"))
		switch {
		case status == 429:
			return providers.RateLimited
		case status == 400 || status == 404:
			return providers.InvalidRequest
		case status == 529:
			return providers.ModelAtCapacity
		case status >= 500 && status < 600:
			return providers.ProviderUnavailable
		}
	}
	if strings.HasPrefix(code, "auth.") {
		return providers.AuthenticationFailed
	}
	return providers.ProviderError
}
