package gemini

import (
	"encoding/json"
	"strings"

	"steno/providers"
)

// usedUp begins the program's own words for a quota that is used up, which stand
// where a code does otherwise (0.61.0).
const usedUp = "You have exhausted your daily quota"

// reason is the category of an error message, by the status code inside
// "[API Error: {...}]". Its text is never given.
func reason(body string) providers.Reason {
	rest, ok := strings.CutPrefix(strings.TrimSpace(body), apiErrorMark+": ")
	if ok && strings.HasPrefix(rest, usedUp) {
		return providers.UsageLimit
	}
	if !ok || !strings.HasPrefix(rest, "{") {
		return providers.ProviderError
	}
	var e struct {
		Error struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	// What follows the object is the program's own advice.
	if json.NewDecoder(strings.NewReader(rest)).Decode(&e) != nil {
		return providers.ProviderError
	}
	switch c := e.Error.Code; {
	case c == 401 || c == 403:
		return providers.AuthenticationFailed
	case c == 429:
		return providers.RateLimited
	case c == 400 || c == 404:
		return providers.InvalidRequest
	case c == 529, c == 503 && strings.Contains(strings.ToLower(e.Error.Message), "overload"):
		return providers.ModelAtCapacity
	case c >= 500 && c < 600:
		return providers.ProviderUnavailable
	}
	return providers.ProviderError
}
