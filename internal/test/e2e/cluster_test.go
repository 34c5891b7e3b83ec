package e2e

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"

	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/internal/sink"
	"fanfare.dev/fanfare/internal/test/pgtest"
)

// A testCluster is what the nodes of a cluster share.
type testCluster struct {
	t        *testing.T
	database string
	nats     string
	routes   []string // of the embedded NATS servers that are used instead of nats
	key      string   // file
}

func newTestCluster(t *testing.T) *testCluster {
	t.Helper()
	n, err := natsserver.NewServer(&natsserver.Options{Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	n.Start()
	t.Cleanup(func() { n.Shutdown(); n.WaitForShutdown() })
	if !n.ReadyForConnections(patience) {
		t.Fatal("NATS does not start")
	}
	return &testCluster{t: t, database: pgtest.Database(t), nats: n.ClientURL(), key: clusterKey(t)}
}

// clusterKey returns a file with a cluster key.
func clusterKey(t *testing.T) string {
	t.Helper()
	key := filepath.Join(t.TempDir(), "cluster.key")
	if err := os.WriteFile(key, []byte("a cluster key of a test with enough characters\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return key
}

// node prepares a node.
func (c *testCluster) node(name string, flags ...string) *server {
	address := pgtest.Address(c.t)
	bus := []string{"--nats", c.nats}
	if c.routes != nil {
		bus = []string{"--cluster-routes", strings.Join(c.routes, ",")}
	}
	s := prepare(c.t, slices.Concat([]string{"--node", name, "--listen", address, "--node-url", "http://" + address, "--cluster-key-file", c.key, "--lease", "10s"}, bus, flags)...)
	s.database = c.database
	return s
}

// ready waits until requests to a node are answered.
func (s *server) ready(what string) {
	s.t.Helper()
	eventually(s.t, "the node is ready: "+what, func() bool {
		c := &caller{t: s.t, url: s.url, http: plainHTTP}
		status, _, _ := c.send("GET", "/readyz", "", "")
		return status == 200
	})
}

// pair starts two nodes, of which the first leads.
func (c *testCluster) pair(flags ...string) (leader, standby *server) {
	c.t.Helper()
	leader, standby = c.node("one", flags...), c.node("two", flags...)
	c.start(leader, standby)
	return leader, standby
}

// start starts two nodes, of which the first leads.
func (c *testCluster) start(leader, standby *server) {
	c.t.Helper()
	leader.launch()
	leader.ready("it leads")
	key, err := os.ReadFile(leader.path("admin.key"))
	if err != nil {
		c.t.Fatal(err)
	}
	leader.use(strings.TrimSpace(string(key)))
	standby.launch()
	standby.ready("it forwards")
	standby.use(leader.key)
}

// publishAgain publishes a story until a node has accepted it. It sends the same id each time, because the reply of a node
// that was killed may be lost.
func (s *server) publishAgain(title string) (event string) {
	s.t.Helper()
	story := fmt.Sprintf(`{"specversion":"1.0","id":%q,"source":"/test","type":"story","data":{"title":%q}}`, title, title)
	eventually(s.t, "the event is accepted", func() bool {
		status, text, _ := s.http.send("POST", "/v1/events", "application/cloudevents+json", story)
		if status != 202 {
			return false
		}
		event = into[accepted](s.t, text).Events[0].ID
		return true
	})
	return event
}

// atMostOncePerConnection fails unless each person got a mail with the word, and at most so many got another one.
func (r *relay) atMostOncePerConnection(word string, people []string, connections int) {
	r.t.Helper()
	again := 0
	got := r.mailsWith(word)
	for _, p := range people {
		if got[p] == 0 {
			r.t.Errorf("%s: %s got no mail", word, p)
		}
		again += max(0, got[p]-1)
		delete(got, p)
	}
	if len(got) > 0 {
		r.t.Errorf("%s: %d got a mail and should have none", word, len(got))
	}
	if again > connections {
		r.t.Errorf("%s: %d mails too many for %d connections", word, again, connections)
	}
	r.t.Logf("%s: %d of %d mails were sent again", word, again, len(people))
}

// The leader is killed during a broadcast. The standby takes over and continues the broadcast.
func TestAStandbyTakesOverFromAKilledLeader(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t)
	leader, standby := c.pair()
	r := newRelay(t, sink.Config{})
	standby.http.must(200, "POST", "/v1/apply", yaml, news(r.addr, "rate: 400/s, connections: 8"))
	people := crowd(3000)
	standby.subscribe(people...)
	first := standby.http.publish(`{"title":"first"}`)
	eventually(t, "some of the first has left", func() bool { return r.total() > 200 })
	ended := time.Now()
	leader.kill()
	second := standby.publishAgain("second") // waits for the takeover
	t.Logf("the next event was accepted %v after the kill", time.Since(ended).Round(time.Millisecond))
	for _, event := range []string{first, second} {
		standby.http.completed(event)
	}
	r.atMostOncePerConnection("first", people, 2*8) // both nodes deliver
	r.expect("second", people)

	leader.launch() // is the standby now
	leader.ready("it forwards")
	leader.http.url = leader.url
	third := leader.http.publish(`{"title":"third"}`)
	leader.http.completed(third)
	r.expect("third", people)

	standby.mustStop() // an orderly stop hands over at once
	ended = time.Now()
	fourth := leader.publishAgain("fourth")
	t.Logf("the next event was accepted %v after an orderly stop", time.Since(ended).Round(time.Millisecond))
	leader.http.completed(fourth)
	r.expect("fourth", people)
}

// The leader is frozen for longer than its lease and then continues. It steps down, and each of its connections finishes at
// most one message.
func TestALeaderThatWasFrozenStepsDown(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t)
	leader, standby := c.pair()
	r := newRelay(t, sink.Config{})
	standby.http.must(200, "POST", "/v1/apply", yaml, news(r.addr, "rate: 300/s, connections: 8"))
	people := crowd(3000)
	standby.subscribe(people...)
	first := standby.http.publish(`{"title":"first"}`)
	eventually(t, "some of the first has left", func() bool { return r.total() > 200 })
	if err := leader.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the node is frozen", func() bool {
		state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", leader.cmd.Process.Pid))
		return err == nil && strings.Contains(string(state), ") T ")
	})
	standby.http.must(200, "GET", "/v1/status", "", "") // the frozen node has this request until it loses the lease
	second := standby.publishAgain("second")
	if err := leader.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the first node has stepped down", func() bool { return strings.Contains(leader.logged(), "this node no longer leads") })
	for _, event := range []string{first, second} {
		standby.http.completed(event)
	}
	r.atMostOncePerConnection("first", people, 2*8) // both nodes deliver
	r.expect("second", people)
	leader.ready("it forwards")
	third := leader.http.publish(`{"title":"third"}`)
	leader.http.completed(third)
	r.expect("third", people)
}

