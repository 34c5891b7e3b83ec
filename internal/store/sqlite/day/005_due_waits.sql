-- Why something waits that was not tried, and for which destination: 0 and none
-- of what waits for its next attempt.
ALTER TABLE due ADD COLUMN why INTEGER NOT NULL DEFAULT 0;
ALTER TABLE due ADD COLUMN destination TEXT NOT NULL DEFAULT '';
-- Retries, which are many and written by each group of outcomes, are not in it.
CREATE INDEX due_waits ON due (manifest, first, why) WHERE why > 0;
