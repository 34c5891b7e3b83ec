package upgrade

import (
	"path/filepath"
	"testing"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/sink"
)

// nowhere is a relay that nothing can leave by: the discard port, where nobody
// listens. A fixture ends with it, so that nothing leaves before its test says.
const nowhere = "127.0.0.1:9"

// makeFixture lets a program, built with the tag crashsteps, work until its data
// directory has everything that a fixture wants, and packs what it leaves when
// it is killed.
func makeFixture(t *testing.T, program, version string) {
	good, soft, hard := newRelay(t, sink.Inject{}), newRelay(t, sink.Inject{TempFail: 1, TempFailAlways: true}), newRelay(t, sink.Inject{PermFail: 1})
	relays := map[string]string{mail: good.addr, slow: good.addr, waiting: good.addr, later: soft.addr, never: hard.addr}
	dir := t.TempDir()
	people := crowd(40)
	fixture := expect{Version: version, People: people, Ended: "gone@example.org"}
	note := func(id, title, state string, to, got []string) {
		fixture.Events = append(fixture.Events, event{ID: id, Title: title, State: state, People: to, Got: got})
	}

	s := serve(t, program, dir)
	s.apply(document(func(c string) string { return relays[c] }, "20/s"))
	for _, c := range channels {
		s.subscribe(c, people...)
	}
	s.subscribe(mail, fixture.Ended)
	s.must("DELETE", "/v1/subscriptions/"+mail+"-"+fixture.Ended, "", "", nil)

	id := s.publish(mail, "finished")
	s.settled(id, len(people))
	note(id, "finished", finished, people, good.got("finished"))
	id = s.publish(never, "refused")
	s.settled(id, len(people))
	note(id, "refused", refused, people, nil)

	s.control("pause", fanfare.ScopeChannel, "news/"+mail)
	id = s.publish(mail, "parked")
	eventually(t, "it is frozen", func() bool { return s.broadcast(id).Messages > 0 })
	turnManifest(t, dir, id)
	s.control("resume", fanfare.ScopeChannel, "news/"+mail)
	eventually(t, "it is parked", func() bool { return len(s.parked()) == 1 })
	turnManifest(t, dir, id)
	note(id, "parked", parked, people, nil)

	s.control("pause", fanfare.ScopeChannel, "news/"+waiting)
	id = s.publish(waiting, "held")
	eventually(t, "it is frozen", func() bool { return s.broadcast(id).Messages > 0 })
	note(id, "held", held, people, nil)

	id = s.publish(later, "deferred")
	eventually(t, "all of it is deferred", func() bool { return s.broadcast(id).Counts[fanfare.Deferred] == int64(len(people)) })
	note(id, "deferred", deferred, people, nil)

	id = s.publish(slow, "halfway")
	eventually(t, "some of it has left", func() bool { return len(good.got("halfway")) > 5 })
	s.apply(document(func(string) string { return nowhere }, "20/s"))
	eventually(t, "all that has left is counted", func() bool {
		return s.broadcast(id).Counts[fanfare.Accepted] == int64(len(good.got("halfway")))
	})
	s.kill()
	note(id, "halfway", halfway, people, good.got("halfway"))

	s = serve(t, program, dir, "FANFARE_CRASH_AT=before-manifest:1")
	id = s.publish(mail, "unmatched")
	select {
	case <-s.gone:
	case <-time.After(patience):
		t.Fatal("the program does not stop at its steps: build it with -tags crashsteps")
	}
	note(id, "unmatched", unmatched, people, nil)

	if err := pack(dataOf(version), dir); err != nil {
		t.Fatal(err)
	}
	if err := fixture.write(); err != nil {
		t.Fatal(err)
	}
}

// settled waits until n deliveries of an event are over.
func (s *server) settled(id string, n int) {
	s.t.Helper()
	eventually(s.t, id+" is over", func() bool { return s.broadcast(id).Counts.Settled() == int64(n) })
}

// turnManifest spoils the manifests of an event; a second time it mends them.
func turnManifest(t *testing.T, dir, id string) {
	t.Helper()
	ref, ok := fanfare.ParseEventRef(id)
	if !ok {
		t.Fatalf("%q is no event", id)
	}
	execute(t, filepath.Join(dir, "deliveries", "deliveries-"+ref.Day.String()+".db"),
		`UPDATE manifests SET members = CAST(CASE substr(members, 1, 1) WHEN x'94' THEN x'63' ELSE x'94' END || substr(members, 2) AS BLOB) WHERE id >= ? AND id < ?`,
		[]any{int64(fanfare.NewManifestID(ref.Seq, 0)), int64(fanfare.NewManifestID(ref.Seq+1, 0))})
}

// execute runs one statement on a file that a server has, or had, open.
func execute(t *testing.T, file, query string, args []any) {
	t.Helper()
	conn, err := sqlite.OpenConn(file, sqlite.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	err = sqlitex.ExecuteTransient(conn, query, &sqlitex.ExecOptions{Args: args})
	if closing := conn.Close(); err != nil || closing != nil {
		t.Fatal(err, closing)
	}
}
