-- Addresses are suppressed for other reasons than an erasure, too.
-- +goose Up

ALTER TABLE suppressions
  ADD COLUMN until bigint NOT NULL DEFAULT 0,
  ADD COLUMN source text NOT NULL DEFAULT '',
  ADD COLUMN address text NOT NULL DEFAULT '',
  ADD COLUMN tag bigint NOT NULL DEFAULT 0;
ALTER TABLE suppressions ALTER COLUMN address SET STATISTICS 0, ALTER COLUMN source SET STATISTICS 0;
COMMENT ON COLUMN suppressions.service IS 'Number of the service in config; 0: all services.';
COMMENT ON COLUMN suppressions.until IS 'Unix nanoseconds; 0: for good.';
COMMENT ON COLUMN suppressions.source IS 'Who says so: the host of a bounce, a file, a key.';
COMMENT ON COLUMN suppressions.address IS 'Empty: kept as a hash alone, after an erasure.';
COMMENT ON COLUMN suppressions.tag IS 'A short keyed hash that is quick to make; 0: not known.';