// A link in a message of one node works at the other node. A process with another cluster key, a second process with the
// same node name, and a server outside the cluster are refused.
func TestLinksAndKeysAreThoseOfTheCluster(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t)
	leader, standby := c.pair()
	r := newRelay(t, sink.Config{})
	leader.http.must(200, "POST", "/v1/apply", yaml, news(r.addr, ""))
	people := crowd(2)
	leader.subscribe(people...)
	leader.http.completed(leader.http.publish(`{"title":"first"}`))
	link := field(r.one(people[0]), "List-Unsubscribe")
	_, path, ok := strings.Cut(strings.Trim(strings.Split(link, ",")[0], "<>"), "https://news.example.org")
	if !ok {
		t.Fatalf("List-Unsubscribe: %s", link)
	}
	leader.mustStop()
	standby.ready("it leads")
	status, text, _ := standby.http.send("POST", path, "application/x-www-form-urlencoded", "List-Unsubscribe=One-Click")
	if status != 200 && status != 202 {
		t.Fatalf("unsubscribe at the other node: %d %s", status, text)
	}
	standby.http.completed(standby.http.publish(`{"title":"second"}`))
	r.expect("second", people[1:])

	other := filepath.Join(t.TempDir(), "other.key")
	if err := os.WriteFile(other, []byte(strings.Repeat("another key ", 4)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	stranger := run(t, standby.where(), "", "serve", "--data-dir", t.TempDir(), "--listen", "127.0.0.1:0", "--node", "three", "--node-url", "http://127.0.0.1:1", "--nats", c.nats, "--cluster-key-file", other)
	if stranger.code == 0 || !strings.Contains(stranger.err, "cluster_key_file") || !strings.Contains(stranger.err, "copy the key file") {
		t.Errorf("a node with another key ended with %d: %s", stranger.code, stranger.err)
	}
	twin := run(t, standby.where(), "", "serve", "--data-dir", t.TempDir(), "--listen", "127.0.0.1:0", "--node", "two", "--node-url", "http://127.0.0.1:1", "--nats", c.nats, "--cluster-key-file", c.key)
	if twin.code == 0 || !strings.Contains(twin.err, "another process with the node name") {
		t.Errorf("a node with the name of another ended with %d: %s", twin.code, twin.err)
	}
	alone := run(t, standby.where(), "", "serve", "--data-dir", t.TempDir(), "--listen", "127.0.0.1:0")
	if alone.code == 0 || !strings.Contains(alone.err, "another server is using the database") {
		t.Errorf("a server outside the cluster ended with %d: %s", alone.code, alone.err)
	}
	if status, text, _ := standby.http.send("POST", "/v1/move", "application/json", fmt.Sprintf(`{"to":%q}`, "sqlite")); status != 409 {
		t.Errorf("a move of a cluster: %d %s", status, text)
	}
}

// The leader loses the database but can reach the bus and the relay. After its lease has expired, it sends no messages and
// accepts no events. It becomes a standby when it reaches the database again.
func TestALeaderThatLosesTheDatabaseStepsDown(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t)
	database := pgtest.Start(t, pgtest.Quick...)
	c.database = database.URL
	leader, standby := c.node("one"), c.node("two")
	path := database.Proxy(database.URL)
	leader.database = path.URL
	c.start(leader, standby)
	r := newRelay(t, sink.Config{})
	standby.http.must(200, "POST", "/v1/apply", yaml, news(r.addr, "rate: 300/s, connections: 8"))
	people := crowd(3000)
	standby.subscribe(people...)
	first := standby.http.publish(`{"title":"first"}`)
	eventually(t, "some of the first has left", func() bool { return r.total() > 200 })
	path.Silence()
	eventually(t, "the other node leads", func() bool { return strings.Contains(standby.logged(), "this node leads") })
	leader.http.refused(503, "POST", "/v1/topics/story/events", plain, `{"title":"lost"}`)
	second := standby.http.publish(`{"title":"second"}`)
	for _, event := range []string{first, second} {
		standby.http.completed(event)
	}
	r.atMostOncePerConnection("first", people, 2*8) // both nodes deliver
	r.expect("second", people)
	path.Heal()
	eventually(t, "the first node has stepped down", func() bool { return strings.Contains(leader.logged(), "this node no longer leads") })
	leader.ready("it forwards")
	leader.http.completed(leader.http.publish(`{"title":"third"}`))
	r.expect("third", people)
	if got := r.mailsWith("lost"); len(got) > 0 {
		t.Errorf("%d got a mail of an event that was refused", len(got))
	}
}

