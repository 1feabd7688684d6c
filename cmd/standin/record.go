package main

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const maxRecording = 64 << 20

// recording is a recorded session that is given out record by record with new
// ids, another working directory and the present time.
type recording struct {
	lines   [][]byte
	next    int
	session string // recorded session id
	cwd     string // recorded working directory
	version string

	self      string            // session id that is given out
	dir       string            // working directory that is given out
	renamed   map[string]string // recorded id -> given id, of the present pass
	ascending uint64            // newest time of an id of OpenCode's form
	now       func() time.Time
	since     time.Time // this process had begun by then
}

// header is what is looked for in the first records. Claude and Gemini have
// sessionId in their records (Claude has cwd, too), Codex has both in session_meta,
// Copilot in session.start and OpenCode in session.created. Kimi has neither.
type header struct {
	SessionID string `json:"sessionId"`
	CWD       string `json:"cwd"`
	Version   string `json:"version"`
	Payload   struct {
		ID      string `json:"id"`
		CWD     string `json:"cwd"`
		Version string `json:"cli_version"`
	} `json:"payload"`
	Data struct {
		ID      string `json:"sessionId"`
		Session string `json:"sessionID"`
		Version string `json:"copilotVersion"`
		Context struct {
			CWD string `json:"cwd"`
		} `json:"context"`
		Info struct {
			Directory string `json:"directory"`
			Version   string `json:"version"`
		} `json:"info"`
	} `json:"data"`
}

func loadRecording(path, session, dir string) (*recording, error) {
	if path == "" {
		return nil, errors.New("STANDIN_RECORD is not set")
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("open recording: %w", err)
	}
	if info.Size() > maxRecording {
		return nil, fmt.Errorf("recording has %d bytes, at most %d are read", info.Size(), maxRecording)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read recording: %w", err)
	}
	r := &recording{dir: dir, self: session, renamed: map[string]string{}, now: time.Now, since: time.Now()}
	for line := range bytes.SplitSeq(data, []byte("\n")) {
		if len(line) > 0 {
			r.lines = append(r.lines, line)
		}
	}
	for _, line := range r.lines {
		var h header
		if json.Unmarshal(line, &h) != nil {
			continue // a recording may hold damage on purpose
		}
		d := h.Data
		r.session = first(r.session, h.SessionID, h.Payload.ID, d.ID, d.Session)
		r.cwd = first(r.cwd, h.CWD, h.Payload.CWD, d.Context.CWD, d.Info.Directory)
		r.version = first(r.version, h.Version, h.Payload.Version, d.Version, d.Info.Version)
		if r.session != "" && r.cwd != "" && r.version != "" {
			break
		}
	}
	if len(r.lines) == 0 {
		return nil, errors.New("recording is empty")
	}
	if r.self == "" {
		r.self = r.newSession()
	}
	return r, nil
}

// newSession makes a session id of the recorded one's form: a UUID, or
// OpenCode's.
func (r *recording) newSession() string {
	id := newID(r.session, r.now())
	if strings.HasPrefix(r.session, "ses_") {
		return "ses_" + strings.ReplaceAll(id, "-", "")[:26]
	}
	return id
}

