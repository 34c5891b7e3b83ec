-- The statements of a day. Names and arguments are those of SQLite. The driver
-- puts the day in the place of yyyymmdd: large tables are those of the day
-- alone, whose rows have the day by default; the small ones are shared.

-- name: freeze
INSERT INTO broadcasts_yyyymmdd (seq, service, topic, posted, matched, messages, kept_at, matched_at, frozen_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (seq) DO NOTHING RETURNING seq

-- The last of some ids, which are given out by this and never again. The row
-- stays locked until the end of the transaction, so that ids become visible in
-- their order.
-- name: frozen_next
UPDATE counters SET frozen = frozen + $1 WHERE day = 'yyyymmdd' RETURNING frozen

-- name: frozen_insert
INSERT INTO frozen_yyyymmdd (id, seq) VALUES ($1, $2)

-- name: manifest_insert
INSERT INTO manifests_yyyymmdd (id, members) VALUES ($1, $2)

-- name: manifest
SELECT members FROM manifests_yyyymmdd WHERE id = $1

-- name: manifests_of_event
SELECT id, members FROM manifests_yyyymmdd WHERE id >= $1 AND id < $2 ORDER BY id

-- name: manifest_of_partition
SELECT id, members FROM manifests_yyyymmdd WHERE id >= $1 AND id <= $2 ORDER BY id DESC LIMIT 1

-- One manifest of each event, the one that covers a partition; 64 is the number
-- of partitions.
-- name: manifests_behind
SELECT m.id, m.members FROM frozen_yyyymmdd f CROSS JOIN LATERAL (
  SELECT id, members FROM manifests_yyyymmdd WHERE id >= f.seq * 64 AND id <= f.seq * 64 + $2 ORDER BY id DESC LIMIT 1
) m WHERE f.id > $1

-- name: posted
SELECT posted FROM broadcasts_yyyymmdd WHERE seq = $1

-- name: attempts_insert
-- idempotent: by its key
INSERT INTO attempts_yyyymmdd (manifest, position, attempt, state, code, at, next_at, text, relay, address)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT (manifest, position, attempt) DO NOTHING

-- name: latest
SELECT position, attempt, state FROM attempts_yyyymmdd WHERE manifest = $1 AND position >= $2 AND position < $3 ORDER BY position, attempt

-- name: attempts
SELECT position, attempt, state, code, at, next_at, text, relay, address FROM attempts_yyyymmdd
WHERE manifest = $1 AND position >= $2 AND position < $3 ORDER BY position, attempt

-- name: unsent
SELECT DISTINCT position FROM attempts_yyyymmdd WHERE state = $1 AND state > 3 AND manifest = $2 AND position >= $3 AND position < $4 ORDER BY position LIMIT $5

-- name: complete
-- idempotent: by its key
INSERT INTO completions_yyyymmdd (seq, counts, reasons, first_at, last_at, completed_at) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (seq) DO UPDATE SET counts = excluded.counts, reasons = excluded.reasons, first_at = excluded.first_at, last_at = excluded.last_at, completed_at = excluded.completed_at

-- name: completion_counts
SELECT counts, reasons FROM completions_yyyymmdd WHERE seq = $1

-- name: completion_correct
-- idempotent: by its key
UPDATE completions_yyyymmdd SET counts = $1, reasons = $2 WHERE seq = $3

-- name: last_completion
SELECT coalesce(max(completed_at), 0) FROM completions_yyyymmdd

-- Both sides are read from their keys: messages is in that of broadcasts.
-- name: open_broadcasts
SELECT seq, messages FROM broadcasts_yyyymmdd b
WHERE messages > 0 AND NOT EXISTS (SELECT FROM completions_yyyymmdd c WHERE c.seq = b.seq) ORDER BY seq

-- name: open_attempts
SELECT manifest, position, state, at, code, text FROM attempts_yyyymmdd WHERE manifest >= $1 AND manifest < $2 ORDER BY manifest, position, attempt

-- name: event_range
SELECT (SELECT coalesce(min(seq), 0) FROM broadcasts_yyyymmdd), (SELECT coalesce(max(seq), 0) FROM broadcasts_yyyymmdd)

-- name: highest
SELECT coalesce(max(seq), 0) FROM broadcasts_yyyymmdd

-- name: broadcast
SELECT b.seq, b.posted, b.matched, b.messages, b.kept_at, b.matched_at, b.frozen_at,
       c.counts, c.first_at, c.last_at, c.completed_at, s.state, s.reason, h.value, a.value, r.value, c.reasons, b.service, b.topic
FROM broadcasts_yyyymmdd b LEFT JOIN completions_yyyymmdd c ON c.seq = b.seq
LEFT JOIN switches s ON s.day = 'yyyymmdd' AND s.seq = b.seq AND s.channel = 0
LEFT JOIN controls h ON h.day = 'yyyymmdd' AND h.seq = b.seq AND h.name = 'hold'
LEFT JOIN controls a ON a.day = 'yyyymmdd' AND a.seq = b.seq AND a.name = 'approved'
LEFT JOIN controls r ON r.day = 'yyyymmdd' AND r.seq = b.seq AND r.name = 'rate'
WHERE b.seq = $1

-- name: broadcasts
SELECT b.seq, b.posted, b.matched, b.messages, b.kept_at, b.matched_at, b.frozen_at,
       c.counts, c.first_at, c.last_at, c.completed_at, s.state, s.reason, h.value, a.value, r.value, c.reasons, b.service, b.topic
FROM broadcasts_yyyymmdd b LEFT JOIN completions_yyyymmdd c ON c.seq = b.seq
LEFT JOIN switches s ON s.day = 'yyyymmdd' AND s.seq = b.seq AND s.channel = 0
LEFT JOIN controls h ON h.day = 'yyyymmdd' AND h.seq = b.seq AND h.name = 'hold'
LEFT JOIN controls a ON a.day = 'yyyymmdd' AND a.seq = b.seq AND a.name = 'approved'
LEFT JOIN controls r ON r.day = 'yyyymmdd' AND r.seq = b.seq AND r.name = 'rate'
WHERE b.seq >= $1 AND b.seq < $2 AND ($3 = '' OR b.service = $3) ORDER BY b.seq DESC LIMIT $4

-- name: switch
-- idempotent: by its key
INSERT INTO switches (day, seq, channel, state, reason, at) VALUES ('yyyymmdd', $1, $2, $3, $4, $5)
ON CONFLICT (day, seq, channel) DO UPDATE SET state = excluded.state, reason = excluded.reason, at = excluded.at

-- name: unswitch
-- idempotent: by its key
DELETE FROM switches WHERE day = 'yyyymmdd' AND seq = $1 AND channel = $2

-- name: switches
SELECT seq, channel, state, reason, at FROM switches WHERE day = 'yyyymmdd' ORDER BY seq, channel

-- name: control
-- idempotent: by its key
INSERT INTO controls (day, seq, name, value, at) VALUES ('yyyymmdd', $1, $2, $3, $4)
ON CONFLICT (day, seq, name) DO UPDATE SET value = excluded.value, at = excluded.at

-- name: uncontrol
-- idempotent: by its key
DELETE FROM controls WHERE day = 'yyyymmdd' AND seq = $1 AND name = $2

-- name: controls
SELECT seq, name, value, at FROM controls WHERE day = 'yyyymmdd' ORDER BY seq, name

-- name: due_insert
-- idempotent: by its key
INSERT INTO due_yyyymmdd (due_at, manifest, first, channel, lane, attempt, positions, why, destination) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
ON CONFLICT (due_at, manifest, first, attempt) DO NOTHING

-- name: due
SELECT due_at, manifest, first, channel, lane, attempt, positions, why, destination FROM due_yyyymmdd
WHERE due_at <= $1 ORDER BY due_at, manifest, first, attempt LIMIT $2

-- name: due_next
SELECT min(due_at) FROM due_yyyymmdd

-- name: due_delete
-- idempotent: by its key
DELETE FROM due_yyyymmdd WHERE due_at = $1 AND manifest = $2 AND first = $3 AND attempt = $4

-- One statement: a row that is committed between two would be removed by the
-- second without having been copied by the first.
-- name: due_hasten
-- idempotent: what is hastened is found no more
WITH hastened AS (
  DELETE FROM due_yyyymmdd WHERE manifest >= $1 AND manifest < $2 AND due_at > 0 RETURNING manifest, first, channel, lane, attempt, positions
) INSERT INTO due_yyyymmdd (due_at, manifest, first, channel, lane, attempt, positions)
SELECT 0, manifest, first, channel, lane, attempt, positions FROM hastened ON CONFLICT (due_at, manifest, first, attempt) DO NOTHING

-- There is nothing left to do here.
-- name: due_hastened
-- idempotent: it does nothing
DELETE FROM due_yyyymmdd WHERE manifest >= $1 AND manifest < $2 AND false

-- name: due_hasten_destination
-- idempotent: what is hastened is found no more
WITH hastened AS (
  DELETE FROM due_yyyymmdd WHERE channel = $1 AND destination = $2 AND why > 0 AND due_at > 0 RETURNING manifest, first, channel, lane, attempt, positions
) INSERT INTO due_yyyymmdd (due_at, manifest, first, channel, lane, attempt, positions)
SELECT 0, manifest, first, channel, lane, attempt, positions FROM hastened ON CONFLICT (due_at, manifest, first, attempt) DO NOTHING

-- There is nothing left to do here.
-- name: due_hastened_destination
-- idempotent: it does nothing
DELETE FROM due_yyyymmdd WHERE channel = $1 AND destination = $2 AND false

-- name: due_destinations
SELECT destination, count(*), min(due_at) FROM due_yyyymmdd WHERE channel = $1 AND destination > $2 AND why > 0 GROUP BY destination

-- name: due_waits
SELECT first, due_at, why, destination FROM due_yyyymmdd WHERE manifest = $1 AND first >= $2 AND first < $3 AND why > 0

-- name: due_waits_of_event
SELECT why, count(*), min(due_at), max(due_at) FROM due_yyyymmdd WHERE manifest >= $1 AND manifest < $2 AND why > 0 GROUP BY why

-- name: held_next
UPDATE counters SET held = held + $1 WHERE day = 'yyyymmdd' RETURNING held

-- name: hold
INSERT INTO held (day, id, batch) VALUES ('yyyymmdd', $1, $2)

-- name: held
SELECT id, batch FROM held WHERE day = 'yyyymmdd' ORDER BY id

-- name: held_delete
-- idempotent: by its key
DELETE FROM held WHERE day = 'yyyymmdd' AND id = $1

-- name: held_clear
DELETE FROM held WHERE day = 'yyyymmdd'

-- name: parked_next
UPDATE counters SET parked = parked + $1 WHERE day = 'yyyymmdd' RETURNING parked

-- name: park
INSERT INTO parked (day, id, kind, seq, reason, failures, members, at, payload) VALUES ('yyyymmdd', $1, $2, $3, $4, $5, $6, $7, $8)

-- name: parked
SELECT id, kind, seq, reason, failures, members, at, payload FROM parked WHERE day = 'yyyymmdd' ORDER BY id

-- name: parked_delete
-- idempotent: by its key
DELETE FROM parked WHERE day = 'yyyymmdd' AND id = $1

-- name: parked_replace
-- idempotent: sets what is given
UPDATE parked SET payload = $2 WHERE day = 'yyyymmdd' AND id = $1

-- name: posted_replace
-- idempotent: sets what is given
UPDATE broadcasts_yyyymmdd SET posted = $2 WHERE seq = $1

-- name: attempts_forget
-- idempotent: sets what is given
UPDATE attempts_yyyymmdd SET address = '', text = '' WHERE manifest = $1 AND position = $2

-- name: history_insert
-- idempotent: by its key
INSERT INTO history_yyyymmdd (kind, segment, first, pairs) VALUES ($1, $2, $3, $4)
ON CONFLICT (kind, segment, first) DO UPDATE SET pairs = excluded.pairs

-- The one block of a run that may have a key.
-- name: history_block
SELECT pairs FROM history_yyyymmdd WHERE kind = $1 AND segment = $2 AND first <= $3 ORDER BY first DESC LIMIT 1

-- name: history_next
SELECT first, pairs FROM history_yyyymmdd WHERE kind = $1 AND segment = $2 AND first > $3 ORDER BY first LIMIT 1

-- The numbers of all runs that have blocks, each found by a look into the key.
-- name: history_segments
WITH RECURSIVE number (segment) AS (
  SELECT min(segment) FROM history_yyyymmdd WHERE kind = 0
  UNION ALL
  SELECT (SELECT min(segment) FROM history_yyyymmdd WHERE kind = 0 AND segment > number.segment) FROM number WHERE number.segment IS NOT NULL
) SELECT segment FROM number WHERE segment IS NOT NULL

-- name: history_delete
-- idempotent: by its key
DELETE FROM history_yyyymmdd WHERE kind = $1 AND segment = $2

-- name: history_runs
SELECT segment, pairs FROM history_runs WHERE day = 'yyyymmdd' ORDER BY segment

-- name: history_run_insert
INSERT INTO history_runs (day, segment, level, pairs) VALUES ('yyyymmdd', $1, $2, $3)

-- name: history_run_delete
-- idempotent: by its key
DELETE FROM history_runs WHERE day = 'yyyymmdd' AND segment = $1

-- name: history_position
SELECT frozen FROM history_position WHERE day = 'yyyymmdd'

-- name: history_new
UPDATE history_position SET segment = segment + 1 WHERE day = 'yyyymmdd' RETURNING segment - 1

-- name: history_advance
-- idempotent: sets what is given
UPDATE history_position SET frozen = $1 WHERE day = 'yyyymmdd'

-- name: broadcasts_behind
SELECT f.id, f.seq, b.messages, b.posted FROM frozen_yyyymmdd f JOIN broadcasts_yyyymmdd b ON b.seq = f.seq
WHERE f.id > $1 ORDER BY f.id LIMIT $2

-- name: behind
SELECT coalesce(max(id), 0) - $1 FROM frozen_yyyymmdd

-- name: advance
-- idempotent: the higher sequence stays
INSERT INTO advances (day, topic, key, series, seq) VALUES ('yyyymmdd', $1, $2, $3, $4)
ON CONFLICT (day, topic, key) DO UPDATE SET series = excluded.series, seq = excluded.seq WHERE excluded.seq > advances.seq

-- name: advances
SELECT a.topic, a.key, a.series, a.seq, b.posted FROM advances a JOIN broadcasts_yyyymmdd b ON b.seq = a.seq
WHERE a.day = 'yyyymmdd' ORDER BY a.topic, a.key

-- name: advances_some
SELECT a.topic, a.key, a.series, a.seq, b.posted FROM advances a JOIN broadcasts_yyyymmdd b ON b.seq = a.seq
WHERE a.day = 'yyyymmdd' ORDER BY a.topic, a.key LIMIT $1

-- name: advances_of
SELECT a.topic, a.key, a.series, a.seq, b.posted FROM advances a JOIN broadcasts_yyyymmdd b ON b.seq = a.seq
WHERE a.day = 'yyyymmdd' AND a.topic = $1 AND a.key = $2

-- name: advance_delete
-- idempotent: by its key
DELETE FROM advances WHERE day = 'yyyymmdd' AND topic = $1 AND key = $2 AND seq <= $3

-- Written with the event; what is carried over to another run is joined with what is there.
-- name: gathered_put
-- idempotent: sets what is given
INSERT INTO gathered (day, slot, due_at, manifest, members, blob) VALUES ('yyyymmdd', $1, $2, $3, $4, $5)
ON CONFLICT (day, slot, due_at, manifest) DO UPDATE SET members = excluded.members, blob = excluded.blob

-- name: gathered_delete
-- idempotent: by its key
DELETE FROM gathered WHERE day = 'yyyymmdd' AND slot = $1 AND due_at = $2 AND manifest = $3

-- name: gathered
SELECT manifest, blob FROM gathered WHERE day = 'yyyymmdd' AND slot = $1 AND due_at = $2 ORDER BY manifest

-- name: gathered_one
SELECT manifest, blob FROM gathered WHERE day = 'yyyymmdd' AND slot = $1 AND due_at = $2 AND manifest = $3

-- name: gathered_of_event
SELECT slot, due_at, sum(members)::bigint FROM gathered WHERE day = 'yyyymmdd' AND manifest >= $1 AND manifest < $2 GROUP BY slot, due_at ORDER BY slot, due_at

-- name: gathered_waiting
SELECT p.slot, p.due_at, p.service, (SELECT coalesce(sum(g.members), 0)::bigint FROM gathered g WHERE g.day = 'yyyymmdd' AND g.slot = p.slot AND g.due_at = p.due_at)
FROM pending p WHERE p.day = 'yyyymmdd' ORDER BY p.slot, p.due_at

-- name: pending_put
-- idempotent: by its key
INSERT INTO pending (day, slot, due_at, service) VALUES ('yyyymmdd', $1, $2, $3) ON CONFLICT (day, slot, due_at) DO NOTHING

-- name: pending
SELECT slot, due_at, service FROM pending WHERE day = 'yyyymmdd' ORDER BY slot, due_at

-- name: pending_delete
-- idempotent: by its key
DELETE FROM pending WHERE day = 'yyyymmdd' AND slot = $1 AND due_at = $2

-- name: run_insert
INSERT INTO runs (day, slot, due_at, seq) VALUES ('yyyymmdd', $1, $2, $3) ON CONFLICT (day, slot, due_at) DO NOTHING RETURNING seq

-- name: run
SELECT seq FROM runs WHERE day = 'yyyymmdd' AND slot = $1 AND due_at = $2

-- name: runs_last
SELECT slot, max(due_at) FROM runs WHERE day = 'yyyymmdd' GROUP BY slot ORDER BY slot

-- name: items_insert
INSERT INTO items (day, seq, number, event, posted) VALUES ('yyyymmdd', $1, $2, $3, $4)

-- name: item
SELECT event, posted FROM items WHERE day = 'yyyymmdd' AND seq = $1 AND number = $2

-- name: message_file_put
-- idempotent: by its key
INSERT INTO message_files (day, id, content) VALUES ('yyyymmdd', $1, $2) ON CONFLICT (day, id) DO NOTHING

-- name: message_file
SELECT content FROM message_files WHERE day = 'yyyymmdd' AND id = $1

-- What services are to be told. The row of the position is there once one is.
-- name: notices_next
INSERT INTO notices_position (day, one, given, planned) VALUES ('yyyymmdd', 1, 1, 0)
ON CONFLICT (day) DO UPDATE SET given = notices_position.given + 1 RETURNING given

-- name: notices_insert
INSERT INTO notices (day, id, at, entries, blob) VALUES ('yyyymmdd', $1, $2, $3, $4)

-- name: notices_position
SELECT planned FROM notices_position WHERE day = 'yyyymmdd'

-- name: notices
SELECT id, at, entries, blob FROM notices WHERE day = 'yyyymmdd' ORDER BY id LIMIT $1

-- name: notices_up_to
SELECT id, at, entries, blob FROM notices WHERE day = 'yyyymmdd' AND id <= $1 ORDER BY id

-- name: notices_plan
-- idempotent: sets what is given
UPDATE notices_position SET planned = $1 WHERE day = 'yyyymmdd'

-- name: notices_told
-- idempotent: by its key
DELETE FROM notices WHERE day = 'yyyymmdd' AND id <= $1

-- name: notices_waiting
SELECT coalesce(sum(entries), 0)::bigint, coalesce(min(at), 0) FROM notices WHERE day = 'yyyymmdd'

-- name: filter_answers_insert
-- idempotent: by its key
INSERT INTO filter_answers (day, manifest, first, last, answers) VALUES ('yyyymmdd', $1, $2, $3, $4) ON CONFLICT (day, manifest, first) DO NOTHING

-- The answers for members [from, to).
-- name: filter_answers
SELECT answers, first, last FROM filter_answers WHERE day = 'yyyymmdd' AND manifest = $1 AND first < $3 AND last >= $2 ORDER BY first
