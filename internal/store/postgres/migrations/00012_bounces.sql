-- What came back of addresses.
-- +goose Up

CREATE TABLE bounces (
  service  integer  NOT NULL,
  kind     smallint NOT NULL,
  hash     bytea    NOT NULL,
  day      integer  NOT NULL,
  manifest bigint   NOT NULL,
  position bigint   NOT NULL,
  why      smallint NOT NULL,
  at       bigint   NOT NULL,
  PRIMARY KEY (service, kind, hash, day, manifest, position, why)
);
COMMENT ON TABLE bounces IS 'What came back of an address and counts for giving it up. A row is a message, so that one which comes back twice counts once.';
COMMENT ON COLUMN bounces.kind IS 'Of the address.';
COMMENT ON COLUMN bounces.hash IS 'HMAC-SHA-256 of the address, as in suppressions.';
COMMENT ON COLUMN bounces.day IS 'Of the delivery, with manifest and position.';
COMMENT ON COLUMN bounces.why IS '1 unknown, 2 hard, 3 soft, 4 full, 5 complaint.';
COMMENT ON COLUMN bounces.at IS 'Unix nanoseconds.';