func first(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

// take gives up to n records. Their times keep their order, and the newest of
// them is now: a program writes a batch after its last record was made.
func (r *recording) take(n int) [][]byte {
	n = min(max(n, 0), len(r.lines)-r.next)
	batch := r.lines[r.next : r.next+n]
	r.next += n
	var newest time.Time
	for _, line := range batch {
		if at := recordTime(line); at.After(newest) {
			newest = at
		}
	}
	now := r.now()
	out := make([][]byte, len(batch))
	for i, line := range batch {
		at := now
		if rec := recordTime(line); !rec.IsZero() {
			// Recorded pauses within a batch are kept up to 5 ms, and no record
			// is older than this process.
			at = now.Add(-min(newest.Sub(rec), 5*time.Millisecond, now.Sub(r.since)))
		}
		out[i] = r.rewrite(line, at)
	}
	return out
}

func (r *recording) left() int { return len(r.lines) - r.next }

// again starts over with new ids in the same session.
func (r *recording) again() {
	r.next = 0
	r.renamed = map[string]string{}
}

// renew starts over in a new session.
func (r *recording) renew() {
	r.again()
	r.self = r.newSession()
}

// recordTime is the record's own time: a timestamp, Kimi's milliseconds, or
// what Gemini's header and its updates have.
func recordTime(line []byte) time.Time {
	var rec struct {
		Timestamp time.Time `json:"timestamp"`
		Start     time.Time `json:"startTime"`
		Set       struct {
			Updated  time.Time `json:"lastUpdated"`
			Messages []struct {
				Timestamp time.Time `json:"timestamp"`
			} `json:"messages"`
		} `json:"$set"`
		Time    json.Number `json:"time"`
		Created json.Number `json:"created_at"`
	}
	if json.Unmarshal(line, &rec) != nil {
		return time.Time{}
	}
	at := rec.Timestamp
	for _, m := range rec.Set.Messages {
		at = m.Timestamp
	}
	for _, t := range []time.Time{rec.Start, rec.Set.Updated} {
		if at.IsZero() {
			at = t
		}
	}
	for _, n := range []json.Number{rec.Time, rec.Created} {
		if ms, err := n.Int64(); err == nil && at.IsZero() && ms > 1e12 {
			at = time.UnixMilli(ms)
		}
	}
	return at
}

var (
	ascendingPattern = regexp.MustCompile(`\b(msg|prt)_[0-9a-f]{12}[0-9A-Za-z]{14}\b`)
	uuidPattern      = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	datePattern      = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
	secondsPattern   = regexp.MustCompile(`"(started_at|completed_at|create_time)":(\d{10})(\.\d+)?`)
	millisPattern    = regexp.MustCompile(`"(\w+_at_ms|created_at|time|created|completed|updated|start|end)":(\d{13})`)
)

// rewrite gives a record new ids, the present working directory, and times that
// are moved by the distance from its own time to at.
func (r *recording) rewrite(line []byte, at time.Time) []byte {
	if strings.HasPrefix(r.session, "ses_") {
		line = bytes.ReplaceAll(line, []byte(r.session), []byte(r.self))
	}
	if r.cwd != "" {
		line = bytes.ReplaceAll(line, inJSON(r.cwd), inJSON(r.dir))
	}
	line = uuidPattern.ReplaceAllFunc(line, func(old []byte) []byte {
		return []byte(r.rename(string(old), at))
	})
	line = ascendingPattern.ReplaceAllFunc(line, func(old []byte) []byte {
		return []byte(r.renameAscending(string(old), at))
	})
	rec := recordTime(line)
	if rec.IsZero() {
		return line
	}
	shift := at.Sub(rec)
	line = datePattern.ReplaceAllFunc(line, func(old []byte) []byte {
		t, err := time.Parse(time.RFC3339Nano, string(old))
		if err != nil {
			return old
		}
		return []byte(t.Add(shift).UTC().Format("2006-01-02T15:04:05.000Z"))
	})
	line = secondsPattern.ReplaceAllFunc(line, func(old []byte) []byte {
		m := secondsPattern.FindSubmatch(old)
		n, _ := strconv.ParseInt(string(m[2]), 10, 64)
		return fmt.Appendf(nil, "%q:%d%s", m[1], time.Unix(n, 0).Add(shift).Unix(), m[3])
	})
	return millisPattern.ReplaceAllFunc(line, func(old []byte) []byte {
		m := millisPattern.FindSubmatch(old)
		n, _ := strconv.ParseInt(string(m[2]), 10, 64)
		return fmt.Appendf(nil, "%q:%d", m[1], time.UnixMilli(n).Add(shift).UnixMilli())
	})
}

// rename gives the same new id for the same old id within a pass.
func (r *recording) rename(old string, at time.Time) string {
	if old == r.session {
		return r.self
	}
	if id, ok := r.renamed[old]; ok {
		return id
	}
	id := newID(old, at)
	r.renamed[old] = id
	return id
}

// renameAscending is rename for OpenCode's ids: 48 bits of milliseconds times 4096
// and a counter, then 14 characters. New ids keep the order of their appearance.
func (r *recording) renameAscending(old string, at time.Time) string {
	if id, ok := r.renamed[old]; ok {
		return id
	}
	r.ascending = max(r.ascending+1, uint64(at.UnixMilli())<<12)
	id := fmt.Sprintf("%s%012x%s", old[:4], r.ascending&(1<<48-1), old[16:])
	r.renamed[old] = id
	return id
}

// newID makes a UUID of the version that like has; version 7 carries the time.
func newID(like string, at time.Time) string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	version := byte(4)
	if len(like) == 36 && like[14] == '7' {
		version = 7
		var ms [8]byte
		binary.BigEndian.PutUint64(ms[:], uint64(at.UnixMilli()))
		copy(b[:6], ms[2:])
	}
	b[6] = b[6]&0x0f | version<<4
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// inJSON is s as it stands between the quotes of a JSON string.
func inJSON(s string) []byte {
	b, _ := json.Marshal(s) // a string always encodes
	return b[1 : len(b)-1]
}
