-- The statements of the part of the mailboxes. Names and arguments are those of SQLite.

-- name: account
SELECT service, address, created_at, state, oldest, max_bytes, bytes, max_messages, messages, next_mailbox, next_email, validity, merged, flags
FROM accounts WHERE account = $1

-- The account, locked until the end of the transaction. Accounts are locked in ascending order.
-- name: account_lock
SELECT service, address, created_at, state, oldest, max_bytes, bytes, max_messages, messages, next_mailbox, next_email, validity, merged, flags
FROM accounts WHERE account = $1 FOR UPDATE

-- name: accounts_of
SELECT account FROM accounts WHERE address = $1 ORDER BY account

-- name: accounts_after
SELECT account FROM accounts WHERE account > $1 ORDER BY account LIMIT $2

-- Disabled accounts from one to another.
-- name: accounts_disabled
SELECT account FROM accounts WHERE flags = 1 AND account >= $1 AND account <= $2

-- A transaction creates an account only if it exists in no other one.
-- name: account_insert
INSERT INTO accounts (account, service, address, created_at, state, oldest, max_bytes, bytes, max_messages, messages, next_mailbox, next_email, validity, merged, flags)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15) ON CONFLICT (account) DO NOTHING

-- name: account_put
INSERT INTO accounts (account, service, address, created_at, state, oldest, max_bytes, bytes, max_messages, messages, next_mailbox, next_email, validity, merged, flags)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
ON CONFLICT (account) DO UPDATE SET address = excluded.address, state = excluded.state, oldest = excluded.oldest, max_bytes = excluded.max_bytes,
bytes = excluded.bytes, max_messages = excluded.max_messages, messages = excluded.messages, next_mailbox = excluded.next_mailbox,
next_email = excluded.next_email, validity = excluded.validity, merged = excluded.merged, flags = excluded.flags

-- name: account_remove
DELETE FROM accounts WHERE account = $1

-- name: credentials_clear
DELETE FROM credentials WHERE account = $1

-- name: mailboxes_clear
DELETE FROM mailboxes WHERE account = $1

-- name: messages_clear
DELETE FROM messages WHERE account = $1

-- name: removed_clear
DELETE FROM removed WHERE account = $1

-- name: removed_mailboxes_clear
DELETE FROM removed_mailboxes WHERE account = $1

-- name: threads_clear
DELETE FROM threads WHERE account = $1

-- name: uploads_clear
DELETE FROM uploads WHERE account = $1

-- All accounts and mailboxes skip numbers. Changes before them are not listed any more.
-- name: accounts_skip
UPDATE accounts SET state = state + $1, oldest = state + $2, next_mailbox = next_mailbox + $3, next_email = next_email + $4, validity = validity + $5

-- name: mailboxes_skip
UPDATE mailboxes SET uid_next = uid_next + $1

-- The next number of a kind; n numbers are taken, and the last one is returned.
-- name: mailbox_numbers_take
INSERT INTO mailbox_numbers (kind, given) VALUES ($1, $2) ON CONFLICT (kind) DO UPDATE SET given = mailbox_numbers.given + excluded.given RETURNING given

-- name: credential_insert
INSERT INTO credentials (account, credential, name, created_at, used_at, iterations, salt, stored_key, server_key) VALUES ($1, $2, $3, $4, 0, $5, $6, $7, $8)

-- name: credentials
SELECT credential, name, created_at, used_at, iterations, salt, stored_key, server_key FROM credentials WHERE account = $1 ORDER BY credential

-- name: credential_used
UPDATE credentials SET used_at = $1 WHERE account = $2 AND credential = $3

-- name: credential_remove
DELETE FROM credentials WHERE account = $1 AND credential = $2 RETURNING credential

-- name: mailboxes
SELECT mailbox, parent, name, role, sort_order, subscribed, validity, uid_next, recent_from, messages, unseen, deleted, bytes, highest, created, changed, edited
FROM mailboxes WHERE account = $1 ORDER BY mailbox

-- name: mailbox
SELECT mailbox, parent, name, role, sort_order, subscribed, validity, uid_next, recent_from, messages, unseen, deleted, bytes, highest, created, changed, edited
FROM mailboxes WHERE account = $1 AND mailbox = $2

-- name: mailbox_put
INSERT INTO mailboxes (account, mailbox, parent, name, role, sort_order, subscribed, validity, uid_next, recent_from, messages, unseen, deleted, bytes, highest, created, changed, edited)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)
ON CONFLICT (account, mailbox) DO UPDATE SET parent = excluded.parent, name = excluded.name, role = excluded.role, sort_order = excluded.sort_order,
subscribed = excluded.subscribed, validity = excluded.validity, uid_next = excluded.uid_next, recent_from = excluded.recent_from,
messages = excluded.messages, unseen = excluded.unseen, deleted = excluded.deleted, bytes = excluded.bytes, highest = excluded.highest, changed = excluded.changed,
edited = excluded.edited

