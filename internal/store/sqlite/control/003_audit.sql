-- Who changed what, one row for each change, in the transaction of the change
-- where that is one of this file. The id is the time in Unix microseconds, and
-- one more where two fall together: it orders the rows and finds a span of time.
CREATE TABLE audit (
  id       INTEGER PRIMARY KEY,
  key_id   TEXT NOT NULL,
  key_name TEXT NOT NULL,
  request  TEXT NOT NULL, -- request id, as in the log
  service  TEXT NOT NULL, -- '' for what belongs to none
  action   TEXT NOT NULL,
  kind     TEXT NOT NULL, -- of what was changed
  name     TEXT NOT NULL, -- its id or name
  detail   TEXT           -- JSON
) STRICT;
