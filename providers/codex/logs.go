package codex

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"steno/providers"
	"steno/providers/readdb"
)

// logTimeout bounds everything that is asked of the program's log at one look.
const logTimeout = 100 * time.Millisecond

// A TUI of 0.171.0 makes three connections to its daemon, asks "initialize" on
// each, and logs that it is connected 120 to 160 ms after the third (440 ms
// were seen under load by others).
const connectWindow = 500 * time.Millisecond

var (
	initBody   = regexp.MustCompile(`^app-server request: initialize connection_id=ConnectionId\((\d{1,18})\) request_id=(Integer|String)\(`)
	threadBody = regexp.MustCompile(`^app_server\.request\{[^}]*rpc\.method="thread/(?:start|resume|fork)"[^}]*app_server\.connection_id=(\d{1,18})[ }]`)
)

// withLog opens <dir>/logs_2.sqlite for one look. It says false when there is
// nothing to be learned: no log, no program that has it open, or a log of
// another shape. An error means that the log is there and could not be read in
// time.
func withLog(ctx context.Context, dir string, look func(context.Context, *sql.DB) error) (bool, error) {
	if dir == "" {
		return false, nil
	}
	path := readdb.Beside(filepath.Join(dir, "logs_2.sqlite"))
	// Without the shared memory file nobody has the database open.
	for _, p := range []string{path, path + "-shm", path + "-wal"} {
		if st, err := os.Lstat(p); err != nil || !st.Mode().IsRegular() {
			return false, nil
		}
	}
	db, err := readdb.Open(path, readdb.Shared)
	if err != nil {
		return false, fmt.Errorf("codex: read the program's log: %w", err)
	}
	defer db.Close()
	short, cancel := context.WithTimeout(ctx, logTimeout)
	defer cancel()
	err = look(short, db)
	kind, _ := readdb.Classify(err)
	switch {
	case err == nil:
		return true, nil
	case ctx.Err() != nil:
		return false, fmt.Errorf("codex: read the program's log: %w", ctx.Err())
	case short.Err() != nil, kind == readdb.Interrupted:
		return false, fmt.Errorf("codex: read the program's log: not done within %v", logTimeout)
	case kind == readdb.Busy:
		return false, errors.New("codex: read the program's log: it is busy")
	}
	return false, nil // damaged, or another schema
}

// logged is a thread that a row of the log names.
type logged struct {
	thread string
	at     time.Time
}

// processRange are the bounds of process_uuid, "pid:<pid>:<uuid>".
func processRange(pid int) (from, to string) {
	s := strconv.Itoa(pid)
	return "pid:" + s + ":", "pid:" + s + ";"
}

// since is where a process's rows begin; an older row of the same pid is
// another process's.
func since(p providers.Process) int64 {
	if p.Started.IsZero() {
		return 0
	}
	return p.Started.Add(-time.Second).Unix()
}

// logEvidence follows a TUI through the daemon's log: when it connected, which
// connection that was, which known thread of a user that connection last
// started, resumed or forked. It proves nothing, and says so, when two TUIs
// connected at the same time.
func logEvidence(ctx context.Context, dir string, p providers.Process, known []providers.Session) (ev []providers.Evidence, err error) {
	_, err = withLog(ctx, dir, func(ctx context.Context, db *sql.DB) error {
		at, err := connectedAt(ctx, db, p)
		if err != nil || at.IsZero() {
			return err
		}
		daemon, conn, n, err := connection(ctx, db, at)
		if err != nil {
			return err
		}
		if n != 1 {
			if n > 1 {
				ev = append(ev, providers.Evidence{Rank: providers.Young, Source: fromLog, At: at,
					Refused: "several terminals connected to the daemon at the same time"})
			}
			return nil
		}
		l, err := newestThread(ctx, db, userThreads(known), at, func(process, c string) bool { return process == daemon && c == conn })
		if err != nil || l.thread == "" {
			return err
		}
		e := providers.Evidence{Rank: providers.Young, Session: l.thread, Source: fromLog, At: l.at}
		refine(&e, known)
		ev = append(ev, e)
		return nil
	})
	return ev, err
}

// userThreads are the known threads that can own a pane, the youngest first.
func userThreads(known []providers.Session) []string {
	var ids []string
	for _, s := range known {
		if s.Internal == "" {
			ids = append(ids, s.ID)
		}
	}
	slices.Sort(ids)
	slices.Reverse(ids)
	return ids
}

// newestOpen is the thread among ids that an embedded process last started,
// resumed or forked, empty when its log does not tell.
func newestOpen(ctx context.Context, dir string, p providers.Process, ids map[string]bool) (l logged, err error) {
	prefix, _ := processRange(p.PID)
	_, err = withLog(ctx, dir, func(ctx context.Context, db *sql.DB) error {
		l, err = newestThread(ctx, db, slices.Sorted(maps.Keys(ids)), time.Unix(since(p), 0),
			func(process, _ string) bool { return strings.HasPrefix(process, prefix) })
		return err
	})
	return l, err
}

