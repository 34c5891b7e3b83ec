-- What services are to be told of subscriptions and suppressions.
-- +goose Up

CREATE TABLE news (
  id      bigint PRIMARY KEY,
  at      bigint NOT NULL,
  entries bigint NOT NULL,
  blob    bytea  NOT NULL
);
COMMENT ON TABLE news IS 'What services have asked to be told of and are not yet: changes of subscriptions and suppressions, gone when they are told.';
COMMENT ON COLUMN news.at IS 'Of the transaction, Unix nanoseconds.';
COMMENT ON COLUMN news.blob IS 'JSON: places and codes, nothing of persons.';
ALTER TABLE news ALTER COLUMN blob SET STATISTICS 0;

CREATE TABLE news_position (
  one     smallint PRIMARY KEY CHECK (one = 1),
  given   bigint   NOT NULL,
  planned bigint   NOT NULL
) WITH (fillfactor = 50);
COMMENT ON TABLE news_position IS 'The last id that was given out to news, and up to which they are being told.';
COMMENT ON COLUMN news_position.one IS 'As in SQLite, where the table has one row.';
