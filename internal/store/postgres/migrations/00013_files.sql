-- Files that go with mails.
-- +goose Up

CREATE TABLE template_files (
  sum     bytea PRIMARY KEY,
  content bytea NOT NULL
);
COMMENT ON TABLE template_files IS 'The files that go with mails of templates, which name them by their sum (in the body of config): each is kept once.';
COMMENT ON COLUMN template_files.sum IS 'SHA-256 of the content.';

CREATE TABLE message_files (
  day     date  NOT NULL REFERENCES days ON DELETE CASCADE,
  id      bytea NOT NULL,
  content bytea NOT NULL,
  PRIMARY KEY (day, id)
);
COMMENT ON TABLE message_files IS 'The files that go with messages of a day to people who are named: each is kept once.';
COMMENT ON COLUMN message_files.content IS 'Encrypted: only an event that has the file knows the key.';

-- Most are pressed already; and no values of persons in what the planner knows.
ALTER TABLE template_files
  ALTER COLUMN content SET STORAGE EXTERNAL,
  ALTER COLUMN content SET STATISTICS 0;
ALTER TABLE message_files
  ALTER COLUMN content SET STORAGE EXTERNAL,
  ALTER COLUMN content SET STATISTICS 0;
