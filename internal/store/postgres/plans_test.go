package postgres

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// literals are values that a statement may be planned with.
var literals = map[uint32]string{
	pgtype.Int2OID: "1", pgtype.Int4OID: "1", pgtype.Int8OID: "1", pgtype.BoolOID: "true", pgtype.TextOID: "'[1,2]'", pgtype.ByteaOID: `'\x00'`,
}

// invocation prepares a statement and returns how it is executed.
func invocation(ctx context.Context, conn *pgx.Conn, name, text string) (string, error) {
	shape, err := conn.Prepare(ctx, name, text)
	if err != nil || len(shape.ParamOIDs) == 0 {
		return fmt.Sprintf("EXECUTE %q", name), err
	}
	args := make([]string, len(shape.ParamOIDs))
	for i, oid := range shape.ParamOIDs {
		args[i] = literals[oid]
	}
	return fmt.Sprintf("EXECUTE %q (%s)", name, strings.Join(args, ", ")), nil
}

// fill gives each large table rows, of which the planner knows nothing.
func fill(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	for _, statement := range []string{
		"INSERT INTO subscribers (place, service, kind, address) SELECT n, 1, 1, 'ada@example.org' FROM generate_series(1, 20000) n",
		"INSERT INTO subscriptions (place, subscriber, created_at, created_seq, topic, channel) SELECT n, n, 1, 1, 1, 1 FROM generate_series(1, 20000) n",
		"INSERT INTO filters (number, text) SELECT n, 'true' FROM generate_series(1, 2000) n",
		"INSERT INTO audit (id, key_id, key_name, request, service, action, kind, name) SELECT n, '', '', '', '', '', '', '' FROM generate_series(1, 2000) n",
		"INSERT INTO suppressions (service, kind, hash, reason, at) SELECT 1, 1, decode(md5(n::text), 'hex'), 'hard_bounce', n FROM generate_series(1, 5000) n",
		"INSERT INTO minute_values (at, body) SELECT n * 60, '' FROM generate_series(1, 11520) n",
		"INSERT INTO news (id, at, entries, blob) SELECT n, 1, 1, '' FROM generate_series(1, 5000) n",
		"INSERT INTO news_position (one, given, planned) VALUES (1, 5000, 0)",
		"INSERT INTO sessions (number, service, worker, kind, name, state, reason, opened_at, ended_at, epoch, opened_by, options) SELECT n, '', '', '', '', '', '', n, n % 2, 1, '', '' FROM generate_series(1, 5000) n",
		"INSERT INTO session_clients (session, client, name, requests, accepted, responses, received, floor, flags) SELECT n, 1, '', 1, 1, 1, 1, 1, 1 FROM generate_series(1, 5000) n",
		"INSERT INTO session_log (session, client, kind, first, count, high, data) SELECT n / 10, 1, n % 3, n, 1, n, '' FROM generate_series(1, 5000) n",
		"INSERT INTO accounts (account, created_at, state, oldest, max_bytes, bytes, max_messages, messages, next_mailbox, next_email, validity, merged, flags, service, address) SELECT n, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, '', n FROM generate_series(1, 5000) n",
		"INSERT INTO credentials (account, credential, created_at, used_at, iterations, name, salt, stored_key, server_key) SELECT n, n, 1, 1, 1, '', '', '', '' FROM generate_series(1, 5000) n",
		"INSERT INTO mailboxes (account, mailbox, parent, sort_order, validity, uid_next, recent_from, messages, unseen, deleted, bytes, highest, created, changed, subscribed, name, role) SELECT n / 10, n % 10, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, n, '' FROM generate_series(1, 5000) n",
		"INSERT INTO messages (account, email, mailbox, uid, modseq, created, size, received, saved, thread, content, flags, keywords) SELECT n / 100, n, n % 3, n, n, n, 1, 1, 1, n, n, 0, '' FROM generate_series(1, 20000) n",
		"INSERT INTO removed (account, modseq, mailbox, uid, email, thread, created, destroyed) SELECT n / 100, n, 1, n, n, n, n, 1 FROM generate_series(1, 5000) n",
		"INSERT INTO removed_mailboxes (account, modseq, mailbox) SELECT n / 100, n, n FROM generate_series(1, 5000) n",
		"INSERT INTO threads (account, hash, thread) SELECT n / 100, n, n FROM generate_series(1, 5000) n",
		"INSERT INTO contents (content, size, base, uses, unused, hash, structure) SELECT n, 1, 0, n % 2, 1 - n % 2, decode(md5(n::text), 'hex'), '' FROM generate_series(1, 5000) n",
		"INSERT INTO content_data (content, data) SELECT n, '' FROM generate_series(1, 5000) n",
		"INSERT INTO uploads (account, content, at) SELECT n / 10, n, n FROM generate_series(1, 5000) n",
		"INSERT INTO mailbox_records (account, kind, record, created, changed, flags, at, body) SELECT n / 10, 2, n, 1, n % 10, n % 3, n, '' FROM generate_series(1, 5000) n",
		"INSERT INTO mailbox_aliases (address, service, account, created_at) SELECT n, '', n / 10, 1 FROM generate_series(1, 5000) n",
		"INSERT INTO search_filters (content, version, filter) SELECT n, 1, '' FROM generate_series(1, 5000) n",
		"INSERT INTO search_queue (content) SELECT n FROM generate_series(1, 5000) n",
		"INSERT INTO mailbox_numbers (kind, given) VALUES ('content', 5000)",
		"INSERT INTO inbox_messages (account, email, sent_day, manifest, position, at, read_at, ended_at, ended) SELECT n / 10, n, 1, n / 100, n % 100, 1, 0, 0, 0 FROM generate_series(1, 5000) n",
		"INSERT INTO inbox_broadcasts (sent_day, seq, stored, read, recalled, expired, recalled_at, expires_at, work_at) SELECT 1, n, 1, 1, 1, 1, 0, n % 2, n % 2 FROM generate_series(1, 5000) n",
		"INSERT INTO inbox_blocks (block, sent_day, manifest, first, last, lowest, highest, members, merged, base, at) SELECT n, 1, n / 10, n % 10 * 100, n % 10 * 100 + 99, n, n + 100, 100, n % 100, 1, 1 FROM generate_series(1, 5000) n",
		"INSERT INTO inbox_block_data (block, data) SELECT n, '' FROM generate_series(1, 5000) n",
		"INSERT INTO broadcasts_20261120 (seq, matched, messages, kept_at, matched_at, frozen_at, service, topic, posted) SELECT n, 1, 1, 1, 1, 1, '', '', '{}' FROM generate_series(1, 5000) n",
		"INSERT INTO frozen_20261120 (id, seq) SELECT n, n FROM generate_series(1, 5000) n",
		"INSERT INTO manifests_20261120 (id, members) SELECT n * 64, '' FROM generate_series(1, 5000) n",
		"INSERT INTO attempts_20261120 (manifest, position, attempt, at, next_at, code, state, text, relay, address) SELECT n / 10 * 64, n % 10, 1, 1, 0, 250, 2, '', '', '' FROM generate_series(1, 20000) n",
		"INSERT INTO completions_20261120 (seq, first_at, last_at, completed_at, counts) SELECT n, 1, 1, 1, '' FROM generate_series(1, 4000) n",
		"INSERT INTO due_20261120 (due_at, manifest, first, attempt, channel, lane, positions) SELECT n, n, 1, 1, 1, 1, '' FROM generate_series(1, 5000) n",
		"INSERT INTO history_20261120 (kind, segment, first, pairs) SELECT n % 3, n / 100, n, '' FROM generate_series(1, 5000) n",
		"INSERT INTO switches (day, seq, channel, state, reason, at) SELECT '2026-11-20', n, 0, '', '', 1 FROM generate_series(1, 2000) n",
		"INSERT INTO controls (day, seq, name, value, at) SELECT '2026-11-20', n, 'rate', '', 1 FROM generate_series(1, 2000) n",
		"INSERT INTO gathered (day, slot, due_at, manifest, members, blob) SELECT '2026-11-20', n % 50, n, n, 1, '' FROM generate_series(1, 5000) n",
		"INSERT INTO pending (day, slot, due_at, service) SELECT '2026-11-20', n % 50, n, '' FROM generate_series(1, 2000) n",
		"INSERT INTO runs (day, slot, due_at, seq) SELECT '2026-11-20', n % 50, n, n FROM generate_series(1, 2000) n",
		"INSERT INTO items (day, seq, number, event, posted) SELECT '2026-11-20', n / 10, n % 10, n, '{}' FROM generate_series(1, 5000) n",
		"INSERT INTO parked (day, id, failures, seq, members, at, kind, reason, payload) SELECT '2026-11-20', n, 5, 1, 1, 1, '', '', '' FROM generate_series(1, 2000) n",
		"INSERT INTO held (day, id, batch) SELECT '2026-11-20', n, '' FROM generate_series(1, 2000) n",
	} {
		execute(t, conn, statement)
	}
}

