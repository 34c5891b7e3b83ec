-- Files that a link in a message leads to.
CREATE TABLE linked_files (
  id         BLOB PRIMARY KEY,
  service    TEXT NOT NULL,
  recipient  BLOB NOT NULL,     -- keyed hash of the address
  expires_at INTEGER NOT NULL,  -- Unix seconds
  content    BLOB NOT NULL      -- encrypted; only the link has the key
) STRICT;
