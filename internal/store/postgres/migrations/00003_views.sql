-- For people with psql. The server reads none of these. Say which day: a view
-- of all days reads all of them.
-- +goose Up

CREATE TABLE delivery_states (
  state smallint PRIMARY KEY,
  name  text NOT NULL
);
COMMENT ON TABLE delivery_states IS 'Names of the states of a delivery.';
INSERT INTO delivery_states (state, name) VALUES
  (0, 'pending'), (1, 'deferred'), (2, 'accepted'), (3, 'delivered'), (4, 'failed'), (5, 'expired'), (6, 'cancelled'), (7, 'suppressed');

-- The newest attempt of each delivery. What nobody tried yet has none.
CREATE VIEW deliveries AS
SELECT l.day,
       'dlv-' || to_char(l.day, 'YYYYMMDD-') || to_hex(l.manifest) || '-' || to_hex(l.position) AS delivery,
       'evt-' || to_char(l.day, 'YYYYMMDD-') || to_hex(l.manifest / 64) AS event,
       l.address,
       s.name AS state,
       l.attempt,
       l.code,
       l.text,
       l.relay,
       to_timestamp(l.at / 1e9) AS at,
       to_timestamp(nullif(l.next_at, 0) / 1e9) AS next_at
FROM (SELECT DISTINCT ON (day, manifest, position) * FROM attempts ORDER BY day, manifest, position, attempt DESC) l
JOIN delivery_states s USING (state);
COMMENT ON VIEW deliveries IS 'Deliveries that were tried, each with its newest attempt: SELECT * FROM deliveries WHERE day = current_date AND address = ''ada@example.org''.';

CREATE VIEW broadcast_progress AS
SELECT b.day,
       'evt-' || to_char(b.day, 'YYYYMMDD-') || to_hex(b.seq) AS event,
       b.service,
       b.topic,
       CASE WHEN c.seq IS NOT NULL AND s.state IS DISTINCT FROM 'cancelled' OR b.messages = 0 AND s.state IS NULL THEN 'completed'
            ELSE coalesce(s.state, 'running') END AS state,
       s.reason,
       b.matched,
       b.messages,
       c.counts::jsonb AS counts,
       to_timestamp(b.kept_at / 1e9) AS kept_at,
       to_timestamp(b.frozen_at / 1e9) AS frozen_at,
       to_timestamp(nullif(c.first_at, 0) / 1e9) AS first_at,
       to_timestamp(nullif(c.last_at, 0) / 1e9) AS last_at,
       to_timestamp(nullif(c.completed_at, 0) / 1e9) AS completed_at
FROM broadcasts b
LEFT JOIN completions c ON c.day = b.day AND c.seq = b.seq
LEFT JOIN switches s ON s.day = b.day AND s.seq = b.seq AND s.channel = 0;
COMMENT ON VIEW broadcast_progress IS 'Broadcasts with their state and times. Counts are there when all is settled; before that the server has them.';
