package postgres

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"fanfare.dev/fanfare/internal/store"
)

// statementsOf are the statements of all parts, those of the day for aDay.
func statementsOf() map[string]store.Statements {
	return map[string]store.Statements{
		"control":   store.ParseStatements(controlFile()),
		"sessions":  store.ParseStatements(sessionFile()),
		"mailboxes": store.ParseStatements(mailboxFile()),
		"day":       store.ParseStatements(strings.ReplaceAll(dayFile(), "yyyymmdd", aDay.String())),
	}
}

var parameter = regexp.MustCompile(`[?$](\d*)`)

// parameters is how many parameters a text has, in either dialect.
func parameters(text string) int {
	highest, plain := 0, 0
	for _, match := range parameter.FindAllStringSubmatch(text, -1) {
		if match[1] == "" {
			plain++
			continue
		}
		number, _ := strconv.Atoi(match[1])
		highest = max(highest, number)
	}
	return plain + highest
}

// The callers know statements by name only: a name or an argument that one database lacks
// would fail at its users.
func TestBothDatabasesKnowTheSameStatements(t *testing.T) {
	files := map[string][]string{"control": {"queries.sql", "moves.sql"}, "sessions": {"queries.sql"}, "mailboxes": {"queries.sql"}, "day": {"queries.sql"}}
	for part, ours := range map[string]store.Statements{"control": store.ParseStatements(controlText + movesText), "sessions": store.ParseStatements(sessionText), "mailboxes": store.ParseStatements(mailboxText), "day": store.ParseStatements(dayText)} {
		var file []byte
		for _, name := range files[part] {
			text, err := os.ReadFile(filepath.Join("..", "sqlite", part, name))
			if err != nil {
				t.Fatal(err)
			}
			file = append(file, text...)
		}
		theirs := store.ParseStatements(string(file))
		for _, name := range slices.Sorted(maps.Keys(ours)) {
			switch other, ok := theirs[name]; {
			case !ok:
				t.Errorf("%s: only PostgreSQL has %s", part, name)
			case parameters(ours[name].Text) != parameters(other.Text):
				t.Errorf("%s: %s has %d parameters, and %d in SQLite", part, name, parameters(ours[name].Text), parameters(other.Text))
			}
		}
		for _, name := range slices.Sorted(maps.Keys(theirs)) {
			if _, ok := ours[name]; !ok {
				t.Errorf("%s: only SQLite has %s", part, name)
			}
		}
	}
}

// A driver sends and reads these types, and a statement has no other.
var sent = []uint32{pgtype.Int2OID, pgtype.Int4OID, pgtype.Int8OID, pgtype.BoolOID, pgtype.TextOID, pgtype.ByteaOID}

func TestStatementsArePreparedWithTypesThatTheDriverSends(t *testing.T) {
	conn := migrated(t)
	if err := createDay(t.Context(), conn, aDay); err != nil {
		t.Fatal(err)
	}
	for part, statements := range statementsOf() {
		for name, s := range statements {
			shape, err := conn.Prepare(t.Context(), part+"_"+name, s.Text)
			if err != nil {
				t.Errorf("%s: %s: %v", part, name, err)
				continue
			}
			for i, oid := range shape.ParamOIDs {
				if !slices.Contains(sent, oid) {
					t.Errorf("%s: %s: parameter %d has type %d", part, name, i+1, oid)
				}
			}
			for _, column := range shape.Fields {
				if !slices.Contains(sent, column.DataTypeOID) {
					t.Errorf("%s: %s: column %s has type %d", part, name, column.Name, column.DataTypeOID)
				}
			}
		}
	}
}

// Days share no table whose rows are many: a statement that named the
// partitioned table would lock the tables of all days.
func TestStatementsOfADayNameItsOwnTables(t *testing.T) {
	conn := migrated(t)
	large := map[string]bool{}
	for _, name := range collect[string](t, conn, "SELECT parent FROM day_tables()") {
		large[name] = true
	}
	table := regexp.MustCompile(`(?:FROM|INTO|UPDATE|JOIN) ([a-z_]+)`)
	named := regexp.MustCompile(`WITH (?:RECURSIVE )?(\w+)`) // within a statement
	for name, s := range store.ParseStatements(dayFile()) {
		within := append(named.FindStringSubmatch(s.Text), "", "")[1]
		for _, match := range table.FindAllStringSubmatch(s.Text, -1) {
			if match[1] == within {
				continue
			}
			base, own := strings.CutSuffix(match[1], "_yyyymmdd")
			if large[base] != own {
				t.Errorf("%s: %s", name, match[0])
			}
			if !own && !strings.Contains(s.Text, "'yyyymmdd'") {
				t.Errorf("%s: %s of all days", name, match[0])
			}
		}
	}
}

// collect returns the one column of a query.
func collect[T any](t *testing.T, conn *pgx.Conn, query string, args ...any) []T {
	t.Helper()
	rows, err := conn.Query(t.Context(), query, args...)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	values, err := pgx.CollectRows(rows, pgx.RowTo[T])
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return values
}
