package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"fanfare.dev/fanfare/internal/sink"
)

// An urgent message, and when it was first sent and when it arrived.
type urgent struct {
	to       string
	sent     time.Time
	attempts int
}

// The nodes of a cluster are restarted one after the other, the leader last, while a broadcast is being sent, urgent
// messages arrive at random nodes, and people end their subscriptions. Nothing is lost or repeated, and links in mails that
// were sent before work after. With FANFARE_TEST_OLD, the nodes run this program first, and then the current one.
func TestNodesAreUpgradedOneAfterTheOther(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t)
	nodes := []*server{c.node("one"), c.node("two"), c.node("three")}
	if old := os.Getenv("FANFARE_TEST_OLD"); old != "" {
		for _, n := range nodes {
			n.program = old
		}
	}
	c.start(nodes[0], nodes[1])
	nodes[2].launch()
	nodes[2].use(nodes[0].key)
	nodes[2].ready("it forwards")
	var mu sync.Mutex
	arrived := map[string]time.Time{}
	r := newRelay(t, sink.Config{})
	nodes[0].http.must(200, "POST", "/v1/apply", yaml, news(r.addr, "rate: 300/s, connections: 8, retry: [1s, 1s, 1s]"))
	people := crowd(4000)
	nodes[0].subscribe(people...)
	first := nodes[0].http.publish(`{"title":"first"}`)
	eventually(t, "some of the first has left", func() bool { return r.total() > 100 })

	stop := make(chan struct{})
	var sending sync.WaitGroup
	var all []*urgent
	sending.Go(func() {
		random := rand.New(rand.NewPCG(3, 4))
		tick := time.NewTicker(40 * time.Millisecond)
		defer tick.Stop()
		for n := 0; ; n++ {
			select {
			case <-tick.C:
			case <-stop:
				return
			}
			u := &urgent{to: fmt.Sprintf("urgent%d@example.org", n), sent: time.Now()}
			at := random.IntN(len(nodes))
			mu.Lock()
			all = append(all, u)
			mu.Unlock()
			sending.Go(func() { // a client that tries the next node after an error
				body := fmt.Sprintf(`{"channel":"email","lane":"urgent","template":"story","to":%q,"data":{"title":"urgent"}}`, u.to)
				for ; ; at++ {
					u.attempts++
					status, text, _, err := nodes[at%len(nodes)].http.try("POST", "/v1/messages", plain, body, "Idempotency-Key", u.to)
					if err == nil && status/100 == 2 {
						break
					}
					if err == nil && status != 503 {
						t.Errorf("%s: %d %s", u.to, status, text)
						return
					}
					<-time.After(20 * time.Millisecond)
				}
				for len(r.of(u.to)) == 0 {
					<-time.After(2 * time.Millisecond)
				}
				mu.Lock()
				arrived[u.to] = time.Now()
				mu.Unlock()
			})
		}
	})
	for _, n := range []*server{nodes[1], nodes[2], nodes[0]} {
		n.mustStop()
		n.program = ""
		n.launch()
		n.ready("it is back")
		<-time.After(time.Second)
	}
	close(stop)
	sending.Wait()
	nodes[1].http.completed(first)
	for _, p := range people {
		if n := len(r.of(p)); n != 1 {
			t.Errorf("%s got %d mails", p, n)
		}
	}
	var took []time.Duration
	attempts := 0
	for _, u := range all {
		took = append(took, arrived[u.to].Sub(u.sent))
		attempts += u.attempts
		if n := len(r.of(u.to)); n != 1 {
			t.Errorf("%s got %d mails", u.to, n)
		}
	}
	slices.Sort(took)
	t.Logf("%d urgent messages in %d requests: p50 %v, p99 %v, most %v", len(took), attempts, took[len(took)/2], took[len(took)*99/100], took[len(took)-1])
	link := field(r.of(people[0])[0], "List-Unsubscribe")
	_, path, ok := strings.Cut(strings.Trim(strings.Split(link, ",")[0], "<>"), "https://news.example.org")
	if !ok {
		t.Fatalf("List-Unsubscribe: %s", link)
	}
	if status, text, _ := nodes[2].http.send("POST", path, "application/x-www-form-urlencoded", "List-Unsubscribe=One-Click"); status != 200 && status != 202 {
		t.Errorf("a link of before: %d %s", status, text)
	}
	if _, err := os.Stat(filepath.Join(nodes[1].dir, "link.key")); err == nil {
		t.Log("the second node has led")
	}
}
