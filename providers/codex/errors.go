package codex

import (
	"bytes"
	"strconv"

	"steno/providers"
	"steno/providers/scan"
)

// failure is the category of an error object of task_complete: its
// codex_error_info (snake_case in rollouts, 0.171.0) or codexErrorInfo
// (camelCase, as the app-server of the same version says it). Of the provider's
// own message not a word is read.
func failure(errObj []byte) providers.Reason {
	var info []byte
	if !scan.Members(errObj, func(key, val []byte) bool {
		switch string(key) {
		case "codex_error_info", "codexErrorInfo":
			info = val
		}
		return true
	}) {
		return providers.ProviderError
	}
	return category(info)
}

// category reads a bare code, or an object whose one key is the code and whose
// value may name an HTTP status.
func category(info []byte) providers.Reason {
	if scan.IsObject(info) {
		var code, inner []byte
		n := 0
		whole := scan.Members(info, func(key, val []byte) bool {
			code, inner = key, val
			n++
			return n < 2
		})
		if !whole || n != 1 {
			return providers.ProviderError
		}
		return classify(code, status(inner))
	}
	if len(info) < 2 || info[0] != '"' {
		return providers.ProviderError
	}
	return classify(info[1:len(info)-1], 0)
}

// status is the HTTP status inside a code's object, 0 when it has none.
func status(inner []byte) int {
	n := 0
	if !scan.IsObject(inner) {
		return 0
	}
	scan.Members(inner, func(key, val []byte) bool {
		switch string(key) {
		case "http_status_code", "httpStatusCode":
			n, _ = strconv.Atoi(string(val))
			return false
		}
		return true
	})
	return n
}

func classify(code []byte, http int) providers.Reason {
	if len(code) > 64 {
		return providers.ProviderError
	}
	switch string(bytes.ToLower(bytes.ReplaceAll(code, []byte("_"), nil))) {
	case "cyberpolicy", "misalignment", "misalignmentpolicyviolation":
		return providers.PolicyBlocked
	case "contextwindowexceeded":
		return providers.ContextLimit
	case "usagelimitexceeded", "sessionbudgetexceeded", "insufficientquota":
		return providers.UsageLimit
	case "ratelimitexceeded":
		return providers.RateLimited
	case "serveroverloaded":
		return providers.ModelAtCapacity
	case "responsetoomanyfailedattempts":
		switch http {
		case 401:
			return providers.AuthenticationFailed
		case 429:
			return providers.RateLimited
		}
		return providers.ProviderUnavailable
	case "httpconnectionfailed", "responsestreamconnectionfailed", "responsestreamdisconnected":
		if http == 401 {
			return providers.AuthenticationFailed
		}
		return providers.ProviderUnavailable
	case "internalservererror":
		return providers.ProviderUnavailable
	case "unauthorized":
		return providers.AuthenticationFailed
	case "badrequest", "invalidprompt":
		return providers.InvalidRequest
	case "sandboxerror":
		return providers.SandboxError
	}
	return providers.ProviderError
}
