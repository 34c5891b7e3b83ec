-- When messages of a subscription are due.
-- +goose Up

ALTER TABLE subscriptions
  ADD COLUMN slot integer,
  ADD COLUMN was text;
COMMENT ON COLUMN subscriptions.slot IS 'Number of a cadence in a time zone, of kind slot in config; NULL: at once.';
COMMENT ON COLUMN subscriptions.was IS 'JSON: the slots before, of which what waits has not been carried over.';
