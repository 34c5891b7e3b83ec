-- Values of each minute, which the console plots.
-- +goose Up

CREATE TABLE minute_values (
  at   bigint PRIMARY KEY,
  body text   NOT NULL
);
COMMENT ON TABLE minute_values IS 'Values of each minute, which the console plots.';
COMMENT ON COLUMN minute_values.at IS 'Start of the minute, Unix seconds.';
COMMENT ON COLUMN minute_values.body IS 'JSON: counts and amounts, nothing of persons.';
ALTER TABLE minute_values ALTER COLUMN body SET STATISTICS 0;
