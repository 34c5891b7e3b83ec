package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/internal/sink"
	"fanfare.dev/fanfare/internal/test/pgtest"
)

// newEmbeddedCluster prepares three nodes whose embedded NATS servers store the bus.
func newEmbeddedCluster(t *testing.T) (c *testCluster, nodes []*server) {
	t.Helper()
	c = &testCluster{t: t, database: pgtest.Database(t), key: clusterKey(t)}
	for range 3 {
		c.routes = append(c.routes, pgtest.Address(t))
	}
	for i, name := range []string{"one", "two", "three"} {
		nodes = append(nodes, c.node(name, "--cluster-listen", c.routes[i]))
	}
	return c, nodes
}

// startAll starts nodes, of which the first leads first.
func startAll(nodes ...*server) {
	for i, n := range nodes {
		n.t.Helper()
		n.launch()
		if i == 0 {
			eventually(n.t, "the first node has the lease", func() bool { return strings.Contains(n.logged(), "this node leads") })
		}
	}
	nodes[0].ready("it leads")
	key, err := os.ReadFile(nodes[0].path("admin.key"))
	if err != nil {
		nodes[0].t.Fatal(err)
	}
	for _, n := range nodes {
		n.ready("it is up")
		n.use(strings.TrimSpace(string(key)))
	}
}

// The leader, whose process has one of the three NATS servers, is killed during a broadcast. Another node takes over with the other two.
func TestEmbeddedServersSurviveTheirLeader(t *testing.T) {
	t.Parallel()
	_, nodes := newEmbeddedCluster(t)
	startAll(nodes...)
	eventually(t, "three copies are current", func() bool {
		return strings.Contains(nodes[2].mustRun("", "nodes"), "bus: 3 of 3 copies are current, embedded NATS, synced at intervals")
	})
	report := run(t, nodes[0].where(), "", slices.Concat([]string{"doctor", "--data-dir", nodes[0].dir, "--listen", strings.TrimPrefix(nodes[0].url, "http://"), "--durability", "relaxed"}, nodes[0].args)...)
	for _, want := range []string{"3 of 3 copies of the bus are current", "a power loss of several NATS servers"} {
		if !strings.Contains(strings.Join(strings.Fields(report.out), " "), want) {
			t.Errorf("fanfare doctor does not say %q: %s%s", want, report.out, report.err)
		}
	}
	r := newRelay(t, sink.Config{})
	nodes[1].http.must(200, "POST", "/v1/apply", yaml, news(r.addr, "rate: 400/s, connections: 4"))
	people := crowd(3000)
	nodes[1].subscribe(people...)
	first := nodes[1].http.publish(`{"title":"first"}`)
	eventually(t, "some of the first has left", func() bool { return r.total() > 200 })
	ended := time.Now()
	nodes[0].kill()
	second := nodes[1].publishAgain("second") // waits for the takeover
	t.Logf("the next event was accepted %v after the kill", time.Since(ended).Round(time.Millisecond))
	for _, event := range []string{first, second} {
		nodes[2].http.completed(event)
	}
	t.Logf("both broadcasts were complete %v after the kill", time.Since(ended).Round(time.Millisecond))
	r.atMostOncePerConnection("first", people, 3*4) // each node delivers
	r.expect("second", people)

	nodes[0].launch()
	nodes[0].ready("it forwards")
	nodes[0].http.url = nodes[0].url
	nodes[0].http.completed(nodes[0].http.publish(`{"title":"third"}`))
	r.expect("third", people)

	leads, standby := nodes[1], nodes[2]
	if strings.Contains(leaderOf(nodes[0]), "three") {
		leads, standby = nodes[2], nodes[1]
	}
	leads.mustStop() // in order: it gives away the streams, too
	ended = time.Now()
	fourth := standby.publishAgain("fourth")
	t.Logf("the next event was accepted %v after an orderly stop", time.Since(ended).Round(time.Millisecond))
	standby.http.completed(fourth)
	r.expect("fourth", people)
}

