package gemini

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"time"

	"steno/providers"
	"steno/providers/files"
	"steno/providers/scan"
)

// Reasons for which a session can never own a pane. Fixed words.
const (
	internalSubagent = "a subagent's session"
	internalHistory  = "the session goes on in a newer file"
)

// Describe reads the header. A file without one has no id, and so is never
// bound: nothing else tells the whole id. The working directory is not in it.
// Beyond the header it only looks whether a legacy file has a successor.
func (Provider) Describe(a providers.Artifact, first []byte) providers.Session {
	h := parseHeader(first)
	s := providers.Session{ID: h.session, Path: a.Path, Born: h.born}
	switch {
	case h.sub || subagent(a.Path):
		s.Internal = internalSubagent
	case superseded(a.Path):
		s.Internal = internalHistory
	}
	return s
}

// subagent says whether a file is a subagent's: it has the whole id as its name,
// and lies in a directory of its parent's.
func subagent(path string) bool { return !strings.HasPrefix(filepath.Base(path), "session-") }

// superseded says whether a legacy file was left for its .jsonl sibling.
func superseded(path string) bool {
	if !strings.HasSuffix(path, ".json") {
		return false
	}
	_, err := os.Lstat(path + "l")
	return err == nil
}

// head is what a header tells.
type head struct {
	session string
	born    time.Time
	sub     bool
}

// parseHeader reads the first record, or a document as far as its messages: the
// header's fields stand before them.
func parseHeader(b []byte) head {
	var h head
	message := false
	scan.Members(b, func(key, value []byte) bool {
		switch string(key) {
		case "sessionId":
			h.session = sessionID(value)
		case "startTime":
			h.born = instant(value)
		case "kind":
			h.sub = scan.Text(value) == "subagent"
		case "id", "$set", "$rewindTo":
			message = true
		case "messages":
			return false
		}
		return true
	})
	if message {
		return head{}
	}
	return h
}

// maxHead bounds what is read of a file to see what it is, in bytes. The
// context of a session has a few kB: at most 200 names of files.
const maxHead = 64 << 10

// maxStarts bounds what is read of a file of the process's first minute, to see
// whether it was begun again, in bytes.
const maxStarts = 256 << 10

// sessionOf is the session that the header of a file names; "" when there is
// none.
func sessionOf(path string) string {
	b, _, err := files.Head(path, maxHead)
	if err != nil {
		return ""
	}
	if line, _, ok := bytes.Cut(b, []byte("\n")); ok {
		b = line
	}
	return parseHeader(b).session
}

// stub says whether the head of a .jsonl has nothing but the header and the
// session's context: a start that went on in another file, or has not begun.
func stub(b []byte, size int64) bool {
	if size > int64(len(b)) {
		return false
	}
	for len(b) > 0 {
		line, rest, ok := bytes.Cut(b, []byte("\n"))
		if !ok {
			return true // a partial line is not there yet
		}
		b = rest
		rec := parse(providers.Record{Data: line})
		switch {
		case rec.kind == header, len(bytes.TrimSpace(line)) == 0:
		case rec.kind == update && rec.session == "" && (rec.list == nil || len(rec.list.ids) <= 1 && !rec.list.bare):
		default:
			return false
		}
	}
	return true
}

// sameMinute says whether a process that began then may have named a new file
// like this one. A name has the minute of its start: so the stub of a session
// that is resumed in its first minute is the session's own file (0.61.0).
func sameMinute(path string, process time.Time) bool {
	name := strings.TrimPrefix(filepath.Base(path), "session-")
	const form = "2006-01-02T15-04"
	if len(name) < len(form) {
		return false
	}
	minute, err := time.Parse(form, name[:len(form)])
	return err == nil && !process.Before(minute) && process.Before(minute.Add(time.Minute+starting))
}

// lastStart is the newest start that headers in the first part of a file tell,
// beside the one that is known.
func lastStart(path string, born time.Time) time.Time {
	b, _, err := files.Head(path, maxStarts)
	if err != nil {
		return born
	}
	for len(b) > 0 {
		line, rest, _ := bytes.Cut(b, []byte("\n"))
		b = rest
		if !bytes.HasPrefix(line, []byte(`{"sessionId":`)) {
			continue
		}
		if h := parseHeader(line); h.born.After(born) {
			born = h.born
		}
	}
	return born
}
