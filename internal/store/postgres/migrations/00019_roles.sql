-- What the nodes of a cluster do.
-- +goose Up

ALTER TABLE nodes ADD COLUMN roles text NOT NULL DEFAULT 'all';
COMMENT ON COLUMN nodes.roles IS 'The setting roles, separated by commas.';
