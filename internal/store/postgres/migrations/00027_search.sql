-- What messages cannot contain, so that a search reads only the others.
-- +goose Up

CREATE TABLE search_filters (
  content bigint  PRIMARY KEY,
  version integer NOT NULL,
  filter  bytea   NOT NULL
);
COMMENT ON TABLE search_filters IS 'What messages cannot contain, so that a search reads only the others.';
COMMENT ON COLUMN search_filters.version IS 'Of the rules by which the filter was made.';
COMMENT ON COLUMN search_filters.filter IS 'In the format of package searchfilter.';
ALTER TABLE search_filters
  ALTER COLUMN filter SET STORAGE EXTERNAL,
  ALTER COLUMN filter SET STATISTICS 0;

CREATE TABLE search_queue (
  content bigint PRIMARY KEY
);
COMMENT ON TABLE search_queue IS 'Contents of messages whose filter is not made yet.';
INSERT INTO search_queue (content) SELECT content FROM contents WHERE base = 0 AND uses > 0 AND length(structure) > 0;
