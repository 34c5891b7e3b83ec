package e2e

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/internal/sink"
)

// deliverers starts a leader that delivers nothing itself, and nodes that deliver for it.
func (c *testCluster) deliverers(names ...string) (leader *server, nodes []*server) {
	c.t.Helper()
	leader = c.node("leader", "--roles", "lead", "--allow-networks", "127.0.0.0/8")
	leader.launch()
	leader.ready("it leads")
	key, err := os.ReadFile(leader.path("admin.key"))
	if err != nil {
		c.t.Fatal(err)
	}
	leader.use(strings.TrimSpace(string(key)))
	for _, name := range names {
		nodes = append(nodes, c.deliverer(leader, name))
	}
	return leader, nodes
}

// deliverer starts a node that delivers for a leader, and waits until it does.
func (c *testCluster) deliverer(leader *server, name string) *server {
	c.t.Helper()
	n := c.node(name, "--roles", "deliver", "--allow-networks", "127.0.0.0/8")
	n.launch()
	n.use(leader.key)
	leader.delivers(name, true)
	return n
}

// delivers waits until a node delivers, or no longer does.
func (s *server) delivers(name string, want bool) {
	s.t.Helper()
	eventually(s.t, fmt.Sprintf("node %s delivers: %v", name, want), func() bool {
		for _, n := range into[client.Nodes](s.t, s.http.must(200, "GET", "/v1/nodes", "", "")).Nodes {
			if n.Name == name {
				return n.Delivers == want
			}
		}
		return !want
	})
}

// acceptedBy returns how many messages the relays of a channel accepted from each node; "" is the leader.
func (s *server) acceptedBy(channel string) map[string]int64 {
	s.t.Helper()
	all := map[string]int64{}
	for _, ch := range s.status().Channels {
		if ch.Name == channel {
			for _, r := range ch.Relays {
				all[r.Node] += r.Accepted
			}
		}
	}
	return all
}

// signal sends a signal to the process of a server.
func (s *server) signal(sig syscall.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
}

// Two nodes send the mails and webhooks of a leader that has no connections itself. A node that stops in order repeats
// nothing. Without a node, messages wait.
func TestNodesDeliverForTheLeader(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t)
	leader, nodes := c.deliverers("one", "two")
	r := newRelay(t, sink.Config{})
	leader.http.must(200, "POST", "/v1/apply", yaml, news(r.addr, "rate: 500/s, connections: 4, retry: [1s, 1s, 1s]"))
	people := crowd(2000)
	leader.subscribe(people...)
	first := nodes[0].http.publish(`{"title":"first"}`)
	eventually(t, "both nodes send", func() bool {
		by := leader.acceptedBy("email")
		return by["one"] > 100 && by["two"] > 100
	})
	nodes[1].mustStop()
	leader.http.completed(first)
	r.expect("first", people)
	if by := leader.acceptedBy("email"); by[""] != 0 {
		t.Errorf("the leader itself sent %d", by[""])
	}

	nodes[0].mustStop()
	second := leader.http.publish(`{"title":"second"}`)
	eventually(t, "the status says that no node delivers", func() bool {
		for _, ch := range leader.status().Channels {
			if ch.Name == "email" {
				return strings.Contains(ch.LastError, "no node with the role deliver")
			}
		}
		return false
	})
	again := c.deliverer(leader, "three")
	leader.http.completed(second)
	r.expect("second", people)
	if out := leader.mustRun("", "nodes"); !strings.Contains(out, "three") || !strings.Contains(out, "delivers") {
		t.Errorf("fanfare nodes: %s", out)
	}
	if out := leader.mustRun("", "relay", "list"); !strings.Contains(out, "three") {
		t.Errorf("fanfare relay: %s", out)
	}
	again.hears(leader)
}

