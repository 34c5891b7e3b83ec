-- Addresses are suppressed for other reasons than an erasure, too: by bounces,
-- complaints and operators. Service 0 is all services.
ALTER TABLE suppressions ADD COLUMN until INTEGER NOT NULL DEFAULT 0; -- Unix nanoseconds; 0: for good
ALTER TABLE suppressions ADD COLUMN source TEXT NOT NULL DEFAULT '';  -- who says so
ALTER TABLE suppressions ADD COLUMN address TEXT NOT NULL DEFAULT ''; -- '': kept as a hash alone, after an erasure
-- A short keyed hash, HighwayHash under a key of its own, that is quick to make; 0: not known.
ALTER TABLE suppressions ADD COLUMN tag INTEGER NOT NULL DEFAULT 0;
