package bind

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"time"
)

// Births sends when processes were made since the last time it looked, which is every
// so often, until ctx ends. It costs a read of one small file: the last field of
// loadavg in proc is the newest process id (Linux, since 2.2). A receiver that is busy
// is told once. Where there is no such file it ends at once, without an error.
func Births(ctx context.Context, proc string, every time.Duration, born chan<- struct{}) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	was, ok := newestID(proc)
	for ok {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		var now string
		if now, ok = newestID(proc); ok && now != was {
			was = now
			select {
			case born <- struct{}{}:
			default:
			}
		}
	}
	return nil
}

func newestID(proc string) (string, bool) {
	data, err := os.ReadFile(filepath.Join(proc, "loadavg"))
	fields := bytes.Fields(data)
	if err != nil || len(fields) == 0 {
		return "", false
	}
	return string(fields[len(fields)-1]), true
}
