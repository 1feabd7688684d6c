package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// copilot imitates GitHub Copilot CLI 1.0.102: a lock and an open file name its
// process.
type copilot struct {
	appender
	root string
	hold *os.File
}

func newCopilot(rec *recording, getenv func(string) string) (*copilot, error) {
	root := getenv("COPILOT_HOME")
	if root == "" {
		root = filepath.Join(getenv("HOME"), ".copilot")
	}
	c := &copilot{root: root}
	c.name(rec.self)
	return c, nil
}

func (c *copilot) name(session string) {
	c.file = filepath.Join(c.root, "session-state", session, "events.jsonl")
}

// mark is the path of one of the two files that say who uses the session.
func (c *copilot) mark(kind string) string {
	return filepath.Join(filepath.Dir(c.file), "inuse."+strconv.Itoa(os.Getpid())+"."+kind)
}

func (c *copilot) start() error {
	if err := c.appender.start(); err != nil {
		return err
	}
	hold, err := os.OpenFile(c.mark("hold"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("open hold: %w", err)
	}
	if err := unix.Flock(int(hold.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		hold.Close()
		return fmt.Errorf("lock hold: %w", err)
	}
	c.hold = hold
	return os.WriteFile(c.mark("lock"), []byte(strconv.Itoa(os.Getpid())), 0o600)
}

func (c *copilot) renew(session string) error {
	if err := c.stop(); err != nil {
		return err
	}
	c.name(session)
	return c.start()
}

// stop removes both files, as a clean exit does.
func (c *copilot) stop() error {
	if c.hold == nil {
		return nil
	}
	err := errors.Join(os.Remove(c.mark("lock")), os.Remove(c.mark("hold")), c.hold.Close())
	c.hold = nil
	return err
}
