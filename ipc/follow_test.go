package ipc

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"steno/ipc/wire"
	"steno/store"
)

var errEnough = errors.New("enough")

func dialer(path string) func(context.Context) (*Client, error) {
	return func(ctx context.Context) (*Client, error) { return Dial(ctx, path) }
}

// Full pages come one after the other; at the head Follow waits.
func TestFollowDrains(t *testing.T) {
	s := openLog(t, store.Options{})
	var want []string
	for i := range 25 {
		want = append(want, fmt.Sprint("text ", i))
	}
	s.add(t, wire.AssistantMessage, agentA, want...)
	d := serve(t, Options{Store: s})
	var got []string
	pages, empty := 0, 0
	began := time.Now()
	err := Follow(t.Context(), FollowOptions{Dial: dialer(d.path), Limit: 10, Wait: 20 * time.Millisecond}, func(p wire.Page) error {
		pages++
		got = append(got, texts(t, p)...)
		switch {
		case len(p.Events) > 0 && len(got) == 25:
			if e := time.Since(began); pages != 3 || e > soon {
				t.Errorf("%d pages in %v, want 3", pages, e)
			}
		case len(p.Events) == 0:
			if empty++; empty == 1 {
				s.add(t, wire.AssistantMessage, agentA, "later")
			}
		}
		if slices.Contains(got, "later") {
			return errEnough
		}
		return nil
	})
	if err != errEnough {
		t.Fatalf("Follow = %v", err)
	}
	if !slices.Equal(got, append(want, "later")) {
		t.Errorf("texts = %q", got)
	}
	eventually(t, "the connection is closed", func() bool { return d.clients() == 0 })
}

// Without a wait the head is asked four times a second and no more, and a
// filter that matches nothing does not spin either.
func TestFollowPace(t *testing.T) {
	s := openLog(t, store.Options{})
	s.add(t, wire.AssistantMessage, agentA, "one")
	d := serve(t, Options{Store: s})
	for name, agents := range map[string][]string{"no filter": nil, "filter": {agentB}} {
		pages := 0
		began := time.Now()
		err := Follow(t.Context(), FollowOptions{Dial: dialer(d.path), After: 1, Agents: agents}, func(p wire.Page) error {
			if pages++; pages == 4 {
				return errEnough
			}
			return nil
		})
		if e := time.Since(began); err != errEnough || e < 3*pace {
			t.Errorf("%s: %d empty pages in %v, %v", name, pages, e, err)
		}
	}
}

func TestFollowEndsWithGap(t *testing.T) {
	s := openLog(t, store.Options{RetainEvents: 2})
	s.add(t, wire.AssistantMessage, agentA, "1", "2", "3", "4")
	d := serve(t, Options{Store: s})
	var got []wire.Page
	err := Follow(t.Context(), FollowOptions{Dial: dialer(d.path), After: 1, Wait: time.Second}, func(p wire.Page) error {
		got = append(got, p)
		return nil
	})
	if err != nil || len(got) != 1 || got[0].Status != wire.CursorTooOld {
		t.Errorf("Follow = %v with %+v", err, got)
	}
}

// A daemon that is started again is found, and no event is lost or repeated.
func TestFollowRestart(t *testing.T) {
	s := openLog(t, store.Options{})
	path := filepath.Join(shortDir(t), "steno.sock")
	s.add(t, wire.AssistantMessage, agentA, "0")
	d := serveAt(t, path, Options{Store: s})
	var got []string
	restarts := 0
	err := Follow(t.Context(), FollowOptions{Dial: dialer(path), Wait: 20 * time.Second}, func(p wire.Page) error {
		got = append(got, texts(t, p)...)
		if len(p.Events) == 0 {
			return nil // the last answer of a daemon that stops
		}
		if restarts == 3 {
			return errEnough
		}
		restarts++
		d.stop()
		s.add(t, wire.AssistantMessage, agentA, fmt.Sprint(restarts))
		d = serveAt(t, path, Options{Store: s})
		return nil
	})
	if err != errEnough || !slices.Equal(got, []string{"0", "1", "2", "3"}) {
		t.Errorf("Follow = %v with %q", err, got)
	}
}

