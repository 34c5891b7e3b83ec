-- Tasks of operators, which act on all objects that match a filter.
-- +goose Up

CREATE TABLE tasks (
  id   text COLLATE "C" PRIMARY KEY,
  body text NOT NULL
);
COMMENT ON TABLE tasks IS 'Tasks of operators, which act on all objects that match a filter.';
COMMENT ON COLUMN tasks.body IS 'JSON: what it does, how far it is, and who started it.';
ALTER TABLE tasks ALTER COLUMN body SET STATISTICS 0;
