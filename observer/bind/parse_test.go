package bind

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// realLine is a line of a 6.18 kernel, read from a node process in a pane.
const realLine = "4711 (node) S 4700 4711 4700 34819 4711 4194304 5000 0 12 0 30 7 0 0 20 0 11 0 123456 " +
	"1100000000 18000 18446744073709551615 94000000000000 94000000050000 140700000000000 0 0 0 0 16781312 134365186 " +
	"0 0 0 17 1 0 0 0 0 0 94000000100000 94000000110000 94000010000000 140700000001000 140700000001100 " +
	"140700000001100 140700000001900 0\n"

func TestParseStat(t *testing.T) {
	t.Parallel()
	got, err := parseStat([]byte(realLine))
	want := stat{
		pid: 4711, ppid: 4700, pgid: 4711, sid: 4700, tty: 34819, tpgid: 4711, flags: 4194304, start: 123456,
		image: [3]uint64{94000000050000, 140700000000000, 140700000001000}, state: 'S', comm: "node",
	}
	if err != nil || got != want {
		t.Fatalf("parseStat = %+v, %v, want %+v", got, err, want)
	}
	for _, comm := range []string{"a) R (b", ") R 1 1 1 1", "(", ")", "", "a b", "a\nb", "\xff", "tmux: server", "((sd-pam))"} {
		got, err := parseStat([]byte(strings.Replace(realLine, "(node)", "("+comm+")", 1)))
		want.comm = strings.ToValidUTF8(comm, "\uFFFD")
		if err != nil || got != want {
			t.Errorf("comm %q: parseStat = %+v, %v", comm, got, err)
		}
	}
	short, err := parseStat([]byte("9 (z) Z 1 9 9 0 -1 4228100 0 0 0 0 0 0 0 0 20 0 1 0 77"))
	if err != nil || short.tpgid != -1 || short.state != 'Z' || short.start != 77 || short.image != [3]uint64{} {
		t.Errorf("short line: %+v, %v", short, err)
	}
	for _, bad := range []string{
		"", "\n", "(", ")", "()", "1", "1 (a", "1 (a)", "1 (a) ", "1 (a) R", "(a) R 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1",
		"x (a) R 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 77", "0 (a) R 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 77",
		"1 (a) RR 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 77", "1 (a) R x 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 77",
		"1 (a) R 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 -77", "1 )a( R 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 77",
		strings.Repeat("(", 3000), "10()\x00 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 00",
		"1 (a) \x00 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 77",
	} {
		if got, err := parseStat([]byte(bad)); !errors.Is(err, errStat) {
			t.Errorf("parseStat(%.40q) = %+v, %v", bad, got, err)
		}
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte(realLine))
	f.Add([]byte("1 (a) R (b) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 77"))
	f.Fuzz(func(t *testing.T, line []byte) {
		if s, err := parseStat(line); err == nil && (s.pid <= 0 || s.state == 0) {
			t.Fatalf("parseStat(%q) = %+v", line, s)
		}
		args := parseArgs(line)
		if len(args) > maxArgs {
			t.Fatalf("%d arguments", len(args))
		}
		for _, a := range args {
			if len(a) > maxArg {
				t.Fatalf("argument of %d bytes", len(a))
			}
		}
		parseEnviron(line, map[string]bool{"A": true})
	})
}

func TestParseArgs(t *testing.T) {
	t.Parallel()
	many := strings.Repeat("x\x00", 100)
	for _, c := range []struct {
		in   string
		want []string
	}{
		{"", nil},
		{"\x00\x00", nil},
		{"node\x00/bin/codex\x00resume\x00", []string{"node", "/bin/codex", "resume"}},
		{"kimi-code", []string{"kimi-code"}},
		{"kimi-code\x00\x00\x00\x00", []string{"kimi-code"}}, // a rewritten title
		{"a\x00\x00b\x00", []string{"a", "", "b"}},
		{many, slices.Repeat([]string{"x"}, maxArgs)},
		{strings.Repeat("y", maxArg+1) + "\x00z\x00", []string{strings.Repeat("y", maxArg), "z"}},
	} {
		if got := parseArgs([]byte(c.in)); !slices.Equal(got, c.want) {
			t.Errorf("parseArgs(%.20q) = %.80q, want %.80q", c.in, got, c.want)
		}
	}
}

