-- The last event of each key of a topic, where its day is over. Those of the days
-- after it are with their days.
CREATE TABLE states (
  topic  INTEGER NOT NULL,
  key    TEXT NOT NULL,
  series INTEGER NOT NULL,  -- of keys: another one each time the topic takes another field
  seq    INTEGER NOT NULL,  -- of the event
  at     INTEGER NOT NULL,  -- when it was received, Unix nanoseconds
  data   BLOB NOT NULL,     -- of the event, JSON
  PRIMARY KEY (topic, key)
) STRICT, WITHOUT ROWID;
