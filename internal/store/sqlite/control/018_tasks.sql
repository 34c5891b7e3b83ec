-- Tasks of operators, which act on all objects that match a filter.
CREATE TABLE tasks (
  id   TEXT PRIMARY KEY,
  body TEXT NOT NULL -- JSON: what it does, how far it is, and who started it
) STRICT, WITHOUT ROWID;
