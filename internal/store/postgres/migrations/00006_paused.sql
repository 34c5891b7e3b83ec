-- The last pause of a subscription.
-- +goose Up

ALTER TABLE subscriptions
  ADD COLUMN paused_at bigint,
  ADD COLUMN paused_seq bigint,
  ADD COLUMN resumed_seq bigint;
COMMENT ON COLUMN subscriptions.paused_at IS 'Of the last pause, Unix nanoseconds; NULL: it was never paused.';
COMMENT ON COLUMN subscriptions.paused_seq IS 'change_seq of the transaction that paused it.';
COMMENT ON COLUMN subscriptions.resumed_seq IS 'change_seq of the transaction that resumed it; NULL after a pause: it is paused, or has ended.';