-- name: mailbox_remove
DELETE FROM mailboxes WHERE account = $1 AND mailbox = $2

-- name: removed_mailbox_insert
INSERT INTO removed_mailboxes (account, modseq, mailbox) VALUES ($1, $2, $3)

-- name: removed_mailboxes_since
SELECT mailbox, modseq FROM removed_mailboxes WHERE account = $1 AND modseq > $2 ORDER BY mailbox

-- name: message_insert
INSERT INTO messages (account, email, mailbox, uid, modseq, created, flags, size, received, saved, thread, content, keywords)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)

-- name: message_update
UPDATE messages SET mailbox = $1, uid = $2, modseq = $3, flags = $4, saved = $5, keywords = $6 WHERE account = $7 AND email = $8

-- name: message_remove
DELETE FROM messages WHERE account = $1 AND email = $2

-- name: messages_of
SELECT email, mailbox, uid, modseq, created, flags, size, received, saved, thread, content, keywords FROM messages
WHERE account = $1 AND mailbox = $2 ORDER BY uid

-- name: messages_all
SELECT email, mailbox, uid, modseq, created, flags, size, received, saved, thread, content, keywords FROM messages WHERE account = $1 ORDER BY email

-- name: message
SELECT email, mailbox, uid, modseq, created, flags, size, received, saved, thread, content, keywords FROM messages WHERE account = $1 AND email = $2

-- name: messages_since
SELECT email, mailbox, uid, modseq, created, flags, size, received, saved, thread, content, keywords FROM messages WHERE account = $1 AND modseq > $2

-- name: messages_of_thread
SELECT email, received FROM messages WHERE account = $1 AND thread = $2

-- name: removed_insert
INSERT INTO removed (account, modseq, mailbox, uid, email, thread, created, destroyed) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)

-- name: removed_since
SELECT mailbox, uid, email, modseq, destroyed, thread, created FROM removed WHERE account = $1 AND modseq > $2 ORDER BY mailbox, uid

-- The ModSeq of the newest removal that is dropped when n are kept.
-- name: removed_bound
SELECT modseq FROM removed WHERE account = $1 ORDER BY modseq DESC LIMIT 1 OFFSET $2

-- name: removed_drop
DELETE FROM removed WHERE account = $1 AND modseq <= $2

-- name: removed_mailboxes_drop
DELETE FROM removed_mailboxes WHERE account = $1 AND modseq <= $2

-- name: thread_find
SELECT thread FROM threads WHERE account = $1 AND hash = $2

-- name: thread_insert
INSERT INTO threads (account, hash, thread) VALUES ($1, $2, $3) ON CONFLICT (account, hash) DO NOTHING

-- Counts uses of a content, and stores it if it is new. The number that is returned is the given one if it is new.
-- name: content_use
INSERT INTO contents (content, hash, size, base, uses, unused, structure) VALUES ($1, $2, $3, $4, $5, 0, $6)
ON CONFLICT (hash) DO UPDATE SET uses = contents.uses + excluded.uses, unused = 0 RETURNING content

-- name: content_add_uses
UPDATE contents SET uses = uses + $1, unused = 0 WHERE content = $2

-- name: content_drop_uses
UPDATE contents SET uses = uses - $1, unused = CASE WHEN uses - $2 > 0 THEN 0 ELSE $3::bigint END WHERE content = $4

-- name: content_data_insert
INSERT INTO content_data (content, data) VALUES ($1, $2)

-- name: content_of_email
SELECT d.data, c.base, c.hash FROM messages m JOIN content_data d ON d.content = m.content JOIN contents c ON c.content = m.content WHERE m.account = $1 AND m.email = $2

-- name: structure_of_email
SELECT c.structure FROM messages m JOIN contents c ON c.content = m.content WHERE m.account = $1 AND m.email = $2

-- name: contents_unused
SELECT content FROM contents WHERE unused > 0 AND unused < $1 ORDER BY unused, content LIMIT $2

-- The content is removed only if it is still unused.
-- name: content_remove
DELETE FROM contents WHERE content = $1 AND uses = 0 RETURNING base

-- name: content_data_remove
DELETE FROM content_data WHERE content = $1

-- name: upload_insert
INSERT INTO uploads (account, content, at) VALUES ($1, $2, $3) ON CONFLICT (account, content) DO UPDATE SET at = excluded.at

-- name: upload
SELECT content FROM uploads WHERE account = $1 AND content = $2

-- name: upload_remove
DELETE FROM uploads WHERE account = $1 AND content = $2 RETURNING content

-- name: upload_data
SELECT d.data, c.base, c.hash FROM uploads u JOIN content_data d ON d.content = u.content JOIN contents c ON c.content = u.content WHERE u.account = $1 AND u.content = $2

