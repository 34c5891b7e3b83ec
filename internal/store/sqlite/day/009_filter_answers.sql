-- The answers of filters, the workers that remove members of manifests. A row has
-- those of one request for members of one manifest, from the first to the last.
CREATE TABLE filter_answers (
  manifest INTEGER NOT NULL,
  first    INTEGER NOT NULL,
  last     INTEGER NOT NULL,
  answers  BLOB NOT NULL,
  PRIMARY KEY (manifest, first)
) STRICT, WITHOUT ROWID;
