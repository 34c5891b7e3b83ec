-- Sign-ins of people to the console.
CREATE TABLE sign_ins (
  id       TEXT PRIMARY KEY,
  hash     BLOB NOT NULL,    -- SHA-256 of the secret in the cookie
  key_id   TEXT NOT NULL,    -- key with which the person signed in
  began_at INTEGER NOT NULL, -- Unix seconds
  used_at  INTEGER NOT NULL, -- Unix seconds, at most some minutes late
  agent    TEXT NOT NULL,    -- User-Agent of the browser
  address  TEXT NOT NULL     -- IP address at the beginning
) STRICT, WITHOUT ROWID;
