package bind

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"steno/providers"
)

const (
	maxProcesses = 131_072
	// young is how long a program may still be setting itself up: kimi
	// rewrites its command line about 3 s after its start.
	young          = 10 * time.Second
	defaultRefresh = 3 * time.Second
)

// Recogniser knows the processes of one program. Every providers.Binder that is
// a providers.Provider is one.
type Recogniser interface {
	ID() string
	Recognise(providers.Process) providers.Part
}

// Options of a Scanner. The zero value works, but recognises nothing.
type Options struct {
	Proc        string       // default "/proc"
	UID         int          // whose processes; default (0) this process's uid
	EnvKeys     []string     // variables to keep of a candidate's environment
	Recognisers []Recogniser // a process that one of them claims is a candidate
	// Refresh is how old the stat of a process may be that is neither young
	// nor a candidate nor above one. Default 3 s; it bounds how late a shell
	// that became a harness by exec is seen.
	Refresh time.Duration

	Now    func() time.Time              // default time.Now
	Uptime func() (time.Duration, error) // default CLOCK_BOOTTIME
}

// Scanner reads the processes of one user, and remembers what does not change.
// It belongs to one goroutine at a time, but Open may be called from any.
type Scanner struct {
	proc    string
	uid     int
	want    map[string]bool
	recog   []Recogniser
	refresh time.Duration
	now     func() time.Time
	uptime  func() (time.Duration, error)
	ticks   uint64 // a second

	known   map[int]*entry
	buf     []byte
	counter counter
}

// counter counts work, for tests.
type counter struct{ lstat, stat, args, environ int }

// entry is what is remembered of one process.
type entry struct {
	ino       uint64 // of /proc/<pid>: another process never has the same directory
	image     [3]uint64
	proc      *providers.Process // published: replaced, never changed
	candidate bool
	asked     bool // the recognisers saw a command line
	kernel    bool
	watched   bool          // candidate, or above one
	read      time.Duration // uptime of the last read of stat
}

// NewScanner makes a scanner.
func NewScanner(o Options) *Scanner {
	s := &Scanner{
		proc: o.Proc, uid: o.UID, recog: o.Recognisers, refresh: o.Refresh, now: o.Now, uptime: o.Uptime,
		want: make(map[string]bool), known: make(map[int]*entry), buf: make([]byte, max(maxEnviron, maxCmdline, maxStat)),
	}
	if s.proc == "" {
		s.proc = "/proc"
	}
	if s.uid == 0 {
		s.uid = os.Getuid()
	}
	if s.refresh <= 0 {
		s.refresh = defaultRefresh
	}
	if s.now == nil {
		s.now = time.Now
	}
	if s.uptime == nil {
		s.uptime = uptime
	}
	for _, key := range o.EnvKeys {
		s.want[key] = true
	}
	s.ticks = tickRate(s.proc)
	return s
}

// Scan reads the table. It costs what has changed, see the package. An error
// means that nothing is known; a process that vanishes meanwhile is no error.
func (s *Scanner) Scan(ctx context.Context) (Processes, error) {
	now, up, err := s.clocks()
	if err != nil {
		return Processes{}, err
	}
	pids, err := s.pids()
	if err != nil {
		return Processes{}, fmt.Errorf("list processes: %w", err)
	}
	out := Processes{At: now, index: make(map[int]*providers.Process, len(s.known)), foreign: make(map[int]int)}
	next := make(map[int]*entry, len(s.known))
	for i, pid := range pids {
		if i%256 == 0 && ctx.Err() != nil {
			return Processes{}, ctx.Err()
		}
		e, err := s.look(pid, now, up)
		if err != nil {
			return Processes{}, fmt.Errorf("read process: %w", err)
		}
		if e == nil {
			continue
		}
		next[pid] = e
		if e.kernel {
			continue
		}
		out.index[pid] = e.proc
		out.all = append(out.all, e.proc)
		if e.candidate {
			out.candidates = append(out.candidates, *e.proc)
		}
	}
	s.known = next
	s.mark(&out)
	return out, nil
}

