package e2e

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"fanfare.dev/fanfare/internal/sink"
	"fanfare.dev/fanfare/internal/test/pgtest"
)

// A mover is somebody who subscribes, changes and ends what they have, while
// the database moves.
type mover struct {
	s     *server
	stop  chan struct{}
	done  sync.WaitGroup
	mu    sync.Mutex
	count int
	on    map[string]bool   // address: an active subscription
	says  map[string]string // address: where its rule has it
}

func (s *server) startMover() *mover {
	m := &mover{s: s, stop: make(chan struct{}), on: map[string]bool{}, says: map[string]string{}}
	for worker := range 2 {
		m.done.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-m.stop:
					return
				default:
				}
				m.changeOne(worker*1_000_000 + i)
			}
		})
	}
	return m
}

// changeOne adds a subscription, changes it, and ends every third. Each
// acknowledged change must be in the database.
func (m *mover) changeOne(i int) {
	id, address := fmt.Sprintf("moving-%d", i), fmt.Sprintf("moving%d@example.org", i)
	put := func(place string) {
		m.s.http.change(m.s.t, "PUT", "/v1/subscriptions/"+id, fmt.Sprintf(`{"topic":"story","channel":"email","to":%q,"rule":"near","params":{"place":%q}}`, address, place))
	}
	put("harbour")
	put("market")
	on := i%3 != 0
	if !on {
		m.s.http.change(m.s.t, "DELETE", "/v1/subscriptions/"+id, "")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.on[address] = on
	m.count++
}

func (m *mover) changes() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.count
}

// end returns who has an active subscription.
func (m *mover) end() (on []string) {
	close(m.stop)
	m.done.Wait()
	for address, active := range m.on {
		if active {
			on = append(on, address)
		}
	}
	return on
}

// change is must for any answer that says done.
func (c *caller) change(t *testing.T, method, path, body string) {
	status, text, _ := c.send(method, path, plain, body)
	if status >= 300 {
		t.Errorf("%s %s: %d %s", method, path, status, text)
	}
}

// mailsWith counts the mails of each recipient with a word in the subject.
func (r *relay) mailsWith(word string) map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := map[string]int{}
	for recipient, mails := range r.mails {
		for _, mail := range mails {
			if strings.HasSuffix(field(mail, "Subject"), word) {
				n[recipient]++
			}
		}
	}
	return n
}

// expect fails unless exactly these people got one mail each with the word.
func (r *relay) expect(word string, people []string) {
	r.t.Helper()
	got := r.mailsWith(word)
	for _, p := range people {
		if got[p] != 1 {
			r.t.Errorf("%s: %s got %d mails", word, p, got[p])
		}
		delete(got, p)
	}
	for p, n := range got {
		r.t.Errorf("%s: %s got %d mails and should have none", word, p, n)
	}
}

// routes are the databases of a move, as FANFARE_DB names them; "" are files.
func routes(t *testing.T) map[string][2]string {
	return map[string][2]string{"files to PostgreSQL": {"", pgtest.Database(t)}, "PostgreSQL to files": {pgtest.Database(t), ""}}
}

// secretOf is the password in the URL of one of two databases.
func secretOf(t *testing.T, databases [2]string) string {
	t.Helper()
	u, err := url.Parse(databases[0] + databases[1])
	if err != nil {
		t.Fatal(err)
	}
	secret, _ := u.User.Password()
	if len(secret) < 10 {
		t.Fatalf("%q is no password to look for", secret)
	}
	return secret
}

// named is what a database is called on the command line of migrate.
func named(database string) string {
	if database == "" {
		return "sqlite"
	}
	return "db"
}

// migrate runs the command against the server that works.
func (s *server) migrate(from, to string, flags ...string) ran {
	s.t.Helper()
	env := []string{"FANFARE_SERVER=" + s.url, "FANFARE_KEY=" + s.key, "FANFARE_DB=" + from + to} // one of them is empty
	return run(s.t, env, "", append([]string{"migrate", "--server", s.url, "--data-dir", s.dir, "--from", named(from), "--to", named(to)}, flags...)...)
}

