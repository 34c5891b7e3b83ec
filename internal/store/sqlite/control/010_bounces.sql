-- What came back of an address and counts for giving it up. A row is a message, so
-- that one which comes back twice counts once. Of the address an HMAC-SHA-256 is
-- kept, the same as in suppressions.
CREATE TABLE bounces (
  service  INTEGER NOT NULL,
  kind     INTEGER NOT NULL, -- of the address
  hash     BLOB NOT NULL,
  day      INTEGER NOT NULL, -- of the delivery, with the next two
  manifest INTEGER NOT NULL,
  position INTEGER NOT NULL,
  why      INTEGER NOT NULL, -- 1 unknown, 2 hard, 3 soft, 4 full, 5 complaint
  at       INTEGER NOT NULL, -- Unix nanoseconds
  PRIMARY KEY (service, kind, hash, day, manifest, position, why)
) STRICT, WITHOUT ROWID;