// A waiting follower notices the end of the daemon, and the new one.
func TestFollowRestartWhileWaiting(t *testing.T) {
	s := openLog(t, store.Options{})
	path := filepath.Join(shortDir(t), "steno.sock")
	d := serveAt(t, path, Options{Store: s})
	page := make(chan wire.Page, 1)
	done := make(chan error, 1)
	ctx, cancel := contextOf(t)
	go func() {
		done <- Follow(ctx, FollowOptions{Dial: dialer(path), Wait: 30 * time.Second}, func(p wire.Page) error {
			if len(p.Events) > 0 {
				page <- p
			}
			return nil
		})
	}()
	eventually(t, "it waits", func() bool { return s.pages.Load() == 1 })
	d.stop()
	waited := s.pages.Load()
	serveAt(t, path, Options{Store: s})
	eventually(t, "it waits again", func() bool { return s.pages.Load() > waited })
	s.add(t, wire.AssistantMessage, agentA, "after the restart")
	if got := texts(t, <-page); !slices.Equal(got, []string{"after the restart"}) {
		t.Errorf("texts = %q", got)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("Follow = %v, want context.Canceled", err)
	}
}

func TestFollowGivesUp(t *testing.T) {
	s := openLog(t, store.Options{})
	path := filepath.Join(shortDir(t), "steno.sock")
	if err := Follow(t.Context(), FollowOptions{Dial: dialer(path)}, nil); !errors.Is(err, ErrUnreachable) {
		t.Errorf("without a daemon: %v, want ErrUnreachable", err)
	}
	d := serveAt(t, path, Options{Store: s})
	s.add(t, wire.AssistantMessage, agentA, "one")
	began := time.Now()
	err := Follow(t.Context(), FollowOptions{Dial: dialer(path), Retry: 300 * time.Millisecond}, func(wire.Page) error {
		d.stop()
		return nil
	})
	if e := time.Since(began); !errors.Is(err, ErrUnreachable) || e > soon {
		t.Errorf("after the loss: %v in %v, want ErrUnreachable", err, e)
	}

	d = serveAt(t, path, Options{Store: s})
	err = Follow(t.Context(), FollowOptions{Dial: dialer(path), Retry: -1}, func(wire.Page) error {
		d.stop()
		return nil
	})
	if !errors.Is(err, ErrDisconnected) && !errors.Is(err, ErrUnreachable) {
		t.Errorf("without retries: %v", err)
	}
}

// A log that does not work for a while is waited for; a request that is wrong
// is not repeated.
func TestFollowErrors(t *testing.T) {
	s := openLog(t, store.Options{})
	s.add(t, wire.AssistantMessage, agentA, "one")
	failures := 3
	s.fail = func(string) error {
		if failures > 0 {
			failures--
			return errors.New("busy")
		}
		return nil
	}
	d := serve(t, Options{Store: s})
	err := Follow(t.Context(), FollowOptions{Dial: dialer(d.path)}, func(p wire.Page) error {
		if len(p.Events) != 1 {
			t.Errorf("%d events", len(p.Events))
		}
		return errEnough
	})
	if err != errEnough || failures != 0 {
		t.Errorf("Follow = %v, %d failures left", err, failures)
	}
	var e *Error
	err = Follow(t.Context(), FollowOptions{Dial: dialer(d.path), Kinds: []string{"agent_dreamt"}}, nil)
	if !errors.As(err, &e) || e.Code != CodeParams {
		t.Errorf("Follow = %v, want %s", err, CodeParams)
	}
}

// A daemon that accepts and never answers is one that is not there.
func TestFollowSilentDaemon(t *testing.T) {
	path := impostor(t, map[string]string{"ReadAgentEvents": ""})
	began := time.Now()
	err := Follow(t.Context(), FollowOptions{
		Dial: dialer(path), Wait: 10 * time.Millisecond, Retry: 200 * time.Millisecond, slack: 50 * time.Millisecond,
	}, nil)
	if e := time.Since(began); !errors.Is(err, ErrUnreachable) || e > soon {
		t.Errorf("Follow = %v in %v, want ErrUnreachable", err, e)
	}
}

// What a restart, a busy daemon or a fault of it gives is asked again; what asking
// again cannot change is not.
func TestWhatPasses(t *testing.T) {
	for _, code := range []Code{CodeParse, CodeRequest, CodeMethod, CodeParams, CodeTooLarge, CodeUnauthorized, CodeNotFound,
		CodeMajor, CodeTooMany, CodeUnavailable, CodeInternal} {
		want := code == CodeTooMany || code == CodeUnavailable || code == CodeInternal
		if got := passing(fmt.Errorf("read: %w", &Error{Code: code})); got != want {
			t.Errorf("%s passes: %v, want %v", code, got, want)
		}
	}
	if _, ok := numbers[CodeInternal]; !ok || len(numbers) != 11 {
		t.Errorf("%d codes, this knows 11", len(numbers))
	}
	for err, want := range map[error]bool{ErrUnreachable: true, ErrDisconnected: true, ErrProtocol: false, ErrIncompatible: false, ErrUnknownKind: false} {
		if got := passing(fmt.Errorf("read: %w", err)); got != want {
			t.Errorf("%v passes: %v, want %v", err, got, want)
		}
	}
}
