package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"steno/ipc/wire"
)

// TestOutputIsBounded: a program that is only asked for its version can hang,
// leave children behind, and print without end.
func TestOutputIsBounded(t *testing.T) {
	script := func(body string) string {
		path := filepath.Join(t.TempDir(), "program")
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+body), 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	got, err := output(t.Context(), script("echo '1.2.3 (x)'; echo more"), "--version")
	if err != nil || got != "1.2.3 (x) …" {
		t.Errorf("output = %q, %v", got, err)
	}
	if _, err := output(t.Context(), script("exit 3")); err == nil {
		t.Error("a failure is no error")
	}
	began := time.Now()
	if _, err := output(t.Context(), script("sleep 60 & sleep 60")); err == nil || !strings.Contains(err.Error(), "no answer") {
		t.Errorf("a hanging program: %v", err)
	}
	if _, err := output(t.Context(), script("while :; do echo yes; done")); err == nil {
		t.Error("an endless output is no error")
	}
	if took := time.Since(began); took > 4*commandTimeout {
		t.Errorf("two programs that never end took %s", took)
	}
}

// TestDoctorJudges gives a doctor what a daemon in trouble says.
func TestDoctorJudges(t *testing.T) {
	d := doctor{app: &app{getenv: func(string) string { return "" }}}
	d.log(wire.StoreStatus{Error: "disk or database is full"})
	d.watch(wire.WatchStatus{Mode: "mixed", Unwatched: 7, Watches: 10, Budget: 10})
	d.watch(wire.WatchStatus{Mode: "polling", Reason: "no inotify"})
	d.watch(wire.WatchStatus{Mode: "inotify", Overflows: 2})
	want := []struct {
		verdict verdict
		detail  string
	}{
		{fail, "disk or database is full"}, {warn, "7 directories are only swept"}, {warn, "polling: no inotify"}, {pass, "2 overflows repaired"},
	}
	for i, w := range want {
		f := d.findings[i]
		if f.Verdict != w.verdict || !strings.Contains(f.Detail, w.detail) || (f.Verdict == pass) != (f.Do == "") {
			t.Errorf("finding %d = %+v, want %s %q", i, f, w.verdict, w.detail)
		}
	}
}

func TestSize(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 2 << 30: "2.0 GiB", 1 << 50: "1024.0 TiB"} {
		if got := size(n); got != want {
			t.Errorf("size(%d) = %s, want %s", n, got, want)
		}
	}
}

// What doctor says of the state directory's mode is what the daemon does with it.
func TestDoctorStateDir(t *testing.T) {
	for _, tt := range []struct {
		mode os.FileMode // 0: there is none
		want verdict
		do   string
	}{
		{0, warn, "steno serve makes it"},
		{0o700, pass, ""},
		{0o755, warn, "chmod 700 "},
		{0o730, fail, hintUnsafe},
		{0o702, fail, hintUnsafe},
	} {
		c := &config{StateDir: filepath.Join(t.TempDir(), "state"), RetentionBytes: 1}
		if tt.mode != 0 {
			if err := os.Mkdir(c.StateDir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(c.StateDir, tt.mode); err != nil {
				t.Fatal(err)
			}
		}
		d := doctor{app: &app{getenv: func(string) string { return "" }}}
		d.stateDir(c)
		if f := d.findings[0]; f.Verdict != tt.want || !strings.HasPrefix(f.Do, tt.do) || (tt.do == "") != (f.Do == "") {
			t.Errorf("mode %#o: %+v, want %s, %q", tt.mode, f, tt.want, tt.do)
		}
		lock, err := lockStateDir(c.StateDir)
		if (err != nil) != (tt.want == fail) {
			t.Errorf("mode %#o: the daemon says %v", tt.mode, err)
		}
		if err == nil {
			lock.Close()
		}
	}
}
