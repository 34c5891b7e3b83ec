-- What was sent, by UTC day of receipt. The large tables are partitioned by day,
-- and the server names the partition of a day itself (attempts_20261120): it
-- never touches the tables below, so that whoever looks at them locks nothing of
-- its, and a plan knows one partition only. They are the shape of the
-- partitions, and what people query; keys are those of the partitions, see make_day.
-- +goose Up

CREATE TABLE days (
  day      date PRIMARY KEY,
  attached boolean NOT NULL
);
COMMENT ON TABLE days IS 'The days that are kept. SELECT drop_day(date) removes one.';
COMMENT ON COLUMN days.attached IS 'Whether the tables of the day are partitions yet. What is not is caught up with when the next day is made, or the server starts.';

CREATE TABLE broadcasts (
  seq        bigint NOT NULL,
  matched    bigint NOT NULL,
  messages   bigint NOT NULL,
  kept_at    bigint NOT NULL,
  matched_at bigint NOT NULL,
  frozen_at  bigint NOT NULL,
  day        date   NOT NULL,
  service    text   NOT NULL,
  topic      text   NOT NULL,
  posted     bytea  NOT NULL
) PARTITION BY LIST (day);
COMMENT ON TABLE broadcasts IS 'Events as they were accepted, and the result of matching each.';
COMMENT ON COLUMN broadcasts.seq IS 'Sequence of the event; the public id is evt-, the day, - and the sequence in hex.';
COMMENT ON COLUMN broadcasts.matched IS 'Subscriptions that wanted it.';
COMMENT ON COLUMN broadcasts.messages IS 'Deliveries that it set off.';
COMMENT ON COLUMN broadcasts.kept_at IS 'Unix nanoseconds, as matched_at and frozen_at.';
COMMENT ON COLUMN broadcasts.posted IS 'The whole event as JSON: convert_from(posted, ''UTF8'')::jsonb.';

CREATE TABLE frozen (
  id  bigint NOT NULL,
  seq bigint NOT NULL,
  day date   NOT NULL
) PARTITION BY LIST (day);
COMMENT ON TABLE frozen IS 'The order in which events were frozen. It is not that of their sequences: lanes overtake each other.';

CREATE TABLE manifests (
  id      bigint NOT NULL,
  day     date   NOT NULL,
  members bytea  NOT NULL
) PARTITION BY LIST (day);
COMMENT ON TABLE manifests IS 'Who is to get what an event set off. Written once, and never changed.';
COMMENT ON COLUMN manifests.id IS 'Sequence of the event x 64 + the first partition that is covered.';

CREATE TABLE attempts (
  manifest bigint   NOT NULL,
  at       bigint   NOT NULL,
  next_at  bigint   NOT NULL,
  position bigint   NOT NULL,
  attempt  integer  NOT NULL,
  code     integer  NOT NULL,
  day      date     NOT NULL,
  state    smallint NOT NULL,
  text     text     NOT NULL,
  relay    text     NOT NULL,
  address  text     NOT NULL
) PARTITION BY LIST (day);
COMMENT ON TABLE attempts IS 'Tries of deliveries, append-only. The view deliveries has them readable.';
COMMENT ON COLUMN attempts.position IS 'Of the member in its manifest.';
COMMENT ON COLUMN attempts.at IS 'Unix nanoseconds; next_at too, 0 where no further attempt follows.';
COMMENT ON COLUMN attempts.code IS 'Of the reply, in the protocol of the channel.';
COMMENT ON COLUMN attempts.state IS 'Names: see delivery_states.';

CREATE TABLE completions (
  seq          bigint NOT NULL,
  first_at     bigint NOT NULL,
  last_at      bigint NOT NULL,
  completed_at bigint NOT NULL,
  day          date   NOT NULL,
  counts       text   NOT NULL
) PARTITION BY LIST (day);
COMMENT ON TABLE completions IS 'Written with the outcome that settles the last delivery of a broadcast. A broadcast without a row is open.';
COMMENT ON COLUMN completions.counts IS 'JSON: deliveries by state.';
COMMENT ON COLUMN completions.first_at IS 'Unix nanoseconds, as last_at and completed_at.';

CREATE TABLE due (
  due_at    bigint   NOT NULL,
  manifest  bigint   NOT NULL,
  first     bigint   NOT NULL,
  attempt   integer  NOT NULL,
  channel   integer  NOT NULL,
  day       date     NOT NULL,
  lane      smallint NOT NULL,
  positions bytea    NOT NULL
) PARTITION BY LIST (day);
COMMENT ON TABLE due IS 'Recipients that wait for their next attempt, gathered by second and manifest.';
COMMENT ON COLUMN due.due_at IS 'Unix seconds.';
COMMENT ON COLUMN due.first IS 'The first of the positions.';
COMMENT ON COLUMN due.positions IS 'Uvarints, each the difference to the one before.';

