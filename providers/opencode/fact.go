package opencode

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"

	"steno/providers"
)

// what a record is to the turns.
type what uint8

const (
	nothing what = iota
	gapRecord
	sessionInfo
	userRow
	assistantRow
	textPart
	toolPart
	compactionPart
	stepStart
	otherPart
	removed
)

// fact is what is kept of one record. Of a user's words only the hash is.
type fact struct {
	what   what
	record providers.Record // of a gap; without data

	id, parent string // of the message; of a part its message
	part       string // id of a part
	at         time.Time
	created    time.Time
	completed  time.Time

	child, summary, synthetic  bool
	task                       bool // of a synthetic text: the report of a subagent in the background
	dir                        string
	finish                     string
	failed, aborted            bool
	reason                     providers.Reason
	text                       string
	input                      string // hash of the text, of a user's part
	began, ended               bool   // of a text
	cut                        bool   // of a text that only the rewinding saw
	rejected, interrupted      bool   // of a tool
	auto                       bool   // of a compaction
	call, tool                 string
	running, over, byItsServer bool
	approval                   *providers.Approval

	drift []string
}

// The sentences by which a tool call says that the user refused it; the loop
// ends then (1.18.33).
const (
	rejectedPermission = "The user rejected permission to use this specific tool call."
	dismissedQuestion  = "The user dismissed this question"
)

// event is a record as the row reader composes it. A member of another type
// counts as absent: json goes on with the others then.
type event struct {
	Type string `json:"type"`
	Data struct {
		Info    *info   `json:"info"`
		Part    *part   `json:"part"`
		Time    float64 `json:"time"`
		Message string  `json:"messageID"`
	} `json:"data"`
}

type info struct {
	ID        string  `json:"id"`
	Role      string  `json:"role"`
	Parent    string  `json:"parentID"`
	Directory string  `json:"directory"`
	Finish    string  `json:"finish"`
	Summary   flag    `json:"summary"`
	Error     *failed `json:"error"`
	Time      struct {
		Created   float64 `json:"created"`
		Completed float64 `json:"completed"`
	} `json:"time"`
}

type failed struct {
	Name string `json:"name"`
	Data struct {
		Status    float64 `json:"statusCode"`
		Retryable flag    `json:"isRetryable"`
		Message   string  `json:"message"`
		Body      string  `json:"responseBody"`
	} `json:"data"`
}

type part struct {
	ID        string `json:"id"`
	Message   string `json:"messageID"`
	Type      string `json:"type"`
	Text      string `json:"text"`
	Synthetic flag   `json:"synthetic"`
	Ignored   flag   `json:"ignored"`
	Auto      flag   `json:"auto"`
	Call      string `json:"callID"`
	Tool      string `json:"tool"`
	Time      span   `json:"time"`
	Metadata  struct {
		ByServer flag `json:"providerExecuted"`
	} `json:"metadata"`
	State struct {
		Status   string          `json:"status"`
		Error    string          `json:"error"`
		Input    json.RawMessage `json:"input"`
		Time     span            `json:"time"`
		Metadata struct {
			Interrupted flag `json:"interrupted"`
		} `json:"metadata"`
	} `json:"state"`
}

type span struct {
	Start float64 `json:"start"`
	End   float64 `json:"end"`
}

// flag is true for the JSON value true alone; the user's summary is an object.
type flag bool

func (f *flag) UnmarshalJSON(b []byte) error {
	*f = string(b) == "true"
	return nil
}

