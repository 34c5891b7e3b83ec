-- What services have asked to be told of and are not yet: changes of subscriptions and
-- suppressions, written with them in one transaction, and gone when they are told.
CREATE TABLE news (
  id      INTEGER PRIMARY KEY,
  at      INTEGER NOT NULL,         -- of the transaction
  entries INTEGER NOT NULL,
  blob    BLOB NOT NULL             -- JSON: places and codes, nothing of persons
) STRICT;

-- The last id that was given out, and up to which what is told is being told: a
-- plan, so that after a crash the same is told under the same names. No row: none yet.
CREATE TABLE news_position (
  one     INTEGER PRIMARY KEY CHECK (one = 1),
  given   INTEGER NOT NULL,
  planned INTEGER NOT NULL
) STRICT;
