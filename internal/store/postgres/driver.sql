-- Statements of the driver itself, whatever is kept.

-- name: begin
BEGIN
-- name: begin_writing
BEGIN READ WRITE
-- name: begin_snapshot
BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY
-- name: commit
COMMIT
-- name: rollback
ROLLBACK

-- The end of a transaction that must not be kept twice, nor by a server that was
-- replaced: sets the token of this transaction where that of the one before it
-- and the server's epoch are still there, and else fails, the column being NOT
-- NULL.
-- name: fence
UPDATE writers SET token = CASE WHEN token = $2 AND epoch = $4 THEN $3::bigint END WHERE slot = $1

-- After a lost reply: waits for the transaction that holds the row to end, and
-- tells whose token it left.
-- name: slot
SELECT token, epoch FROM writers WHERE slot = $1 FOR UPDATE
-- A transaction that is still on its way can from here on not be kept.
-- name: revoke
UPDATE writers SET token = $2 WHERE slot = $1 AND epoch = $3
