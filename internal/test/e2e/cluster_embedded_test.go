package e2e

import (
	"os"
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
