package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/sink"
	"fanfare.dev/fanfare/internal/test/pgtest"
)

// damaged lets an event wait, spoils its manifests in the store, and lets it go:
// what it set off cannot be loaded and is parked.
func damaged(s *server, people []string) (event string, parked []fanfare.Parked) {
	s.t.Helper()
	s.subscribe(people...)
	s.mustRun("", "pause", "--all")
	event = s.http.publish(`{"title":"spoilt"}`)
	s.frozen(event)
	s.spoil()
	s.mustRun("", "resume", "--all")
	eventually(s.t, "the work is parked", func() bool {
		parked = into[[]fanfare.Parked](s.t, s.mustRun("", "parked", "list", "--json"))
		return len(parked) > 0
	})
	return event, parked
}

// frozen waits until an event is matched and its manifests are kept.
func (s *server) frozen(event string) {
	s.t.Helper()
	eventually(s.t, event+" is frozen", func() bool {
		status, text, _ := s.http.send("GET", "/v1/events/"+event, "", "")
		return status == 200 && into[fanfare.Broadcast](s.t, text).Messages > 0
	})
}

// spoil turns the first byte of all manifests; a second time it mends them.
func (s *server) spoil() {
	s.t.Helper()
	if s.database != "" {
		pgtest.Execute(s.t, s.database, "UPDATE manifests SET members = set_byte(members, 0, CASE get_byte(members, 0) WHEN 148 THEN 99 ELSE 148 END)")
		return
	}
	files, err := filepath.Glob(s.path("deliveries/deliveries-*.db"))
	if err != nil || len(files) == 0 {
		s.t.Fatalf("no file of a day: %v", err)
	}
	for _, file := range files {
		conn, err := sqlite.OpenConn(file, sqlite.OpenReadWrite)
		if err != nil {
			s.t.Fatal(err)
		}
		err = sqlitex.ExecuteTransient(conn, `UPDATE manifests SET members = CAST(CASE substr(members, 1, 1) WHEN x'94' THEN x'63' ELSE x'94' END || substr(members, 2) AS BLOB)`, nil)
		if closing := conn.Close(); err != nil || closing != nil {
			s.t.Fatal(err, closing)
		}
	}
}

func TestFailedWorkIsParkedAndCanBeRetried(t *testing.T) {
	t.Parallel()
	s, r := newsroom(t, sink.Config{}, "")
	people := crowd(10)
	event, parked := damaged(s, people)
	if p := parked[0]; p.Event != event || p.Kind != "batch" || p.Failures < 5 || p.Members != 10 || p.Reason == "" {
		t.Errorf("parked as %+v", p)
	}
	if text := s.mustRun("", "parked", "list"); !strings.Contains(text, parked[0].ID) {
		t.Errorf("not listed: %s", text)
	}
	if got := into[fanfareStatus](t, s.mustRun("", "status", "--json")).Parked; got != 1 {
		t.Errorf("the status counts %d", got)
	}
	// It holds up nothing else, and a restart does not forget it.
	s.mustStop()
	s.start()
	other := s.http.publish(`{"title":"sound"}`)
	if b := s.http.completed(other); b.Counts[fanfare.Accepted] != 10 {
		t.Errorf("the next event: %v", b.Counts)
	}
	if ran := s.run("", "parked", "retry", "prk-20200101-1"); ran.code != 1 || !strings.Contains(ran.err, "parked list") {
		t.Errorf("retrying what is not there ended with %d: %s", ran.code, ran.err)
	}
	s.spoil() // the other event is over
	s.mustRun("", "parked", "retry", parked[0].ID)
	if b := s.http.completed(event); b.Counts[fanfare.Accepted] != 10 {
		t.Errorf("got %v", b.Counts)
	}
	if text := s.mustRun("", "parked", "list"); strings.Contains(text, parked[0].ID) {
		t.Errorf("still listed: %s", text)
	}
	if r.total() != 20 || r.sink.Stats().Duplicates != 0 {
		t.Errorf("%d mails, %d duplicates", r.total(), r.sink.Stats().Duplicates)
	}
}

func TestDroppedParkedWorkIsSettledAsCancelled(t *testing.T) {
	t.Parallel()
	s, r := newsroom(t, sink.Config{}, "")
	event, parked := damaged(s, crowd(10))
	s.mustRun("", "parked", "drop", parked[0].ID)
	if b := s.http.completed(event); b.Counts[fanfare.Cancelled] != 10 || b.Counts.Total() != 10 {
		t.Errorf("got %v", b.Counts)
	}
	if got := into[[]fanfare.Parked](t, s.mustRun("", "parked", "list", "--json")); len(got) != 0 || r.total() != 0 {
		t.Errorf("still parked: %+v; %d mails", got, r.total())
	}
	if ran := s.run("", "parked", "drop", parked[0].ID); ran.code != 1 {
		t.Errorf("dropping it twice ended with %d: %s", ran.code, ran.err)
	}
}