-- name: uploads_of
SELECT content FROM uploads WHERE account = $1 ORDER BY content

-- name: uploads_before
SELECT account, content FROM uploads WHERE at < $1 ORDER BY at, account, content LIMIT $2

-- name: inbox_message_insert
INSERT INTO inbox_messages (account, email, sent_day, manifest, position, at, read_at, ended_at, ended) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)

-- name: inbox_message_of_delivery
SELECT account, email, at, read_at, ended_at, ended FROM inbox_messages WHERE sent_day = $1 AND manifest = $2 AND position = $3

-- name: inbox_message
SELECT sent_day, manifest, position, read_at, ended_at FROM inbox_messages WHERE account = $1 AND email = $2

-- name: inbox_message_read
UPDATE inbox_messages SET read_at = $1 WHERE account = $2 AND email = $3

-- name: inbox_message_ended
UPDATE inbox_messages SET ended_at = $1, ended = $2 WHERE account = $3 AND email = $4

-- Messages of an event that are still there, after a key.
-- name: inbox_messages_of_event
SELECT account, email, manifest, position, read_at FROM inbox_messages WHERE sent_day = $1 AND manifest >= $2 AND manifest < $3 AND ended_at = 0
AND (manifest, position) > ($4, $5) ORDER BY manifest, position LIMIT $6

-- name: inbox_messages_drop
DELETE FROM inbox_messages WHERE sent_day <= $1

-- name: inbox_messages_clear
DELETE FROM inbox_messages WHERE account = $1

-- name: inbox_broadcast_add
INSERT INTO inbox_broadcasts (sent_day, seq, stored, read, recalled, expired, recalled_at, expires_at, work_at) VALUES ($1, $2, $3, $4, $5, $6, 0, $7, $8)
ON CONFLICT (sent_day, seq) DO UPDATE SET stored = inbox_broadcasts.stored + excluded.stored, read = inbox_broadcasts.read + excluded.read,
recalled = inbox_broadcasts.recalled + excluded.recalled, expired = inbox_broadcasts.expired + excluded.expired

-- name: inbox_broadcast
SELECT stored, read, recalled, expired, recalled_at, expires_at, work_at FROM inbox_broadcasts WHERE sent_day = $1 AND seq = $2

-- name: inbox_broadcast_set
UPDATE inbox_broadcasts SET recalled_at = $1, expires_at = $2, work_at = $3 WHERE sent_day = $4 AND seq = $5

-- name: inbox_broadcasts_with_work
SELECT sent_day, seq FROM inbox_broadcasts WHERE work_at > 0 AND work_at <= $1 ORDER BY work_at, sent_day, seq LIMIT $2

-- name: inbox_broadcasts_drop
DELETE FROM inbox_broadcasts WHERE sent_day <= $1

-- name: content_data
SELECT d.data, c.hash FROM content_data d JOIN contents c ON c.content = d.content WHERE d.content = $1

-- name: inbox_block_insert
INSERT INTO inbox_blocks (block, sent_day, manifest, first, last, lowest, highest, members, merged, base, at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)

-- name: inbox_block_data_insert
INSERT INTO inbox_block_data (block, data) VALUES ($1, $2)

-- name: inbox_block_data
SELECT data FROM inbox_block_data WHERE block = $1

-- name: inbox_block_last
SELECT block FROM inbox_blocks ORDER BY block DESC LIMIT 1

-- name: inbox_blocks_after
SELECT block, lowest, highest FROM inbox_blocks WHERE block > $1 ORDER BY block LIMIT $2

-- Blocks that may have a message of an account, after a block. They stay until the end of the transaction.
-- name: inbox_blocks_of_account
SELECT block, sent_day, manifest, first, base, at FROM inbox_blocks WHERE block > $1 AND lowest <= $2 AND highest >= $3 ORDER BY block FOR SHARE

-- Blocks that may have messages of a range of deliveries: from its last position, to its first one.
-- name: inbox_blocks_of_delivery
SELECT block, at, base FROM inbox_blocks WHERE sent_day = $1 AND manifest = $2 AND first <= $3 AND last >= $4 ORDER BY block

-- name: inbox_blocks_of_event
SELECT block, members, merged, base FROM inbox_blocks WHERE sent_day = $1 AND manifest >= $2 AND manifest < $3 ORDER BY block LIMIT $4

-- name: inbox_blocks_merged
SELECT block, members, merged, base FROM inbox_blocks WHERE merged >= members ORDER BY block LIMIT $1

-- name: inbox_block_count
UPDATE inbox_blocks SET merged = merged + $1 WHERE block = $2

-- name: inbox_block_replace
UPDATE inbox_blocks SET members = members - 1, merged = merged - $1 WHERE block = $2

