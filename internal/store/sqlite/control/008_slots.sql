-- When messages of a subscription are due: the number of a cadence in a time zone,
-- which config has; NULL: at once.
ALTER TABLE subscriptions ADD COLUMN slot INTEGER;
-- The slots before, of which what waits has not been carried over: a list in JSON.
ALTER TABLE subscriptions ADD COLUMN was TEXT;