func TestParseEnviron(t *testing.T) {
	t.Parallel()
	want := map[string]bool{"HOME": true, "CODEX_HOME": true, "BIG": true}
	for _, c := range []struct {
		in   string
		want map[string]string
	}{
		{"", nil},
		{"PATH=/bin\x00TOKEN=secret\x00", nil},
		{"HOME=/h\x00TOKEN=secret\x00CODEX_HOME=\x00", map[string]string{"HOME": "/h", "CODEX_HOME": ""}},
		{"HOME=/h\x00HOME=/other", map[string]string{"HOME": "/h"}},
		{"HOME\x00=x\x00HOMER=y\x00\x00HOME=a=b", map[string]string{"HOME": "a=b"}},
		{"BIG=" + strings.Repeat("x", maxArg+1) + "\x00HOME=/h\x00", map[string]string{"HOME": "/h"}},
		{"no environment but a title that was written over it", nil},
	} {
		if got := parseEnviron([]byte(c.in), want); !maps.Equal(got, c.want) {
			t.Errorf("parseEnviron(%.40q) = %v, want %v", c.in, got, c.want)
		}
	}
}

func TestTTY(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		major, minor uint32
		stat         uint64
		name         string
		number       uint32
	}{
		{136, 3, 34819, "/dev/pts/3", 3},
		{136, 255, 0x88ff, "/dev/pts/255", 255},
		{136, 256, 0x108800, "/dev/pts/256", 256},
		{136, 70000, 0x11108870, "/dev/pts/70000", 70000},
		{4, 1, 0x401, "/dev/tty1", 1<<31 | 0x401},
		{4, 64, 0x440, "tty 4:64", 1<<31 | 0x440},
	} {
		if got := encodeTTY(c.major, c.minor); got != c.stat {
			t.Errorf("encodeTTY(%d, %d) = %#x, want %#x", c.major, c.minor, got, c.stat)
		}
		if major, minor := decodeTTY(c.stat); major != c.major || minor != c.minor {
			t.Errorf("decodeTTY(%#x) = %d, %d", c.stat, major, minor)
		}
		if name, number := ttyName(c.stat); name != c.name || number != c.number {
			t.Errorf("ttyName(%#x) = %q, %d, want %q, %d", c.stat, name, number, c.name, c.number)
		}
	}
	if got, err := TTYDevice("/dev/null"); err != nil || got != 0x103 {
		t.Errorf("TTYDevice(/dev/null) = %#x, %v, want 0x103", got, err)
	}
	for _, path := range []string{"", "/", os.DevNull + "x", t.TempDir()} {
		if got, err := TTYDevice(path); err == nil {
			t.Errorf("TTYDevice(%q) = %d", path, got)
		}
	}
}

func TestClock(t *testing.T) {
	t.Parallel()
	if got := tickRate("/proc"); got < 24 || got > 10_000 {
		t.Errorf("tick rate %d", got)
	}
	if got := tickRate(t.TempDir()); got != 100 {
		t.Errorf("tick rate without a vector = %d", got)
	}
	id, err := Boot()
	if err != nil || len(id) != 36 {
		t.Errorf("Boot = %q, %v", id, err)
	}
	// This process started between the boot and now, and not long ago.
	p, err := NewScanner(Options{}).ReadProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(fmt.Sprintf("/proc/%d", os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	if age := time.Since(p.Started); age < -time.Second || age > time.Hour || info.ModTime().Before(p.Started.Add(-time.Second)) {
		t.Errorf("started %v, %v ago; first seen %v", p.Started, age, info.ModTime())
	}
	if p.PPID != os.Getppid() || p.PGID != unix.Getpgrp() || p.Exe == "" || len(p.Args) == 0 || p.CWD == "" {
		t.Errorf("ReadProcess = %+v", p)
	}
}
