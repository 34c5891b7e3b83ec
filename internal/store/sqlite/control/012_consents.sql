-- What somebody agreed to, and when: rows are added, and go with the person alone.
CREATE TABLE consents (
  subscription INTEGER NOT NULL,
  at           INTEGER NOT NULL, -- Unix nanoseconds
  body         TEXT NOT NULL,    -- JSON
  PRIMARY KEY (subscription, at)
) STRICT, WITHOUT ROWID;
