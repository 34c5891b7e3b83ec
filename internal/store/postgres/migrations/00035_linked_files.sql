-- Files that a link in a message leads to.
-- +goose Up

CREATE TABLE linked_files (
  id         bytea  PRIMARY KEY,
  service    text   COLLATE "C" NOT NULL,
  recipient  bytea  NOT NULL,
  expires_at bigint NOT NULL,
  content    bytea  NOT NULL
);
COMMENT ON TABLE linked_files IS 'Files that a link in a message leads to.';
COMMENT ON COLUMN linked_files.recipient IS 'Keyed hash of the address.';
COMMENT ON COLUMN linked_files.expires_at IS 'Unix seconds.';
COMMENT ON COLUMN linked_files.content IS 'Encrypted: only the link has the key.';
ALTER TABLE linked_files
  ALTER COLUMN content SET STORAGE EXTERNAL,
  ALTER COLUMN content SET STATISTICS 0;
