-- The files that go with messages of this day to people who are named. Each is kept
-- once, encrypted: only an event that has it knows the key.
CREATE TABLE message_files (
  id      BLOB PRIMARY KEY,
  content BLOB NOT NULL
) STRICT;
