-- The last ids that were given out. An id is not given out again when its row is
-- gone, and the same statements give the same ids in every database.
CREATE TABLE counters (
  one    INTEGER PRIMARY KEY CHECK (one = 1),
  frozen INTEGER NOT NULL,
  held   INTEGER NOT NULL,
  parked INTEGER NOT NULL
) STRICT;
INSERT INTO counters (one, frozen, held, parked) VALUES (1,
  (SELECT coalesce(max(id), 0) FROM frozen),
  (SELECT coalesce(max(id), 0) FROM held),
  (SELECT coalesce(max(id), 0) FROM parked));
