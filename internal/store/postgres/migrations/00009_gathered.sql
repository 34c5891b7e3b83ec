-- What waits for digests, and the runs that send them.
-- +goose Up

CREATE TABLE gathered (
  day      date    NOT NULL REFERENCES days ON DELETE CASCADE,
  slot     integer NOT NULL,
  due_at   bigint  NOT NULL,
  manifest bigint  NOT NULL,
  members  bigint  NOT NULL,
  blob     bytea   NOT NULL,
  PRIMARY KEY (day, slot, due_at, manifest),
  UNIQUE (day, manifest, slot, due_at) -- by event
);
COMMENT ON TABLE gathered IS 'Who gets an event of the day later, with the run of a slot. A row stays when its run is over, so that it can be told.';
COMMENT ON COLUMN gathered.due_at IS 'Unix seconds.';
COMMENT ON COLUMN gathered.manifest IS 'Sequence of the event x 64 + the first partition that is covered.';
-- Runs of differences: there is nothing left to press out.
ALTER TABLE gathered ALTER COLUMN blob SET STORAGE EXTERNAL;

CREATE TABLE pending (
  day     date    NOT NULL REFERENCES days ON DELETE CASCADE,
  slot    integer NOT NULL,
  due_at  bigint  NOT NULL,
  service text    NOT NULL,
  PRIMARY KEY (day, slot, due_at)
);
COMMENT ON TABLE pending IS 'The runs that something of the day waits for. Retention waits for them.';

CREATE TABLE runs (
  day    date    NOT NULL REFERENCES days ON DELETE CASCADE,
  slot   integer NOT NULL,
  due_at bigint  NOT NULL,
  seq    bigint  NOT NULL,
  PRIMARY KEY (day, slot, due_at)
);
COMMENT ON TABLE runs IS 'The runs that were due on the day and are frozen: the event that each is.';

CREATE TABLE items (
  day    date   NOT NULL REFERENCES days ON DELETE CASCADE,
  seq    bigint NOT NULL,
  number bigint NOT NULL,
  event  bigint NOT NULL,
  posted bytea  NOT NULL,
  PRIMARY KEY (day, seq, number)
);
COMMENT ON TABLE items IS 'The events that the members of runs name by number: copies, so that a run outlives the days of its events.';
COMMENT ON COLUMN items.seq IS 'Of the run.';
COMMENT ON COLUMN items.posted IS 'The whole event as JSON: convert_from(posted, ''UTF8'')::jsonb.';

-- As in the other tables: no values of persons in what the planner knows.
ALTER TABLE items ALTER COLUMN posted SET STATISTICS 0;