CREATE TABLE history (
  segment bigint   NOT NULL,
  first   bigint   NOT NULL,
  day     date     NOT NULL,
  kind    smallint NOT NULL,
  pairs   bytea    NOT NULL
) PARTITION BY LIST (day);
COMMENT ON TABLE history IS 'Sorted runs of (key, event), by which the history of a person, an event or a message is found. Built behind the sending.';
COMMENT ON COLUMN history.kind IS 'Of the keys. 0: place of a subscriber; 1: hash of (service, id of the CloudEvent); 2: hash of (service, reference).';
COMMENT ON COLUMN history.first IS 'The first key of the block.';
-- Runs of differences: there is nothing left to press out.
ALTER TABLE history ALTER COLUMN pairs SET STORAGE EXTERNAL;

-- The small tables have the rows of all days. They go with the row in days.

CREATE TABLE switches (
  day     date    NOT NULL REFERENCES days ON DELETE CASCADE,
  seq     bigint  NOT NULL,
  channel integer NOT NULL,
  state   text    NOT NULL,
  reason  text    NOT NULL,
  at      bigint  NOT NULL,
  PRIMARY KEY (day, seq, channel)
);
COMMENT ON TABLE switches IS 'Broadcasts that are paused or cancelled, as a whole (channel 0) or in one channel.';

CREATE TABLE held (
  day   date   NOT NULL REFERENCES days ON DELETE CASCADE,
  id    bigint NOT NULL,
  batch text   NOT NULL,
  PRIMARY KEY (day, id)
);
COMMENT ON TABLE held IS 'Batches of what is paused: they hold no slot and come back on resume.';

CREATE TABLE parked (
  day      date    NOT NULL REFERENCES days ON DELETE CASCADE,
  failures integer NOT NULL,
  id       bigint  NOT NULL,
  seq      bigint  NOT NULL,
  members  bigint  NOT NULL,
  at       bigint  NOT NULL,
  kind     text    NOT NULL,
  reason   text    NOT NULL,
  payload  bytea   NOT NULL,
  PRIMARY KEY (day, id)
);
COMMENT ON TABLE parked IS 'Work that failed too often. `fanfare parked list` shows it.';

CREATE TABLE history_runs (
  day     date     NOT NULL REFERENCES days ON DELETE CASCADE,
  level   smallint NOT NULL,
  segment bigint   NOT NULL,
  pairs   bigint   NOT NULL,
  PRIMARY KEY (day, segment)
);
COMMENT ON TABLE history_runs IS 'The runs that count; blocks of others are left over from a crash. Ten runs of one level are merged into one of the next.';

CREATE TABLE history_position (
  day     date     PRIMARY KEY REFERENCES days ON DELETE CASCADE,
  one     smallint NOT NULL CHECK (one = 1),
  frozen  bigint   NOT NULL,
  segment bigint   NOT NULL
) WITH (fillfactor = 50);
COMMENT ON TABLE history_position IS 'How far the runs reach.';
COMMENT ON COLUMN history_position.one IS 'As in SQLite, where the table has one row.';
COMMENT ON COLUMN history_position.frozen IS 'The last that is in a run.';
COMMENT ON COLUMN history_position.segment IS 'The next free run.';

-- The row stays locked until the end of the transaction that takes numbers, so
-- that what is frozen becomes visible in the order of its numbers.
CREATE TABLE counters (
  day    date     PRIMARY KEY REFERENCES days ON DELETE CASCADE,
  one    smallint NOT NULL CHECK (one = 1),
  frozen bigint   NOT NULL,
  held   bigint   NOT NULL,
  parked bigint   NOT NULL
) WITH (fillfactor = 50);
COMMENT ON TABLE counters IS 'The last numbers that were given out in the tables of these names.';
COMMENT ON COLUMN counters.one IS 'As in SQLite, where the table has one row.';

-- As in the control tables: no values of persons in what the planner knows.
ALTER TABLE broadcasts
  ALTER COLUMN posted SET STATISTICS 0;
ALTER TABLE attempts
  ALTER COLUMN text SET STATISTICS 0,
  ALTER COLUMN address SET STATISTICS 0;
ALTER TABLE parked
  ALTER COLUMN reason SET STATISTICS 0,
  ALTER COLUMN payload SET STATISTICS 0;

-- Columns that are worth pressing together get lz4, which costs a quarter of the
-- time of the other way; a server may be built without it.
-- +goose StatementBegin
DO $$
BEGIN
  ALTER TABLE broadcasts ALTER COLUMN posted SET COMPRESSION lz4;
  ALTER TABLE manifests ALTER COLUMN members SET COMPRESSION lz4;
