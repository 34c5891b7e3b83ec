-- Sessions of clients with workers, and the requests and responses of the durable ones.
-- +goose Up

CREATE TABLE sessions (
  number    bigint PRIMARY KEY,
  opened_at bigint NOT NULL,
  ended_at  bigint NOT NULL,
  epoch     bigint NOT NULL,
  service   text   NOT NULL,
  worker    text   NOT NULL,
  kind      text   NOT NULL,
  name      text   NOT NULL,
  state     text   NOT NULL,
  reason    text   NOT NULL,
  opened_by text   NOT NULL,
  options   text   NOT NULL,
  UNIQUE (ended_at, number)
);
COMMENT ON TABLE sessions IS 'Sessions of clients with workers; rows go some time after the end of the session.';
COMMENT ON COLUMN sessions.kind IS 'interactive or durable.';
COMMENT ON COLUMN sessions.opened_at IS 'Unix nanoseconds.';
COMMENT ON COLUMN sessions.ended_at IS 'Unix nanoseconds, 0: it is open.';
COMMENT ON COLUMN sessions.epoch IS 'Grows with each broker that takes the session over.';
COMMENT ON COLUMN sessions.opened_by IS 'Id of the key.';
COMMENT ON COLUMN sessions.options IS 'JSON.';
ALTER TABLE sessions
  ALTER COLUMN name SET STATISTICS 0,
  ALTER COLUMN reason SET STATISTICS 0,
  ALTER COLUMN options SET STATISTICS 0;

CREATE TABLE session_numbers (
  one   smallint PRIMARY KEY CHECK (one = 1),
  given bigint   NOT NULL
) WITH (fillfactor = 50);
COMMENT ON TABLE session_numbers IS 'The last number that a session was given.';
COMMENT ON COLUMN session_numbers.one IS 'As in SQLite, where the table has one row.';

CREATE TABLE session_clients (
  session   bigint   NOT NULL,
  requests  bigint   NOT NULL,
  accepted  bigint   NOT NULL,
  responses bigint   NOT NULL,
  received  bigint   NOT NULL,
  floor     bigint   NOT NULL,
  client    integer  NOT NULL,
  flags     smallint NOT NULL,
  name      text     NOT NULL,
  PRIMARY KEY (session, client)
) WITH (fillfactor = 50);
COMMENT ON TABLE session_clients IS 'Clients of durable sessions. Requests and responses are the numbers of the last ones.';
COMMENT ON COLUMN session_clients.received IS 'Number of the last response that the client has confirmed.';
COMMENT ON COLUMN session_clients.floor IS 'All requests up to here are answered.';
COMMENT ON COLUMN session_clients.flags IS 'Bits, 1: ended, 2: some requests have ids.';
ALTER TABLE session_clients ALTER COLUMN name SET STATISTICS 0;

-- Groups are kept uncompressed: to compress them would cost more than to write them.
CREATE TABLE session_log (
  session bigint   NOT NULL,
  first   bigint   NOT NULL,
  high    bigint   NOT NULL,
  client  integer  NOT NULL,
  count   integer  NOT NULL,
  kind    smallint NOT NULL,
  data    bytea    NOT NULL,
  PRIMARY KEY (session, client, kind, first)
);
COMMENT ON TABLE session_log IS 'Groups of requests and responses of durable sessions, and marks of requests.';
COMMENT ON COLUMN session_log.kind IS '1: requests, 2: responses, 3: started, 4: sent again, 5: traces.';
COMMENT ON COLUMN session_log.first IS 'Number of the first record.';
COMMENT ON COLUMN session_log.high IS 'The highest number of a request.';
COMMENT ON COLUMN session_log.data IS 'The records in the format of the session protocol.';
ALTER TABLE session_log
  ALTER COLUMN data SET STORAGE EXTERNAL,
  ALTER COLUMN data SET STATISTICS 0;
