-- Sessions of clients with workers, and the requests and responses of the durable ones.
CREATE TABLE sessions (
  number    INTEGER PRIMARY KEY,
  service   TEXT NOT NULL,
  worker    TEXT NOT NULL,
  kind      TEXT NOT NULL,          -- interactive or durable
  name      TEXT NOT NULL,
  state     TEXT NOT NULL,
  reason    TEXT NOT NULL,          -- why it ended
  opened_at INTEGER NOT NULL,       -- Unix nanoseconds
  ended_at  INTEGER NOT NULL,       -- 0: it is open
  epoch     INTEGER NOT NULL,       -- grows with each broker that takes the session over
  opened_by TEXT NOT NULL,          -- id of the key
  options   TEXT NOT NULL           -- JSON
) STRICT;
CREATE INDEX sessions_by_end ON sessions (ended_at, number);

-- The last number that a session was given.
CREATE TABLE session_numbers (
  one   INTEGER PRIMARY KEY CHECK (one = 1),
  given INTEGER NOT NULL
) STRICT;

CREATE TABLE session_clients (
  session   INTEGER NOT NULL,
  client    INTEGER NOT NULL,
  name      TEXT NOT NULL,
  requests  INTEGER NOT NULL,       -- number of the last one
  accepted  INTEGER NOT NULL,
  responses INTEGER NOT NULL,       -- number of the last one
  received  INTEGER NOT NULL,       -- number of the last response that the client has confirmed
  floor     INTEGER NOT NULL,       -- all requests up to here are answered
  flags     INTEGER NOT NULL,       -- 1: ended, 2: some requests have ids
  PRIMARY KEY (session, client)
) STRICT, WITHOUT ROWID;

-- Groups of requests, responses and marks. The rows are large, so they are appended to a table of their own order, and the
-- key is an index beside it.
CREATE TABLE session_log (
  session INTEGER NOT NULL,
  client  INTEGER NOT NULL,
  kind    INTEGER NOT NULL,         -- 1: requests, 2: responses, 3: started, 4: sent again, 5: traces
  first   INTEGER NOT NULL,         -- number of the first record
  count   INTEGER NOT NULL,
  high    INTEGER NOT NULL,         -- the highest number of a request
  data    BLOB NOT NULL,            -- the records in the format of the session protocol
  PRIMARY KEY (session, client, kind, first)
) STRICT;
