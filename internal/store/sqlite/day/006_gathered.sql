-- Who gets an event of this day later, with the run of a slot: written with the
-- event, in one transaction, as manifests without templates. Never a row per
-- waiting pair. A row stays when its run is over, so that it can be told.
CREATE TABLE gathered (
  slot     INTEGER NOT NULL,
  due_at   INTEGER NOT NULL,        -- unix seconds
  manifest INTEGER NOT NULL,        -- ManifestID
  members  INTEGER NOT NULL,
  blob     BLOB NOT NULL,
  PRIMARY KEY (slot, due_at, manifest)
) STRICT;
CREATE INDEX gathered_of_event ON gathered (manifest);

-- The runs that something of this day waits for. Retention waits for them.
CREATE TABLE pending (
  slot    INTEGER NOT NULL,
  due_at  INTEGER NOT NULL,
  service TEXT NOT NULL,
  PRIMARY KEY (slot, due_at)
) STRICT, WITHOUT ROWID;

-- The runs that were due on this day and are frozen: the event that each is. It is
-- written with that event, so that a second event for the same run finds it.
CREATE TABLE runs (
  slot   INTEGER NOT NULL,
  due_at INTEGER NOT NULL,
  seq    INTEGER NOT NULL,
  PRIMARY KEY (slot, due_at)
) STRICT, WITHOUT ROWID;

-- The events that the members of runs name by number. They are copies, so that a
-- run outlives the days of its events.
CREATE TABLE items (
  seq    INTEGER NOT NULL,          -- of the run
  number INTEGER NOT NULL,
  event  INTEGER NOT NULL,          -- EventSeq
  posted BLOB NOT NULL,
  PRIMARY KEY (seq, number)
) STRICT;
