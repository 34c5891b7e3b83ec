-- The statements of the part of the sessions. Names and arguments are those of SQLite.

-- name: session_next
INSERT INTO session_numbers (one, given) VALUES (1, 1) ON CONFLICT (one) DO UPDATE SET given = session_numbers.given + 1 RETURNING given

-- name: session_skip
INSERT INTO session_numbers (one, given) VALUES (1, $1) ON CONFLICT (one) DO UPDATE SET given = session_numbers.given + excluded.given

-- name: session_insert
INSERT INTO sessions (number, service, worker, kind, name, state, reason, opened_at, ended_at, epoch, opened_by, options)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)

-- name: session_update
UPDATE sessions SET worker = $1, kind = $2, name = $3, state = $4, reason = $5, ended_at = $6, opened_by = $7, options = $8 WHERE number = $9 RETURNING number

-- name: sessions_open
SELECT number, service, worker, kind, name, state, reason, opened_at, ended_at, epoch, opened_by, options FROM sessions
WHERE ended_at = 0 ORDER BY number

-- name: sessions_ended
SELECT number, service, worker, kind, name, state, reason, opened_at, ended_at, epoch, opened_by, options FROM sessions
WHERE ended_at > $1 ORDER BY ended_at, number

-- name: sessions_old
SELECT number FROM sessions WHERE ended_at > 0 AND ended_at < $1 ORDER BY ended_at, number LIMIT $2

-- name: session_take_over
UPDATE sessions SET epoch = epoch + 1 WHERE number = $1 RETURNING epoch

-- name: session_purged
UPDATE sessions SET state = 'purged' WHERE number = $1 AND ended_at > 0 RETURNING number

-- name: session_remove
DELETE FROM sessions WHERE number = $1

-- The epoch of a session, and the row of the log with a key if it exists. The lock makes
-- another broker that takes the session over wait for the end of this transaction.
-- name: session_check
SELECT s.epoch, l.count, l.high, l.data FROM sessions s
LEFT JOIN session_log l ON l.session = s.number AND l.client = $1 AND l.kind = $2 AND l.first = $3 WHERE s.number = $4 FOR SHARE OF s

-- name: session_client_put
INSERT INTO session_clients (session, client, name, requests, accepted, responses, received, floor, flags) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
ON CONFLICT (session, client) DO UPDATE SET name = excluded.name, requests = excluded.requests, accepted = excluded.accepted,
responses = excluded.responses, received = excluded.received, floor = excluded.floor, flags = excluded.flags

-- name: session_clients
SELECT client, name, requests, accepted, responses, received, floor, flags FROM session_clients WHERE session = $1 ORDER BY client

-- name: session_clients_remove
DELETE FROM session_clients WHERE session = $1

-- name: session_log_insert
INSERT INTO session_log (session, client, kind, first, count, high, data) VALUES ($1, $2, $3, $4, $5, $6, $7)

-- The entry that contains a number, or the last one before it.
-- name: session_log_begin
SELECT first FROM session_log WHERE session = $1 AND client = $2 AND kind = $3 AND first <= $4 ORDER BY first DESC LIMIT 1

-- name: session_log
SELECT first, count, high, data FROM session_log WHERE session = $1 AND client = $2 AND kind = $3 AND first >= $4 AND high >= $5
ORDER BY first LIMIT $6

-- A purge removes some rows at a time: the first ones up to a key.
-- name: session_log_sizes
SELECT client, kind, first, length(data) FROM session_log WHERE session = $1 AND client BETWEEN $2 AND $3 ORDER BY client, kind, first LIMIT $4

-- name: session_log_remove
DELETE FROM session_log WHERE session = $1 AND client = $2 AND (kind, first) <= ($3, $4)
