package faults

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// tracedCalls are those that change files, names, or what clients know.
const tracedCalls = "open,openat,creat,write,pwrite64,writev,pwritev,fsync,fdatasync,ftruncate,truncate,fallocate," +
	"rename,renameat,renameat2,unlink,unlinkat,link,linkat,sendto,sendmsg"

// diskOp is one recorded call, or what a client was told by one.
type diskOp struct {
	kind string // create, write, append, truncate, sync, syncdir, rename, link, remove, tell
	name string // in the directory
	to   string // of rename and link
	off  int64
	data []byte
	told map[uint64]string
}

// disk is a directory on a disk: what is there for the programs, and what is
// there for certain when the power goes. fsync of a file makes its bytes
// certain, fsync of the directory its names. Names reach the disk in order, as
// with every journal of a file system; bytes in any.
type disk struct {
	names   map[string]*inode // as the programs see them
	certain map[string]*inode
	moves   []func(map[string]*inode) // since the last fsync of the directory
}

type inode struct {
	certain []byte
	size    int64 // as the programs see it
	pending []change
}

type change struct {
	off  int64
	data []byte // nil cuts the file at off
}

func newDisk() *disk {
	return &disk{names: map[string]*inode{}, certain: map[string]*inode{}}
}

func (d *disk) move(m func(map[string]*inode)) {
	m(d.names)
	d.moves = append(d.moves, m)
}

func (d *disk) apply(o diskOp) {
	node := d.names[o.name]
	switch o.kind {
	case "create":
		if node == nil {
			made := new(inode)
			d.move(func(m map[string]*inode) { m[o.name] = made })
		}
	case "rename":
		d.move(func(m map[string]*inode) {
			if n := m[o.name]; n != nil {
				m[o.to] = n
				delete(m, o.name)
			}
		})
	case "link":
		d.move(func(m map[string]*inode) {
			if n := m[o.name]; n != nil {
				m[o.to] = n
			}
		})
	case "remove":
		d.move(func(m map[string]*inode) { delete(m, o.name) })
	case "syncdir":
		d.certain, d.moves = maps.Clone(d.names), nil
	}
	if node == nil {
		return
	}
	switch o.kind {
	case "append":
		o.off = node.size
		fallthrough
	case "write":
		node.pending = append(node.pending, change{o.off, o.data})
		node.size = max(node.size, o.off+int64(len(o.data)))
	case "truncate":
		node.pending = append(node.pending, change{o.off, nil})
		node.size = o.off
	case "sync":
		for _, c := range node.pending {
			node.certain = c.on(node.certain)
		}
		node.pending = nil
	}
}

// on gives what a file is after the change.
func (c change) on(b []byte) []byte {
	end := c.off + int64(len(c.data))
	if int64(len(b)) < end {
		b = append(b, make([]byte, end-int64(len(b)))...)
	}
	if c.data == nil {
		return b[:c.off:c.off]
	}
	copy(b[c.off:], c.data)
	return b
}

// sector is what a disk writes wholly or not at all, in bytes.
const sector = 512