// The primary of PostgreSQL dies and its synchronous standby is promoted: the nodes find it, and lose nothing.
func TestAClusterFindsThePromotedStandby(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t)
	primary := pgtest.Start(t)
	replica := primary.Standby()
	primary.Administer("ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()")
	one, err := url.Parse(primary.URL)
	if err != nil {
		t.Fatal(err)
	}
	one.Host += "," + hostOf(t, replica.URL)
	query := one.Query()
	query.Set("target_session_attrs", "read-write")
	one.RawQuery = query.Encode()
	c.database = one.String()
	leader, standby := c.pair()
	r := newRelay(t, sink.Config{})
	standby.http.must(200, "POST", "/v1/apply", yaml, news(r.addr, "rate: 400/s, connections: 8"))
	people := crowd(3000)
	standby.subscribe(people...)
	first := standby.http.publish(`{"title":"first"}`)
	eventually(t, "some of the first has left", func() bool { return r.total() > 200 })
	primary.Kill()
	replica.Administer("ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_promote(false)")
	for _, s := range []*server{leader, standby} {
		eventually(t, "the node answers", func() bool {
			status, _, _ := s.http.send("GET", "/v1/status", "", "")
			return status == 200
		})
	}
	standby.http.completed(first)
	r.expect("first", people)
	leader.http.completed(leader.http.publish(`{"title":"second"}`))
	r.expect("second", people)
}

