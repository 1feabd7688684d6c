-- The log and the projections that are committed with it.

-- One row: the head of the log and the totals of what is stored. Sequences are
-- gapless, so the stored events are exactly pruned_through+1 .. latest.
CREATE TABLE meta (
  id             INTEGER PRIMARY KEY CHECK (id = 1),
  pruned_through INTEGER NOT NULL CHECK (pruned_through >= 0),
  latest         INTEGER NOT NULL CHECK (latest >= pruned_through),
  bytes          INTEGER NOT NULL CHECK (bytes >= 0)
) STRICT;

-- body comes last: a row that a filter refuses, or that is pruned, is judged
-- without reading the pages that a long body overflows into.
CREATE TABLE events (
  seq         INTEGER PRIMARY KEY AUTOINCREMENT,
  event_id    TEXT NOT NULL UNIQUE,
  kind        TEXT NOT NULL,
  agent       TEXT NOT NULL,
  incarnation TEXT NOT NULL,
  size        INTEGER NOT NULL,
  body        BLOB NOT NULL
) STRICT;

CREATE TABLE sources (
  path        TEXT PRIMARY KEY,
  provider    TEXT NOT NULL,
  session     TEXT NOT NULL,
  agent       TEXT NOT NULL,
  incarnation TEXT NOT NULL,
  mark        BLOB NOT NULL,
  state       BLOB NOT NULL,
  position    INTEGER NOT NULL,
  settled     INTEGER NOT NULL,
  updated     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Times are Unix nanoseconds, 0 = none. Unsigned 64-bit numbers (start_ticks,
-- pane_id) are stored as the signed number with the same bits.
CREATE TABLE agents (
  id          TEXT PRIMARY KEY,
  name        TEXT NOT NULL,
  harness     TEXT NOT NULL,
  incarnation TEXT NOT NULL,
  pid         INTEGER NOT NULL,
  start_ticks INTEGER NOT NULL,
  boot        TEXT NOT NULL,
  place       TEXT NOT NULL,
  pane_key    TEXT NOT NULL,
  pane_id     INTEGER NOT NULL,
  tty         TEXT NOT NULL,
  cwd         TEXT NOT NULL,
  session     TEXT NOT NULL,
  path        TEXT NOT NULL,
  rank        INTEGER NOT NULL,
  evidence    TEXT NOT NULL,
  available   INTEGER NOT NULL,
  since       INTEGER NOT NULL,
  generation  INTEGER NOT NULL,
  alive       INTEGER NOT NULL,
  status      TEXT NOT NULL,
  turn_state  TEXT NOT NULL,
  turn        TEXT NOT NULL,
  observed_at INTEGER NOT NULL,
  created_at  INTEGER NOT NULL,
  exited_at   INTEGER NOT NULL,
  launch      TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE servers (
  key  TEXT PRIMARY KEY,
  slot INTEGER NOT NULL UNIQUE
) STRICT, WITHOUT ROWID;
