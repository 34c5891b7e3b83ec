package harness

import (
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/bench/report"
	"fanfare.dev/fanfare/internal/store/postgres"
	"fanfare.dev/fanfare/internal/test/pgtest"
)

// A server of a run never works in the database of whoever runs it.
func TestEachServerOfARunHasASchemaOfItsOwn(t *testing.T) {
	l := &Env{Dir: "/x/.fanfare-bench-123", Ctx: t.Context(), schemas: map[string]bool{}}
	if env, err := l.environment("N1"); err != nil || len(env) != 1 || env[0] != "FANFARE_DB=" {
		t.Errorf("without a database: %q, %v", env, err)
	}
	l.DB = pgtest.Database(t)
	seen := map[string]bool{}
	for _, data := range []string{"N1", "load-200", SampleData} {
		env, err := l.environment(data)
		if err != nil {
			t.Fatal(err)
		}
		at := strings.TrimPrefix(env[0], "FANFARE_DB=")
		again, err := l.environment(data)
		if err != nil || again[0] != env[0] || seen[at] || !strings.Contains(at, "search_path=bench_123_") {
			t.Errorf("%s: %v, then %v, %v", data, env, again, err)
		}
		seen[at] = true
		db, err := postgres.Open(t.Context(), at, postgres.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := l.dropSchemas(); err != nil {
		t.Fatal(err)
	}
	for at := range seen {
		if left, err := postgres.Look(t.Context(), at); err != nil || left.SchemaSeen != 0 {
			t.Errorf("%+v is left, %v", left, err)
		}
	}
}

func TestARecordSaysWhichDatabaseItWasAndHowItWasSet(t *testing.T) {
	r := &report.Record{ID: "N1", Durability: "relaxed", Params: map[string]any{}}
	l := &Env{Ctx: t.Context(), Options: Options{Durability: "relaxed"}}
	if err := l.Describe(r); err != nil || r.OnPostgreSQL() || len(r.Params) != 0 {
		t.Errorf("of files: %v, %v", r.Params, err)
	}
	l.DB = pgtest.Database(t)
	if err := l.Describe(r); err != nil || !r.OnPostgreSQL() {
		t.Fatalf("%v, %v", r.Params, err)
	}
	told := report.ParamsText(r.Params)
	for _, want := range []string{"db PostgreSQL 1", "fsync=", "shared_buffers=", "synchronous_commit=off in the server's sessions"} {
		if !strings.Contains(told, want) {
			t.Errorf("%q does not say %q", told, want)
		}
	}
	if !strings.Contains(report.Label(r), "PostgreSQL") {
		t.Errorf("a plot calls it %s", report.Label(r))
	}
}
