package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// appender is a program that opens its session's file for each write alone. It
// is most of Gemini CLI, Kimi Code and Copilot CLI.
type appender struct{ file string }

func (a *appender) batches() bool    { return false }
func (a *appender) saw([]byte) error { return nil }
func (a *appender) path() string     { return a.file }
func (a *appender) stop() error      { return nil }
func (a *appender) start() error     { return os.MkdirAll(filepath.Dir(a.file), 0o700) }
func (a *appender) status(string) error {
	return errors.New("this program publishes no status")
}

func (a *appender) write(data []byte) error {
	f, err := os.OpenFile(a.file, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("open session: %w", err)
	}
	if _, err := f.Write(data); err != nil {
		f.Close()
		return fmt.Errorf("write session: %w", err)
	}
	return f.Close()
}

// replaceFile writes a file that readers never see half.
func replaceFile(path, temporary string, data []byte) error {
	if err := os.WriteFile(temporary, data, 0o600); err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(path), err)
	}
	return os.Rename(temporary, path)
}
