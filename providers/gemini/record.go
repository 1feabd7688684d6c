package gemini

import (
	"crypto/sha256"
	"encoding/hex"
	"hash/fnv"
	"strings"
	"time"

	"steno/providers"
	"steno/providers/scan"
)

// kind of a record.
type kind uint8

const (
	strange  kind = iota // none of the program's; a drift
	header               // the first one: whose session it is
	update               // {"$set": ...}
	cut                  // {"$rewindTo": id}
	entry                // a message
	nameless             // a message without a usable id
	lost                 // Rewind: a gap
)

// record is one line, as far as it matters here.
type record struct {
	kind    kind
	start   int64
	session string    // header, update
	sub     bool      // header: of a subagent
	at      time.Time // update: lastUpdated
	list    *list     // update: it replaces the messages
	entry   message
	drift   []string
}

// list is what a replacement of all messages tells.
type list struct {
	ids    []uint64
	newest time.Time // of the messages' times
	bare   bool      // it does not begin with the session's context
}

func (l *list) has(id string) bool {
	h := hash(id)
	for _, x := range l.ids {
		if x == h {
			return true
		}
	}
	return false
}

// Names that 0.61.0 writes, those that are ignored on purpose included.
var (
	knownSets = map[string]bool{"lastUpdated": true, "sessionId": true, "summary": true, "directories": true,
		"memoryScratchpad": true, "messages": true, "projectHash": true, "startTime": true, "kind": true}
	knownTypes    = map[string]bool{"user": true, "gemini": true, "info": true, "error": true, "warning": true}
	knownStatuses = map[string]bool{"success": true, "error": true, "cancelled": true}
	knownParts    = map[string]bool{"text": true, "functionCall": true, "functionResponse": true, "inlineData": true,
		"fileData": true, "executableCode": true, "codeExecutionResult": true, "videoMetadata": true, "thought": true,
		"thoughtSignature": true, "mediaResolution": true, "partMetadata": true}
)

// parse reads one line. The program tells records apart in this order, too
// (0.61.0, loadConversationRecord).
func parse(r providers.Record) record {
	rec := record{start: r.Start}
	var set, rewind, id, typ, hashed, session, kindOf []byte
	first := ""
	scan.Members(r.Data, func(key, value []byte) bool {
		if first == "" {
			first = string(key[:min(len(key), 41)])
		}
		switch string(key) {
		case "$set":
			set = value
		case "$rewindTo":
			rewind = value
		case "id":
			id = value
		case "type":
			typ = value
		case "projectHash":
			hashed = value
		case "sessionId":
			session = value
		case "kind":
			kindOf = value
		}
		return true
	})
	switch {
	case scan.IsString(rewind):
		rec.kind = cut
	case scan.IsString(id):
		rec.entry = parseMessage(r.Data)
		rec.kind = entry
		if rec.entry.id == "" {
			rec.kind = nameless
		}
		rec.drift = rec.entry.drift
	case scan.IsObject(set):
		rec.kind = update
		parseSet(&rec, set)
	case scan.IsString(session) && (scan.IsString(hashed) || first == "sessionId"):
		rec.kind, rec.session, rec.sub = header, sessionID(session), scan.Text(kindOf) == "subagent"
	case knownTypes[words.Read(typ)]:
		rec.kind = nameless
	default:
		rec.drift = drifted(nil, "record", []byte(first))
	}
	return rec
}

func parseSet(rec *record, set []byte) {
	scan.Members(set, func(key, value []byte) bool {
		switch string(key) {
		case "messages":
			if scan.IsArray(value) {
				rec.list = parseList(value)
			}
		case "sessionId":
			rec.session = sessionID(value)
		case "lastUpdated":
			rec.at = instant(value)
		}
		if !knownSets[string(key)] {
			rec.drift = drifted(rec.drift, "$set", key)
		}
		return true
	})
}

func parseList(value []byte) *list {
	l := &list{}
	scan.Elements(value, func(v []byte) bool {
		var id string
		var content []byte
		scan.Members(v, func(key, value []byte) bool {
			switch string(key) {
			case "id":
				id = ident(value)
			case "timestamp":
				if at := instant(value); at.After(l.newest) {
					l.newest = at
				}
			case "content":
				content = value
			}
			return true
		})
		if len(l.ids) == 0 {
			l.bare = !strings.HasPrefix(opening(content), contextMark)
		}
		l.ids = append(l.ids, hash(id))
		return true
	})
	return l
}

// opening is the first text of a content.
func opening(content []byte) string {
	if scan.IsString(content) {
		return scan.Text(content)
	}
	out := ""
	scan.Elements(content, func(part []byte) bool {
		scan.Members(part, func(key, value []byte) bool {
			if string(key) == "text" {
				out = scan.Text(value)
			}
			return out == ""
		})
		return out == ""
	})
	return out
}

// drifted adds a name that the provider does not know, at most 16 of a record.
func drifted(names []string, group string, name []byte) []string {
	if len(names) == 16 {
		return names
	}
	s := "other"
	if words.Fit(name) {
		s = string(name)
	}
	return append(names, group+"/"+s)
}

// maxID bounds the ids that the program writes, in bytes. Real ones have 36 or 32.
const maxID = 64

var (
	ids   = scan.NewNames(maxID, "-_.$")
	words = scan.NewNames(40, "-_.$") // that the program chose, never a text
)

// ident decodes an id. One that is long or odd is replaced by its hash.
func ident(value []byte) string {
	if s := ids.Read(value); s != "" {
		return s
	}
	s := scan.Text(value)
	if s == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(s))
	return "h-" + hex.EncodeToString(sum[:16])
}

// sessionID decodes a session's id, which is also a directory's name; "" when
// it cannot be one.
func sessionID(value []byte) string {
	s := ids.Read(value)
	if strings.HasPrefix(s, ".") {
		return ""
	}
	return s
}

// instant decodes a time; zero when it is none, or not of this century.
func instant(value []byte) time.Time {
	at := scan.Time(value)
	if at.Year() < 2000 || at.Year() > 2200 {
		return time.Time{}
	}
	return at
}

func hash(s string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(s)) // never fails
	return h.Sum64()
}
