package copilot

import (
	"bytes"
	"io"
	"path/filepath"
	"regexp"

	"steno/providers"
	"steno/providers/files"
)

// Bounds of a look into the program's log: it is read backwards, and only when
// the process has several sessions open. A prompt leaves some 3 KB.
const (
	maxLog   = 4 << 20
	logBlock = 64 << 10
)

// Reasons why a session that the process has open does not count.
const (
	notShown  = "the process has several sessions open, and its log says that another one is shown"
	notKnown  = "the process has several sessions open, and its log does not say which one is shown"
	logAbsent = "the process has several sessions open, and its log is not to be read"
)

var (
	logName = regexp.MustCompile(`^process-[0-9]{1,20}-[0-9]{1,10}\.log$`)
	// A line of 1.0.102: each change of the session that is shown writes both,
	// "Unregistering" first.
	shownLine = regexp.MustCompile(`(?m)^[0-9]{4}-[0-9:T.-]{10,30}Z \[[A-Z]{2,10}\] (Registering|Unregistering) foreground session: ([0-9a-f-]{36})\r?$`)
)

// foreground is the session that the process shows, as the last line about it
// in its own log says, and why the others do not count. The log is one that the
// process has open.
func foreground(open []string) (session, why string) {
	path := ""
	for _, name := range open {
		if logName.MatchString(filepath.Base(name)) {
			path = name
		}
	}
	if path == "" {
		return "", logAbsent
	}
	f, info, err := files.Open(path)
	if err != nil {
		return "", logAbsent
	}
	defer f.Close()
	if session = lastShown(f, info.Size()); session == "" {
		return "", notKnown
	}
	return session, notShown
}

// lastShown reads the first size bytes of a log from their end, block by block.
// A line over two blocks is looked at whole: the part after the border is kept
// for the block before. A line that is not ended yet does not count.
func lastShown(log io.ReaderAt, size int64) string {
	var tail []byte
	for end, low := size, max(0, size-maxLog); end > low; {
		start := max(low, end-logBlock)
		block := make([]byte, end-start, end-start+int64(len(tail)))
		if n, err := log.ReadAt(block, start); n < len(block) && err != nil {
			return ""
		}
		block = append(block, tail...)
		from := 0
		if start > 0 {
			from = bytes.IndexByte(block, '\n') + 1
		}
		until := bytes.LastIndexByte(block, '\n') + 1
		if from < until {
			if all := shownLine.FindAllSubmatch(block[from:until], -1); len(all) > 0 {
				last := all[len(all)-1]
				if string(last[1]) != "Registering" || !providers.IsUUID(string(last[2])) {
					return ""
				}
				return string(last[2])
			}
		}
		// What is before the first whole line, at most one block of it.
		if from == 0 {
			from = len(block)
		}
		tail = bytes.Clone(block[:min(from, logBlock)])
		end = start
	}
	return ""
}