// Both nodes list the same nodes. After an orderly stop of the leader, the other node leads under a later epoch, and the
// stopped node is no longer listed.
func TestTheNodesOfAClusterAreListed(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t)
	leader, standby := c.pair("--roles", "lead,deliver,match")
	var first int64
	eventually(t, "both nodes are listed with what they do", func() bool {
		got := into[client.Nodes](t, standby.http.must(200, "GET", "/v1/nodes", "", ""))
		if !got.Clustered || len(got.Nodes) != 2 || !got.Nodes[1].Matches || !got.Nodes[1].Delivers {
			return false
		}
		one, two := got.Nodes[0], got.Nodes[1]
		if one.Name != "one" || !one.Leader || one.LeaseEpoch == 0 || !one.Responding || one.URL != leader.url || one.StartedAt.IsZero() || one.Version == "" || !one.Delivers {
			t.Fatalf("the leader: %+v", one)
		}
		if two.Name != "two" || two.Leader || two.LeaseEpoch != 0 || !two.Responding || two.SilentSeconds > 15 || two.ClockSkewMS > 1000 || two.ClockSkewMS < -1000 {
			t.Fatalf("the standby: %+v", two)
		}
		first = one.LeaseEpoch
		return true
	})
	metrics := leader.http.must(200, "GET", "/metrics", "", "")
	for _, name := range []string{`fanfare_node_leader{node="one"} 1`, `fanfare_nodes{state="responding"} 2`, `fanfare_node_clock_skew_seconds{node="two"}`} {
		if !strings.Contains(metrics, name) {
			t.Errorf("the metrics lack %s", name)
		}
	}
	reference, err := os.ReadFile("../../../docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	if told, served := namesIn("(?m)^\\| `(fanfare_node[a-z_]*)", string(reference)), namesIn("(?m)^(fanfare_node[a-z_]*)", metrics); !slices.Equal(told, served) {
		t.Errorf("the reference has %v, and the leader %v", told, served)
	}
	if metrics := standby.http.must(200, "GET", "/metrics", "", ""); !strings.Contains(metrics, `fanfare_node_leader{node="two"} 0`) {
		t.Errorf("the metrics of the standby: %s", metrics)
	}
	if r := run(t, standby.where(), "", "nodes", "--server", standby.url, "--key", standby.key); r.code != 0 || !strings.Contains(r.out, "leader") || !strings.Contains(r.out, "standby") {
		t.Errorf("fanfare nodes: %d %s%s", r.code, r.out, r.err)
	}
	if r := run(t, standby.where(), "", "status", "--server", standby.url, "--key", standby.key); !strings.Contains(r.out, "one leads, 1 standby responds") {
		t.Errorf("fanfare status: %d %s%s", r.code, r.out, r.err)
	}
	report := run(t, standby.where(), "", "doctor", "--data-dir", standby.dir, "--listen", strings.TrimPrefix(standby.url, "http://"), "--node", "two", "--node-url", standby.url, "--nats", c.nats, "--cluster-key-file", c.key)
	for _, want := range []string{standby.url + " responds", "db names one host", "no standby is synchronous"} {
		if !strings.Contains(strings.Join(strings.Fields(report.out), " "), want) {
			t.Errorf("fanfare doctor does not say %q: %s%s", want, report.out, report.err)
		}
	}
	if strings.Contains(report.out, "another server already uses") {
		t.Errorf("fanfare doctor: %s", report.out)
	}
	leader.mustStop()
	eventually(t, "the other node leads alone", func() bool {
		got := into[client.Nodes](t, standby.http.must(200, "GET", "/v1/nodes", "", ""))
		return len(got.Nodes) == 1 && got.Nodes[0].Name == "two" && got.Nodes[0].Leader && got.Nodes[0].LeaseEpoch > first
	})
}
