package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
)

// TestWatchdogFollowsThePipeline: pings come from signs of life and from
// nothing else, often enough for the manager and not with each sign.
func TestWatchdogFollowsThePipeline(t *testing.T) {
	now := time.Unix(1000, 0)
	var sent []string
	n := &notifier{
		log: zerolog.Nop(), watchdog: 40 * time.Second, now: func() time.Time { return now },
		send: func(s string) error { sent = append(sent, s); return nil },
	}
	for range 60 {
		n.alive()
		now = now.Add(time.Second)
	}
	extended, pinged := 0, 0
	for _, s := range sent {
		switch {
		case strings.HasPrefix(s, "EXTEND_TIMEOUT_USEC="):
			extended++
		case s == "WATCHDOG=1":
			pinged++
		}
	}
	if extended != 6 || pinged != 6 {
		t.Errorf("a start of 60 s: %d extensions and %d pings, want 6 and 6", extended, pinged)
	}
	n.started("counts")
	sent = nil
	for range 60 {
		n.alive()
		now = now.Add(time.Second)
	}
	if got := strings.Join(sent, " "); got != strings.TrimSpace(strings.Repeat("WATCHDOG=1 ", 6)) {
		t.Errorf("after the start: %q, want six pings", got)
	}
}

// TestNotifierLogsOnce: a manager that is gone is worth one line, not one a ping.
func TestNotifierLogsOnce(t *testing.T) {
	var log strings.Builder
	fail := true
	n := &notifier{
		log: zerolog.New(&log), now: time.Now,
		send: func(string) error {
			if fail {
				return errors.New("gone")
			}
			return nil
		},
	}
	for range 3 {
		n.status("x")
	}
	fail = false
	n.status("x")
	fail = true
	n.status("x")
	if got := strings.Count(log.String(), "\n"); got != 2 {
		t.Errorf("%d log lines for two rows of failures, want 2: %s", got, log.String())
	}
}

func TestIsJournal(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if isJournal("1:2", f) {
		t.Error("a redirected output is taken for the journal")
	}
	if isJournal("", f) || isJournal("1:2", &strings.Builder{}) {
		t.Error("no journal is taken for one")
	}
}

func TestLockStateDir(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	lock, err := lockStateDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("state directory: %v, %v, want mode 0700", info.Mode(), err)
	}
	if second, err := lockStateDir(dir); err == nil {
		second.Close()
		t.Fatal("the state directory was locked twice")
	} else if _, ok := errors.AsType[hintError](err); !ok {
		t.Errorf("error %v has no hint", err)
	}
	lock.Close()
	again, err := lockStateDir(dir)
	if err != nil {
		t.Fatalf("the lock did not end with its holder: %v", err)
	}
	again.Close()
	// A link at the lock's place leads nowhere.
	other := filepath.Join(t.TempDir(), "victim")
	if err := os.WriteFile(other, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	linked := t.TempDir()
	if err := os.Symlink(other, filepath.Join(linked, "lock")); err != nil {
		t.Fatal(err)
	}
	if _, err := lockStateDir(linked); err == nil {
		t.Error("a symbolic link was followed")
	}
	if data, err := os.ReadFile(other); err != nil || string(data) != "precious" {
		t.Errorf("the link's target now has %q, %v", data, err)
	}
}