// decode reads a record. Whatever it holds, it never fails: what cannot be
// used says nothing.
func decode(r providers.Record) fact {
	if r.Gap != providers.Whole {
		r.Data = nil
		return fact{what: gapRecord, record: r}
	}
	var e event
	if err := json.Unmarshal(r.Data, &e); err != nil {
		if _, ok := err.(*json.UnmarshalTypeError); !ok {
			return fact{}
		}
	}
	var f fact
	name, drift := eventName(e.Type)
	if drift {
		f.drift = append(f.drift, e.Type)
	}
	switch name {
	case "session.created", "session.updated":
		if i := e.Data.Info; i != nil {
			f.what, f.created, f.child, f.dir = sessionInfo, stamp(i.Time.Created), i.Parent != "", i.Directory
		}
	case "message.updated":
		if e.Data.Info != nil {
			f.message(e.Data.Info)
		}
	case "message.part.updated":
		if e.Data.Part != nil {
			f.at = stamp(e.Data.Time)
			f.readPart(e.Data.Part)
		}
	case "message.removed":
		if f.id = ident(e.Data.Message); f.id != "" {
			f.what = removed
		}
	}
	return f
}

func (f *fact) message(i *info) {
	f.id, f.parent = ident(i.ID), ident(i.Parent)
	f.created, f.completed = stamp(i.Time.Created), stamp(i.Time.Completed)
	if f.id == "" {
		return
	}
	switch i.Role {
	case "user":
		f.what = userRow
	case "assistant":
		f.what, f.summary, f.finish = assistantRow, bool(i.Summary), i.Finish
		if i.Error != nil && i.Error.Name != "" {
			f.failed = true
			if f.aborted = i.Error.Name == "MessageAbortedError"; !f.aborted {
				f.reason = reason(i.Error)
			}
			if !knownErrors[i.Error.Name] {
				f.drift = append(f.drift, "error:"+i.Error.Name)
			}
		}
	default:
		f.drift = append(f.drift, "role:"+i.Role)
	}
}

func (f *fact) readPart(p *part) {
	f.id, f.part = ident(p.Message), ident(p.ID)
	if f.id == "" || f.part == "" {
		return
	}
	if !knownParts[p.Type] {
		f.drift = append(f.drift, "part:"+p.Type)
	}
	switch p.Type {
	case "text":
		f.what, f.synthetic = textPart, bool(p.Synthetic || p.Ignored)
		f.began, f.ended = p.Time.Start > 0, p.Time.End > 0
		if f.ended {
			f.at = stamp(p.Time.End)
		}
		f.text = strings.TrimSpace(p.Text)
		f.task = f.synthetic && strings.HasPrefix(f.text, `<task id="ses_`)
		if f.text != "" {
			sum := sha256.Sum256([]byte(f.text))
			f.input = hex.EncodeToString(sum[:])
		}
	case "tool":
		f.what, f.tool, f.call = toolPart, p.Tool, ident(p.Call)
		if f.call == "" {
			f.call = f.part
		}
		s := &p.State
		f.byItsServer = bool(p.Metadata.ByServer)
		f.interrupted = s.Status == "error" && bool(s.Metadata.Interrupted)
		f.rejected = s.Status == "error" && (s.Error == rejectedPermission || s.Error == dismissedQuestion)
		f.running, f.over = s.Status == "running", s.Status == "completed" || s.Status == "error"
		if f.running && p.Tool == "question" {
			if s.Time.Start > 0 {
				f.at = stamp(s.Time.Start)
			}
			f.approval = question(f.call, s.Input)
		}
	case "compaction":
		f.what, f.auto = compactionPart, bool(p.Auto)
	case "step-start":
		f.what = stepStart
	default:
		f.what = otherPart
	}
}

// stamp is a time of the program: milliseconds. What is no sensible time is
// none.
func stamp(ms float64) time.Time {
	if !(ms > 0 && ms < 1<<48) {
		return time.Time{}
	}
	return time.UnixMilli(int64(ms)).UTC()
}

// maxIdent bounds the ids that are kept as they are; theirs have 30 characters.
const maxIdent = 40

// ident is an id as it is used in keys and in the state: the program's own, or
// the hash of one that is longer than those or holds other characters.
func ident(s string) string {
	if s == "" {
		return ""
	}
	plain := len(s) <= maxIdent
	for i := 0; plain && i < len(s); i++ {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '-':
		default:
			plain = false
		}
	}
	if plain {
		return s
	}
	sum := sha256.Sum256([]byte(s))
	return "h" + hex.EncodeToString(sum[:16])
}