// hears sends a webhook through a node, and checks its signature (Standard Webhooks): it is made with the cluster's key.
func (s *server) hears(leader *server) {
	s.t.Helper()
	var mu sync.Mutex
	var signed, signatures []string
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // the signature shows whether it is whole
		mu.Lock()
		defer mu.Unlock()
		signed = append(signed, r.Header.Get("Webhook-Id")+"."+r.Header.Get("Webhook-Timestamp")+"."+string(body))
		signatures = append(signatures, r.Header.Get("Webhook-Signature"))
	}))
	s.t.Cleanup(receiver.Close)
	leader.http.must(200, "POST", "/v1/apply", yaml, "service: news\nchannels:\n  hook: {driver: webhook, allow_http: true, rate: unlimited, retry: [1s, 1s, 1s]}\n")
	leader.http.subscribe(fmt.Sprintf(`{"id":"hook","topic":"story","channel":"hook","to":%q}`, receiver.URL))
	leader.http.completed(leader.http.publish(`{"title":"hooked"}`))
	secret, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(strings.Fields(leader.mustRun("", "secret", "hook", receiver.URL))[0], "whsec_"))
	mu.Lock()
	defer mu.Unlock()
	if err != nil || len(signed) != 1 {
		s.t.Fatalf("%d requests, secret: %v", len(signed), err)
	}
	sum := hmac.New(sha256.New, secret)
	sum.Write([]byte(signed[0]))
	if want := "v1," + base64.StdEncoding.EncodeToString(sum.Sum(nil)); signatures[0] != want {
		s.t.Errorf("the signature is %s, want %s", signatures[0], want)
	}
}

// A node is killed and another one is frozen while they send. The others continue, nothing is lost, and each connection
// repeats at most one message.
func TestNodesThatFailWhileTheyDeliverLoseNothing(t *testing.T) {
	t.Parallel()
	const connections = 4
	c := newTestCluster(t)
	leader, nodes := c.deliverers("one", "two", "three")
	r := newRelay(t, sink.Config{})
	leader.http.must(200, "POST", "/v1/apply", yaml, news(r.addr, fmt.Sprintf("rate: 400/s, connections: %d, retry: [1s, 1s, 1s]", connections)))
	people := crowd(4000)
	leader.subscribe(people...)
	first := leader.http.publish(`{"title":"first"}`)
	eventually(t, "some of the first has left", func() bool { return r.total() > 300 })
	nodes[0].kill()
	eventually(t, "more of the first has left", func() bool { return r.total() > 1000 })
	nodes[1].signal(syscall.SIGSTOP)
	leader.delivers("two", false)
	eventually(t, "more of the first has left without the frozen node", func() bool { return r.total() > 2500 })
	nodes[1].signal(syscall.SIGCONT)
	leader.delivers("two", true)
	leader.http.completed(first)
	r.atMostOncePerConnection("first", people, 2*connections)
	if by := leader.acceptedBy("email"); by["three"] == 0 || by["two"] == 0 {
		t.Errorf("the nodes sent %v", by)
	}
}

// Three nodes share the rate of a channel exactly, also while nodes join and leave: all messages together take as long as the
// rate demands, and a provider counts no second with more messages than the rate and one for each connection. A busy machine
// can hold up a message on each connection and let them arrive together.
func TestNodesShareTheRateOfAChannel(t *testing.T) {
	t.Parallel()
	const rate, connections = 350, 20
	c := newTestCluster(t)
	leader, nodes := c.deliverers("one", "two")
	r := newRelay(t, sink.Config{Above: rate + 3*connections})
	leader.http.must(200, "POST", "/v1/apply", yaml, news(r.addr, fmt.Sprintf("rate: %d/s, connections: %d, retry: [1s, 1s, 1s]", rate, connections)))
	people := crowd(7000)
	leader.subscribe(people...)
	began := time.Now()
	event := leader.http.publish(`{"title":"first"}`)
	eventually(t, "a part has left", func() bool { return r.total() > 1500 })
	c.deliverer(leader, "three")
	eventually(t, "another part has left", func() bool { return r.total() > 3500 })
	nodes[0].mustStop()
	leader.http.completed(event)
	took := time.Since(began)
	r.expect("first", people)
	refused := r.sink.Stats().RejectedAbove
	t.Logf("%d messages in %.1f s, %.0f/s; %d refused", len(people), took.Seconds(), float64(len(people))/took.Seconds(), refused)
	if refused > int64(len(people)/1000) {
		t.Errorf("the provider refused %d of %d", refused, len(people))
	}
	if least := time.Duration(len(people)/rate-1) * time.Second; took < least {
		t.Errorf("%d messages left in %v; at the rate they take at least %v", len(people), took, least)
	}
}

