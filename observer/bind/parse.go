package bind

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

const (
	maxArgs    = 64
	maxArg     = 4 << 10
	maxEnviron = 256 << 10
	maxCmdline = 256 << 10
	// maxStat is well over the longest line: 52 numbers of 20 digits and a
	// name of 64 bytes.
	maxStat = 2 << 10

	kernelThread = 0x00200000 // PF_KTHREAD in the flags of stat
)

var errStat = errors.New("malformed stat line")

// stat is what is used of /proc/<pid>/stat.
type stat struct {
	pid, ppid, pgid, sid int
	tty                  uint64
	tpgid                int
	flags                uint64
	start                uint64
	image                [3]uint64 // endcode, startstack, arg_start: they change with an exec, see Scanner
	state                byte
	comm                 string
}

// parseStat reads a stat line. The name is anything up to the last ")": a
// program may call itself "a) R (b".
func parseStat(line []byte) (stat, error) {
	var s stat
	open, end := bytes.IndexByte(line, '('), bytes.LastIndexByte(line, ')')
	if open < 2 || line[open-1] != ' ' || end < open || len(line) < end+3 {
		return s, errStat
	}
	pid, err := strconv.Atoi(string(line[:open-1]))
	if err != nil || pid <= 0 {
		return s, fmt.Errorf("pid: %w", errStat)
	}
	s.pid = pid
	s.comm = strings.ToValidUTF8(string(line[open+1:end]), "\uFFFD")

	// Fields after the name, the first is number 3 of proc(5).
	var f [52][]byte
	n := 3
	for rest := line[end+1:]; n < len(f); n++ {
		rest = bytes.TrimLeft(rest, " \n")
		if len(rest) == 0 {
			break
		}
		i := bytes.IndexAny(rest, " \n")
		if i < 0 {
			i = len(rest)
		}
		f[n], rest = rest[:i], rest[i:]
	}
	if n < 23 || len(f[3]) != 1 || f[3][0] < 'A' || f[3][0] > 'z' {
		return s, errStat
	}
	s.state = f[3][0]
	bad := false
	signed := func(i int) int64 {
		v, err := strconv.ParseInt(string(f[i]), 10, 64)
		bad = bad || err != nil
		return v
	}
	unsigned := func(i int) uint64 {
		if f[i] == nil { // newer fields of an older kernel
			return 0
		}
		v, err := strconv.ParseUint(string(f[i]), 10, 64)
		bad = bad || err != nil
		return v
	}
	s.ppid, s.pgid, s.sid = int(signed(4)), int(signed(5)), int(signed(6))
	s.tty = uint64(uint32(signed(7)))
	s.tpgid = int(signed(8))
	s.flags, s.start = unsigned(9), unsigned(22)
	s.image = [3]uint64{unsigned(27), unsigned(28), unsigned(48)}
	if bad {
		return s, errStat
	}
	return s, nil
}

// parseArgs splits a command line. A program that overwrote it may have left
// one string, with or without its end.
func parseArgs(data []byte) []string {
	data = bytes.TrimRight(data, "\x00")
	if len(data) == 0 {
		return nil
	}
	var args []string
	for len(args) < maxArgs {
		arg, rest, more := bytes.Cut(data, []byte{0})
		if len(arg) > maxArg {
			arg = arg[:maxArg]
		}
		args = append(args, string(arg))
		if !more {
			break
		}
		data = rest
	}
	return args
}

// parseEnviron keeps the wanted variables. Of two with one name the first
// counts, as for getenv. Nil when there is none.
func parseEnviron(data []byte, want map[string]bool) map[string]string {
	var env map[string]string
	for len(data) > 0 {
		var kv []byte
		kv, data, _ = bytes.Cut(data, []byte{0})
		key, value, ok := bytes.Cut(kv, []byte{'='})
		if !ok || !want[string(key)] {
			continue
		}
		if _, twice := env[string(key)]; twice {
			continue
		}
		if len(value) > maxArg {
			continue // a cut path would be a wrong path
		}
		if env == nil {
			env = make(map[string]string)
		}
		env[string(key)] = string(value)
	}
	return env
}
