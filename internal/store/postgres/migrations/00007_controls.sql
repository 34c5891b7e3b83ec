-- Broadcasts that wait for approval, and their rates.
-- +goose Up

CREATE TABLE controls (
  day   date   NOT NULL REFERENCES days ON DELETE CASCADE,
  seq   bigint NOT NULL,
  at    bigint NOT NULL,
  name  text   COLLATE "C" NOT NULL,
  value text   NOT NULL,
  PRIMARY KEY (day, seq, name)
);
COMMENT ON TABLE controls IS 'What was said of a broadcast beside its switches.';
COMMENT ON COLUMN controls.name IS 'hold: it waits for approval; approved: it has it; rate: how fast it may leave.';
COMMENT ON COLUMN controls.value IS 'Why it waits; by whom it was approved; such as 100/s.';

CREATE OR REPLACE VIEW broadcast_progress AS
SELECT b.day,
       'evt-' || to_char(b.day, 'YYYYMMDD-') || to_hex(b.seq) AS event,
       b.service,
       b.topic,
       CASE WHEN c.seq IS NOT NULL AND s.state IS DISTINCT FROM 'cancelled' OR b.messages = 0 AND s.state IS NULL THEN 'completed'
            ELSE coalesce(s.state, CASE WHEN h.seq IS NOT NULL THEN 'held' ELSE 'running' END) END AS state,
       coalesce(s.reason, h.value) AS reason,
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
LEFT JOIN switches s ON s.day = b.day AND s.seq = b.seq AND s.channel = 0
LEFT JOIN controls h ON h.day = b.day AND h.seq = b.seq AND h.name = 'hold';
