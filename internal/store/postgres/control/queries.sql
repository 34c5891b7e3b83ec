-- The statements of the control part. Names and arguments are those of SQLite.

-- name: change_seq
SELECT value FROM meta WHERE name = 'change_seq'

-- name: change_seq_set
-- idempotent: sets what is given
UPDATE meta SET value = $1 WHERE name = 'change_seq'

-- Services first: the others belong to one.
-- name: config
SELECT kind, number, service, name, body, deleted FROM config ORDER BY kind <> 'service', kind, number

-- name: services
SELECT name, body FROM config WHERE kind = 'service' AND NOT deleted ORDER BY number

-- name: config_put
-- idempotent: by its key
INSERT INTO config (kind, number, service, name, body, deleted) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (kind, number) DO UPDATE SET name = excluded.name, body = excluded.body, deleted = excluded.deleted

-- name: filters
SELECT number, text FROM filters ORDER BY number

-- name: filters_insert
INSERT INTO filters (number, text) VALUES ($1, $2)

-- name: filter_empty
-- idempotent: sets what is given
UPDATE filters SET text = '' WHERE number = $1

-- name: subscribers
SELECT place, service, kind, address, id, locale, time_zone, attributes, subscriber, parts, flags FROM subscribers ORDER BY place

-- name: subscribers_between
SELECT place, service, kind, address, id, locale, time_zone, attributes, subscriber, parts, flags FROM subscribers
WHERE place BETWEEN $1 AND $2 ORDER BY place LIMIT $3

-- $1 is a JSON array of numbers, which is an array of PostgreSQL but for its
-- brackets.
-- name: subscribers_at
SELECT place, service, kind, address, id, locale, time_zone, attributes, subscriber, parts, flags FROM subscribers
WHERE place = ANY (translate($1, '[]', '{}')::bigint[]) ORDER BY place

-- name: subscribers_insert
INSERT INTO subscribers (place, service, kind, address, id, locale, time_zone, attributes) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)

-- name: subscriber_update
-- idempotent: sets what is given
UPDATE subscribers SET kind = $1, address = $2, id = $3, locale = $4, time_zone = $5, attributes = $6, subscriber = $7, parts = $8, flags = $9
WHERE place = $10

-- name: subscriptions
SELECT place, subscriber, topic, channel, created_at, created_seq, filter, rule, id, params, data, ended_at, ended_seq, reason, paused_at, paused_seq, resumed_seq, slot, was, title, description
FROM subscriptions ORDER BY place

-- name: subscriptions_last
SELECT max(place) FROM subscriptions WHERE place BETWEEN $1 AND $2

-- name: subscriptions_between
SELECT place, subscriber, topic, channel, created_at, created_seq, filter, rule, id, params, data, ended_at, ended_seq, reason, paused_at, paused_seq, resumed_seq, slot, was, title, description
FROM subscriptions WHERE place BETWEEN $1 AND $2 ORDER BY place LIMIT $3

-- name: subscriptions_at
SELECT place, subscriber, topic, channel, created_at, created_seq, filter, rule, id, params, data, ended_at, ended_seq, reason, paused_at, paused_seq, resumed_seq, slot, was, title, description
FROM subscriptions WHERE place = ANY (translate($1, '[]', '{}')::bigint[]) ORDER BY place

-- name: subscriptions_insert
INSERT INTO subscriptions (place, subscriber, topic, channel, created_at, created_seq, filter, rule, id, params, data, slot, title, description)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)

-- name: subscription_update
-- idempotent: sets what is given
UPDATE subscriptions SET channel = $1, filter = $2, rule = $3, params = $4, data = $5, ended_at = $6, ended_seq = $7, reason = $8, id = $9,
  paused_at = $10, paused_seq = $11, resumed_seq = $12, slot = $13, was = $14, title = $15, description = $16
WHERE place = $17

-- name: audit_insert
INSERT INTO audit (id, key_id, key_name, request, service, action, kind, name, detail) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)

-- name: audit_trim
DELETE FROM audit WHERE id IN (SELECT id FROM audit WHERE id < $1 ORDER BY id LIMIT $2)

-- name: audit_rename
-- idempotent: sets what is given
UPDATE audit SET name = $1 WHERE id = $2

-- name: audit_bounds
SELECT (SELECT min(id) FROM audit), (SELECT max(id) FROM audit)

