-- The keys of topics whose last event was received on this day, until it is over:
-- then they are in the control tables. Written with the event, in one transaction.
CREATE TABLE advances (
  topic  INTEGER NOT NULL,
  key    TEXT NOT NULL,
  series INTEGER NOT NULL,  -- of keys: another one each time the topic takes another field
  seq    INTEGER NOT NULL,  -- of the event, which is in broadcasts
  PRIMARY KEY (topic, key)
) STRICT, WITHOUT ROWID;