// A broadcast is under way at a relay that refuses some for now, events follow,
// and people subscribe, change and end, while the database moves under the server.
func TestAMoveDuringABroadcastLosesNothingAndMailsNobodyTwice(t *testing.T) {
	t.Parallel()
	for name, databases := range routes(t) {
		t.Run(name, func(t *testing.T) {
			r := newRelay(t, sink.Config{Inject: sink.Inject{Seed: 5, TempFail: 0.1}})
			s := prepare(t)
			s.database = databases[0]
			s.start()
			s.http.must(200, "POST", "/v1/apply", yaml, news(r.addr, "rate: 800/s, connections: 8, retry: [1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s]"))
			people := crowd(3000)
			s.subscribe(people...)
			first := s.http.publish(`{"title":"first"}`)
			eventually(t, "some of the first has left", func() bool { return r.total() > 200 })
			rate := func(of, rate string) {
				s.http.must(204, "POST", "/v1/rate", "application/json", fmt.Sprintf(`{"scope":{"kind":"broadcast","name":%q},"rate":%q}`, of, rate))
			}
			rate(first, "10/s") // it must not be over before the database has moved, however long that takes
			changing := s.startMover()
			eventually(t, "some subscriptions have changed", func() bool { return changing.changes() > 10 })

			moved := s.migrate(databases[0], databases[1])
			if moved.code != 0 || !strings.Contains(moved.out, "writes waited for") {
				t.Fatalf("migrate ended with %d: %s%s", moved.code, moved.out, moved.err)
			}
			if open := s.http.broadcast(first); open.State == "completed" {
				t.Error("the broadcast was over before the database had moved")
			}
			rate(first, "unlimited")
			second := s.http.publish(`{"title":"second"}`)
			already := changing.changes()
			eventually(t, "subscriptions change in the new database", func() bool { return changing.changes() > already+10 })
			on := changing.end()
			third := s.http.publish(`{"title":"third","place":"the market"}`)
			for _, event := range []string{first, second, third} {
				s.http.completed(event)
			}
			r.expect("first", people)
			r.expect("second", people)
			r.expect("third", append(on, people...))

			status := into[struct {
				NextStart string `json:"next_start"`
			}](t, s.mustRun("", "status", "--json"))
			want := "remove the setting db before the next start"
			if databases[1] != "" {
				want = "set the setting db to fanfare@"
			}
			if !strings.HasPrefix(status.NextStart, want) {
				t.Errorf("the status says %q of the next start", status.NextStart)
			}
			if has := strings.Contains(s.mustRun("", "status", "--service", "news"), "PostgreSQL"); has != (databases[1] != "") {
				t.Errorf("after the move the status shows a database: %v", has)
			}
			audit := s.mustRun("", "audit", "--kind", "move", "--json")
			if !strings.Contains(audit, `"move"`) {
				t.Errorf("the move is not in the audit: %s", audit)
			}
			told := s.http.must(200, "GET", "/v1/move", "", "")
			s.mustStop()
			for what, text := range map[string]string{"audit": audit, "log": s.logged(), "command": moved.out + moved.err, "resource": told} {
				if strings.Contains(text, secretOf(t, databases)) {
					t.Errorf("the %s shows the password: %s", what, tail(text, 2000))
				}
			}
			old := run(t, []string{"FANFARE_DB=" + databases[0]}, "", "serve", "--data-dir", s.dir, "--listen", "127.0.0.1:0")
			if old.code == 0 || !strings.Contains(old.err, "moved to") && !strings.Contains(old.err, "db") {
				t.Errorf("a start on the old database ended with %d: %s", old.code, old.err)
			}
			s.database = databases[1]
			s.start()
			fourth := s.http.publish(`{"title":"fourth","place":"the market"}`)
			s.http.completed(fourth)
			r.expect("fourth", append(on, people...))
			r.expect("first", people)
			s.mustStop()

			back := s.migrateStopped(databases[1], databases[0])
			if back.code != 0 {
				t.Fatalf("the way back ended with %d: %s%s", back.code, back.out, back.err)
			}
			s.database = databases[0]
			s.start()
			if b := s.http.broadcast(fourth); b.State != "completed" {
				t.Errorf("back again the fourth is %s", b.State)
			}
		})
	}
}

// From one PostgreSQL to another: the data directory goes along.
func TestTheNextStartAfterAMoveBetweenTwoPostgreSQL(t *testing.T) {
	t.Parallel()
	r := newRelay(t, sink.Config{})
	s := prepare(t)
	s.database = pgtest.Database(t)
	s.start()
	s.http.must(200, "POST", "/v1/apply", yaml, news(r.addr, ""))
	people := crowd(20)
	s.subscribe(people...)
	to := pgtest.Database(t)
	s.http.must(202, "POST", "/v1/move", "application/json", fmt.Sprintf(`{"to":%q}`, to))
	eventually(t, "all has moved", func() bool {
		return strings.Contains(s.http.must(200, "GET", "/v1/move", "", ""), `"done"`)
	})
	s.mustStop()
	s.database = to
	s.start()
	s.http.completed(s.http.publish(`{"title":"after"}`))
	r.expect("after", people)
}

// migrateStopped runs the command where no server works.
func (s *server) migrateStopped(from, to string, flags ...string) ran {
	s.t.Helper()
	return run(s.t, []string{"FANFARE_DB=" + from + to}, "", append([]string{"migrate", "--data-dir", s.dir, "--from", named(from), "--to", named(to)}, flags...)...)
}

