-- A subscriber may have several addresses. Its first is in its own row; each
-- further one has a row that names the first. All three stay NULL for a subscriber
-- with one address, which is nearly all of them.
ALTER TABLE subscribers ADD COLUMN subscriber INTEGER; -- place of the subscriber's own row; NULL: this one
ALTER TABLE subscribers ADD COLUMN parts TEXT;         -- JSON: all rows of the subscriber, in order
ALTER TABLE subscribers ADD COLUMN flags INTEGER;      -- see registry.Flags