// Two of three nodes are killed. The leader says that it has no quorum, and works again when one of them is back. An event that
// nobody acknowledged meanwhile is accepted once.
func TestALeaderWithoutAQuorumWaits(t *testing.T) {
	t.Parallel()
	_, nodes := newEmbeddedCluster(t)
	startAll(nodes...)
	r := newRelay(t, sink.Config{})
	nodes[0].http.must(200, "POST", "/v1/apply", yaml, news(r.addr, ""))
	people := crowd(20)
	nodes[0].subscribe(people...)
	nodes[1].kill()
	nodes[2].kill()
	reason := func() string {
		_, text, _ := nodes[0].http.send("GET", "/readyz", "", "")
		return text
	}
	eventually(t, "the leader has no quorum", func() bool { return strings.Contains(reason(), "can reach 1 of 3") })
	nodes[1].launch()
	event := nodes[0].publishAgain("first")
	nodes[0].http.completed(event)
	r.expect("first", people)
}

// leaderOf asks a node who leads.
func leaderOf(s *server) string {
	s.t.Helper()
	for _, n := range into[client.Nodes](s.t, s.http.must(200, "GET", "/v1/nodes", "", "")).Nodes {
		if n.Leader {
			return n.Name
		}
	}
	return ""
}

// A single server with PostgreSQL and an embedded bus is killed while it sends, and becomes the first of three nodes. The nodes
// finish its work, and know the ids of its events. A bus with work that is not part of the cluster is refused.
func TestASingleServerGrowsIntoEmbeddedServers(t *testing.T) {
	t.Parallel()
	c, nodes := newEmbeddedCluster(t)
	one := prepare(t)
	one.database = c.database
	one.start()
	r := newRelay(t, sink.Config{})
	one.http.must(200, "POST", "/v1/apply", yaml, news(r.addr, "rate: 100/s, connections: 4"))
	people := crowd(1000)
	one.subscribe(people...)
	first := one.publishAgain("first")
	eventually(t, "some of the first has left", func() bool { return r.total() > 100 })
	one.kill()
	copied := filepath.Join(t.TempDir(), "bus")
	if err := os.CopyFS(copied, os.DirFS(one.path("bus"))); err != nil {
		t.Fatal(err)
	}

	one.args, nodes[0].dir, nodes[0].key = nodes[0].args, one.dir, one.key
	nodes[1].launch()
	eventually(t, "a node without the bus has the lease", func() bool { return strings.Contains(nodes[1].logged(), "this node leads") })
	nodes[0].launch()
	nodes[2].launch()
	for _, n := range nodes {
		n.ready("it is up")
		n.use(one.key)
	}
	if event := nodes[2].publishAgain("first"); event != first {
		t.Errorf("the event %s was accepted again as %s", first, event)
	}
	nodes[2].http.completed(first)
	if !strings.Contains(nodes[1].logged(), "this node cannot lead") || !strings.Contains(nodes[0].logged(), "copying the earlier bus") {
		t.Errorf("the nodes logged:\n%s\n%s", nodes[1].logged(), nodes[0].logged())
	}
	r.atMostOncePerConnection("first", people, 4)
	nodes[1].http.completed(nodes[1].publishAgain("second"))
	r.expect("second", people)
	if left, err := filepath.Glob(one.path("bus*")); err != nil || len(left) != 2 {
		t.Errorf("folders: %v, %v", left, err)
	}

	nodes[2].mustStop()
	if err := os.Rename(copied, nodes[2].path("bus")); err != nil {
		t.Fatal(err)
	}
	if r := run(t, one.where(), "", nodes[2].command()...); r.code == 0 || !strings.Contains(r.err, "unfinished work (event groups: ") {
		t.Errorf("a node with the work of another bus ended with %d: %s", r.code, r.err)
	}
	nodes[0].mustStop()
	nodes[1].mustStop()
	if r := run(t, one.where(), "", "serve", "--data-dir", one.dir, "--listen", "127.0.0.1:0"); r.code == 0 || !strings.Contains(r.err, "stored by the embedded NATS servers") {
		t.Errorf("a single server in the folder of a node ended with %d: %s", r.code, r.err)
	}
}
