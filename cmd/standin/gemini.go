package main

import (
	"os"
	"path/filepath"
	"time"
)

// gemini imitates Gemini CLI 0.61.0: it keeps nothing open, and only the
// directory and the time say whose a session is.
type gemini struct {
	appender
	rec     *recording
	project string
}

func newGemini(rec *recording, getenv func(string) string) (*gemini, error) {
	home := getenv("GEMINI_CLI_HOME")
	if home == "" {
		home = getenv("HOME")
	}
	g := &gemini{rec: rec, project: filepath.Join(home, ".gemini", "tmp", slug(filepath.Base(rec.dir)))}
	g.name(rec.self)
	return g, nil
}

func (g *gemini) name(session string) {
	g.file = filepath.Join(g.project, "chats",
		"session-"+time.Now().UTC().Format("2006-01-02T15-04")+"-"+session[:min(8, len(session))]+".jsonl")
}

func (g *gemini) start() error {
	if err := g.appender.start(); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(g.project, ".project_root"), []byte(g.rec.dir), 0o600)
}

func (g *gemini) renew(session string) error {
	g.name(session)
	return nil
}
