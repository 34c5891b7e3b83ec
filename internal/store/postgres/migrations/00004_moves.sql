-- What a move between databases has made of this one.
-- +goose Up

CREATE TABLE moves (
  one   integer PRIMARY KEY CHECK (one = 1),
  at    bigint NOT NULL,
  state text   NOT NULL,
  move  text   NOT NULL,
  peer  text   NOT NULL
);
COMMENT ON TABLE moves IS 'What a move between databases has made of this one: filling, full, here or left; no row if none has.';
COMMENT ON COLUMN moves.at IS 'Unix nanoseconds.';
COMMENT ON COLUMN moves.move IS 'The same in both databases.';
COMMENT ON COLUMN moves.peer IS 'The other database.';
