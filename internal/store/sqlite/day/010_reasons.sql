-- Why deliveries of a completed broadcast will not reach their recipients, counted
-- by state and reason, as JSON; '' if all were accepted, or the broadcast was
-- completed before reasons were counted.
ALTER TABLE completions ADD COLUMN reasons TEXT NOT NULL DEFAULT '';
-- Deliveries that will not reach their recipients are listed by state. Accepted
-- ones, which are most, are not in it.
CREATE INDEX attempts_unsent ON attempts (state, manifest, position) WHERE state > 3;