// People end their subscriptions while nodes send to them over a slow relay. Nothing begins to arrive after the end of a
// subscription was acknowledged.
func TestNodesSendNothingAfterAnAcknowledgedEnd(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t)
	leader, nodes := c.deliverers("one", "two")
	r := newRelay(t, sink.Config{})
	leader.http.must(200, "POST", "/v1/apply", yaml, news(r.addr, "rate: 300/s, connections: 8"))
	people := crowd(1500)
	var b strings.Builder
	for _, p := range people {
		fmt.Fprintf(&b, `{"id":%q,"topic":"story","channel":"email","to":%q}`+"\n", p, p)
	}
	leader.http.must(200, "POST", "/v1/subscriptions?quiet=true", lines, b.String())
	var mu sync.Mutex
	ended, late := map[string]bool{}, 0
	r.mu.Lock()
	r.gate = func() { <-time.After(20 * time.Millisecond) } // the mail is taken before
	r.mu.Unlock()
	event := leader.http.publish(`{"title":"first"}`)
	eventually(t, "the first mails arrive", func() bool { return r.total() > 0 })
	random := rand.New(rand.NewPCG(1, 2))
	order := random.Perm(len(people))
	var next atomic.Int32
	var leaving sync.WaitGroup
	for range 4 {
		leaving.Go(func() {
			for {
				at := int(next.Add(1)) - 1
				if at >= 400 {
					return
				}
				who := people[order[at]]
				status, _, _ := nodes[at%2].http.send("DELETE", "/v1/subscriptions/"+who, "", "")
				now := len(r.of(who))
				mu.Lock()
				if status != 204 {
					t.Errorf("the end of %s: %d", who, status)
				}
				ended[who] = now > 0
				mu.Unlock()
			}
		})
	}
	leaving.Wait()
	leader.http.completed(event)
	without := 0
	for who, before := range ended {
		switch {
		case before:
		case len(r.of(who)) > 0:
			late++
		default:
			without++
		}
	}
	if late > 0 || without == 0 || without == len(ended) {
		t.Errorf("%d mails arrived after the end; %d of %d people got none", late, without, len(ended))
	}
	t.Logf("%d of %d people who left got no mail", without, len(ended))
}

// A delivering node that has the DKIM keys makes RSA signatures for the leader. Each mail is verified with another
// implementation.
func TestANodeSignsForTheLeader(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t)
	leader, _ := c.deliverers("one")
	r := newRelay(t, sink.Config{})
	folder := t.TempDir()
	keys := []madeKey{leader.newKey(folder, "first", "rsa"), leader.newKey(folder, "second", "ed25519")}
	leader.http.must(200, "POST", "/v1/apply", yaml, news(r.addr, "rate: unlimited, dkim: ["+keys[0].entry()+", "+keys[1].entry()+"]"))
	people := crowd(400)
	leader.subscribe(people...)
	signatures := 0
	for _, title := range []string{"first", "second"} { // the node learns the keys of the channel with the first connection
		leader.http.completed(leader.http.publish(fmt.Sprintf(`{"title":%q}`, title)))
		r.expect(title, people)
	}
	for _, p := range people {
		for _, mail := range r.of(p) {
			if got := signers(t, mail, keys...); !slices.Equal(got, []string{"first", "second"}) {
				t.Errorf("%s: signed with %v", p, got)
			}
			signatures++
		}
	}
	for _, line := range strings.Split(leader.http.must(200, "GET", "/metrics", "", ""), "\n") {
		if n, ok := strings.CutPrefix(line, `fanfare_node_signatures_total{node="one"} `); ok {
			t.Logf("the node made %s of %d RSA signatures", n, signatures)
			if n == "0" {
				t.Error("the node signed nothing")
			}
			return
		}
	}
	t.Error("the metrics do not show the signatures of the node")
}
