package postgres

import (
	"slices"
	"testing"

	"fanfare.dev/fanfare"
)

// The statistics of the planner contain values of columns, which an erasure does not reach.
func TestThePlannerKeepsNothingOfAPerson(t *testing.T) {
	conn := migrated(t)
	if err := createDay(t.Context(), conn, aDay); err != nil {
		t.Fatal(err)
	}
	for _, fill := range []string{
		"INSERT INTO subscribers (place, service, kind, address, id, attributes, parts, locale) SELECT n, 1, 1, 'ada@example.org', 'ada', '{\"name\":\"ada\"}', '[\"ada\"]', 'de' FROM generate_series(1, 500) n",
		"INSERT INTO subscriptions (place, subscriber, created_at, created_seq, topic, channel, id, params, data, reason) SELECT n, n, 1, 1, 1, 1, 'ada', 'ada', 'ada', 'ada' FROM generate_series(1, 500) n",
		"INSERT INTO filters (number, text) SELECT n, 'sub.name == \"ada\"' FROM generate_series(1, 500) n",
		"INSERT INTO audit (id, key_id, key_name, request, service, action, kind, name, detail) SELECT n, '', '', '', '', 'erase', 'subscriber', 'ada', 'ada' FROM generate_series(1, 500) n",
		"INSERT INTO erasures (place, body) SELECT n, 'ada' FROM generate_series(1, 500) n",
		"INSERT INTO broadcasts_20261120 (seq, matched, messages, kept_at, matched_at, frozen_at, service, topic, posted) SELECT n, 1, 1, 1, 1, 1, 'press', 'news', 'ada' FROM generate_series(1, 500) n",
		"INSERT INTO attempts_20261120 (manifest, position, attempt, at, next_at, code, state, text, relay, address) SELECT n, 0, 1, 1, 0, 250, 2, '250 ada', '', 'ada@example.org' FROM generate_series(1, 500) n",
		"INSERT INTO parked (day, id, failures, seq, members, at, kind, reason, payload) SELECT '2026-11-20', n, 5, 1, 1, 1, 'batch', 'ada', 'ada' FROM generate_series(1, 500) n",
		"INSERT INTO sessions (number, service, worker, kind, name, state, reason, opened_at, ended_at, epoch, opened_by, options) SELECT n, '', '', '', 'ada', '', 'ada', 1, 1, 1, '', 'ada' FROM generate_series(1, 500) n",
		"INSERT INTO session_clients (session, client, name, requests, accepted, responses, received, floor, flags) SELECT n, 1, 'ada', 1, 1, 1, 1, 1, 1 FROM generate_series(1, 500) n",
		"INSERT INTO session_log (session, client, kind, first, count, high, data) SELECT n, 1, 1, 1, 1, 1, 'ada' FROM generate_series(1, 500) n",
		"INSERT INTO accounts (account, created_at, state, oldest, max_bytes, bytes, max_messages, messages, next_mailbox, next_email, validity, merged, flags, service, address) SELECT n, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, '', 'ada@example.org' FROM generate_series(1, 500) n",
		"INSERT INTO credentials (account, credential, created_at, used_at, iterations, name, salt, stored_key, server_key) SELECT n, n, 1, 1, 1, 'ada', 'ada', 'ada', 'ada' FROM generate_series(1, 500) n",
		"INSERT INTO mailboxes (account, mailbox, parent, sort_order, validity, uid_next, recent_from, messages, unseen, deleted, bytes, highest, created, changed, subscribed, name, role) SELECT n, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 'ada', '' FROM generate_series(1, 500) n",
		"INSERT INTO messages (account, email, mailbox, uid, modseq, created, size, received, saved, thread, content, flags, keywords) SELECT n, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 'ada' FROM generate_series(1, 500) n",
		"INSERT INTO contents (content, size, uses, unused, base, hash, structure) SELECT n, 1, 1, 1, 0, decode(md5(n::text), 'hex'), 'ada' FROM generate_series(1, 500) n",
		"INSERT INTO inbox_block_data (block, data) SELECT n, 'ada' FROM generate_series(1, 500) n",
		"INSERT INTO mailbox_records (account, kind, record, created, changed, flags, body) SELECT n, 1, n, 1, 1, 0, 'ada' FROM generate_series(1, 500) n",
		"INSERT INTO mailbox_aliases (address, service, account, created_at) SELECT 'ada' || n, '', n, 1 FROM generate_series(1, 500) n",
		"INSERT INTO content_data (content, data) SELECT n, 'ada' FROM generate_series(1, 500) n",
	} {
		execute(t, conn, fill)
	}
	of := aDay
	for _, table := range slices.Concat(scrubTables(nil), scrubTables(&of), sessionTables, mailboxTables, []string{"attempts", "broadcasts"}) {
		execute(t, conn, "ANALYZE "+table)
	}
	if n := value[int](t, conn, "SELECT count(*) FROM pg_stats WHERE schemaname = 'fanfare' AND most_common_vals::text LIKE '%de%'"); n == 0 {
		t.Fatal("the planner knows nothing at all: ANALYZE was none")
	}
	if known := collect[string](t, conn, `SELECT tablename || '.' || attname FROM pg_stats
		WHERE schemaname = 'fanfare' AND concat(most_common_vals, histogram_bounds) SIMILAR TO '%(ada|616461)%'`); len(known) > 0 {
		t.Errorf("ada is in what the planner keeps of %q", known)
	}
}

// scrubTables names them by hand.
func TestTheTablesThatAPersonIsErasedFromExist(t *testing.T) {
	conn := migrated(t)
	if err := createDay(t.Context(), conn, aDay); err != nil {
		t.Fatal(err)
	}
	of := aDay
	for _, part := range []*fanfare.Day{nil, &of} {
		for _, table := range scrubTables(part) {
			execute(t, conn, "VACUUM "+table)
		}
	}
	for _, table := range slices.Concat(sessionTables, mailboxTables) {
		execute(t, conn, "VACUUM "+table)
	}
}
