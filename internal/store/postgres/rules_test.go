package postgres

import (
	"regexp"
	"strings"
	"testing"
)

// A program of the version before may be at work while a migration runs, and for
// as long as its operator likes after it. So a migration only adds, and holds no
// table for longer than a moment. See docs/decisions/0011-postgres-layout.md.

// A forbidden thing in a migration after the first ones.
type forbidden struct {
	name    string
	pattern *regexp.Regexp
	unless  *regexp.Regexp // in the same statement
	why     string
}

func phrase(words string) *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b` + strings.ReplaceAll(words, " ", `\s+`) + `\b`)
}

var forbiddenInMigrations = []forbidden{
	{"a column goes", phrase("DROP COLUMN"), nil, "the version before names it"},
	{"a table or view goes", phrase("DROP (TABLE|VIEW|SCHEMA|TYPE|FUNCTION|PROCEDURE)"), nil, "the version before names it"},
	{"a name changes", phrase("RENAME"), nil, "the version before knows the old one"},
	{"a type changes", regexp.MustCompile(`(?i)\bALTER\s+(COLUMN\s+)?\w+\s+(SET\s+DATA\s+)?TYPE\b`), nil, "the whole table is written anew, locked"},
	{"a type changes", phrase("ALTER TYPE"), nil, "the version before writes the old values"},
	{"NULL is refused", phrase("SET NOT NULL"), nil, "the version before may write it, and the whole table is read, locked"},
	{"a column that the version before leaves out", regexp.MustCompile(`(?i)\bADD\s+(COLUMN\s+)?(IF\s+NOT\s+EXISTS\s+)?\w+\s+[^,;]*\bNOT\s+NULL\b`),
		phrase("DEFAULT"), "its inserts would fail: give it a DEFAULT"},
	{"a default that differs from row to row", regexp.MustCompile(`(?i)\bADD\s+[^;]*\bDEFAULT\s+[^,;]*\b(now|random|clock_timestamp|gen_random_uuid|nextval|current_\w+)\b`), nil,
		"the whole table is written anew, locked"},
	{"a default goes", phrase("DROP DEFAULT"), nil, "the version before counts on it"},
	{"an index is made locked", regexp.MustCompile(`(?i)\bCREATE\s+(UNIQUE\s+)?INDEX\b`), phrase("CONCURRENTLY"),
		"nobody writes meanwhile; CONCURRENTLY needs `-- +goose NO TRANSACTION`"},
	{"an index goes locked", phrase("DROP INDEX"), phrase("CONCURRENTLY"), "who reads would be waited for, and all others behind it"},
	{"what is unique changes", regexp.MustCompile(`(?i)\bADD\s+(CONSTRAINT\s+\w+\s+)?(PRIMARY\s+KEY|UNIQUE|EXCLUDE)\b`), phrase("USING INDEX"),
		"an index is made locked: make it CONCURRENTLY first"},
	{"rows are checked locked", regexp.MustCompile(`(?i)\bADD\s+(CONSTRAINT\s+\w+\s+)?(CHECK|FOREIGN\s+KEY)\b`), phrase("NOT VALID"),
		"the whole table is read, locked: add it NOT VALID, and VALIDATE it in the next"},
	{"a constraint goes", phrase("DROP CONSTRAINT"), nil, "the version before counts on it (ON CONFLICT)"},
	{"a table is locked or written anew", regexp.MustCompile(`(?i)\b(LOCK\s+TABLE|CLUSTER|VACUUM\s+FULL|TRUNCATE|SET\s+(LOGGED|UNLOGGED|TABLESPACE))\b`), nil, "the version before waits for it"},
	{"a way back", regexp.MustCompile(`(?i)\+goose\s+Down`), nil, "migrations go forward only"},
}

var (
	comment = regexp.MustCompile(`--[^\n]*`)
	body    = regexp.MustCompile(`(?s)\$(\w*)\$.*?\$\w*\$`)
	quoted  = regexp.MustCompile(`'(''|[^'])*'`)
)

