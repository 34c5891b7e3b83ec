-- The last pause of a subscription; NULL: it was never paused. It is paused until
-- it is resumed or has ended.
ALTER TABLE subscriptions ADD COLUMN paused_at INTEGER;   -- Unix nanoseconds
ALTER TABLE subscriptions ADD COLUMN paused_seq INTEGER;
ALTER TABLE subscriptions ADD COLUMN resumed_seq INTEGER; -- NULL: not resumed
