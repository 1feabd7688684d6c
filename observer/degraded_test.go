package observer

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
)

// logLines is a log that is read while it is written.
type logLines struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (l *logLines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(b)
}

func (l *logLines) has(words string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.all.String(), words)
}

// Where nothing can be watched from the start, the log says so, although the
// mode is known before it is known what there is to watch.
func TestNothingCanBeWatched(t *testing.T) {
	var log logLines
	r := newRig(t, func(o *Options) {
		o.Watch.ForcePolling = true
		o.Sweep = 50 * time.Millisecond
		o.Log = zerolog.New(&log)
	})
	if err := os.RemoveAll(filepath.Join(r.home, "fake")); err != nil {
		t.Fatal(err)
	}
	r.run()
	r.until("the mode is known", func() bool {
		known := false
		err := r.obs.ask(context.Background(), func() { known = r.obs.watchMode == "polling" })
		return err == nil && known
	})
	if err := os.MkdirAll(filepath.Join(r.home, "fake", "log"), 0o700); err != nil {
		t.Fatal(err)
	}
	r.until("the log says so", func() bool { return log.has("cannot be watched") })
}
