-- When a record was stored, so that old ones can be removed.
ALTER TABLE mailbox_records ADD COLUMN at INTEGER NOT NULL DEFAULT 0; -- 0: by a version that did not store it
CREATE INDEX mailbox_records_by_age ON mailbox_records (kind, at, account, record) WHERE flags = 0;
CREATE INDEX mailbox_records_by_change ON mailbox_records (account, kind, changed);
