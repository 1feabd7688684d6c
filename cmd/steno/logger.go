package main

import (
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/journal"
	"github.com/rs/zerolog"
	"github.com/rs/zerolog/journald"
)

// Names of the fields of a log line.
const (
	logComponent = "component"
	logSocket    = "socket"
	logStateDir  = "state_dir"
	logVersion   = "version"
)

// logger writes for a person on a terminal, structured to the journal when
// standard error is the journal's, and JSON lines otherwise. It never gets
// prompts, messages or tool output.
func (a *app) logger(level string) zerolog.Logger {
	var w io.Writer = a.errw
	switch {
	case a.errTTY:
		w = zerolog.ConsoleWriter{Out: a.errw, TimeFormat: time.TimeOnly, NoColor: !a.colour(true)}
	case isJournal(a.getenv("JOURNAL_STREAM"), a.errw) && journal.Enabled():
		w = journald.NewJournalDWriter()
	}
	l, err := zerolog.ParseLevel(level)
	if err != nil {
		l = zerolog.InfoLevel // the configuration was checked
	}
	return zerolog.New(w).Level(l).With().Timestamp().Logger()
}

// isJournal compares JOURNAL_STREAM, "device:inode", with what w really is: a
// child that redirects its output inherits the variable all the same.
func isJournal(stream string, w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok || stream == "" {
		return false
	}
	info, err := f.Stat()
	if err != nil {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && stream == fmt.Sprintf("%d:%d", st.Dev, st.Ino)
}
