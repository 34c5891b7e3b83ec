-- Counters by name. change_seq goes up by one with each transaction that
-- changes subscriptions.
CREATE TABLE meta (
  name  TEXT NOT NULL PRIMARY KEY,
  value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO meta (name, value) VALUES ('change_seq', 0);

-- Services, channels, topics, templates (every version), keys and switches:
-- few, and read as a whole at start. A number is given once for each kind; a
-- row that is deleted keeps its own.
CREATE TABLE config (
  kind    TEXT NOT NULL,
  number  INTEGER NOT NULL,
  service INTEGER NOT NULL, -- number of the service, 0 for none
  name    TEXT NOT NULL,
  body    TEXT NOT NULL,    -- JSON
  deleted INTEGER NOT NULL,
  PRIMARY KEY (kind, number)
) STRICT, WITHOUT ROWID;

-- Each distinct text of a filter, once.
CREATE TABLE filters (
  number INTEGER PRIMARY KEY,
  text   TEXT NOT NULL
) STRICT;

-- The key of the two large tables is the place: partition in the upper six bits,
-- ascending number in the lower 26. A partition is therefore one run of rows. There is
-- no other index: what finds a row by address or id lies in memory.
CREATE TABLE subscribers (
  place      INTEGER PRIMARY KEY,
  service    INTEGER NOT NULL,
  kind       INTEGER NOT NULL, -- of the address
  address    TEXT NOT NULL,
  id         TEXT,             -- chosen by the client
  locale     TEXT,
  time_zone  TEXT,
  attributes TEXT              -- JSON
) STRICT;

CREATE TABLE subscriptions (
  place       INTEGER PRIMARY KEY,
  subscriber  INTEGER NOT NULL,
  topic       INTEGER NOT NULL,
  channel     INTEGER NOT NULL,
  created_at  INTEGER NOT NULL, -- Unix nanoseconds
  created_seq INTEGER NOT NULL,
  filter      INTEGER,
  rule        INTEGER,          -- numbered within the topic
  id          TEXT,             -- chosen by the client
  params      TEXT,             -- JSON, canonical
  data        TEXT,             -- JSON
  ended_at    INTEGER,          -- NULL: active
  ended_seq   INTEGER,
  reason      TEXT
) STRICT;
