-- The statements of package move. Names and arguments are those of SQLite.

-- name: move_mark
-- idempotent: sets what is given
INSERT INTO moves (one, state, move, peer, at) VALUES (1, $1, $2, $3, $4)
ON CONFLICT (one) DO UPDATE SET state = excluded.state, move = excluded.move, peer = excluded.peer, at = excluded.at

-- name: move_marked
SELECT state, move, peer, at FROM moves WHERE one = 1

-- name: move_unmark
-- idempotent: removes what is there
DELETE FROM moves WHERE one = 1
