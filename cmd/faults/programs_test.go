package faults

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// The records below have the members that the recordings of testdata/providers
// have, as far as they say what happened.

type object = map[string]any

func line(o object) []byte {
	b, err := json.Marshal(o)
	if err != nil {
		panic(err) // maps of strings always encode
	}
	return b
}

// claude plays Claude Code 2.1.197: one file a session, opened for each write,
// and a registry record that names the session.
type claude struct {
	root, cwd, session string
	parent             string // uuid of the last record
}

func newClaude() (harness, error) {
	cwd, err := os.Getwd()
	return &claude{root: filepath.Join(os.Getenv("HOME"), ".claude"), cwd: cwd, session: newUUID()}, err
}

func (c *claude) start() error {
	return errors.Join(os.MkdirAll(filepath.Join(c.root, "sessions"), 0o700),
		os.MkdirAll(filepath.Dir(c.path()), 0o700), c.publish("idle"))
}

func (c *claude) path() string {
	slug := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '-'
	}, c.cwd)
	return filepath.Join(c.root, "projects", slug, c.session+".jsonl")
}

func (c *claude) registry() string {
	return filepath.Join(c.root, "sessions", fmt.Sprintf("%d.json", os.Getpid()))
}

// publish writes the registry record in place, as the program does.
func (c *claude) publish(status string) error {
	stat, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return err
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	now := time.Now().UnixMilli()
	f, err := os.OpenFile(c.registry(), os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	record := line(object{"pid": os.Getpid(), "sessionId": c.session, "cwd": c.cwd, "procStart": fields[19],
		"version": "2.1.197", "status": status, "updatedAt": now, "statusUpdatedAt": now})
	_, err = f.Write(record)
	return errors.Join(err, f.Truncate(int64(len(record))), f.Close())
}

func (c *claude) turnID() string { return newUUID() }

func (c *claude) record(uuid, kind string, more object) []byte {
	o := object{"parentUuid": nil, "isSidechain": false, "type": kind, "uuid": uuid, "timestamp": stamp(time.Now()),
		"cwd": c.cwd, "sessionId": c.session, "version": "2.1.197"}
	if c.parent != "" {
		o["parentUuid"] = c.parent
	}
	for k, v := range more {
		o[k] = v
	}
	c.parent = uuid
	return line(o)
}

func (c *claude) prompt(turn string) [][]byte {
	return [][]byte{c.record(turn, "user", object{"origin": object{"kind": "human"}, "promptSource": "typed",
		"message": object{"role": "user", "content": "go on with " + turn}})}
}

// text is an answer that goes on with a tool, whose record has no meaning here.
func (c *claude) text(_, s string) [][]byte { return [][]byte{c.assistant(s, "tool_use")} }

func (c *claude) assistant(s, stop string) []byte {
	return c.record(newUUID(), "assistant", object{"message": object{
		"role": "assistant", "id": "msg_" + newUUID(), "model": "m", "stop_reason": stop, "content": []object{{"type": "text", "text": s}}}})
}

func (c *claude) final(turn, s string) [][]byte {
	return [][]byte{c.assistant(s, "end_turn"),
		c.record(newUUID(), "system", object{"subtype": "turn_duration", "durationMs": 5, "faultTurn": turn})}
}

func (c *claude) write(data []byte) error {
	f, err := os.OpenFile(c.path(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

func (c *claude) renew() error {
	c.session, c.parent = newUUID(), ""
	return c.publish("idle")
}

func (c *claude) stop() error { return os.Remove(c.registry()) }

// codex plays Codex CLI 0.171.0 without its background daemon: it holds the
// rollout of its session open.
type codex struct {
	root, cwd, session, file string
	rollout                  *os.File
}

func newCodex() (harness, error) {
	cwd, err := os.Getwd()
	c := &codex{root: filepath.Join(os.Getenv("HOME"), ".codex"), cwd: cwd}
	c.name()
	return c, err
}

func (c *codex) name() {
	now := time.Now()
	c.session = newUUIDv7()
	c.file = filepath.Join(c.root, "sessions", now.Format("2006/01/02"),
		"rollout-"+now.Format("2006-01-02T15-04-05")+"-"+c.session+".jsonl")
}

func (c *codex) start() error {
	return os.MkdirAll(filepath.Join(c.root, "sessions"), 0o700)
}

func (c *codex) path() string   { return c.file }
func (c *codex) turnID() string { return newUUIDv7() }

func (c *codex) record(kind string, payload object) []byte {
	return line(object{"timestamp": stamp(time.Now()), "type": kind, "payload": payload})
}

func (c *codex) prompt(turn string) [][]byte {
	return [][]byte{
		c.record("event_msg", object{"type": "task_started", "turn_id": turn,
			"turn_attribution": object{"turn_id": turn, "turn_trigger": "user", "parent_turn_id": nil}}),
		c.record("event_msg", object{"type": "item_completed", "thread_id": c.session, "turn_id": turn,
			"item": object{"type": "UserMessage", "id": newUUID(), "content": []object{{"type": "text", "text": "go on with " + turn}}}}),
	}
}

// text is an answer as item, and for the model, as the program writes it.
func (c *codex) text(turn, s string) [][]byte {
	id := "msg_" + newUUID()
	return [][]byte{
		c.record("event_msg", object{"type": "item_completed", "thread_id": c.session, "turn_id": turn,
			"item": object{"type": "AgentMessage", "id": id, "content": []object{{"type": "Text", "text": s}}}}),
		c.record("response_item", object{"type": "message", "id": id, "role": "assistant",
			"content": []object{{"type": "output_text", "text": s}},
			"internal_chat_message_metadata_passthrough": object{"turn_id": turn}}),
	}
}

func (c *codex) final(turn, s string) [][]byte {
	return append(c.text(turn, s), c.record("event_msg", object{"type": "task_complete", "turn_id": turn, "last_agent_message": s}))
}

// write creates the rollout with its header at the first record.
func (c *codex) write(data []byte) error {
	if c.rollout == nil {
		if err := os.MkdirAll(filepath.Dir(c.file), 0o700); err != nil {
			return err
		}
		f, err := os.OpenFile(c.file, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			return err
		}
		c.rollout = f
		head := c.record("session_meta", object{"id": c.session, "session_id": c.session, "cwd": c.cwd, "timestamp": stamp(time.Now()),
			"originator": "codex_cli", "cli_version": "0.171.0", "source": "cli", "history_mode": "paginated"})
		if _, err := f.Write(append(head, '\n')); err != nil {
			return err
		}
	}
	_, err := c.rollout.Write(data)
	return err
}

func (c *codex) renew() error {
	err := c.stop()
	c.name()
	return err
}

func (c *codex) stop() error {
	if c.rollout == nil {
		return nil
	}
	err := c.rollout.Close()
	c.rollout = nil
	return err
}

func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return formatUUID(b, 4)
}

// lastV7 makes ids grow, as a program's do.
var lastV7 int64

func newUUIDv7() string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	lastV7 = max(lastV7+1, time.Now().UnixMilli())
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(lastV7))
	copy(b[:6], ms[2:])
	return formatUUID(b, 7)
}

func formatUUID(b [16]byte, version byte) string {
	b[6] = b[6]&0x0f | version<<4
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
