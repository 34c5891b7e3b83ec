-- What services are to be told of what became of their deliveries.
-- +goose Up

CREATE TABLE notices (
  day     date    NOT NULL REFERENCES days ON DELETE CASCADE,
  id      bigint  NOT NULL,
  at      bigint  NOT NULL,
  entries bigint  NOT NULL,
  blob    bytea   NOT NULL,
  PRIMARY KEY (day, id)
);
COMMENT ON TABLE notices IS 'What services have asked to be told of and are not yet: a row for each group of outcomes, gone when they are told.';
COMMENT ON COLUMN notices.at IS 'Of the first outcome, Unix nanoseconds.';
COMMENT ON COLUMN notices.blob IS 'The outcomes: what is told beside what the record has.';
-- As in the other tables: no values of persons in what the planner knows.
ALTER TABLE notices ALTER COLUMN blob SET STATISTICS 0;

CREATE TABLE notices_position (
  day     date     PRIMARY KEY REFERENCES days ON DELETE CASCADE,
  one     smallint NOT NULL CHECK (one = 1),
  given   bigint   NOT NULL,
  planned bigint   NOT NULL
) WITH (fillfactor = 50);
COMMENT ON TABLE notices_position IS 'The last id that was given out to notices of the day, and up to which they are being told.';
COMMENT ON COLUMN notices_position.one IS 'As in SQLite, where the table has one row.';
