package e2e

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/internal/sink"
)

// quotesDocument is a service whose conditions take long: patterns cannot be indexed. The rule crosses compares a quote with
// the previous one.
const quotesDocument = `service: news
matching_budget: 50ms
channels:
  email: {driver: smtp, relay: %q, from: "Quotes <q@example.org>", rate: unlimited, connections: 8}
topics:
  quote:
    key: symbol
    schema:
      type: object
      required: [symbol, price, text]
      additionalProperties: false
      properties:
        symbol: {type: string}
        price: {type: number}
        text: {type: string}
    template: quote
    rules:
      - {name: crosses, when: "event.symbol == sub.symbol && crosses(event.price, sub.level)", params: {symbol: string, level: number}}
templates:
  quote: {subject: "{{ event.symbol }} {{ event.price }} {{ event.text }}", text: "A quote."}
`

// A leader and two nodes with copies of the index match quotes in groups. Each person gets exactly the quotes that a plain
// model of the market expects, also while subscriptions change, one node is killed and another joins.
func TestNodesMatchEventsForTheLeader(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t)
	leader := c.node("leader", "--roles", "all", "--match-check", "10%")
	c.start(leader, c.node("one", "--roles", "match"))
	second := c.node("two", "--roles", "match")
	second.launch()
	r := newRelay(t, sink.Config{})
	leader.http.must(200, "POST", "/v1/apply", yaml, fmt.Sprintf(quotesDocument, r.addr))
	matching := func(want ...string) {
		t.Helper()
		eventually(t, fmt.Sprint("these nodes match: ", want), func() bool {
			got := map[string]bool{}
			for _, n := range into[client.Nodes](t, leader.http.must(200, "GET", "/v1/nodes", "", "")).Nodes {
				if n.Matches {
					got[n.Name] = true
				}
			}
			for _, name := range want {
				if !got[name] {
					return false
				}
			}
			return len(got) == len(want)
		})
	}
	matching("one", "two")

	random := rand.New(rand.NewPCG(5, 6))
	symbol := func() string { return fmt.Sprintf("s%d", random.IntN(20)) }
	m := &market{last: map[string]int{}, crossings: map[string][2]any{}, patterns: map[string]string{}, want: map[string]int{}}
	var events []string
	completed := func() {
		t.Helper()
		for _, e := range events {
			leader.http.completed(e)
		}
		events = nil
	}
	subscribe := func(n int) {
		completed() // an event that waits also finds later subscriptions
		var b strings.Builder
		for range n {
			m.people++
			who := fmt.Sprintf("p%d@example.org", m.people)
			if m.people%3 == 0 {
				at, level := symbol(), 1+random.IntN(98)
				m.crossings[who] = [2]any{at, level}
				fmt.Fprintf(&b, `{"topic":"quote","channel":"email","to":%q,"rule":"crosses","params":{"symbol":%q,"level":%d}}`+"\n", who, at, level)
				continue
			}
			word := fmt.Sprintf("w%d", random.IntN(1500))
			m.patterns[who] = word
			fmt.Fprintf(&b, `{"topic":"quote","channel":"email","to":%q,"filter":%q}`+"\n", who, fmt.Sprintf("event.text.matches('(^| )%s( |$)')", word))
		}
		sum := into[summary](t, leader.http.must(200, "POST", "/v1/subscriptions?quiet=true", lines, b.String()))
		if sum.Created != n {
			t.Fatalf("subscriptions: %+v", sum)
		}
	}
	publish := func(groups int) {
		for range groups {
			var b strings.Builder
			b.WriteString("[")
			for i := range 100 {
				at, price, text := symbol(), random.IntN(100), fmt.Sprintf("w%d w%d", random.IntN(1500), random.IntN(1500))
				m.quote(at, price, text)
				if i > 0 {
					b.WriteString(",")
				}
				m.quotes++
				fmt.Fprintf(&b, `{"specversion":"1.0","id":"q%d","source":"/market","type":"quote","data":{"symbol":%q,"price":%d,"text":%q}}`, m.quotes, at, price, text)
			}
			b.WriteString("]")
			for _, e := range into[accepted](t, leader.http.must(202, "POST", "/v1/events", "application/cloudevents-batch+json", b.String())).Events {
				events = append(events, e.ID)
			}
		}
	}
	subscribe(1500)
	publish(10)
	subscribe(300)
	publish(10)
	second.kill()
	publish(10)
	second = c.node("three", "--roles", "match")
	second.launch()
	matching("one", "three")
	subscribe(100)
	publish(10)
	completed()
	got := map[string]int{}
	r.mu.Lock()
	for who, mails := range r.mails {
		for _, mail := range mails {
			got[who+" "+strings.TrimSpace(field(mail, "Subject"))]++
		}
	}
	r.mu.Unlock()
	if !maps.Equal(got, m.want) {
		missing, extra := 0, 0
		for k, n := range m.want {
			if got[k] < n {
				missing++
				if missing < 5 {
					t.Errorf("missing: %s", k)
				}
			}
		}
		for k, n := range got {
			if m.want[k] < n {
				extra++
				if extra < 5 {
					t.Errorf("extra: %s", k)
				}
			}
		}
		t.Errorf("%d mails are missing and %d are too many, of %d", missing, extra, len(m.want))
	}
	metrics := leader.http.must(200, "GET", "/metrics", "", "")
	matched := 0
	for _, line := range strings.Split(metrics, "\n") {
		if strings.HasPrefix(line, "fanfare_node_matched_events_total{") {
			t.Log(line)
			matched++
		}
	}
	if matched < 2 {
		t.Errorf("the metrics show %d nodes that matched events", matched)
	}
	t.Logf("%d quotes, %d mails", m.quotes, len(m.want))
}

// A market computes what people get, without any code of the server.
type market struct {
	people, quotes int
	last           map[string]int    // price by symbol
	crossings      map[string][2]any // by person: symbol and level
	patterns       map[string]string // by person: a word
	want           map[string]int    // person and subject
}

func (m *market) quote(symbol string, price int, text string) {
	subject := fmt.Sprintf("%s %d %s", symbol, price, text)
	words := strings.Fields(text)
	for who, word := range m.patterns {
		if words[0] == word || words[1] == word {
			m.want[who+" "+subject]++
		}
	}
	if before, known := m.last[symbol]; known {
		for who, c := range m.crossings {
			if level := c[1].(int); c[0] == symbol && (before < level && price >= level || before > level && price <= level) {
				m.want[who+" "+subject]++
			}
		}
	}
	m.last[symbol] = price
}