// clocks reads both clocks at one instant: were this process halted between the
// two, every start would seem earlier than it was.
func (s *Scanner) clocks() (now time.Time, up time.Duration, err error) {
	for range 5 {
		before, err := s.uptime()
		if err != nil {
			return now, 0, err
		}
		now = s.now()
		if up, err = s.uptime(); err != nil {
			return now, 0, err
		}
		if up-before < 10*time.Millisecond {
			break
		}
	}
	return now, up, nil
}

// pids lists the numeric names of /proc in order.
func (s *Scanner) pids() ([]int, error) {
	f, err := os.Open(s.proc)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var pids []int
	for {
		names, err := f.Readdirnames(1024)
		for _, name := range names {
			if pid, err := strconv.Atoi(name); err == nil && pid > 0 && strconv.Itoa(pid) == name {
				pids = append(pids, pid)
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if len(pids) > maxProcesses {
			return nil, fmt.Errorf("more than %d", maxProcesses)
		}
	}
	slices.Sort(pids)
	return pids, nil
}

// look brings the entry of one process up to date. It returns nil for a process
// of another user and for one that has vanished.
func (s *Scanner) look(pid int, now time.Time, up time.Duration) (*entry, error) {
	dir := s.proc + "/" + strconv.Itoa(pid)
	var st unix.Stat_t
	s.counter.lstat++
	if err := unix.Lstat(dir, &st); err != nil {
		return nil, vanished(err)
	}
	if int(st.Uid) != s.uid {
		return nil, nil
	}
	e := s.known[pid]
	if e != nil && e.ino == st.Ino &&
		(e.kernel || !e.watched && up-e.read < s.refresh && up-s.since(e.proc.StartTicks) >= young) {
		return e, nil
	}
	line, err := s.stat(dir)
	if err != nil {
		return nil, vanished(err)
	}
	fresh := &entry{ino: st.Ino, image: line.image, kernel: line.flags&kernelThread != 0, read: up}
	proc := s.process(line, now, up)
	if e != nil && e.proc.StartTicks == line.start {
		// A clock that was set forth makes the start seem later: what is known
		// stays, so that nothing the process wrote is older than it. One that was
		// set back dates what it writes from now on before that.
		if !proc.Started.Before(e.proc.Started.Add(-time.Second)) {
			proc.Started = e.proc.Started
		}
		fresh.asked, fresh.candidate, fresh.watched = e.asked, e.candidate, e.watched
		proc.Exe, proc.Args, proc.CWD, proc.Env = e.proc.Exe, e.proc.Args, e.proc.CWD, e.proc.Env
		if e.proc.Comm != line.comm || e.image != line.image {
			fresh.asked = false
		}
	}
	if !fresh.kernel {
		s.identify(dir, fresh, &proc, up-s.since(line.start))
	}
	if e != nil && same(e.proc, &proc) {
		fresh.proc = e.proc
	} else {
		fresh.proc = &proc
	}
	return fresh, nil
}

// identify asks the recognisers, and reads what a candidate is asked for.
func (s *Scanner) identify(dir string, e *entry, p *providers.Process, age time.Duration) {
	if dead(p.State) {
		return // what was known of it stays: its links and arguments are gone
	}
	if e.candidate {
		exe := program(dir + "/exe")
		if exe != p.Exe || age < young {
			e.asked = false
		}
	}
	if !e.asked {
		p.Exe = program(dir + "/exe")
		p.Args, p.Env = s.args(dir), nil
		e.asked = len(p.Args) > 0
		e.candidate = s.claimed(*p)
		if e.candidate {
			p.Env = s.environ(dir)
		} else {
			p.Exe, p.Args, p.CWD = "", nil, ""
		}
	}
	if e.candidate {
		p.CWD = link(dir + "/cwd")
	}
}

func (s *Scanner) claimed(p providers.Process) bool {
	for _, r := range s.recog {
		if r.Recognise(p) != providers.NotMine {
			return true
		}
	}
	return false
}

// mark notes which processes are candidates or above one, and reads the parents
// of those ancestors that belong to others.
func (s *Scanner) mark(out *Processes) {
	for _, e := range s.known {
		e.watched = e.candidate
	}
	for _, c := range out.candidates {
		pid := c.PID
		for range maxAncestors {
			parent, ok := out.parent(pid)
			if !ok || parent <= 1 {
				break
			}
			if e := s.known[parent]; e != nil {
				e.watched = true
			} else if _, read := out.foreign[parent]; !read {
				if line, err := s.stat(s.proc + "/" + strconv.Itoa(parent)); err == nil {
					out.foreign[parent] = line.ppid
				}
			}
			pid = parent
		}
	}
}

// ReadProcess reads one process, whoever it belongs to, with everything that may
// be read of it but Open, Title and Pane.
func (s *Scanner) ReadProcess(pid int) (providers.Process, error) {
	now, up, err := s.clocks()
	if err != nil {
		return providers.Process{}, err
	}
	dir := s.proc + "/" + strconv.Itoa(pid)
	line, err := s.stat(dir)
	if err != nil {
		return providers.Process{}, fmt.Errorf("read process: %w", gone(err))
	}
	p := s.process(line, now, up)
	p.Exe, p.CWD = program(dir+"/exe"), link(dir+"/cwd")
	p.Args, p.Env = s.args(dir), s.environ(dir)
	return p, nil
}

func (s *Scanner) stat(dir string) (stat, error) {
	s.counter.stat++
	data, err := readProc(dir+"/stat", s.buf[:maxStat])
	if err != nil {
		return stat{}, err
	}
	return parseStat(data)
}

func (s *Scanner) process(line stat, now time.Time, up time.Duration) providers.Process {
	return providers.Process{
		PID: line.pid, PPID: line.ppid, PGID: line.pgid, SID: line.sid, TTY: line.tty, TPGID: line.tpgid,
		StartTicks: line.start, Started: now.Add(s.since(line.start) - up).Round(0), State: line.state, Comm: line.comm,
	}
}

// since turns ticks into time since boot.
func (s *Scanner) since(ticks uint64) time.Duration {
	seconds := min(ticks/s.ticks, 1<<32) // 136 years: no overflow
	return time.Duration(seconds)*time.Second + time.Duration(ticks%s.ticks)*time.Second/time.Duration(s.ticks)
}

// args and environ give nothing for what may not be read.
func (s *Scanner) args(dir string) []string {
	s.counter.args++
	data, err := readProc(dir+"/cmdline", s.buf[:maxCmdline])
	if err != nil {
		return nil
	}
	return parseArgs(data)
}

func (s *Scanner) environ(dir string) map[string]string {
	if len(s.want) == 0 {
		return nil
	}
	s.counter.environ++
	data, err := readProc(dir+"/environ", s.buf[:maxEnviron])
	if err != nil {
		return nil
	}
	return parseEnviron(data, s.want)
}

// vanished makes nothing of the errors of a process that is gone or hidden, and
// of a line that cannot be read.
func vanished(err error) error {
	for _, usual := range []error{unix.ENOENT, unix.ESRCH, unix.EACCES, unix.EPERM, errStat} {
		if errors.Is(err, usual) {
			return nil
		}
	}
	return err
}

func same(a, b *providers.Process) bool {
	return a.PID == b.PID && a.PPID == b.PPID && a.PGID == b.PGID && a.SID == b.SID && a.TTY == b.TTY &&
		a.TPGID == b.TPGID && a.StartTicks == b.StartTicks && a.Started.Equal(b.Started) && a.State == b.State && a.Comm == b.Comm &&
		a.Exe == b.Exe && a.CWD == b.CWD && slices.Equal(a.Args, b.Args) && maps.Equal(a.Env, b.Env)
}
