package store

import (
	"database/sql/driver"
	"errors"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"modernc.org/sqlite"
)

// within is called in the middle of a transaction, where a trigger asks for it.
var within atomic.Pointer[func() error]

func init() {
	sqlite.MustRegisterScalarFunction("within", 0, func(*sqlite.FunctionContext, []driver.Value) (driver.Value, error) {
		if f := within.Load(); f != nil {
			return nil, (*f)()
		}
		return nil, nil
	})
}

// during calls f in each transaction of s before it does what is named.
func during(t *testing.T, s *Store, what string, f func() error) {
	t.Helper()
	within.Store(&f)
	t.Cleanup(func() { within.Store(nil) })
	if _, err := s.wconn.ExecContext(t.Context(),
		"CREATE TEMP TRIGGER within BEFORE "+what+" BEGIN SELECT within(); END"); err != nil {
		t.Fatal(err)
	}
}

// A file that goes away while its commit runs takes the commit with it.
func TestReplacedDuringCommit(t *testing.T) {
	s := started(t, Options{})
	defer s.Close()
	during(t, s, "INSERT ON main.events", func() error { return os.Rename(s.opts.Path, s.opts.Path+"2") })
	changed := s.Changed()
	if c, err := s.Commit(t.Context(), Batch{Events: events(4, 4)}); !errors.Is(err, ErrReplaced) || c != (Committed{}) || s.Working() {
		t.Errorf("Commit = %+v, %v, working %v, want ErrReplaced", c, err, s.Working())
	}
	select {
	case <-changed:
		t.Error("a commit that was not acknowledged woke the readers")
	default:
	}
}

// After a failure, an empty batch writes: a disk that can be read proves nothing.
func TestTrialWrites(t *testing.T) {
	s := started(t, Options{})
	fault := errors.New("no write")
	during(t, s, "UPDATE ON main.meta", func() error { return fault })
	for _, b := range []Batch{{Events: events(4, 4)}, {}} {
		if _, err := s.Commit(t.Context(), b); err == nil || s.Working() {
			t.Fatalf("Commit of %d events without a write: %v, working %v", len(b.Events), err, s.Working())
		}
	}
	within.Store(nil)
	if _, err := s.Commit(t.Context(), Batch{}); err != nil || !s.Working() {
		t.Errorf("empty Commit: %v, working %v", err, s.Working())
	}
}

// Close lets a commit end that has begun.
func TestCloseWaitsForCommit(t *testing.T) {
	s := started(t, Options{})
	began, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	during(t, s, "INSERT ON main.events", func() error {
		once.Do(func() {
			close(began)
			<-goOn
		})
		return nil
	})
	committed, closed := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := s.Commit(t.Context(), Batch{Events: events(4, 500)})
		committed <- err
	}()
	<-began
	go func() { closed <- s.Close() }()
	for end := time.Now().Add(10 * time.Second); !s.isClosed() && time.Now().Before(end); {
		runtime.Gosched()
	}
	close(goOn)
	if err := <-committed; err != nil {
		t.Errorf("Commit: %v", err)
	}
	if err := <-closed; err != nil {
		t.Errorf("Close: %v", err)
	}
	s = openTest(t, Options{Path: s.opts.Path})
	if p := page(t, s, Query{}); p.Latest != 500 {
		t.Errorf("latest = %d, want 500", p.Latest)
	}
}

// A transaction that fails at its very end is not acknowledged, and is over.
func TestLastStepFails(t *testing.T) {
	s := started(t, Options{})
	do := func(statements ...string) {
		t.Helper()
		for _, q := range statements {
			if _, err := s.wconn.ExecContext(t.Context(), q); err != nil {
				t.Fatalf("%s: %v", q, err)
			}
		}
	}
	do("PRAGMA foreign_keys = 1", "CREATE TEMP TABLE up (id INTEGER PRIMARY KEY)",
		"CREATE TEMP TABLE down (id REFERENCES up (id) DEFERRABLE INITIALLY DEFERRED)",
		"CREATE TEMP TRIGGER late AFTER INSERT ON main.events BEGIN INSERT INTO down VALUES (1); END")
	changed := s.Changed()
	c, err := s.Commit(t.Context(), Batch{Events: events(4, 4), Sources: []Source{{Path: "p", Offset: 99}}})
	if err == nil || c != (Committed{}) {
		t.Errorf("Commit = %+v, %v, want an error", c, err)
	}
	select {
	case <-changed:
		t.Error("a failed commit woke the readers")
	default:
	}
	sources, err := s.Sources(t.Context())
	if err != nil || len(sources) != 1 || sources[0].Offset != 1 {
		t.Errorf("Sources = %+v, %v, want the old offset", sources, err)
	}
	do("DROP TRIGGER late")
	if c := commit(t, s, Batch{Events: events(4, 4)}); c.Latest != 4 || c.Inserted != 1 {
		t.Errorf("Commit = %+v, want latest 4", c)
	}
}
