-- The last event of each key of a topic.
-- +goose Up

CREATE TABLE advances (
  day    date   NOT NULL REFERENCES days ON DELETE CASCADE,
  topic  bigint NOT NULL,
  series bigint NOT NULL,
  seq    bigint NOT NULL,
  key    text   COLLATE "C" NOT NULL,
  PRIMARY KEY (day, topic, key)
) WITH (fillfactor = 50);
COMMENT ON TABLE advances IS 'The keys of topics whose last event was received on a day, until it is over: then they are in states.';
COMMENT ON COLUMN advances.topic IS 'Number of the topic in config.';
COMMENT ON COLUMN advances.series IS 'Of keys: another one each time the topic takes another field.';
COMMENT ON COLUMN advances.seq IS 'Of the event, which is in broadcasts.';

CREATE TABLE states (
  topic  bigint NOT NULL,
  series bigint NOT NULL,
  seq    bigint NOT NULL,
  at     bigint NOT NULL,
  key    text   COLLATE "C" NOT NULL,
  data   bytea  NOT NULL,
  PRIMARY KEY (topic, key)
);
COMMENT ON TABLE states IS 'The last event of each key of a topic, where its day is over.';
COMMENT ON COLUMN states.topic IS 'Number of the topic in config.';
COMMENT ON COLUMN states.series IS 'Of keys: another one each time the topic takes another field.';
COMMENT ON COLUMN states.seq IS 'Of the event.';
COMMENT ON COLUMN states.at IS 'When it was received, in Unix nanoseconds.';
COMMENT ON COLUMN states.data IS 'Of the event: convert_from(data, ''UTF8'')::jsonb.';

-- As in the control tables: no values of persons in what the planner knows.
ALTER TABLE advances ALTER COLUMN key SET STATISTICS 0;
ALTER TABLE states
  ALTER COLUMN key SET STATISTICS 0,
  ALTER COLUMN data SET STATISTICS 0;
