-- When a record was stored, so that old ones can be removed.
-- +goose NO TRANSACTION
-- +goose Up

ALTER TABLE mailbox_records ADD COLUMN IF NOT EXISTS at bigint NOT NULL DEFAULT 0;
COMMENT ON COLUMN mailbox_records.at IS 'When it was stored, 0: by a version that did not store it.';
CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS mailbox_records_by_age ON mailbox_records (kind, flags, at, account, record);
CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS mailbox_records_by_change ON mailbox_records (account, kind, changed, record);