-- name: audit_between
SELECT id, key_id, key_name, request, service, action, kind, name, detail FROM audit WHERE id BETWEEN $1 AND $2
ORDER BY id DESC LIMIT $3

-- name: suppressions
SELECT service, kind, hash, reason, at, until, tag FROM suppressions

-- name: suppression
SELECT reason, at, until, source, address, tag FROM suppressions WHERE service = $1 AND kind = $2 AND hash = $3

-- name: suppression_put
-- idempotent: by its key
INSERT INTO suppressions (service, kind, hash, reason, at, until, source, address, tag) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
ON CONFLICT (service, kind, hash) DO UPDATE SET reason = excluded.reason, at = excluded.at, until = excluded.until,
  source = excluded.source, address = excluded.address, tag = excluded.tag

-- name: suppression_delete
-- idempotent: by its key
DELETE FROM suppressions WHERE service = $1 AND kind = $2 AND hash = $3

-- name: bounce_insert
-- idempotent: by its key
INSERT INTO bounces (service, kind, hash, day, manifest, position, why, at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
ON CONFLICT (service, kind, hash, day, manifest, position, why) DO NOTHING

-- name: bounces_of
SELECT why, at FROM bounces WHERE service = $1 AND kind = $2 AND hash = $3 ORDER BY day, manifest, position, why LIMIT 1000

-- name: bounces_clear
-- idempotent: it removes what is older
DELETE FROM bounces WHERE service = $1 AND kind = $2 AND hash = $3 AND at <= $4

-- name: bounces_trim
-- idempotent: it removes what is older
DELETE FROM bounces WHERE at < $1

-- name: consents_of
SELECT at, body FROM consents WHERE subscription = $1 ORDER BY at

-- name: consent_put
-- idempotent: by its key
INSERT INTO consents (subscription, at, body) VALUES ($1, $2, $3)
ON CONFLICT (subscription, at) DO UPDATE SET body = excluded.body

-- name: consents_delete
-- idempotent: by what it names
DELETE FROM consents WHERE subscription = $1

-- What services are to be told. The row of the position is there once one is.
-- name: notices_next
INSERT INTO news_position (one, given, planned) VALUES (1, 1, 0)
ON CONFLICT (one) DO UPDATE SET given = news_position.given + 1 RETURNING given

-- name: notices_insert
INSERT INTO news (id, at, entries, blob) VALUES ($1, $2, $3, $4)

-- name: notices_position
SELECT planned FROM news_position WHERE one = 1

-- name: notices
SELECT id, at, entries, blob FROM news ORDER BY id LIMIT $1

-- name: notices_up_to
SELECT id, at, entries, blob FROM news WHERE id <= $1 ORDER BY id

-- name: notices_plan
-- idempotent: sets what is given
UPDATE news_position SET planned = $1 WHERE one = 1

-- name: notices_told
-- idempotent: by its key
DELETE FROM news WHERE id <= $1

-- name: notices_waiting
SELECT coalesce(sum(entries), 0)::bigint, coalesce(min(at), 0) FROM news WHERE id > 0

-- name: erasures
SELECT place, body FROM erasures ORDER BY place

-- name: erasure_put
-- idempotent: by its key
INSERT INTO erasures (place, body) VALUES ($1, $2) ON CONFLICT (place) DO UPDATE SET body = excluded.body

-- name: erasure_delete
-- idempotent: by its key
DELETE FROM erasures WHERE place = $1

-- name: states
SELECT topic, key, series, seq, at, data FROM states ORDER BY topic, key

-- name: state_put
-- idempotent: the higher sequence stays
INSERT INTO states (topic, key, series, seq, at, data) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (topic, key) DO UPDATE SET series = excluded.series, seq = excluded.seq, at = excluded.at, data = excluded.data
WHERE excluded.seq > states.seq

-- name: states_delete
-- idempotent: by what it names
DELETE FROM states WHERE topic = $1 AND series = $2

-- name: template_file_put
-- idempotent: by its key
INSERT INTO template_files (sum, content) VALUES ($1, $2) ON CONFLICT (sum) DO NOTHING

-- name: template_file
SELECT content FROM template_files WHERE sum = $1

-- name: sign_ins
SELECT id, hash, key_id, began_at, used_at, agent, address, person FROM sign_ins ORDER BY began_at, id

-- name: sign_in_insert
INSERT INTO sign_ins (id, hash, key_id, began_at, used_at, agent, address, person) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)

