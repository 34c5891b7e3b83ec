-- The files that go with mails of templates, which name them by their sum: each is
-- kept once, whatever has it.
CREATE TABLE template_files (
  sum     BLOB PRIMARY KEY,  -- SHA-256
  content BLOB NOT NULL
) STRICT;
