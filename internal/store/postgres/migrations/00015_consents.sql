-- What somebody agreed to, and when.
-- +goose Up

CREATE TABLE consents (
  subscription bigint NOT NULL,
  at           bigint NOT NULL,
  body         text NOT NULL,
  PRIMARY KEY (subscription, at)
);
COMMENT ON TABLE consents IS 'What somebody agreed to: rows are added, and go with the person alone.';
COMMENT ON COLUMN consents.at IS 'Unix nanoseconds.';
COMMENT ON COLUMN consents.body IS 'JSON.';
ALTER TABLE consents
  ALTER COLUMN body SET STATISTICS 0;