-- name: sign_in_used
UPDATE sign_ins SET used_at = $1 WHERE id = $2

-- name: sign_in_delete
DELETE FROM sign_ins WHERE id = $1

-- name: minute_value
SELECT body FROM minute_values WHERE at = $1

-- name: minute_value_put
INSERT INTO minute_values (at, body) VALUES ($1, $2) ON CONFLICT (at) DO UPDATE SET body = excluded.body

-- name: minute_values
SELECT at, body FROM minute_values WHERE at >= $1 AND at < $2 ORDER BY at

-- name: minute_values_trim
DELETE FROM minute_values WHERE at < $1

-- name: tasks
SELECT id, body FROM tasks ORDER BY id

-- name: task_put
INSERT INTO tasks (id, body) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET body = excluded.body

-- name: task_delete
DELETE FROM tasks WHERE id = $1

-- name: sends
SELECT id, body FROM sends ORDER BY id

-- name: send_put
-- idempotent: by its key
INSERT INTO sends (id, body) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET body = excluded.body

-- name: send_delete
-- idempotent: by what it names
DELETE FROM sends WHERE id = $1

-- name: send_rows_put
-- idempotent: by its key
INSERT INTO send_rows (send, upload, chunk, first, count, rows) VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (send, upload, chunk) DO UPDATE SET rows = excluded.rows

-- name: send_chunks
SELECT upload, chunk, first, count FROM send_rows WHERE send = $1 ORDER BY upload, chunk

-- name: send_rows
SELECT rows FROM send_rows WHERE send = $1 AND upload = $2 AND chunk = $3

-- name: send_rows_delete
-- idempotent: by what it names
DELETE FROM send_rows WHERE send = $1 AND upload = $2

-- name: send_errors_put
-- idempotent: by its key
INSERT INTO send_errors (send, upload, page, errors) VALUES ($1, $2, $3, $4) ON CONFLICT (send, upload, page) DO UPDATE SET errors = excluded.errors

-- name: send_errors
SELECT errors FROM send_errors WHERE send = $1 AND upload = $2 AND page = $3

-- name: send_error_pages
SELECT upload, page, errors FROM send_errors WHERE send = $1 ORDER BY upload, page

-- name: send_errors_delete
-- idempotent: by what it names
DELETE FROM send_errors WHERE send = $1 AND upload = $2

-- name: send_part_put
-- idempotent: by its key
INSERT INTO send_parts (send, part, event, at, outcome) VALUES ($1, $2, $3, $4, $5) ON CONFLICT (send, part) DO UPDATE SET event = excluded.event, at = excluded.at, outcome = excluded.outcome

-- name: send_parts
SELECT part, event, at FROM send_parts WHERE send = $1 ORDER BY part

-- name: send_part
SELECT outcome FROM send_parts WHERE send = $1 AND part = $2

-- name: send_parts_delete
-- idempotent: by what it names
DELETE FROM send_parts WHERE send = $1

-- name: linked_file_put
-- idempotent: by its key
INSERT INTO linked_files (id, service, recipient, expires_at, content) VALUES ($1, $2, $3, $4, $5) ON CONFLICT (id) DO NOTHING

-- name: linked_file
SELECT service, expires_at, content FROM linked_files WHERE id = $1

-- name: linked_files_of
SELECT id FROM linked_files WHERE service = $1 AND recipient = $2 ORDER BY id

-- name: linked_files_expire
-- idempotent: by what it names
DELETE FROM linked_files WHERE expires_at <= $1

-- name: linked_files_erase
-- idempotent: by what it names
DELETE FROM linked_files WHERE service = $1 AND recipient = $2

-- name: notifybc_put
-- idempotent: by its key
INSERT INTO notifybc_records (service, kind, id, created, updated, body) VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (service, kind, id) DO UPDATE SET created = excluded.created, updated = excluded.updated, body = excluded.body

-- name: notifybc_delete
-- idempotent: by what it names
DELETE FROM notifybc_records WHERE service = $1 AND kind = $2 AND id = $3

-- name: notifybc_record
SELECT id, created, updated, body FROM notifybc_records WHERE service = $1 AND kind = $2 AND id = $3

-- name: notifybc_records
SELECT id, created, updated, body FROM notifybc_records WHERE service = $1 AND kind = $2 AND id > $3 ORDER BY id LIMIT $4
