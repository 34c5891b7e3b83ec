-- name: move_mark
INSERT INTO moves (one, state, move, peer, at) VALUES (1, ?, ?, ?, ?)
ON CONFLICT (one) DO UPDATE SET state = excluded.state, move = excluded.move, peer = excluded.peer, at = excluded.at
-- name: move_marked
SELECT state, move, peer, at FROM moves WHERE one = 1
-- name: move_unmark
DELETE FROM moves WHERE one = 1
