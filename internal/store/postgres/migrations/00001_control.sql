-- What people configure and subscribe to, and what the driver keeps of itself.
-- +goose Up

CREATE TABLE meta (
  name  text COLLATE "C" PRIMARY KEY,
  value bigint NOT NULL
);
COMMENT ON TABLE meta IS 'Counters by name. change_seq goes up by one with each transaction that changes subscriptions; epoch with each server that takes over; identity is that of this database, for good.';
INSERT INTO meta (name, value) VALUES
  ('change_seq', 0),
  ('epoch', 0),
  ('identity', ('x' || left(md5(gen_random_uuid()::text), 16))::bit(64)::bigint);

CREATE TABLE writers (
  slot  integer PRIMARY KEY,
  epoch bigint NOT NULL,
  token bigint NOT NULL
) WITH (fillfactor = 50);
COMMENT ON TABLE writers IS 'The last transaction of each writing connection of the server, for when the reply to its COMMIT is lost.';

CREATE TABLE config (
  kind    text COLLATE "C" NOT NULL,
  number  integer NOT NULL,
  service integer NOT NULL,
  deleted boolean NOT NULL,
  name    text    NOT NULL,
  body    text    NOT NULL,
  PRIMARY KEY (kind, number)
);
COMMENT ON TABLE config IS 'Services, channels, topics, templates (every version), keys and switches: few, and read as a whole at start.';
COMMENT ON COLUMN config.number IS 'Given once for each kind; a row that is deleted keeps its own.';
COMMENT ON COLUMN config.service IS 'Number of the service, 0 for none.';
COMMENT ON COLUMN config.body IS 'JSON.';

CREATE TABLE filters (
  number integer PRIMARY KEY,
  text   text NOT NULL
);
COMMENT ON TABLE filters IS 'Each distinct text of a filter, once.';

-- The key of the two large tables is the place: what finds a row by address or id
-- lies in memory. Pages keep a tenth free, so that a row that is changed
-- stays in its page and its key is not written again.
CREATE TABLE subscribers (
  place      bigint PRIMARY KEY,
  subscriber bigint,
  service    integer  NOT NULL,
  flags      integer,
  kind       smallint NOT NULL,
  address    text     NOT NULL,
  id         text,
  locale     text,
  time_zone  text,
  attributes text,
  parts      text
) WITH (fillfactor = 90);
COMMENT ON TABLE subscribers IS 'A subscriber and its first address; each further address has a row of its own.';
COMMENT ON COLUMN subscribers.place IS 'Partition in the upper six of 32 bits, ascending number in the lower 26: a partition is one run of rows.';
COMMENT ON COLUMN subscribers.subscriber IS 'Place of the row of the subscriber, where this one is a further address; NULL: this one.';
COMMENT ON COLUMN subscribers.flags IS 'Bits, see registry.Flags.';
COMMENT ON COLUMN subscribers.kind IS 'Of the address.';
COMMENT ON COLUMN subscribers.id IS 'Chosen by the client.';
COMMENT ON COLUMN subscribers.attributes IS 'JSON.';
COMMENT ON COLUMN subscribers.parts IS 'JSON: all rows of the subscriber, in order; NULL: this one alone.';

CREATE TABLE subscriptions (
  place       bigint PRIMARY KEY,
  subscriber  bigint  NOT NULL,
  created_at  bigint  NOT NULL,
  created_seq bigint  NOT NULL,
  topic       integer NOT NULL,
  channel     integer NOT NULL,
  filter      integer,
  rule        integer,
  ended_at    bigint,
  ended_seq   bigint,
  id          text,
  params      text,
  data        text,
  reason      text
) WITH (fillfactor = 90);
COMMENT ON TABLE subscriptions IS 'Subscriber x topic x condition x channel; ended ones stay.';
COMMENT ON COLUMN subscriptions.place IS 'As that of a subscriber, in the same partition; the public id is sub- and the place in hex.';
COMMENT ON COLUMN subscriptions.subscriber IS 'Place of the subscriber, or of the address that is meant.';
COMMENT ON COLUMN subscriptions.created_at IS 'Unix nanoseconds: to_timestamp(created_at / 1e9).';
COMMENT ON COLUMN subscriptions.created_seq IS 'change_seq of the transaction that made it.';
COMMENT ON COLUMN subscriptions.filter IS 'Number of the filter.';
COMMENT ON COLUMN subscriptions.rule IS 'Number of the rule within the topic.';
COMMENT ON COLUMN subscriptions.id IS 'Chosen by the client.';
COMMENT ON COLUMN subscriptions.params IS 'JSON, canonical.';
COMMENT ON COLUMN subscriptions.data IS 'JSON.';
COMMENT ON COLUMN subscriptions.ended_at IS 'Unix nanoseconds; NULL: active.';

CREATE TABLE audit (
  id       bigint PRIMARY KEY,
  key_id   text NOT NULL,
  key_name text NOT NULL,
  request  text NOT NULL,
  service  text NOT NULL,
  action   text NOT NULL,
  kind     text NOT NULL,
  name     text NOT NULL,
  detail   text
);
COMMENT ON TABLE audit IS 'Who changed what, one row for each change, in the transaction of the change.';
COMMENT ON COLUMN audit.id IS 'Unix microseconds, and one more where two fall together: to_timestamp(id / 1e6).';
COMMENT ON COLUMN audit.request IS 'Request id, as in the log.';
COMMENT ON COLUMN audit.service IS 'Empty for what belongs to none.';
COMMENT ON COLUMN audit.kind IS 'Of what was changed; name is its id or name.';
COMMENT ON COLUMN audit.detail IS 'JSON.';

CREATE TABLE suppressions (
  service integer  NOT NULL,
  kind    smallint NOT NULL,
  hash    bytea    NOT NULL,
  at      bigint   NOT NULL,
  reason  text     NOT NULL,
  PRIMARY KEY (service, kind, hash)
);
COMMENT ON TABLE suppressions IS 'Addresses that nobody may subscribe or write to.';
COMMENT ON COLUMN suppressions.hash IS 'HMAC-SHA-256 of the address under a key that lies in the data directory of the server.';
COMMENT ON COLUMN suppressions.at IS 'Unix nanoseconds.';

CREATE TABLE erasures (
  place bigint PRIMARY KEY,
  body  text NOT NULL
);
COMMENT ON TABLE erasures IS 'Erasures that were begun and are not over: a row goes with the end of its erasure.';
COMMENT ON COLUMN erasures.place IS 'Of the subscriber.';
COMMENT ON COLUMN erasures.body IS 'JSON.';

-- What the planner would keep of a column are values of it, for years: a person
-- who is erased would be found there. None of these is ever searched for.
ALTER TABLE filters
  ALTER COLUMN text SET STATISTICS 0;
ALTER TABLE subscribers
  ALTER COLUMN address SET STATISTICS 0,
  ALTER COLUMN id SET STATISTICS 0,
  ALTER COLUMN attributes SET STATISTICS 0,
  ALTER COLUMN parts SET STATISTICS 0;
ALTER TABLE subscriptions
  ALTER COLUMN id SET STATISTICS 0,
  ALTER COLUMN params SET STATISTICS 0,
  ALTER COLUMN data SET STATISTICS 0,
  ALTER COLUMN reason SET STATISTICS 0;
ALTER TABLE audit
  ALTER COLUMN name SET STATISTICS 0,
  ALTER COLUMN detail SET STATISTICS 0;
ALTER TABLE erasures
  ALTER COLUMN body SET STATISTICS 0;