// crash writes the directory as the power may have left it.
func (d *disk) crash(r *rand.Rand, dir string) error {
	view := maps.Clone(d.certain)
	for _, m := range d.moves[:r.IntN(len(d.moves)+1)] {
		m(view)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for name, node := range view {
		b := node.crash(r)
		if strings.HasSuffix(name, "-shm") {
			switch r.IntN(3) { // its bytes are written by memory maps, which no call tells
			case 0:
				continue
			case 1:
				for i := range b {
					b[i] = byte(r.Uint32())
				}
			}
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			return err
		}
	}
	return nil
}

func (n *inode) crash(r *rand.Rand) []byte {
	b := bytes.Clone(n.certain)
	pending, whole := n.pending, true
	switch r.IntN(5) {
	case 0: // nothing
		return b
	case 1: // everything
	case 2: // in order up to some moment
		pending = pending[:r.IntN(len(pending)+1)]
	case 3: // in any order
		var some []change
		for _, c := range pending {
			if r.IntN(2) == 0 {
				some = append(some, c)
			}
		}
		pending = some
	case 4: // in any order, and torn
		whole = false
	}
	for _, c := range pending {
		if whole || c.data == nil {
			b = c.on(b)
			continue
		}
		for at := c.off; at < c.off+int64(len(c.data)); {
			end := min((at/sector+1)*sector, c.off+int64(len(c.data)))
			if r.IntN(2) == 0 {
				b = change{at, c.data[at-c.off : end-c.off]}.on(b)
			}
			at = end
		}
	}
	return b
}

// readDiskLog reads what strace wrote of the calls on one directory.
func readDiskLog(dir string, traces ...string) ([]diskOp, error) {
	var out []diskOp
	for _, path := range traces {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		begun := map[string]string{} // calls of a thread that strace could not print whole
		r := bufio.NewReaderSize(f, 1<<20)
		for {
			line, err := r.ReadString('\n')
			if err == io.EOF {
				break
			}
			if err != nil {
				f.Close()
				return nil, err
			}
			thread, call, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
			if !ok {
				continue
			}
			call = strings.TrimLeft(call, " ")
			if _, after, ok := strings.Cut(call, " resumed>"); ok && strings.HasPrefix(call, "<... ") {
				call = begun[thread] + after
				delete(begun, thread)
				if isWrite(call) {
					continue // it counted when it began
				}
			} else if before, ok := strings.CutSuffix(call, " <unfinished ...>"); ok {
				begun[thread] = before
				if !isWrite(call) {
					continue // it counts when it is done
				}
				call = before + ") = 0"
			}
			ops, err := diskOps(dir, call)
			if err != nil {
				f.Close()
				return nil, fmt.Errorf("%w in %.200q", err, call)
			}
			out = append(out, ops...)
		}
		f.Close()
	}
	return out, nil
}

func isWrite(call string) bool {
	name, _, _ := strings.Cut(call, "(")
	switch name {
	case "write", "pwrite64", "writev", "pwritev", "sendto", "sendmsg", "ftruncate", "fallocate":
		return true
	}
	return false
}

// diskOps is what a call does to the directory, and what it tells a client.
func diskOps(dir, call string) ([]diskOp, error) {
	name, rest, ok := strings.Cut(call, "(")
	end := strings.LastIndex(rest, ")")
	if !ok || end < 0 {
		return nil, nil // a signal, an exit
	}
	if _, result, ok := strings.Cut(rest[end:], "= "); !ok || strings.HasPrefix(result, "-1") {
		return nil, nil
	}
	args, err := arguments(rest[:end])
	if err != nil {
		return nil, err
	}
	in := func(path string) (string, bool) {
		rel, err := filepath.Rel(dir, path)
		return rel, err == nil && filepath.IsLocal(rel)
	}
	// The paths that a call names, in order.
	var paths []string
	for _, a := range args {
		if a.text != nil {
			paths = append(paths, string(a.text))
		}
	}
	fd := ""
	if len(args) > 0 {
		fd = args[0].path
	}
	file, ours := in(fd)
	switch name {
	case "open", "openat", "creat":
		if len(paths) == 0 {
			return nil, nil
		}
		created, ok := in(paths[0])
		if !ok || !strings.Contains(rest, "O_CREAT") && name != "creat" {
			return nil, nil
		}
		ops := []diskOp{{kind: "create", name: created}}
		if strings.Contains(rest, "O_TRUNC") || name == "creat" {
			ops = append(ops, diskOp{kind: "truncate", name: created})
		}
		return ops, nil
	case "rename", "renameat", "renameat2", "link", "linkat", "unlink", "unlinkat":
		kind := map[byte]string{'r': "rename", 'l': "link", 'u': "remove"}[name[0]]
		if len(paths) == 0 {
			return nil, nil
		}
		from, ok := in(paths[0])
		if !ok {
			return nil, nil
		}
		o := diskOp{kind: kind, name: from}
		if kind != "remove" {
			if o.to, ok = in(paths[1]); !ok {
				return nil, fmt.Errorf("a name leaves the directory")
			}
		}
		return []diskOp{o}, nil
	case "fsync", "fdatasync":
		if !ours {
			return nil, nil
		}
		if file == "." {
			return []diskOp{{kind: "syncdir"}}, nil
		}
		return []diskOp{{kind: "sync", name: file}}, nil
	case "ftruncate":
		if !ours {
			return nil, nil
		}
		return []diskOp{{kind: "truncate", name: file, off: args[1].number}}, nil
	case "pwrite64":
		if !ours {
			return nil, nil
		}
		if int64(len(args[1].text)) != args[2].number {
			return nil, fmt.Errorf("data was cut")
		}
		return []diskOp{{kind: "write", name: file, off: args[3].number, data: args[1].text}}, nil
	case "write", "sendto":
		if ours {
			return []diskOp{{kind: "append", name: file, data: args[1].text}}, nil
		}
		if told := toldBy(args[1].text); len(told) > 0 {
			return []diskOp{{kind: "tell", told: told}}, nil
		}
	default:
		if ours {
			return nil, fmt.Errorf("a call that is not known")
		}
	}
	return nil, nil
}

// argument is one of a call's, in the forms that are used: a descriptor with its
// path, a text, a number.
type argument struct {
	path   string
	text   []byte
	number int64
}

func arguments(s string) ([]argument, error) {
	var out []argument
	for _, field := range strings.Split(s, ", ") { // texts are all in hex
		var a argument
		var err error
		switch {
		case strings.HasPrefix(field, `"`):
			a.text, err = unhex(strings.Trim(field, `".`))
		case strings.HasSuffix(field, ">"):
			_, path, _ := strings.Cut(strings.TrimSuffix(field, ">"), "<")
			var b []byte
			b, err = unhex(path)
			a.path = string(b)
		default:
			a.number, _ = strconv.ParseInt(field, 10, 64) // flags and the like are none
		}
		if err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	return out, nil
}

// unhex decodes \x61\x62; what is not in hex (a socket's name) stays as it is.
func unhex(s string) ([]byte, error) {
	if !strings.HasPrefix(s, `\x`) {
		return []byte(s), nil
	}
	return hex.DecodeString(strings.ReplaceAll(s, `\x`, ""))
}

var eventStart = regexp.MustCompile(`\{"sequence":(\d+),"event_id":"([^"]+)"`)

// toldBy are the events in what was written to a client.
func toldBy(data []byte) map[uint64]string {
	told := map[uint64]string{}
	for _, m := range eventStart.FindAllSubmatch(data, -1) {
		if n, err := strconv.ParseUint(string(m[1]), 10, 64); err == nil {
			told[n] = string(m[2])
		}
	}
	return told
}

// nextEvent is the sequence and the id of an event.
func nextEvent(body []byte) (sequence uint64, id string, ok bool) {
	for sequence, id := range toldBy(body) {
		return sequence, id, true
	}
	return 0, "", false
}

// The model of a disk does what it says.
func TestDiskModel(t *testing.T) {
	r := dice(t)
	d := newDisk()
	for _, o := range []diskOp{
		{kind: "create", name: "a"}, {kind: "append", name: "a", data: []byte("one")}, {kind: "sync", name: "a"},
		{kind: "append", name: "a", data: []byte("two")}, {kind: "syncdir"},
		{kind: "create", name: "b"}, {kind: "rename", name: "b", to: "c"},
	} {
		d.apply(o)
	}
	got := map[string]bool{}
	for i := range 300 {
		dir := filepath.Join(t.TempDir(), fmt.Sprint(i))
		if err := d.crash(r, dir); err != nil {
			t.Fatal(err)
		}
		a, err := os.ReadFile(filepath.Join(dir, "a"))
		if err != nil {
			t.Fatal(err)
		}
		names, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		all := string(a)
		for _, n := range names[1:] {
			all += " " + n.Name()
		}
		got[all] = true
	}
	for _, want := range []string{"one", "onetwo", "one b", "onetwo b", "one c", "onetwo c"} {
		if !got[want] {
			t.Errorf("no crash left %q", want)
		}
		delete(got, want)
	}
	if len(got) > 0 {
		t.Errorf("a crash left %v", got)
	}
}
