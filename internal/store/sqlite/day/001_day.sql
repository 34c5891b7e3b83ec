-- One file per UTC day of receipt holds all that its events set off, retries of
-- later days included, so that an outcome and what follows from it commit
-- together, and retention is the removal of the file. Times are unix
-- nanoseconds, due times unix seconds.

-- The event as it was accepted, and the result of matching it.
CREATE TABLE broadcasts (
  seq         INTEGER PRIMARY KEY,  -- EventSeq
  service     TEXT NOT NULL,
  topic       TEXT NOT NULL,
  posted      BLOB NOT NULL,        -- the whole event as JSON
  matched     INTEGER NOT NULL,
  messages    INTEGER NOT NULL,
  kept_at     INTEGER NOT NULL,
  matched_at  INTEGER NOT NULL,
  frozen_at   INTEGER NOT NULL
) STRICT;

CREATE TABLE manifests (
  id      INTEGER PRIMARY KEY,      -- ManifestID
  members BLOB NOT NULL
) STRICT;

-- Append-only, keyed by place: the newest batch is at the end, and no other
-- index is touched while delivering.
CREATE TABLE attempts (
  manifest INTEGER NOT NULL,
  position INTEGER NOT NULL,
  attempt  INTEGER NOT NULL,
  state    INTEGER NOT NULL,
  code     INTEGER NOT NULL,
  at       INTEGER NOT NULL,
  next_at  INTEGER NOT NULL,
  text     TEXT NOT NULL,
  relay    TEXT NOT NULL,
  address  TEXT NOT NULL,
  PRIMARY KEY (manifest, position, attempt)
) STRICT, WITHOUT ROWID;

-- Written with the outcome that settles a broadcast's last delivery. A
-- broadcast without a row is open, and its counts are those of its attempts.
CREATE TABLE completions (
  seq          INTEGER PRIMARY KEY,
  counts       TEXT NOT NULL,
  first_at     INTEGER NOT NULL,
  last_at      INTEGER NOT NULL,
  completed_at INTEGER NOT NULL
) STRICT;

-- Paused or cancelled by an operator, or paused by itself: the whole broadcast
-- (channel 0), or its part in one channel.
CREATE TABLE switches (
  seq     INTEGER NOT NULL,
  channel INTEGER NOT NULL,
  state   TEXT NOT NULL,
  reason  TEXT NOT NULL,
  at      INTEGER NOT NULL,
  PRIMARY KEY (seq, channel)
) STRICT, WITHOUT ROWID;

-- Deferred recipients, gathered by second and manifest.
CREATE TABLE due (
  due_at    INTEGER NOT NULL,
  manifest  INTEGER NOT NULL,
  first     INTEGER NOT NULL,       -- the first of the positions
  channel   INTEGER NOT NULL,
  lane      INTEGER NOT NULL,
  attempt   INTEGER NOT NULL,
  positions BLOB NOT NULL,          -- uvarints, each the difference to the one before
  PRIMARY KEY (due_at, manifest, first, attempt)
) STRICT, WITHOUT ROWID;

-- Batches of what is paused: they hold no slot and come back on resume.
CREATE TABLE held (
  id    INTEGER PRIMARY KEY,
  batch TEXT NOT NULL
) STRICT;

-- Work that failed too often.
CREATE TABLE parked (
  id       INTEGER PRIMARY KEY,
  kind     TEXT NOT NULL,
  seq      INTEGER NOT NULL,
  reason   TEXT NOT NULL,
  failures INTEGER NOT NULL,
  members  INTEGER NOT NULL,
  at       INTEGER NOT NULL,
  payload  BLOB NOT NULL
) STRICT;

-- Sorted runs of (key, event), built behind the hot path. kind 0: key is a
-- subscriber's place; kind 1: key is a hash of (service, id of the CloudEvent).
CREATE TABLE history (
  kind    INTEGER NOT NULL,
  segment INTEGER NOT NULL,
  first   INTEGER NOT NULL,         -- the first key of the block
  pairs   BLOB NOT NULL,
  PRIMARY KEY (kind, segment, first)
) STRICT, WITHOUT ROWID;

-- The runs that count; blocks of others are left over from a crash. Ten runs of
-- one level are merged into one of the next.
CREATE TABLE history_runs (
  segment INTEGER PRIMARY KEY,
  level   INTEGER NOT NULL,
  pairs   INTEGER NOT NULL
) STRICT;

-- The order in which events were frozen. It is not that of their sequences:
-- lanes overtake each other.
CREATE TABLE frozen (
  id  INTEGER PRIMARY KEY,
  seq INTEGER NOT NULL
) STRICT;

-- How far the runs reach.
CREATE TABLE history_position (
  one     INTEGER PRIMARY KEY CHECK (one = 1),
  frozen  INTEGER NOT NULL,         -- the last that is in a run
  segment INTEGER NOT NULL          -- next free run
) STRICT;
INSERT INTO history_position VALUES (1, 0, 0);
