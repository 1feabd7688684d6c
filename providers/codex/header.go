package codex

import (
	"time"

	"steno/providers"
	"steno/providers/scan"
)

// header is what session_meta, the first record of a rollout, tells.
type header struct {
	thread   string // payload.id; session_id is the root thread's id and differs in subagents
	cwd      string
	internal string // why the thread is nobody's session, "" when it is a user's
}

// Reasons for which a thread can never own a pane. Fixed words.
const (
	internalSubagent = "the header says that this is a subagent's thread"
	internalFeature  = "the header says that this is an internal thread of the program"
	internalSource   = "the header names another thread source than the user"
)

// parseHeader reads a session_meta payload. The 20 KB of instructions in it
// are passed over.
func parseHeader(payload []byte) header {
	var h header
	var source, threadSource []byte
	scan.Members(payload, func(key, val []byte) bool {
		switch string(key) {
		case "id":
			h.thread = ident(val)
		case "cwd":
			h.cwd = scan.Text(val)
		case "source":
			source = val
		case "thread_source":
			threadSource = val
		}
		return true
	})
	if scan.IsObject(source) {
		scan.Members(source, func(key, _ []byte) bool {
			switch string(key) {
			case "subagent":
				h.internal = internalSubagent
			case "internal":
				h.internal = internalFeature
			}
			return true
		})
	}
	if h.internal == "" && !scan.IsNull(threadSource) && !scan.Is(threadSource, "user") {
		h.internal = internalSource
		if scan.Is(threadSource, "subagent") {
			h.internal = internalSubagent
		}
	}
	return h
}

// Describe reads the first record of a rollout. Born is the time at which the
// record was written: the file appears with the first prompt, not with the
// thread.
func (Provider) Describe(a providers.Artifact, first []byte) providers.Session {
	s := providers.Session{ID: a.Session, Path: a.Path}
	var payload []byte
	var at time.Time
	meta := false
	scan.Members(first, func(key, val []byte) bool {
		switch string(key) {
		case "type":
			meta = scan.Is(val, "session_meta")
		case "timestamp":
			at = scan.Time(val)
		case "payload":
			payload = val
		}
		return true
	})
	if !meta {
		return s
	}
	h := parseHeader(payload)
	if h.thread != "" {
		s.ID = h.thread
	}
	s.CWD, s.Born, s.Internal = h.cwd, at, h.internal
	return s
}
