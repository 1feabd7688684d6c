package opencode

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// The program's log (1.18.33) is one file for all of its processes, opened with
// O_APPEND: the offset of a process's descriptor is the end of the last line
// that this process wrote. Each line names its run, and those about work name
// their session:
//
//	timestamp=2026-11-30T19:00:00.000Z level=INFO run=08e546a1 message=loop session.id=ses_… step=0
//
// A value that holds a space, a quote, "=" or a backslash is written as JSON.
const (
	maxLogBack  = 1 << 20 // bytes that are read from the place backwards
	maxLogChunk = 64 << 10
)

// logged is what the log tells of a process.
type logged struct {
	run     string
	session string
	at      time.Time
}

// logPlace is the log that a process has open, and where it wrote last.
func logPlace(positions map[string]int64) (path string, off int64) {
	for p, o := range positions {
		if filepath.Base(p) == "opencode.log" && filepath.Base(filepath.Dir(p)) == "log" && (path == "" || p < path) {
			path, off = p, o
		}
	}
	return path, off
}

// readLog finds the run that wrote the line which ends at off, and the newest
// session of that run before it.
func readLog(path string, off int64) (logged, error) {
	// Not blocking, should somebody have put a pipe there.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return logged{}, bare("open log", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return logged{}, bare("open log", err)
	}
	if !info.Mode().IsRegular() {
		return logged{}, errors.New("open log: it is not a regular file")
	}
	return searchLog(f, min(off, info.Size()))
}

func searchLog(r io.ReaderAt, off int64) (logged, error) {
	var l logged
	err := linesBack(r, off, func(line []byte) bool {
		if len(line) == 0 {
			return true
		}
		f := parseLine(line)
		if l.run == "" {
			if f.run == "" {
				return false // not a line of this program: nothing is known
			}
			l.run = f.run
		}
		if f.run == l.run && f.session != "" {
			l.session, l.at = f.session, f.at
			return false
		}
		return true
	})
	return l, err
}

// linesBack gives the whole lines that end at or before off, the last one
// first, at most maxLogBack bytes of them.
func linesBack(r io.ReaderAt, off int64, give func(line []byte) bool) error {
	stop := max(0, off-maxLogBack)
	var tail []byte // what was read and is not given yet
	first := true
	for at := off; at > stop; {
		n := min(at-stop, maxLogChunk)
		buf := make([]byte, n, n+int64(len(tail)))
		if _, err := r.ReadAt(buf, at-n); err != nil && !errors.Is(err, io.EOF) {
			return bare("read log", err)
		}
		at -= n
		buf = append(buf, tail...)
		if first {
			// What follows the last newline is a line that is being written.
			end := bytes.LastIndexByte(buf, '\n')
			if end < 0 {
				tail = buf
				continue
			}
			buf, first = buf[:end], false
		}
		for {
			nl := bytes.LastIndexByte(buf, '\n')
			if nl < 0 {
				break
			}
			if !give(buf[nl+1:]) {
				return nil
			}
			buf = buf[:nl]
		}
		tail = buf
		if at == 0 && !first {
			give(tail)
			return nil
		}
	}
	return nil
}

// line is what matters of one line.
type line struct {
	run, session string
	at           time.Time
}

// parseLine reads key=value pairs. A session that only stands within another
// value (a title, a command) is not one.
func parseLine(b []byte) line {
	var l line
	var message, id string
	for n := 0; len(b) > 0 && n < 64; n++ {
		b = bytes.TrimLeft(b, " ")
		eq := bytes.IndexByte(b, '=')
		if eq <= 0 || bytes.IndexByte(b[:eq], ' ') >= 0 {
			break // no pair: some other text
		}
		key := string(b[:eq])
		var value string
		if value, b = logValue(b[eq+1:]); len(value) > 128 {
			continue
		}
		switch key {
		case "timestamp":
			l.at, _ = time.Parse(time.RFC3339Nano, value)
			l.at = l.at.UTC()
		case "run":
			if l.run == "" && isHex(value) {
				l.run = value
			}
		case "session.id":
			if sessionID.MatchString(value) {
				l.session = value
			}
		case "message":
			if message == "" {
				message = value
			}
		case "id":
			id = value
		}
	}
	if l.session == "" && message == "created" && sessionID.MatchString(id) {
		l.session = id // the line of a new session, some seconds before its first loop
	}
	return l
}

// logValue takes a value off the front of b.
func logValue(b []byte) (value string, rest []byte) {
	if len(b) == 0 || b[0] != '"' {
		end := bytes.IndexByte(b, ' ')
		if end < 0 {
			end = len(b)
		}
		return string(b[:min(end, 129)]), b[end:]
	}
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			var s string
			if json.Unmarshal(b[:i+1], &s) != nil {
				return "", b[i+1:]
			}
			return s, b[i+1:]
		}
	}
	return "", nil
}

func isHex(s string) bool {
	return len(s) >= 4 && len(s) <= 32 && strings.Trim(s, "0123456789abcdef") == ""
}