// A flag that names a data directory does not let a server elsewhere move because a
// variable names it.
func TestMigrateRefusesADataDirectoryBesideAServerOfTheEnvironment(t *testing.T) {
	t.Parallel()
	live := prepare(t)
	live.database = ""
	live.start()
	stopped := prepare(t)
	stopped.database = ""
	stopped.start()
	stopped.mustStop()
	to := t.TempDir()
	env := []string{"FANFARE_SERVER=" + live.url, "FANFARE_KEY=" + live.key, "FANFARE_DB=" + "postgres://fanfare@127.0.0.1:1/none"}
	for _, args := range [][]string{
		{"--data-dir", stopped.dir, "--from", "sqlite", "--to", "db"},
		{"--from", stopped.dir, "--to", "db"},
		{"--server", live.url, "--data-dir", stopped.dir, "--from", "sqlite", "--to", "db"},
		{"--server", live.url, "--data-dir", live.dir, "--from", stopped.dir, "--to", "db"},
	} {
		r := run(t, env, "", append([]string{"migrate"}, args...)...)
		if r.code != 1 || !strings.Contains(r.err, stopped.dir) || !strings.Contains(r.err, "omit") {
			t.Errorf("migrate %v ended with %d: %s%s", args, r.code, r.out, r.err)
		}
	}
	if _, answer, _ := live.http.send("GET", "/v1/move", "", ""); strings.Contains(answer, "postgres") {
		t.Errorf("the live server was asked to move: %s", answer)
	}
	if r := run(t, nil, "", "migrate", "--data-dir", stopped.dir, "--from", "sqlite", "--to", to); r.code != 0 {
		t.Errorf("without the variable it ended with %d: %s%s", r.code, r.out, r.err)
	}
}

// The command without a server: what it would do, what it did, and what it
// refuses.
func TestMigrateOfAStoppedServer(t *testing.T) {
	t.Parallel()
	s := prepare(t)
	s.database = ""
	s.start()
	s.http.must(200, "POST", "/v1/apply", yaml, news("127.0.0.1:1", ""))
	s.subscribe(crowd(20)...)
	other := t.TempDir()
	migrate := func(args ...string) ran {
		return run(t, nil, "", append([]string{"migrate", "--data-dir", s.dir}, args...)...)
	}
	refused := func(r ran, why string) {
		t.Helper()
		if r.code == 0 || !strings.Contains(r.err, why) {
			t.Errorf("ended with %d: %s%s", r.code, r.out, r.err)
		}
	}
	refused(migrate("--from", "sqlite", "--to", other, "--dry-run"), "another server is using")
	refused(migrate("--from", "sqlite", "--to", "postgres://a:secret@127.0.0.1:1/b"), "on the command line")
	refused(run(t, nil, "", "demo", "--once", "--db", "postgres://a:secret@127.0.0.1:1/b"), "on the command line")
	refused(run(t, nil, "", "bench", "N1", "--db", "postgres://a@127.0.0.1:1/b?password=secret"), "on the command line")
	refused(migrate("--from", "sqlite"), "--from or --to")
	refused(run(t, []string{"FANFARE_SERVER=" + s.url, "FANFARE_DATA_DIR=" + s.dir}, "", "migrate", "--from", s.dir, "--to", "postgres://a@127.0.0.1:1/b"), "cannot be reached") // of the server, with its key
	s.mustStop()
	refused(migrate("--from", other, "--to", "sqlite"), "no data to move")
	refused(migrate("--from", "sqlite", "--to", s.dir), "are identical")
	if r := migrate("--from", "sqlite", "--to", other, "--dry-run"); r.code != 0 || !strings.Contains(r.out, "rows would move") {
		t.Errorf("the plan ended with %d: %s%s", r.code, r.out, r.err)
	}
	if r := migrate("--from", "sqlite", "--to", other); r.code != 0 || !strings.Contains(strings.Join(strings.Fields(r.out), " "), "control subscriptions 20 ") {
		t.Fatalf("the move ended with %d: %s%s", r.code, r.out, r.err)
	}
	if r := migrate("--from", "sqlite", "--to", other, "--compare"); r.code != 0 || !strings.Contains(r.out, "have the same") {
		t.Errorf("comparing ended with %d: %s%s", r.code, r.out, r.err)
	}
	refused(run(t, nil, "", "serve", "--data-dir", s.dir, "--listen", "127.0.0.1:0"), "moved to "+other)
	if r := run(t, nil, "", "doctor", "--data-dir", s.dir, "--listen", "127.0.0.1:0"); r.code == 0 || !strings.Contains(r.out, "moved to "+other) {
		t.Errorf("the doctor ended with %d: %s%s", r.code, r.out, r.err)
	}
	if err := os.WriteFile(filepath.Join(s.dir, "database.json"), []byte(`{"identity":"1","database":"one@that.is.lost/now"}`), 0o600); err != nil { // as of a server that worked with it since
		t.Fatal(err)
	}
	if r := migrate("--from", "sqlite", "--unmark"); r.code != 0 || !strings.Contains(r.out, "removed the mark of the move to "+other) || !strings.Contains(r.out, "can start on "+s.dir) {
		t.Errorf("taking the mark away ended with %d: %s%s", r.code, r.out, r.err)
	}
	if r := migrate("--from", "sqlite", "--unmark"); r.code != 0 || !strings.Contains(r.out, s.dir+" is not marked") {
		t.Errorf("taking it away again ended with %d: %s%s", r.code, r.out, r.err)
	}
	s.start()
	s.subscribe("later@example.org")
	s.mustStop()
	refused(migrate("--from", "sqlite", "--to", other, "--compare"), "since the move")
}