// whole are the statements that read a table as it lies, or sort what they read,
// with the reason.
var whole = map[string]string{
	"config":          "some hundred rows, sorted by what is no column",
	"suppressions":    "all of them, in no order",
	"sign_ins":        "at most 100 rows for each key, read once at the start",
	"tasks":           "at most 1,000, read once at the start",
	"bounces_trim":    "once a day, what is old",
	"last_completion": "once for each day that is older than the retention",
	"copy_counters":   "one row", "copy_history_position": "one row", "copy_notices_position": "one row", "copy_news_position": "one row", "copy_session_numbers": "one row", "copy_mailbox_numbers": "two rows",
	"accounts_skip": "all of them, once after a loss of power or a restore", "mailboxes_skip": "the same",
	"due_hasten":             "an operator cancels a broadcast: the waiting of a day is read once",
	"due_hasten_destination": "an operator resumes a destination: the same", "due_hastened_destination": "nothing is read",
	"due_destinations":    "an operator asks for whom messages wait: the same",
	"due_waits_of_event":  "some reasons, each counted",
	"linked_files_expire": "what is old, once in a while: the table has few rows, and their content lies apart",
	"linked_files_erase":  "an erasure: the same",
	"removed_since":       "what an account lost after a change, in the order of the caller", "removed_mailboxes_since": "the same",
}

