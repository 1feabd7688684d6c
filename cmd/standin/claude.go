package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// claude imitates Claude Code 2.1.197 as formats of its files were recorded.
type claude struct {
	rec      *recording
	root     string // configuration directory
	registry string
	record   registryRecord
	manual   bool // "status" was given by command
}

// registryRecord is sessions/<pid>.json, with the fields that matter.
type registryRecord struct {
	PID           int    `json:"pid"`
	SessionID     string `json:"sessionId"`
	CWD           string `json:"cwd"`
	StartedAt     int64  `json:"startedAt"`
	ProcStart     string `json:"procStart"`
	Version       string `json:"version"`
	PeerProtocol  int    `json:"peerProtocol"`
	Kind          string `json:"kind"`
	Entrypoint    string `json:"entrypoint"`
	Name          string `json:"name"`
	NameSource    string `json:"nameSource"`
	Status        string `json:"status,omitempty"`
	UpdatedAt     int64  `json:"updatedAt"`
	StatusUpdated int64  `json:"statusUpdatedAt"`
	WaitingFor    string `json:"waitingFor,omitempty"`
}

func newClaude(rec *recording, getenv func(string) string) (*claude, error) {
	if len(slug(rec.dir)) > 200 {
		return nil, fmt.Errorf("working directory is too long for a project name")
	}
	root := getenv("CLAUDE_CONFIG_DIR")
	if root == "" {
		root = filepath.Join(getenv("HOME"), ".claude")
	}
	start, err := startTicks()
	if err != nil {
		return nil, err
	}
	now := time.Now().UnixMilli()
	return &claude{
		rec: rec, root: root,
		registry: filepath.Join(root, "sessions", fmt.Sprintf("%d.json", os.Getpid())),
		record: registryRecord{
			PID: os.Getpid(), SessionID: rec.self, CWD: rec.dir, StartedAt: now, ProcStart: start,
			Version: rec.version, PeerProtocol: 1, Kind: "interactive", Entrypoint: "cli",
			Name: filepath.Base(rec.dir), NameSource: "derived",
		},
	}, nil
}

// slug is the name of the project directory.
func slug(dir string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '-'
	}, dir)
}

func (c *claude) start() error {
	for _, d := range []string{"sessions", "projects"} {
		if err := os.MkdirAll(filepath.Join(c.root, d), 0o700); err != nil {
			return err
		}
	}
	return c.publish("idle", "")
}

// publish writes the registry record in place, as the program does: a reader
// can see new bytes with an old tail.
func (c *claude) publish(status, waiting string) error {
	now := time.Now().UnixMilli()
	if c.record.Status != status {
		c.record.StatusUpdated = now
	}
	c.record.Status, c.record.WaitingFor, c.record.UpdatedAt = status, waiting, now
	data, err := json.Marshal(c.record)
	if err != nil {
		return fmt.Errorf("encode registry record: %w", err)
	}
	f, err := os.OpenFile(c.registry, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("write registry record: %w", err)
	}
	defer f.Close()
	if _, err := f.Write(data); err != nil {
		return fmt.Errorf("write registry record: %w", err)
	}
	if err := f.Truncate(int64(len(data))); err != nil {
		return fmt.Errorf("write registry record: %w", err)
	}
	return nil
}

func (c *claude) path() string {
	return filepath.Join(c.root, "projects", slug(c.rec.dir), c.record.SessionID+".jsonl")
}

func (c *claude) batches() bool { return true }

func (c *claude) write(data []byte) error {
	if err := os.MkdirAll(filepath.Dir(c.path()), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(c.path(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("open transcript: %w", err)
	}
	if _, err := f.Write(data); err != nil {
		f.Close()
		return fmt.Errorf("write transcript: %w", err)
	}
	return f.Close()
}

// saw publishes the status that follows from a record, unless a command did.
func (c *claude) saw(record []byte) error {
	if c.manual {
		return nil
	}
	has := func(s string) bool { return bytes.Contains(record, []byte(s)) }
	switch {
	case has(`"subtype":"turn_duration"`), has(`"text":"[Request interrupted`):
		return c.publish("idle", "")
	case has(`"name":"AskUserQuestion"`), has(`"name":"ExitPlanMode"`):
		return c.publish("waiting", "permission prompt")
	case has(`"type":"user"`), has(`"type":"assistant"`):
		return c.publish("busy", "")
	}
	return nil
}

func (c *claude) status(s string) error {
	switch s {
	case "auto":
		c.manual = false
		return nil
	case "busy", "idle":
		c.manual = true
		return c.publish(s, "")
	case "waiting":
		c.manual = true
		return c.publish(s, "permission prompt")
	}
	return fmt.Errorf("unknown status %q", s)
}

func (c *claude) renew(session string) error {
	c.record.SessionID = session
	return c.publish("idle", "")
}

func (c *claude) stop() error { return os.Remove(c.registry) }

// startTicks is field 22 of /proc/self/stat: the start of this process in clock
// ticks since boot.
func startTicks() (string, error) {
	stat, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return "", fmt.Errorf("read own start time: %w", err)
	}
	// The name in field 2 may hold spaces and brackets; what follows may not.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 20 {
		return "", fmt.Errorf("read own start time: %d fields", len(fields))
	}
	return fields[19], nil
}
