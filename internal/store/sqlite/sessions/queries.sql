-- The statements of the part of the sessions.

-- name: session_next
INSERT INTO session_numbers (one, given) VALUES (1, 1) ON CONFLICT (one) DO UPDATE SET given = given + 1 RETURNING given
-- name: session_skip
INSERT INTO session_numbers (one, given) VALUES (1, ?) ON CONFLICT (one) DO UPDATE SET given = given + excluded.given
-- name: session_insert
INSERT INTO sessions (number, service, worker, kind, name, state, reason, opened_at, ended_at, epoch, opened_by, options)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
-- name: session_update
UPDATE sessions SET worker = ?, kind = ?, name = ?, state = ?, reason = ?, ended_at = ?, opened_by = ?, options = ? WHERE number = ? RETURNING number
-- name: sessions_open
SELECT number, service, worker, kind, name, state, reason, opened_at, ended_at, epoch, opened_by, options FROM sessions
WHERE ended_at = 0 ORDER BY number
-- name: sessions_ended
SELECT number, service, worker, kind, name, state, reason, opened_at, ended_at, epoch, opened_by, options FROM sessions
WHERE ended_at > ? ORDER BY ended_at, number
-- name: sessions_old
SELECT number FROM sessions WHERE ended_at > 0 AND ended_at < ? ORDER BY ended_at, number LIMIT ? + 0
-- name: session_take_over
UPDATE sessions SET epoch = epoch + 1 WHERE number = ? RETURNING epoch
-- name: session_purged
UPDATE sessions SET state = 'purged' WHERE number = ? AND ended_at > 0 RETURNING number
-- name: session_remove
DELETE FROM sessions WHERE number = ?
-- The epoch of a session, and the row of the log with a key if it exists.
-- name: session_check
SELECT s.epoch, l.count, l.high, l.data FROM sessions s
LEFT JOIN session_log l ON l.session = s.number AND l.client = ? AND l.kind = ? AND l.first = ? WHERE s.number = ?

-- name: session_client_put
INSERT INTO session_clients (session, client, name, requests, accepted, responses, received, floor, flags) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (session, client) DO UPDATE SET name = excluded.name, requests = excluded.requests, accepted = excluded.accepted,
responses = excluded.responses, received = excluded.received, floor = excluded.floor, flags = excluded.flags
-- name: session_clients
SELECT client, name, requests, accepted, responses, received, floor, flags FROM session_clients WHERE session = ? ORDER BY client
-- name: session_clients_remove
DELETE FROM session_clients WHERE session = ?

-- name: session_log_insert
INSERT INTO session_log (session, client, kind, first, count, high, data) VALUES (?, ?, ?, ?, ?, ?, ?)
-- The entry that contains a number, or the last one before it.
-- name: session_log_begin
SELECT first FROM session_log WHERE session = ? AND client = ? AND kind = ? AND first <= ? ORDER BY first DESC LIMIT 1
-- name: session_log
SELECT first, count, high, data FROM session_log WHERE session = ? AND client = ? AND kind = ? AND first >= ? AND high >= ?
ORDER BY first LIMIT ? + 0
-- A purge removes some rows at a time: the first ones up to a key.
-- name: session_log_sizes
SELECT client, kind, first, length(data) FROM session_log WHERE session = ? AND client BETWEEN ? AND ? ORDER BY client, kind, first LIMIT ? + 0
-- name: session_log_remove
DELETE FROM session_log WHERE session = ? AND client = ? AND (kind, first) <= (?, ?)
