-- name: freeze
INSERT INTO broadcasts (seq, service, topic, posted, matched, messages, kept_at, matched_at, frozen_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (seq) DO NOTHING RETURNING seq
-- The last of some ids, which are given out by this and never again.
-- name: frozen_next
UPDATE counters SET frozen = frozen + ? RETURNING frozen
-- name: frozen_insert
INSERT INTO frozen (id, seq) VALUES (?, ?)
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
ON CONFLICT (manifest, position, attempt) DO NOTHING
-- The "+ 0" below keeps SQLite from planning by the bound value (STAT4), which
-- would prepare the statement anew for each call.
-- name: latest
SELECT position, attempt, state FROM attempts WHERE manifest = ? AND position >= ? + 0 AND position < ? + 0 ORDER BY position, attempt
-- name: attempts
SELECT position, attempt, state, code, at, next_at, text, relay, address FROM attempts
WHERE manifest = ? AND position >= ? + 0 AND position < ? + 0 ORDER BY position, attempt
-- name: unsent
SELECT DISTINCT position FROM attempts INDEXED BY attempts_unsent WHERE state = ? + 0 AND state > 3 AND manifest = ? AND position >= ? + 0 AND position < ? + 0 ORDER BY position LIMIT ? + 0
-- name: complete
INSERT INTO completions (seq, counts, reasons, first_at, last_at, completed_at) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (seq) DO UPDATE SET counts = excluded.counts, reasons = excluded.reasons, first_at = excluded.first_at, last_at = excluded.last_at, completed_at = excluded.completed_at
-- name: completion_counts
SELECT counts, reasons FROM completions WHERE seq = ?
-- name: completion_correct
UPDATE completions SET counts = ?, reasons = ? WHERE seq = ?
-- name: last_completion
SELECT coalesce(max(completed_at), 0) FROM completions
-- name: open_broadcasts
SELECT seq, messages FROM broadcasts WHERE messages > 0 AND seq NOT IN (SELECT seq FROM completions) ORDER BY seq
-- name: open_attempts
SELECT manifest, position, state, at, code, text FROM attempts WHERE manifest >= ? AND manifest < ? ORDER BY manifest, position, attempt
-- name: event_range
SELECT (SELECT coalesce(min(seq), 0) FROM broadcasts), (SELECT coalesce(max(seq), 0) FROM broadcasts)
-- name: highest
SELECT coalesce(max(seq), 0) FROM broadcasts
-- name: broadcast
SELECT b.seq, b.posted, b.matched, b.messages, b.kept_at, b.matched_at, b.frozen_at,
       c.counts, c.first_at, c.last_at, c.completed_at, s.state, s.reason, h.value, a.value, r.value, c.reasons, b.service, b.topic
FROM broadcasts b LEFT JOIN completions c ON c.seq = b.seq LEFT JOIN switches s ON s.seq = b.seq AND s.channel = 0
LEFT JOIN controls h ON h.seq = b.seq AND h.name = 'hold' LEFT JOIN controls a ON a.seq = b.seq AND a.name = 'approved'
LEFT JOIN controls r ON r.seq = b.seq AND r.name = 'rate'
WHERE b.seq = ?
-- name: broadcasts
SELECT b.seq, b.posted, b.matched, b.messages, b.kept_at, b.matched_at, b.frozen_at,
       c.counts, c.first_at, c.last_at, c.completed_at, s.state, s.reason, h.value, a.value, r.value, c.reasons, b.service, b.topic
FROM broadcasts b LEFT JOIN completions c ON c.seq = b.seq LEFT JOIN switches s ON s.seq = b.seq AND s.channel = 0
LEFT JOIN controls h ON h.seq = b.seq AND h.name = 'hold' LEFT JOIN controls a ON a.seq = b.seq AND a.name = 'approved'
LEFT JOIN controls r ON r.seq = b.seq AND r.name = 'rate'
WHERE b.seq >= ?1 AND b.seq < ?2 AND (?3 = '' OR b.service = ?3) ORDER BY b.seq DESC LIMIT ?4 + 0
-- name: switch
INSERT INTO switches (seq, channel, state, reason, at) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (seq, channel) DO UPDATE SET state = excluded.state, reason = excluded.reason, at = excluded.at
-- name: unswitch
DELETE FROM switches WHERE seq = ? AND channel = ?
-- name: switches
SELECT seq, channel, state, reason, at FROM switches ORDER BY seq, channel
-- name: control
INSERT INTO controls (seq, name, value, at) VALUES (?, ?, ?, ?)
ON CONFLICT (seq, name) DO UPDATE SET value = excluded.value, at = excluded.at
-- name: uncontrol
DELETE FROM controls WHERE seq = ? AND name = ?
-- name: controls
SELECT seq, name, value, at FROM controls ORDER BY seq, name
-- name: due_insert
INSERT INTO due (due_at, manifest, first, channel, lane, attempt, positions, why, destination) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (due_at, manifest, first, attempt) DO NOTHING
-- name: due
SELECT due_at, manifest, first, channel, lane, attempt, positions, why, destination FROM due WHERE due_at <= ? ORDER BY due_at, manifest, first, attempt LIMIT ? + 0
-- name: due_next
SELECT min(due_at) FROM due
-- name: due_delete
DELETE FROM due WHERE due_at = ? AND manifest = ? AND first = ? AND attempt = ?
-- name: due_hasten
INSERT INTO due (due_at, manifest, first, channel, lane, attempt, positions)
SELECT 0, manifest, first, channel, lane, attempt, positions FROM due WHERE manifest >= ? AND manifest < ? AND due_at > 0
ON CONFLICT (due_at, manifest, first, attempt) DO NOTHING
-- name: due_hastened
DELETE FROM due WHERE manifest >= ? AND manifest < ? AND due_at > 0
-- name: due_hasten_destination
INSERT INTO due (due_at, manifest, first, channel, lane, attempt, positions)
SELECT 0, manifest, first, channel, lane, attempt, positions FROM due WHERE channel = ? AND destination = ? AND why > 0 AND due_at > 0
ON CONFLICT (due_at, manifest, first, attempt) DO NOTHING
-- name: due_hastened_destination
DELETE FROM due WHERE channel = ? AND destination = ? AND why > 0 AND due_at > 0
-- name: due_destinations
SELECT destination, count(*), min(due_at) FROM due WHERE channel = ? AND destination > ? AND why > 0 GROUP BY destination
-- name: due_waits
SELECT first, due_at, why, destination FROM due WHERE manifest = ? AND first >= ? AND first < ? AND why > 0
-- name: due_waits_of_event
SELECT why, count(*), min(due_at), max(due_at) FROM due WHERE manifest >= ? AND manifest < ? AND why > 0 GROUP BY why
-- name: held_next
UPDATE counters SET held = held + ? RETURNING held
-- name: hold
INSERT INTO held (id, batch) VALUES (?, ?)
-- name: held
SELECT id, batch FROM held ORDER BY id
-- name: held_delete
DELETE FROM held WHERE id = ?
-- name: held_clear
DELETE FROM held
-- name: parked_next
UPDATE counters SET parked = parked + ? RETURNING parked
-- name: park
INSERT INTO parked (id, kind, seq, reason, failures, members, at, payload) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
-- name: parked
SELECT id, kind, seq, reason, failures, members, at, payload FROM parked ORDER BY id
-- name: parked_delete
DELETE FROM parked WHERE id = ?
-- name: history_insert
INSERT INTO history (kind, segment, first, pairs) VALUES (?, ?, ?, ?) ON CONFLICT (kind, segment, first) DO UPDATE SET pairs = excluded.pairs
-- The one block of a run that may have a key.
-- name: history_block
SELECT pairs FROM history WHERE kind = ? AND segment = ? AND first <= ? ORDER BY first DESC LIMIT 1
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
SELECT f.id, f.seq, b.messages, b.posted FROM frozen f CROSS JOIN broadcasts b ON b.seq = f.seq WHERE f.id > ? ORDER BY f.id LIMIT ? + 0
-- name: behind
SELECT coalesce(max(id), 0) - ? FROM frozen
-- name: attempts_forget
UPDATE attempts SET address = '', text = '' WHERE manifest = ? AND position = ?
-- name: posted_replace
UPDATE broadcasts SET posted = ?2 WHERE seq = ?1
-- name: parked_replace
UPDATE parked SET payload = ?2 WHERE id = ?1
-- name: advance
INSERT INTO advances (topic, key, series, seq) VALUES (?, ?, ?, ?)
ON CONFLICT (topic, key) DO UPDATE SET series = excluded.series, seq = excluded.seq WHERE excluded.seq > advances.seq
-- name: advances
SELECT a.topic, a.key, a.series, a.seq, b.posted FROM advances a JOIN broadcasts b ON b.seq = a.seq ORDER BY a.topic, a.key
-- name: advances_some
SELECT a.topic, a.key, a.series, a.seq, b.posted FROM advances a JOIN broadcasts b ON b.seq = a.seq ORDER BY a.topic, a.key LIMIT ? + 0
-- name: advances_of
SELECT a.topic, a.key, a.series, a.seq, b.posted FROM advances a JOIN broadcasts b ON b.seq = a.seq WHERE a.topic = ? AND a.key = ?
-- name: advance_delete
DELETE FROM advances WHERE topic = ? AND key = ? AND seq <= ?
-- Written with the event; what is carried over to another run is joined with what is there.
-- name: gathered_put
INSERT INTO gathered (slot, due_at, manifest, members, blob) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (slot, due_at, manifest) DO UPDATE SET members = excluded.members, blob = excluded.blob
-- name: gathered_delete
DELETE FROM gathered WHERE slot = ? AND due_at = ? AND manifest = ?
-- name: gathered
SELECT manifest, blob FROM gathered WHERE slot = ? AND due_at = ? ORDER BY manifest
-- name: gathered_one
SELECT manifest, blob FROM gathered WHERE slot = ? AND due_at = ? AND manifest = ?
-- name: gathered_of_event
SELECT slot, due_at, sum(members) FROM gathered WHERE manifest >= ? AND manifest < ? GROUP BY slot, due_at ORDER BY slot, due_at
-- name: gathered_waiting
SELECT p.slot, p.due_at, p.service, (SELECT coalesce(sum(g.members), 0) FROM gathered g WHERE g.slot = p.slot AND g.due_at = p.due_at)
FROM pending p ORDER BY p.slot, p.due_at
-- name: pending_put
INSERT INTO pending (slot, due_at, service) VALUES (?, ?, ?) ON CONFLICT (slot, due_at) DO NOTHING
-- name: pending
SELECT slot, due_at, service FROM pending ORDER BY slot, due_at
-- name: pending_delete
DELETE FROM pending WHERE slot = ? AND due_at = ?
-- name: run_insert
INSERT INTO runs (slot, due_at, seq) VALUES (?, ?, ?) ON CONFLICT (slot, due_at) DO NOTHING RETURNING seq
-- name: run
SELECT seq FROM runs WHERE slot = ? AND due_at = ?
-- name: runs_last
SELECT slot, max(due_at) FROM runs GROUP BY slot ORDER BY slot
-- name: items_insert
INSERT INTO items (seq, number, event, posted) VALUES (?, ?, ?, ?)
-- name: item
SELECT event, posted FROM items WHERE seq = ? AND number = ?
-- name: message_file_put
INSERT INTO message_files (id, content) VALUES (?, ?) ON CONFLICT (id) DO NOTHING
-- name: message_file
SELECT content FROM message_files WHERE id = ?
-- What services are to be told. The row of the position is there once one is.
-- name: notices_next
INSERT INTO notices_position (one, given, planned) VALUES (1, 1, 0) ON CONFLICT (one) DO UPDATE SET given = given + 1 RETURNING given
-- name: notices_insert
INSERT INTO notices (id, at, entries, blob) VALUES (?, ?, ?, ?)
-- name: notices_position
SELECT planned FROM notices_position
-- name: notices
SELECT id, at, entries, blob FROM notices ORDER BY id LIMIT ? + 0
-- name: notices_up_to
SELECT id, at, entries, blob FROM notices WHERE id <= ? ORDER BY id
-- name: notices_plan
UPDATE notices_position SET planned = ?
-- name: notices_told
DELETE FROM notices WHERE id <= ?
-- name: notices_waiting
SELECT coalesce(sum(entries), 0), coalesce(min(at), 0) FROM notices
-- name: filter_answers_insert
INSERT INTO filter_answers (manifest, first, last, answers) VALUES (?, ?, ?, ?) ON CONFLICT (manifest, first) DO NOTHING
-- name: filter_answers
SELECT answers, first, last FROM filter_answers WHERE manifest = ?1 AND first < ?3 AND last >= ?2 ORDER BY first
