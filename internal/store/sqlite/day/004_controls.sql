-- What was said of a broadcast beside its switches: that it waits for approval
-- (hold: why), that it has it (approved: by whom), how fast it may leave (rate:
-- such as 100/s).
CREATE TABLE controls (
  seq   INTEGER NOT NULL,
  name  TEXT NOT NULL,
  value TEXT NOT NULL,
  at    INTEGER NOT NULL,
  PRIMARY KEY (seq, name)
) STRICT, WITHOUT ROWID;
