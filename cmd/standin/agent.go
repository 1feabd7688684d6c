package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
)

// program is what the agent programs do differently.
type program interface {
	start() error               // what the program leaves behind before any prompt
	write(data []byte) error    // data appended to the session's file in one write
	batches() bool              // several records go into one write
	saw(record []byte) error    // called for each record written
	status(s string) error      // what "status" asks for
	renew(session string) error // another session from now on
	path() string               // the session's file; it need not exist yet
	stop() error                // a clean exit
}

// agent replays a recording as one program.
type agent struct {
	program
	rec  *recording
	rest []byte // second half of a record that was begun
	out  io.Writer
}

func play(ctx context.Context, name string, getenv func(string) string, in io.Reader, out io.Writer) (err error) {
	cwd, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("find working directory: %w", err)
	}
	rec, err := loadRecording(getenv("STANDIN_RECORD"), getenv("STANDIN_SESSION"), cwd)
	if err != nil {
		return err
	}
	a := &agent{rec: rec, out: out}
	if a.program, err = newProgram(name, rec, getenv); err != nil {
		return err
	}
	if err := a.start(); err != nil {
		return fmt.Errorf("start as %s: %w", name, err)
	}
	defer func() { err = errors.Join(err, a.stop()) }()
	if pace := getenv("STANDIN_PACE"); pace != "" {
		return a.paced(ctx, pace, getenv("STANDIN_LINGER"))
	}
	a.where()
	return a.obey(ctx, in)
}

// names of the programs that can be played.
var names = []string{"claude", "codex", "gemini", "opencode", "kimi", "copilot"}

func newProgram(name string, rec *recording, getenv func(string) string) (program, error) {
	switch name {
	case "claude":
		return newClaude(rec, getenv)
	case "codex":
		return newCodex(rec, getenv)
	case "gemini":
		return newGemini(rec, getenv)
	case "opencode":
		return newOpencode(rec, getenv)
	case "kimi":
		return newKimi(rec, getenv)
	case "copilot":
		return newCopilot(rec, getenv)
	}
	return nil, fmt.Errorf("%q is none of %s", name, strings.Join(names, ", "))
}

// paced writes a record each time the pace has passed.
func (a *agent) paced(ctx context.Context, pace, linger string) error {
	each, err := time.ParseDuration(pace)
	if err != nil || each <= 0 {
		return fmt.Errorf("STANDIN_PACE %q is not a positive duration", pace)
	}
	after := 2 * each
	if linger != "" {
		if after, err = time.ParseDuration(linger); err != nil || after < 0 {
			return fmt.Errorf("STANDIN_LINGER %q is not a duration", linger)
		}
	}
	for tick := time.NewTicker(each); a.rec.left() > 0; {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := a.put(1); err != nil {
			return err
		}
	}
	select {
	case <-ctx.Done():
	case <-time.After(after):
	}
	return nil
}

// obey reads commands until "exit", the end of input or a signal.
func (a *agent) obey(ctx context.Context, in io.Reader) error {
	lines := make(chan string)
	// Ends with the process: a read of a terminal cannot be called off.
	go func() {
		defer close(lines)
		for scan := bufio.NewScanner(in); scan.Scan(); {
			select {
			case lines <- scan.Text():
			case <-ctx.Done():
				return
			}
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return nil
		case line, ok := <-lines:
			if !ok {
				return nil
			}
			word, arg, _ := strings.Cut(strings.TrimSpace(line), " ")
			if word == "" {
				continue
			}
			if word == "exit" {
				fmt.Fprintln(a.out, "bye")
				return nil
			}
			if err := a.do(word, arg); err != nil {
				fmt.Fprintln(a.out, "error:", err)
			}
		}
	}
}

func (a *agent) do(word, arg string) error {
	n := 1
	if word == "write" || word == "skip" {
		var err error
		if n, err = strconv.Atoi(arg); err != nil || n < 0 {
			return fmt.Errorf("%q is not a count", arg)
		}
	}
	switch word {
	case "next", "write":
		return a.wrote(n)
	case "all":
		return a.wrote(a.rec.left())
	case "skip":
		a.rec.take(n)
	case "half":
		return a.half()
	case "rest":
		if a.rest == nil {
			return errors.New("no record was begun")
		}
		data := a.rest
		a.rest = nil
		if err := a.write(data); err != nil {
			return err
		}
	case "again":
		a.rec.again()
	case "clear":
		a.rec.renew()
		if err := a.renew(a.rec.self); err != nil {
			return err
		}
		a.where()
		return nil
	case "status":
		if err := a.status(arg); err != nil {
			return err
		}
	case "raw":
		if err := a.write([]byte(arg + "\n")); err != nil {
			return err
		}
	case "where":
		a.where()
		return nil
	default:
		return fmt.Errorf("unknown command %q", word)
	}
	fmt.Fprintln(a.out, "ok", word)
	return nil
}

func (a *agent) where() {
	fmt.Fprintln(a.out, "ready", os.Getpid(), a.rec.self, a.path())
}

func (a *agent) wrote(n int) error {
	n = min(n, a.rec.left())
	if err := a.put(n); err != nil {
		return err
	}
	fmt.Fprintln(a.out, "wrote", n, "left", a.rec.left())
	return nil
}

// put writes the next n records the way the program writes them.
func (a *agent) put(n int) error {
	if a.rest != nil {
		return errors.New("a record is half written")
	}
	records := [][]byte{}
	if a.batches() {
		records = a.rec.take(n)
		var data []byte
		for _, r := range records {
			data = append(append(data, r...), '\n')
		}
		if len(data) == 0 {
			return nil
		}
		if err := a.write(data); err != nil {
			return err
		}
	} else {
		for range n {
			for _, r := range a.rec.take(1) {
				if err := a.write(append(r, '\n')); err != nil {
					return err
				}
				records = append(records, r)
			}
		}
	}
	for _, r := range records {
		if err := a.saw(r); err != nil {
			return err
		}
	}
	return nil
}

func (a *agent) half() error {
	if a.rest != nil {
		return errors.New("a record is half written already")
	}
	for _, r := range a.rec.take(1) {
		data := append(r, '\n')
		if err := a.write(data[:len(data)/2]); err != nil {
			return err
		}
		a.rest = data[len(data)/2:]
	}
	fmt.Fprintln(a.out, "ok half")
	return nil
}
