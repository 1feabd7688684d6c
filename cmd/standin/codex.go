package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// codex imitates Codex CLI 0.171.0 without its background daemon.
type codex struct {
	rec     *recording
	root    string // CODEX_HOME
	session string
	born    time.Time
	found   string   // rollout of a session that is resumed
	rollout *os.File // open from the first record on
	lock    *os.File
}

func newCodex(rec *recording, getenv func(string) string) (*codex, error) {
	root := getenv("CODEX_HOME")
	if root == "" {
		root = filepath.Join(getenv("HOME"), ".codex")
	}
	c := &codex{rec: rec, root: root, session: rec.self, born: time.Now()}
	old, err := filepath.Glob(filepath.Join(root, "sessions", "*", "*", "*", "rollout-*-"+rec.self+".jsonl"))
	if err != nil {
		return nil, fmt.Errorf("look for rollout: %w", err)
	}
	if len(old) > 0 {
		c.found = old[0]
	}
	return c, nil
}

func (c *codex) start() error {
	if err := os.MkdirAll(filepath.Join(c.root, "sessions"), 0o700); err != nil {
		return err
	}
	if c.found == "" {
		return nil // the file appears with the first record
	}
	return c.open()
}

func (c *codex) path() string {
	if c.found != "" {
		return c.found
	}
	return filepath.Join(c.root, "sessions", c.born.Format("2006/01/02"),
		"rollout-"+c.born.Format("2006-01-02T15-04-05")+"-"+c.session+".jsonl")
}

// open opens the rollout and its lock, which stay open for the session's life.
func (c *codex) open() error {
	locks := filepath.Join(c.root, "thread-writer-locks")
	for _, d := range []string{filepath.Dir(c.path()), locks} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return err
		}
	}
	lock, err := os.OpenFile(filepath.Join(locks, c.session+".lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("open lock: %w", err)
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		lock.Close()
		return fmt.Errorf("lock session: %w", err)
	}
	f, err := os.OpenFile(c.path(), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		lock.Close()
		return fmt.Errorf("open rollout: %w", err)
	}
	c.lock, c.rollout = lock, f
	return nil
}

func (c *codex) batches() bool { return false }

func (c *codex) write(data []byte) error {
	if c.rollout == nil {
		if err := c.open(); err != nil {
			return err
		}
	}
	if _, err := c.rollout.Write(data); err != nil {
		return fmt.Errorf("write rollout: %w", err)
	}
	return nil
}

func (c *codex) saw([]byte) error { return nil }

func (c *codex) status(string) error { return errors.New("codex publishes no status") }

func (c *codex) renew(session string) error {
	err := c.stop()
	c.session, c.born, c.found = session, time.Now(), ""
	return err
}

// stop closes the rollout and removes the lock, as a clean exit does.
func (c *codex) stop() error {
	if c.rollout == nil {
		return nil
	}
	err := errors.Join(os.Remove(c.lock.Name()), c.lock.Close(), c.rollout.Close())
	c.rollout, c.lock = nil, nil
	return err
}
