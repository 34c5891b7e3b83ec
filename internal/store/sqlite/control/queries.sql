-- name: change_seq
SELECT value FROM meta WHERE name = 'change_seq'
-- name: change_seq_set
UPDATE meta SET value = ? WHERE name = 'change_seq'
-- Services first: the others belong to one.
-- name: config
SELECT kind, number, service, name, body, deleted FROM config ORDER BY kind <> 'service', kind, number
-- name: services
SELECT name, body FROM config WHERE kind = 'service' AND deleted = 0 ORDER BY number
-- name: config_put
INSERT INTO config (kind, number, service, name, body, deleted) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (kind, number) DO UPDATE SET name = excluded.name, body = excluded.body, deleted = excluded.deleted
-- name: filters
SELECT number, text FROM filters ORDER BY number
-- name: filters_insert
INSERT INTO filters (number, text) VALUES (?, ?)
-- name: filter_empty
UPDATE filters SET text = '' WHERE number = ?
-- name: subscribers
SELECT place, service, kind, address, id, locale, time_zone, attributes, subscriber, parts, flags FROM subscribers ORDER BY place
-- A bare LIMIT ? would have SQLite compile the statement again for each number, since
-- its plan could hang on it; with + 0 it does not.
-- name: subscribers_between
SELECT place, service, kind, address, id, locale, time_zone, attributes, subscriber, parts, flags FROM subscribers
WHERE place BETWEEN ? AND ? ORDER BY place LIMIT ? + 0
-- The list is sorted, and CROSS JOIN keeps its order: to sort again, or to look
-- it up as a set (IN), costs a tenth more.
-- name: subscribers_at
SELECT place, service, kind, address, s.id, locale, time_zone, attributes, subscriber, parts, flags
FROM json_each(?) list CROSS JOIN subscribers s ON place = list.value
-- name: subscribers_insert
INSERT INTO subscribers (place, service, kind, address, id, locale, time_zone, attributes) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
-- name: subscriber_update
UPDATE subscribers SET kind = ?, address = ?, id = ?, locale = ?, time_zone = ?, attributes = ?, subscriber = ?, parts = ?, flags = ?
WHERE place = ?
-- name: subscriptions
SELECT place, subscriber, topic, channel, created_at, created_seq, filter, rule, id, params, data, ended_at, ended_seq, reason, paused_at, paused_seq, resumed_seq, slot, was, title, description
FROM subscriptions ORDER BY place
-- name: subscriptions_last
SELECT max(place) FROM subscriptions WHERE place BETWEEN ? AND ?
-- name: subscriptions_between
SELECT place, subscriber, topic, channel, created_at, created_seq, filter, rule, id, params, data, ended_at, ended_seq, reason, paused_at, paused_seq, resumed_seq, slot, was, title, description
FROM subscriptions WHERE place BETWEEN ? AND ? ORDER BY place LIMIT ? + 0
-- name: subscriptions_at
SELECT place, subscriber, topic, channel, created_at, created_seq, filter, rule, s.id, params, data, ended_at, ended_seq, reason, paused_at, paused_seq, resumed_seq, slot, was, title, description
FROM json_each(?) list CROSS JOIN subscriptions s ON place = list.value
-- name: subscriptions_insert
INSERT INTO subscriptions (place, subscriber, topic, channel, created_at, created_seq, filter, rule, id, params, data, slot, title, description)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
-- name: subscription_update
UPDATE subscriptions SET channel = ?, filter = ?, rule = ?, params = ?, data = ?, ended_at = ?, ended_seq = ?, reason = ?, id = ?,
  paused_at = ?, paused_seq = ?, resumed_seq = ?, slot = ?, was = ?, title = ?, description = ?