-- name: inbox_block_data_replace
UPDATE inbox_block_data SET data = $1 WHERE block = $2

-- name: inbox_block_remove
DELETE FROM inbox_blocks WHERE block = $1

-- name: inbox_block_data_remove
DELETE FROM inbox_block_data WHERE block = $1

-- name: inbox_messages_in_range
SELECT position FROM inbox_messages WHERE sent_day = $1 AND manifest = $2 AND position >= $3 AND position <= $4

-- name: records
SELECT record, created, changed, flags, at, body FROM mailbox_records WHERE account = $1 AND kind = $2 AND flags <> 1 ORDER BY record

-- name: records_since
SELECT record, created, changed, flags, at, body FROM mailbox_records WHERE account = $1 AND kind = $2 AND changed > $3

-- name: record
SELECT record, created, changed, flags, at, body FROM mailbox_records WHERE account = $1 AND kind = $2 AND record = $3

-- name: record_put
INSERT INTO mailbox_records (account, kind, record, created, changed, flags, at, body) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
ON CONFLICT (account, kind, record) DO UPDATE SET changed = excluded.changed, flags = excluded.flags, at = excluded.at, body = excluded.body

-- Records of a kind with which the server has no work, up to a time.
-- name: records_old
SELECT account, record FROM mailbox_records WHERE flags = 0 AND kind = $1 AND at <= $2 ORDER BY at, account, record LIMIT $3

-- The ModSeq of the newest removal of a record that is dropped when n are kept.
-- name: records_bound
SELECT changed FROM mailbox_records WHERE account = $1 AND kind = $2 AND flags = 1 ORDER BY changed DESC LIMIT 1 OFFSET $3

-- Records of a kind with which the server has work, after one of an account.
-- name: records_with_work
SELECT account, record FROM mailbox_records WHERE flags = 2 AND kind = $1 AND (account, record) > ($2, $3) ORDER BY account, record LIMIT $4

-- name: records_drop
DELETE FROM mailbox_records WHERE account = $1 AND changed <= $2 AND flags = 1

-- name: records_clear
DELETE FROM mailbox_records WHERE account = $1

-- name: aliases
SELECT address, created_at FROM mailbox_aliases WHERE account = $1 ORDER BY address

-- name: aliases_of
SELECT account, service FROM mailbox_aliases WHERE address = $1 ORDER BY service

-- name: alias_insert
INSERT INTO mailbox_aliases (address, service, account, created_at) VALUES ($1, $2, $3, $4) ON CONFLICT (address, service) DO NOTHING RETURNING account

-- name: alias_remove
DELETE FROM mailbox_aliases WHERE account = $1 AND address = $2 RETURNING account

-- name: aliases_clear
DELETE FROM mailbox_aliases WHERE account = $1

-- name: search_queue_insert
INSERT INTO search_queue (content) VALUES ($1) ON CONFLICT (content) DO NOTHING

-- name: search_queue_first
SELECT content FROM search_queue ORDER BY content LIMIT $1

-- Returns the content if it was in the queue, so that of two indexers one stores its filter.
-- name: search_queue_remove
DELETE FROM search_queue WHERE content = $1 RETURNING content

-- name: search_source
SELECT c.structure, d.data FROM contents c JOIN content_data d ON d.content = c.content WHERE c.content = $1

-- name: search_source_size
SELECT size, length(structure) FROM contents WHERE content = $1

-- name: search_filter
SELECT filter FROM search_filters WHERE content = $1 AND version = $2

-- name: search_filter_insert
INSERT INTO search_filters (content, version, filter) VALUES ($1, $2, $3) ON CONFLICT (content) DO UPDATE SET version = excluded.version, filter = excluded.filter

-- name: search_filter_remove
DELETE FROM search_filters WHERE content = $1

-- Contents of messages, after one, that have no filter of a version. Those of blocks have no structure, and those with a base belong to broadcasts.
-- name: search_missing_after
SELECT c.content FROM contents c LEFT JOIN search_filters f ON f.content = c.content AND f.version = $1
WHERE c.content > $2 AND c.base = 0 AND c.uses > 0 AND length(c.structure) > 0 AND f.content IS NULL ORDER BY c.content LIMIT $3

-- Contents of messages, after one, that the index can have, and those of one account.
-- name: search_contents_after
SELECT content FROM contents WHERE content > $1 AND base = 0 AND uses > 0 AND length(structure) > 0 ORDER BY content LIMIT $2

-- name: search_contents_of
SELECT DISTINCT m.content FROM messages m JOIN contents c ON c.content = m.content
WHERE m.account = $1 AND m.content > $2 AND c.base = 0 AND length(c.structure) > 0 ORDER BY m.content LIMIT $3

-- name: search_queue_count
SELECT count(*) FROM (SELECT 1 AS one FROM search_queue LIMIT $1) AS waiting
