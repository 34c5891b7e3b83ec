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
		"INSERT INTO news (id, at, entries, blob) SELECT n, 1, 1, '' FROM generate_series(1, 5000) n",
		"INSERT INTO news_position (one, given, planned) VALUES (1, 5000, 0)",
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
	"bounces_trim":    "once a day, what is old",
	"last_completion": "once for each day that is older than the retention",
	"copy_counters":   "one row", "copy_history_position": "one row", "copy_notices_position": "one row", "copy_news_position": "one row",
	"due_hasten":             "an operator cancels a broadcast: the waiting of a day is read once",
	"due_hasten_destination": "an operator resumes a destination: the same", "due_hastened_destination": "nothing is read",
	"due_destinations":   "an operator asks for whom messages wait: the same",
	"due_waits_of_event": "some reasons, each counted",
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