var unordered = regexp.MustCompile(`(Seq Scan|Bitmap|Sort|Hash (Anti |)Join|Append|Gather).*`)

func TestStatementsWalkAlongKeysOfTheirOwnDay(t *testing.T) {
	conn := migrated(t)
	if err := createDay(t.Context(), conn, aDay); err != nil {
		t.Fatal(err)
	}
	if err := createDay(t.Context(), conn, later); err != nil {
		t.Fatal(err)
	}
	fill(t, conn)
	for name, value := range planSettings {
		execute(t, conn, "SELECT set_config($1, $2, false)", name, value)
	}
	other := later.String()
	for part, statements := range statementsOf() {
		for _, name := range slices.Sorted(maps.Keys(statements)) {
			run, err := invocation(t.Context(), conn, part+"_"+name, statements[name].Text)
			if err != nil {
				t.Fatal(err)
			}
			plan := strings.Join(collect[string](t, conn, "EXPLAIN (COSTS OFF) "+run), "\n")
			if _, may := whole[name]; !may && !strings.HasPrefix(name, "count_") && !strings.HasPrefix(name, "clear_") { // which are about whole tables
				if found := unordered.FindString(plan); found != "" {
					t.Errorf("%s: %s: %s\n%s", part, name, found, plan)
				}
			}
			if strings.Contains(plan, other) {
				t.Errorf("%s: %s is about another day\n%s", part, name, plan)
			}
		}
	}
}
