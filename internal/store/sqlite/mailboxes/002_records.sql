-- ModSeq of the last change of a mailbox's properties; its counts can have changed later.
ALTER TABLE mailboxes ADD COLUMN edited INTEGER NOT NULL DEFAULT 0;
UPDATE mailboxes SET edited = changed;

-- What an account has besides mailboxes and messages.
CREATE TABLE mailbox_records (
  account INTEGER NOT NULL,
  kind    INTEGER NOT NULL,              -- 1: identity, 2: submission, 3: push subscription
  record  INTEGER NOT NULL,              -- unique, never used again
  created INTEGER NOT NULL,              -- ModSeq
  changed INTEGER NOT NULL,              -- ModSeq
  flags   INTEGER NOT NULL,              -- 1: removed, 2: the server has work with it
  body    TEXT NOT NULL,                 -- JSON, '' of a removed one
  PRIMARY KEY (account, kind, record)
) STRICT, WITHOUT ROWID;
CREATE INDEX mailbox_records_with_work ON mailbox_records (kind, account, record) WHERE flags = 2;