// breaches returns the rules that a migration breaks. It skips quoted text, which runs later in
// a function of the database.
func breaches(script string) []forbidden {
	code := comment.ReplaceAllStringFunc(script, func(c string) string {
		if strings.HasPrefix(c, "-- +goose") {
			return c
		}
		return ""
	})
	code = quoted.ReplaceAllString(body.ReplaceAllString(code, "''"), "''")
	var found []forbidden
	for statement := range strings.SplitSeq(code, ";") {
		for _, rule := range forbiddenInMigrations {
			if rule.pattern.MatchString(statement) && (rule.unless == nil || !rule.unless.MatchString(statement)) {
				found = append(found, rule)
			}
		}
	}
	return found
}

func TestMigrationsAreSafeWhileTheVersionBeforeRuns(t *testing.T) {
	for _, m := range migrationsFrom(t, first+1) {
		for _, rule := range breaches(m.script) {
			t.Errorf("%s: %s: %s", m.name, rule.name, rule.why)
		}
	}
}

func TestEachRuleOfMigrationsSeesItsBreach(t *testing.T) {
	for script, want := range map[string]string{
		"ALTER TABLE config DROP COLUMN body":                                       "a column goes",
		"DROP TABLE held":                                                           "a table or view goes",
		"DROP FUNCTION make_day(date)":                                              "a table or view goes",
		"ALTER TABLE held RENAME TO kept":                                           "a name changes",
		"ALTER TABLE held ALTER COLUMN id TYPE integer":                             "a type changes",
		"ALTER TABLE held\n  ALTER id SET DATA TYPE integer":                        "a type changes",
		"ALTER TYPE mood ADD VALUE 'sad'":                                           "a type changes",
		"ALTER TABLE held ALTER COLUMN batch SET NOT NULL":                          "NULL is refused",
		"ALTER TABLE held ADD COLUMN n bigint NOT NULL":                             "a column that the version before leaves out",
		"ALTER TABLE held ADD n bigint NOT NULL":                                    "a column that the version before leaves out",
		"ALTER TABLE held ADD COLUMN at timestamptz DEFAULT now()":                  "a default that differs from row to row",
		"ALTER TABLE held ALTER batch DROP DEFAULT":                                 "a default goes",
		"CREATE INDEX held_batch ON held (batch)":                                   "an index is made locked",
		"create unique index on held (batch)":                                       "an index is made locked",
		"DROP INDEX held_batch":                                                     "an index goes locked",
		"ALTER TABLE held ADD CONSTRAINT one UNIQUE (batch)":                        "what is unique changes",
		"ALTER TABLE held ADD CHECK (id > 0)":                                       "rows are checked locked",
		"ALTER TABLE held ADD CONSTRAINT fk FOREIGN KEY (day) REFERENCES days":      "rows are checked locked",
		"ALTER TABLE held DROP CONSTRAINT held_pkey":                                "a constraint goes",
		"LOCK TABLE held":                                                           "a table is locked or written anew",
		"ALTER TABLE held SET UNLOGGED":                                             "a table is locked or written anew",
		"SELECT 1;\n-- +goose Down\nSELECT 1":                                       "a way back",
		"ALTER TABLE held ADD COLUMN a text NOT NULL DEFAULT ''; DROP TABLE parked": "a table or view goes",
	} {
		if found := breaches(script); len(found) != 1 || found[0].name != want {
			t.Errorf("%s: %v, want %q", script, found, want)
		}
	}
	for _, script := range []string{
		"-- no DROP TABLE here\nALTER TABLE held ADD COLUMN note text",
		"ALTER TABLE held ADD COLUMN n bigint NOT NULL DEFAULT 0",
		"-- +goose NO TRANSACTION\nCREATE INDEX CONCURRENTLY held_batch ON held (batch)",
		"DROP INDEX CONCURRENTLY held_batch",
		"ALTER TABLE held ADD CONSTRAINT positive CHECK (id > 0) NOT VALID",
		"ALTER TABLE held VALIDATE CONSTRAINT positive",
		"CREATE TABLE more (id bigint PRIMARY KEY, n integer NOT NULL)",
		"CREATE OR REPLACE FUNCTION drop_day(of date) RETURNS void LANGUAGE plpgsql AS $$ BEGIN EXECUTE 'DROP TABLE x'; END $$",
		"COMMENT ON TABLE held IS 'we DROP TABLE it; never'",
	} {
		if found := breaches(script); len(found) > 0 {
			t.Errorf("%s: %s", script, found[0].name)
		}
	}
}
