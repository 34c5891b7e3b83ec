-- Addresses that nobody may subscribe or write to. What is kept of one is an
-- HMAC-SHA-256 under a key that lies beside this file.
CREATE TABLE suppressions (
  service INTEGER NOT NULL,
  kind    INTEGER NOT NULL, -- of the address
  hash    BLOB NOT NULL,
  reason  TEXT NOT NULL,
  at      INTEGER NOT NULL, -- Unix nanoseconds
  PRIMARY KEY (service, kind, hash)
) STRICT, WITHOUT ROWID;

-- Erasures that were begun and are not over. A row goes with the end of its
-- erasure, so that nothing of the person is left here either.
CREATE TABLE erasures (
  place INTEGER PRIMARY KEY, -- of the subscriber
  body  TEXT NOT NULL        -- JSON
) STRICT;