// connectedAt is when the process last said that it is connected.
func connectedAt(ctx context.Context, db *sql.DB, p providers.Process) (time.Time, error) {
	from, to := processRange(p.PID)
	var sec, nanos int64
	err := db.QueryRowContext(ctx, `SELECT ts, ts_nanos FROM logs
		WHERE thread_id IS NULL AND process_uuid >= ? AND process_uuid < ? AND ts >= ?
		AND feedback_log_body LIKE 'connected app-server platform%'
		ORDER BY ts DESC, ts_nanos DESC LIMIT 1`, from, to, since(p)).Scan(&sec, &nanos)
	if errors.Is(err, sql.ErrNoRows) {
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, err
	}
	return time.Unix(sec, nanos).UTC(), nil
}

// connection finds whose three connections ended shortly before at: the
// daemon's process_uuid and the third connection's number. n is how many such
// threes there are; only one proves anything.
func connection(ctx context.Context, db *sql.DB, at time.Time) (daemon, conn string, n int, err error) {
	rows, err := db.QueryContext(ctx, `SELECT ts, ts_nanos, process_uuid, substr(feedback_log_body, 1, 200) FROM logs
		WHERE thread_id IS NULL AND ts >= ? AND ts <= ?
		AND feedback_log_body LIKE 'app-server request: initialize %'
		ORDER BY ts, ts_nanos, id LIMIT 256`, at.Add(-2*time.Second).Unix(), at.Unix())
	if err != nil {
		return "", "", 0, err
	}
	defer rows.Close()
	type step struct {
		conn   int64
		probes string // the kinds of the last requests: "I", "IS", "ISS"
	}
	last := map[string]step{}
	for rows.Next() {
		var sec, nanos int64
		var who sql.NullString
		var body string
		if err := rows.Scan(&sec, &nanos, &who, &body); err != nil {
			return "", "", 0, err
		}
		when := time.Unix(sec, nanos)
		m := initBody.FindStringSubmatch(body)
		if m == nil || when.After(at) {
			continue
		}
		c, _ := strconv.ParseInt(m[1], 10, 64)
		s, kind := last[who.String], m[2][:1]
		switch {
		case kind == "I":
			s.probes = "I"
		case c == s.conn+1 && s.probes != "" && len(s.probes) < 3:
			s.probes += kind
		default:
			s.probes = "" // mixed with another's: nothing can be told apart
			if at.Sub(when) <= connectWindow {
				n++
			}
		}
		s.conn = c
		last[who.String] = s
		if s.probes == "ISS" && at.Sub(when) <= connectWindow {
			n++
			daemon, conn = who.String, m[1]
		}
	}
	if daemon == "" && n == 1 {
		n = 2 // only a mixed three
	}
	return daemon, conn, n, rows.Err()
}

// threadsAsked bounds the threads that are looked up in one look, newest first.
const threadsAsked = 512

// newestThread is the thread among ids that was started, resumed or forked
// last, by a process and connection that match accepts. It asks for each
// thread through the log's index of threads: one that was not used since costs
// a seek, and of one that was, the program keeps 1000 rows.
func newestThread(ctx context.Context, db *sql.DB, ids []string, after time.Time, match func(process, conn string) bool) (best logged, err error) {
	stmt, err := db.PrepareContext(ctx, `SELECT ts, ts_nanos, process_uuid, substr(feedback_log_body, 1, 600) FROM logs
		WHERE thread_id = ? AND ts >= ? AND feedback_log_body LIKE 'app_server.request{%rpc.method="thread/%'
		ORDER BY ts DESC, ts_nanos DESC, id DESC LIMIT 64`)
	if err != nil {
		return logged{}, err
	}
	defer stmt.Close()
	for _, id := range ids[:min(len(ids), threadsAsked)] {
		at, err := newestRow(ctx, stmt, id, after, match)
		if err != nil {
			return logged{}, err
		}
		if at.After(best.at) {
			best = logged{id, at}
		}
	}
	return best, nil
}

// newestRow is when a thread was last asked for, zero when it was not.
func newestRow(ctx context.Context, stmt *sql.Stmt, id string, after time.Time, match func(process, conn string) bool) (time.Time, error) {
	rows, err := stmt.QueryContext(ctx, id, after.Unix())
	if err != nil {
		return time.Time{}, err
	}
	defer rows.Close()
	for rows.Next() {
		var sec, nanos int64
		var process sql.NullString
		var body string
		if err := rows.Scan(&sec, &nanos, &process, &body); err != nil {
			return time.Time{}, err
		}
		if m := threadBody.FindStringSubmatch(body); m != nil && match(process.String, m[1]) {
			return time.Unix(sec, nanos).UTC(), nil
		}
	}
	return time.Time{}, rows.Err()
}
