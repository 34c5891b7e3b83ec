-- What messages cannot contain, so that a search reads only the others.
CREATE TABLE search_filters (
  content INTEGER PRIMARY KEY,
  version INTEGER NOT NULL,              -- of the rules by which it was made
  filter  BLOB NOT NULL                  -- in the format of package searchfilter
) STRICT;

-- Contents of messages whose filter is not made yet.
CREATE TABLE search_queue (
  content INTEGER PRIMARY KEY
) STRICT;
INSERT INTO search_queue (content) SELECT content FROM contents WHERE base = 0 AND uses > 0 AND length(structure) > 0;