WHERE place = ?
-- name: audit_insert
INSERT INTO audit (id, key_id, key_name, request, service, action, kind, name, detail) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
-- name: audit_trim
DELETE FROM audit WHERE id IN (SELECT id FROM audit WHERE id < ? ORDER BY id LIMIT ? + 0)
-- name: audit_rename
UPDATE audit SET name = ? WHERE id = ?
-- name: audit_bounds
SELECT (SELECT min(id) FROM audit), (SELECT max(id) FROM audit)
-- name: audit_between
SELECT id, key_id, key_name, request, service, action, kind, name, detail FROM audit WHERE id BETWEEN ? AND ?
ORDER BY id DESC LIMIT ? + 0
-- name: suppressions
SELECT service, kind, hash, reason, at, until, tag FROM suppressions
-- name: suppression
SELECT reason, at, until, source, address, tag FROM suppressions WHERE service = ? AND kind = ? AND hash = ?
-- name: suppression_put
INSERT OR REPLACE INTO suppressions (service, kind, hash, reason, at, until, source, address, tag) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
-- name: suppression_delete
DELETE FROM suppressions WHERE service = ? AND kind = ? AND hash = ?
-- name: bounce_insert
INSERT INTO bounces (service, kind, hash, day, manifest, position, why, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (service, kind, hash, day, manifest, position, why) DO NOTHING
-- name: bounces_of
SELECT why, at FROM bounces WHERE service = ? AND kind = ? AND hash = ? ORDER BY day, manifest, position, why LIMIT 1000
-- name: bounces_clear
DELETE FROM bounces WHERE service = ? AND kind = ? AND hash = ? AND at <= ?
-- name: bounces_trim
DELETE FROM bounces WHERE at < ?
-- name: consents_of
SELECT at, body FROM consents WHERE subscription = ? ORDER BY at
-- name: consent_put
INSERT OR REPLACE INTO consents (subscription, at, body) VALUES (?, ?, ?)
-- name: consents_delete
DELETE FROM consents WHERE subscription = ?
-- What services are to be told. The row of the position is there once one is.
-- name: notices_next
INSERT INTO news_position (one, given, planned) VALUES (1, 1, 0) ON CONFLICT (one) DO UPDATE SET given = given + 1 RETURNING given
-- name: notices_insert
INSERT INTO news (id, at, entries, blob) VALUES (?, ?, ?, ?)
-- name: notices_position
SELECT planned FROM news_position
-- name: notices
SELECT id, at, entries, blob FROM news ORDER BY id LIMIT ? + 0
-- name: notices_up_to
SELECT id, at, entries, blob FROM news WHERE id <= ? ORDER BY id
-- name: notices_plan
UPDATE news_position SET planned = ?
-- name: notices_told
DELETE FROM news WHERE id <= ?
-- name: notices_waiting
SELECT coalesce(sum(entries), 0), coalesce(min(at), 0) FROM news
-- name: erasures
SELECT place, body FROM erasures ORDER BY place
-- name: erasure_put
INSERT OR REPLACE INTO erasures (place, body) VALUES (?, ?)
-- name: erasure_delete
DELETE FROM erasures WHERE place = ?
-- name: states
SELECT topic, key, series, seq, at, data FROM states ORDER BY topic, key
-- name: state_put
INSERT INTO states (topic, key, series, seq, at, data) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (topic, key) DO UPDATE SET series = excluded.series, seq = excluded.seq, at = excluded.at, data = excluded.data
WHERE excluded.seq > states.seq
-- name: states_delete
DELETE FROM states WHERE topic = ? AND series = ?
-- name: template_file_put
INSERT INTO template_files (sum, content) VALUES (?, ?) ON CONFLICT (sum) DO NOTHING
-- name: template_file
SELECT content FROM template_files WHERE sum = ?
-- name: sign_ins
SELECT id, hash, key_id, began_at, used_at, agent, address, person FROM sign_ins ORDER BY began_at, id
-- name: sign_in_insert
INSERT INTO sign_ins (id, hash, key_id, began_at, used_at, agent, address, person) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
-- name: sign_in_used
UPDATE sign_ins SET used_at = ? WHERE id = ?
-- name: sign_in_delete
DELETE FROM sign_ins WHERE id = ?
-- name: minute_value
SELECT body FROM minute_values WHERE at = ?
-- name: minute_value_put
INSERT INTO minute_values (at, body) VALUES (?, ?) ON CONFLICT (at) DO UPDATE SET body = excluded.body
-- name: minute_values
SELECT at, body FROM minute_values WHERE at >= ? AND at < ? ORDER BY at
-- name: minute_values_trim
DELETE FROM minute_values WHERE at < ?
-- name: tasks
SELECT id, body FROM tasks ORDER BY id
-- name: task_put
INSERT INTO tasks (id, body) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET body = excluded.body
-- name: task_delete
DELETE FROM tasks WHERE id = ?
-- name: sends
SELECT id, body FROM sends ORDER BY id
-- name: send_put
INSERT INTO sends (id, body) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET body = excluded.body
-- name: send_delete
DELETE FROM sends WHERE id = ?
-- name: send_rows_put
INSERT INTO send_rows (send, upload, chunk, first, count, rows) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (send, upload, chunk) DO UPDATE SET rows = excluded.rows
-- name: send_chunks
SELECT upload, chunk, first, count FROM send_rows WHERE send = ? ORDER BY upload, chunk
-- name: send_rows
SELECT rows FROM send_rows WHERE send = ? AND upload = ? AND chunk = ?
-- name: send_rows_delete
DELETE FROM send_rows WHERE send = ? AND upload = ?
-- name: send_errors_put
INSERT INTO send_errors (send, upload, page, errors) VALUES (?, ?, ?, ?) ON CONFLICT (send, upload, page) DO UPDATE SET errors = excluded.errors
-- name: send_errors
SELECT errors FROM send_errors WHERE send = ? AND upload = ? AND page = ?
-- name: send_error_pages
SELECT upload, page, errors FROM send_errors WHERE send = ? ORDER BY upload, page
-- name: send_errors_delete
DELETE FROM send_errors WHERE send = ? AND upload = ?
-- name: send_part_put
INSERT INTO send_parts (send, part, event, at, outcome) VALUES (?, ?, ?, ?, ?) ON CONFLICT (send, part) DO UPDATE SET event = excluded.event, at = excluded.at, outcome = excluded.outcome
-- name: send_parts
SELECT part, event, at FROM send_parts WHERE send = ? ORDER BY part
-- name: send_part
SELECT outcome FROM send_parts WHERE send = ? AND part = ?
-- name: send_parts_delete
DELETE FROM send_parts WHERE send = ?
-- name: linked_file_put
INSERT INTO linked_files (id, service, recipient, expires_at, content) VALUES (?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING
-- name: linked_file
SELECT service, expires_at, content FROM linked_files WHERE id = ?
-- name: linked_files_of
SELECT id FROM linked_files WHERE service = ? AND recipient = ? ORDER BY id
-- name: linked_files_expire
DELETE FROM linked_files WHERE expires_at <= ?
-- name: linked_files_erase
DELETE FROM linked_files WHERE service = ? AND recipient = ?

-- name: notifybc_put
INSERT INTO notifybc_records (service, kind, id, created, updated, body) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (service, kind, id) DO UPDATE SET created = excluded.created, updated = excluded.updated, body = excluded.body
-- name: notifybc_delete
DELETE FROM notifybc_records WHERE service = ? AND kind = ? AND id = ?
-- name: notifybc_record
SELECT id, created, updated, body FROM notifybc_records WHERE service = ? AND kind = ? AND id = ?
-- name: notifybc_records
SELECT id, created, updated, body FROM notifybc_records WHERE service = ? AND kind = ? AND id > ? ORDER BY id LIMIT ? + 0