EXCEPTION WHEN feature_not_supported THEN
  NULL;
END $$;
-- +goose StatementEnd

-- The tables of a day, their keys and how they are kept. A row that is never
-- changed is frozen by the first vacuum, so that none has to come back for it.
CREATE FUNCTION day_tables()
RETURNS TABLE (parent text, key text, storage text)
LANGUAGE sql IMMUTABLE AS $$
  VALUES
    ('broadcasts',  'PRIMARY KEY (seq) INCLUDE (messages)',            'autovacuum_freeze_min_age = 0'),
    ('frozen',      'PRIMARY KEY (id)',                                'autovacuum_freeze_min_age = 0'),
    ('manifests',   'PRIMARY KEY (id)',                                'autovacuum_freeze_min_age = 0'),
    ('attempts',    'PRIMARY KEY (manifest, position, attempt)',       'autovacuum_freeze_min_age = 0, autovacuum_vacuum_insert_threshold = 1000000'),
    ('completions', 'PRIMARY KEY (seq)',                               'autovacuum_freeze_min_age = 0'),
    ('due',         'PRIMARY KEY (due_at, manifest, first, attempt)',  'autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0'),
    ('history',     'PRIMARY KEY (kind, segment, first)',              'autovacuum_freeze_min_age = 0')
$$;
COMMENT ON FUNCTION day_tables() IS 'The tables that each day has of its own.';

-- +goose StatementBegin
CREATE FUNCTION make_day(of date)
RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
  t record;
  c name;
BEGIN
  PERFORM pg_advisory_xact_lock('days'::regclass::oid::integer, 0);
  IF EXISTS (SELECT FROM days WHERE day = of) THEN
    RETURN;
  END IF;
  FOR t IN SELECT *, parent || to_char(of, '_YYYYMMDD') AS child FROM day_tables() LOOP
    EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING ALL, %s, CONSTRAINT of_day CHECK (day = %L)) WITH (%s)',
      t.child, t.parent, t.key, of, t.storage);
    EXECUTE format('ALTER TABLE %I ALTER COLUMN day SET DEFAULT %L', t.child, of);
    FOR c IN SELECT attname FROM pg_attribute WHERE attrelid = t.parent::regclass AND attstattarget = 0 AND attnum > 0 AND NOT attisdropped LOOP
      EXECUTE format('ALTER TABLE %I ALTER COLUMN %I SET STATISTICS 0', t.child, c); -- LIKE leaves that out
    END LOOP;
  END LOOP;
  INSERT INTO days (day, attached) VALUES (of, false);
  INSERT INTO counters (day, one, frozen, held, parked) VALUES (of, 1, 0, 0, 0);
  INSERT INTO history_position (day, one, frozen, segment) VALUES (of, 1, 0, 0);
  PERFORM attach_days();
END $$;
-- +goose StatementEnd
COMMENT ON FUNCTION make_day(date) IS 'Makes the tables of a day, once.';

-- A table becomes a partition without being read, for the constraint says what it
-- has. Whoever is at one of the partitioned tables with more than a look holds
-- this up: then the day stays as it is, which the server does not notice.
-- +goose StatementBegin
CREATE FUNCTION attach_days()
RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT SET lock_timeout = '300ms' AS $$
DECLARE
  d date;
  t record;
BEGIN
  FOR d IN SELECT day FROM days WHERE NOT attached ORDER BY day LOOP
    FOR t IN SELECT *, parent || to_char(d, '_YYYYMMDD') AS child FROM day_tables() LOOP
      EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES IN (%L)', t.parent, t.child, d);
      EXECUTE format('ALTER TABLE %I DROP CONSTRAINT of_day', t.child);
    END LOOP;
    UPDATE days SET attached = true WHERE day = d;
  END LOOP;
EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
  NULL;
END $$;
-- +goose StatementEnd
COMMENT ON FUNCTION attach_days() IS 'Makes partitions of the tables of days that are none yet, if nobody is in the way.';

-- +goose StatementBegin
CREATE FUNCTION drop_day(of date)
RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT SET lock_timeout = '2s' AS $$
DECLARE
  t record;
BEGIN
  PERFORM pg_advisory_xact_lock('days'::regclass::oid::integer, 0);
  FOR t IN SELECT parent || to_char(of, '_YYYYMMDD') AS child FROM day_tables() LOOP
    EXECUTE format('DROP TABLE IF EXISTS %I', t.child);
  END LOOP;
  DELETE FROM days WHERE day = of;
END $$;
-- +goose StatementEnd
COMMENT ON FUNCTION drop_day(date) IS 'Removes a day and all it holds, or nothing of it.';
