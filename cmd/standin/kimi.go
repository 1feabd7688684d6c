package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// kimi imitates Kimi Code 2.1.0: its process is named only by temporary files
// that become state.json.
type kimi struct {
	appender
	rec   *recording
	dir   string // of the working directory's sessions
	state kimiState
}

// kimiState is state.json, with the fields that matter.
type kimiState struct {
	ID        string `json:"id"`
	Version   int    `json:"version"`
	CWD       string `json:"cwd"`
	CreatedAt int64  `json:"createdAt"`
	UpdatedAt int64  `json:"updatedAt"`
	Archived  bool   `json:"archived"`
}

func newKimi(rec *recording, getenv func(string) string) (*kimi, error) {
	root := getenv("KIMI_CODE_HOME")
	if root == "" {
		root = filepath.Join(getenv("HOME"), ".kimi-code")
	}
	sum := sha256.Sum256([]byte(rec.dir))
	base := slug(filepath.Base(rec.dir))
	k := &kimi{rec: rec, dir: filepath.Join(root, "sessions", "wd_"+base[:min(40, len(base))]+"_"+hex.EncodeToString(sum[:])[:12])}
	k.begin(rec.self)
	return k, nil
}

// begin makes the session one that nobody has used.
func (k *kimi) begin(session string) {
	id := "session_" + session
	k.file = filepath.Join(k.dir, id, "agents", "main", "wire.jsonl")
	k.state = kimiState{ID: id, Version: 2, CWD: k.rec.dir, CreatedAt: time.Now().UnixMilli()}
}

// start does nothing: a session begins with its first prompt.
func (k *kimi) start() error { return nil }

func (k *kimi) write(data []byte) error {
	if err := k.appender.start(); err != nil {
		return err
	}
	if err := k.appender.write(data); err != nil {
		return err
	}
	return k.save()
}

func (k *kimi) save() error {
	k.state.UpdatedAt = time.Now().UnixMilli()
	b, err := json.Marshal(k.state)
	if err != nil {
		return fmt.Errorf("encode state: %w", err)
	}
	path := filepath.Join(k.dir, k.state.ID, "state.json")
	return replaceFile(path, fmt.Sprintf("%s.tmp.%d.%08x", path, os.Getpid(), k.state.UpdatedAt&0xffffffff), b)
}

func (k *kimi) renew(session string) error {
	k.begin(session)
	return nil
}
