package server_test

import (
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/admin/backup"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/config"
	"fanfare.dev/fanfare/internal/server"
	"fanfare.dev/fanfare/internal/sink"
	"fanfare.dev/fanfare/internal/store"
	"fanfare.dev/fanfare/internal/store/move"
	"fanfare.dev/fanfare/internal/store/postgres"
	"fanfare.dev/fanfare/internal/store/sqlite"
	"fanfare.dev/fanfare/internal/test/pgtest"
)

// A backup of a server with PostgreSQL is like any other backup: it is restored
// to files, which can then be moved to PostgreSQL.
func TestPostgresBackupRestoresToFilesAndToPostgres(t *testing.T) {
	t.Parallel()
	s := startOn(t, pgtest.Database(t), sink.Inject{})
	s.apply()
	s.must(200, "POST", "/v1/subscriptions?quiet=true", "application/x-ndjson", people(100))
	s.must(202, "POST", "/v1/topics/story/events", "application/json", `{"title":"Sent","level":9}`)
	s.eventually("100 mails", func() bool { return s.sink.Stats().Unique == 100 })
	s.must(204, "POST", "/v1/pause", "application/json", `{"scope":{"kind":"channel","name":"news/email"}}`)
	s.must(202, "POST", "/v1/topics/story/events", "application/json", `{"title":"Open","level":9}`)
	s.eventually("the second broadcast is frozen", func() bool {
		return strings.Contains(s.must(200, "GET", "/v1/status", "", ""), `"pending":100`)
	})
	taken := s.must(200, "GET", "/v1/backup", "", "")
	if left, err := filepath.Glob(filepath.Join(s.dir, "backup.*")); err != nil || len(left) > 0 {
		t.Errorf("it left %v, %v", left, err)
	}
	if err := s.app.Stop(); err != nil {
		t.Fatal(err)
	}

	for i, database := range []string{"", pgtest.Database(t)} {
		s.dir, s.database = filepath.Join(t.TempDir(), "restored"), database
		if _, err := backup.Restore(strings.NewReader(taken), s.dir, time.Now(), nil); err != nil {
			t.Fatal(err)
		}
		if database != "" {
			if early, err := server.Start(t.Context(), config.Config{DataDir: s.dir, Listen: "127.0.0.1:0", Durability: "relaxed", Lease: time.Minute, Retention: 30, DB: database, DBConnections: 8, DBStatementTimeout: time.Minute},
				server.Options{Logger: slog.New(slog.DiscardHandler)}); fanfare.CodeOf(err) != fanfare.Conflict || !strings.Contains(err.Error(), "migrate") {
				t.Errorf("a start before the move: %v, %v", early, err)
			}
			moveInto(t, s.dir, database)
		}
		s.open()
		s.operator = true
		if status := s.must(200, "GET", "/v1/status", "", ""); !strings.Contains(status, `"restored":`) || !strings.Contains(status, `"pending":100`) {
			t.Errorf("the restored server says %s", status)
		}
		s.must(204, "POST", "/v1/resume", "application/json", `{"scope":{"kind":"all"}}`)
		s.must(204, "POST", "/v1/resume", "application/json", `{"scope":{"kind":"channel","name":"news/email"}}`)
		s.eventually("the open mails", func() bool { got := s.sink.Stats(); return got.Unique+got.Duplicates == int64(200+100*i) })
		s.operator = false
		sent := s.must(200, "GET", "/v1/subscribers/person7@example.org/deliveries", "", "")
		if strings.Count(sent, `"state":"accepted"`) != 4 { // two deliveries with an attempt each
			t.Errorf("what is known of a person: %s", sent)
		}
		if err := s.app.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.sink.Stats(); got.Unique != 200 { // each restored server has sent the same 100
		t.Errorf("the sink has %+v", got)
	}
}

// moveInto moves the contents of a restored directory to a database.
func moveInto(t *testing.T, dir, url string) {
	t.Helper()
	from, err := sqlite.Open(t.Context(), dir, store.Relaxed)
	if err != nil {
		t.Fatal(err)
	}
	to, err := postgres.Open(t.Context(), url, postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := move.Stopped(t.Context(), move.Side{Name: dir, DB: from}, move.Side{Name: "the database", DB: to}, move.Options{Clock: clock.System{}, Dir: t.TempDir()}); err != nil {
		t.Fatal(err)
	}
}
