-- Messages to uploaded lists.
CREATE TABLE sends (
  id   TEXT PRIMARY KEY,
  body TEXT NOT NULL -- JSON
) STRICT, WITHOUT ROWID;

-- The rows of uploads. An upload that is not complete, or was replaced, has rows for a moment.
CREATE TABLE send_rows (
  send   TEXT NOT NULL,
  upload INTEGER NOT NULL,
  chunk  INTEGER NOT NULL,  -- from 0
  first  INTEGER NOT NULL,  -- number of its first row in the uploaded file
  count  INTEGER NOT NULL,  -- number of rows
  rows   BLOB NOT NULL,     -- compressed lines of JSON
  PRIMARY KEY (send, upload, chunk)
) STRICT;

-- The first errors of an upload.
CREATE TABLE send_errors (
  send   TEXT NOT NULL,
  upload INTEGER NOT NULL,
  page   INTEGER NOT NULL,  -- from 0
  errors BLOB NOT NULL,     -- compressed lines of JSON
  PRIMARY KEY (send, upload, page)
) STRICT;

-- The parts of a send that were sent.
CREATE TABLE send_parts (
  send    TEXT NOT NULL,
  part    INTEGER NOT NULL, -- chunk of the upload
  event   TEXT NOT NULL,    -- public id, or ''
  at      INTEGER NOT NULL, -- Unix nanoseconds
  outcome BLOB NOT NULL,    -- compressed JSON: row ids of the recipients, and the recipients that were refused
  PRIMARY KEY (send, part)
) STRICT;
