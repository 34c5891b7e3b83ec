-- The answers of filters, the workers that remove members of manifests.
-- +goose Up

CREATE TABLE filter_answers (
  day      date   NOT NULL REFERENCES days ON DELETE CASCADE,
  manifest bigint NOT NULL,
  first    bigint NOT NULL,
  last     bigint NOT NULL,
  answers  bytea  NOT NULL,
  PRIMARY KEY (day, manifest, first)
);
COMMENT ON TABLE filter_answers IS 'The answers of filters, the workers that remove members of manifests: a row for each group of members of a manifest.';
COMMENT ON COLUMN filter_answers.first IS 'Position of the first member with an answer.';
COMMENT ON COLUMN filter_answers.last IS 'Position of the last one.';
COMMENT ON COLUMN filter_answers.answers IS 'A varint for each member: the difference to the position before, x 4, + 0: keep, 1: remove, 2: failed.';
ALTER TABLE filter_answers ALTER COLUMN answers SET STORAGE EXTERNAL, ALTER COLUMN answers SET STATISTICS 0;
