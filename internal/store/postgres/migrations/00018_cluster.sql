-- Nodes of a cluster and what they share.
-- +goose Up

CREATE TABLE leases (
  name  text PRIMARY KEY,
  node  text NOT NULL,
  epoch bigint NOT NULL,
  until timestamptz NOT NULL
) WITH (fillfactor = 50);
COMMENT ON TABLE leases IS 'Duties that one node has at a time. Times are those of the clock of the database.';
COMMENT ON COLUMN leases.epoch IS 'Grows when another node, or the same one again, acquires the lease.';

CREATE TABLE nodes (
  name     text PRIMARY KEY,
  instance bigint NOT NULL,
  url      text NOT NULL,
  version  text NOT NULL,
  started  timestamptz NOT NULL,
  seen     timestamptz NOT NULL,
  skew     bigint NOT NULL
) WITH (fillfactor = 50);
COMMENT ON TABLE nodes IS 'The nodes of the cluster, those that have stopped included.';
COMMENT ON COLUMN nodes.instance IS 'Random number of the process.';
COMMENT ON COLUMN nodes.skew IS 'Difference of the clock of the node to that of the database, in nanoseconds.';

CREATE TABLE server_keys (
  name   text PRIMARY KEY,
  sealed bytea NOT NULL
);
COMMENT ON TABLE server_keys IS 'The keys that all nodes use, encrypted with the cluster key.';
COMMENT ON COLUMN server_keys.sealed IS 'AES-256-GCM: nonce, then the encrypted key; the name is authenticated with it.';
