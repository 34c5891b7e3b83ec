-- What services have asked to be told of and are not yet: a row for each group of
-- outcomes, written with it in one transaction, and gone when they are told.
CREATE TABLE notices (
  id      INTEGER PRIMARY KEY,
  at      INTEGER NOT NULL,         -- of the first outcome
  entries INTEGER NOT NULL,
  blob    BLOB NOT NULL
) STRICT;

-- The last id that was given out, and up to which what is told is being told: a
-- plan, so that after a crash the same is told under the same names. No row: none yet.
CREATE TABLE notices_position (
  one     INTEGER PRIMARY KEY CHECK (one = 1),
  given   INTEGER NOT NULL,
  planned INTEGER NOT NULL
) STRICT;
