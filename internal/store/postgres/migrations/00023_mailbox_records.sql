-- What an account has besides mailboxes and messages, and when the properties of a mailbox changed.
-- +goose Up

ALTER TABLE mailboxes ADD COLUMN edited bigint NOT NULL DEFAULT 0;
COMMENT ON COLUMN mailboxes.edited IS 'ModSeq of its properties.';
UPDATE mailboxes SET edited = changed;

CREATE TABLE mailbox_records (
  account bigint   NOT NULL,
  record  bigint   NOT NULL,
  created bigint   NOT NULL,
  changed bigint   NOT NULL,
  kind    smallint NOT NULL,
  flags   smallint NOT NULL,
  body    text     NOT NULL,
  PRIMARY KEY (account, kind, record),
  UNIQUE (flags, kind, account, record)
) WITH (fillfactor = 80);
COMMENT ON TABLE mailbox_records IS 'What an account has besides mailboxes and messages.';
COMMENT ON COLUMN mailbox_records.record IS 'Unique, never used again.';
COMMENT ON COLUMN mailbox_records.created IS 'ModSeq.';
COMMENT ON COLUMN mailbox_records.changed IS 'ModSeq.';
COMMENT ON COLUMN mailbox_records.kind IS '1: identity, 2: submission, 3: push subscription.';
COMMENT ON COLUMN mailbox_records.flags IS 'Bits, 1: removed, 2: the server has work with it.';
COMMENT ON COLUMN mailbox_records.body IS 'JSON, empty of a removed one.';
ALTER TABLE mailbox_records ALTER COLUMN body SET STATISTICS 0;
