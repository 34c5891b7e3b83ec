-- name: freeze
INSERT OR IGNORE INTO broadcasts (seq, service, topic, posted, matched, messages, kept_at, matched_at, frozen_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
-- name: frozen_insert
INSERT INTO frozen (seq) VALUES (?)
-- name: manifest_insert
INSERT INTO manifests (id, members) VALUES (?, ?)
-- name: manifest
SELECT members FROM manifests WHERE id = ?
-- name: manifests_of_event
SELECT id, members FROM manifests WHERE id >= ? AND id < ? ORDER BY id
-- name: manifest_of_partition
SELECT id, members FROM manifests WHERE id >= ? AND id <= ? ORDER BY id DESC LIMIT 1
-- One manifest of each event, the one that covers a partition; 64 is the number
-- of partitions.
-- name: manifests_behind
SELECT m.id, m.members FROM frozen f CROSS JOIN manifests m
WHERE f.id > ? AND m.id = (SELECT max(id) FROM manifests WHERE id BETWEEN f.seq * 64 AND f.seq * 64 + ?)
-- name: posted
SELECT posted FROM broadcasts WHERE seq = ?
-- name: attempts_insert
INSERT INTO attempts (manifest, position, attempt, state, code, at, next_at, text, relay, address) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
-- The "+ 0" below keeps SQLite from planning by the bound value (STAT4), which
-- would prepare the statement anew for each call.
-- name: latest
SELECT position, attempt, state FROM attempts WHERE manifest = ? AND position >= ? + 0 AND position < ? + 0 ORDER BY position, attempt
-- name: attempts
SELECT position, attempt, state, code, at, next_at, text, relay, address FROM attempts
WHERE manifest = ? AND position >= ? + 0 AND position < ? + 0 ORDER BY position, attempt
-- name: complete
INSERT OR REPLACE INTO completions (seq, counts, first_at, last_at, completed_at) VALUES (?, ?, ?, ?, ?)
-- name: open_broadcasts
SELECT seq, messages FROM broadcasts WHERE messages > 0 AND seq NOT IN (SELECT seq FROM completions) ORDER BY seq
-- name: open_attempts
SELECT manifest, position, attempt, state, at FROM attempts WHERE manifest >= ? AND manifest < ? ORDER BY manifest, position, attempt
-- name: highest
SELECT coalesce(max(seq), 0) FROM broadcasts
-- name: broadcast
SELECT b.seq, b.posted, b.matched, b.messages, b.kept_at, b.matched_at, b.frozen_at,
       c.counts, c.first_at, c.last_at, c.completed_at, s.state, s.reason
FROM broadcasts b LEFT JOIN completions c ON c.seq = b.seq LEFT JOIN switches s ON s.seq = b.seq AND s.channel = 0
WHERE b.seq = ?
-- name: broadcasts
SELECT b.seq, b.posted, b.matched, b.messages, b.kept_at, b.matched_at, b.frozen_at,
       c.counts, c.first_at, c.last_at, c.completed_at, s.state, s.reason
FROM broadcasts b LEFT JOIN completions c ON c.seq = b.seq LEFT JOIN switches s ON s.seq = b.seq AND s.channel = 0
WHERE b.seq < ? AND (? = '' OR b.service = ?) ORDER BY b.seq DESC
-- name: switch
INSERT OR REPLACE INTO switches (seq, channel, state, reason, at) VALUES (?, ?, ?, ?, ?)
-- name: unswitch
DELETE FROM switches WHERE seq = ? AND channel = ?
-- name: switches
SELECT seq, channel, state, reason, at FROM switches
-- name: due_insert
INSERT OR REPLACE INTO due (due_at, manifest, first, channel, lane, attempt, positions) VALUES (?, ?, ?, ?, ?, ?, ?)
-- name: due
SELECT due_at, manifest, first, channel, lane, attempt, positions FROM due WHERE due_at <= ? ORDER BY due_at, manifest, first LIMIT ?
-- name: due_next
SELECT min(due_at) FROM due
-- name: due_delete
DELETE FROM due WHERE due_at = ? AND manifest = ? AND first = ? AND attempt = ?
-- name: due_hasten
UPDATE OR REPLACE due SET due_at = 0 WHERE manifest >= ? AND manifest < ?
-- name: hold
INSERT INTO held (batch) VALUES (?)
-- name: held
SELECT id, batch FROM held ORDER BY id
-- name: held_delete
DELETE FROM held WHERE id = ?
-- name: held_clear
DELETE FROM held
-- name: park
INSERT INTO parked (kind, seq, reason, failures, members, at, payload) VALUES (?, ?, ?, ?, ?, ?, ?)
-- name: parked
SELECT id, kind, seq, reason, failures, members, at, payload FROM parked ORDER BY id
-- name: parked_delete
DELETE FROM parked WHERE id = ?
-- name: history_insert
INSERT OR REPLACE INTO history (kind, segment, first, pairs) VALUES (?, ?, ?, ?)
-- name: history_blocks
SELECT first, pairs FROM history WHERE kind = ? AND segment = ? AND first >=
  coalesce((SELECT max(first) FROM history WHERE kind = ? AND segment = ? AND first <= ?), 0)
ORDER BY first
-- name: history_next
SELECT first, pairs FROM history WHERE kind = ? AND segment = ? AND first > ? ORDER BY first LIMIT 1
-- The numbers of all runs that have blocks, each found by a look into the key.
-- name: history_segments
WITH RECURSIVE number (segment) AS (
  SELECT min(segment) FROM history WHERE kind = 0
  UNION ALL
  SELECT (SELECT min(segment) FROM history WHERE kind = 0 AND segment > number.segment) FROM number WHERE number.segment IS NOT NULL
) SELECT segment FROM number WHERE segment IS NOT NULL
-- name: history_delete
DELETE FROM history WHERE kind = ? AND segment = ?
-- name: history_runs
SELECT segment, pairs FROM history_runs ORDER BY segment
-- name: history_run_insert
INSERT INTO history_runs (segment, level, pairs) VALUES (?, ?, ?)
-- name: history_run_delete
DELETE FROM history_runs WHERE segment = ?
-- name: history_position
SELECT frozen FROM history_position
-- name: history_new
UPDATE history_position SET segment = segment + 1 RETURNING segment - 1
-- name: history_advance
UPDATE history_position SET frozen = ?
-- name: broadcasts_behind
SELECT f.id, f.seq, b.posted FROM frozen f CROSS JOIN broadcasts b ON b.seq = f.seq WHERE f.id > ? ORDER BY f.id LIMIT ?
-- name: behind
SELECT coalesce(max(id), 0) - ? FROM frozen
-- The bytes of the file itself, in order; for a copy of it.
-- name: pages
SELECT pgno, data FROM sqlite_dbpage
-- name: attempts_forget
UPDATE attempts SET address = '', text = '' WHERE manifest = ? AND position = ?
-- name: posted_replace
UPDATE broadcasts SET posted = ?2 WHERE seq = ?1
-- name: parked_replace
UPDATE parked SET payload = ?2 WHERE id = ?1
