package server_test

import (
	"fmt"
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/sink"
)

// quotes applies a topic with a key and two rules about the levels that a price crosses.
func (s *testServer) quotes(key string) {
	s.t.Helper()
	s.must(200, "POST", "/v1/apply", "application/yaml", fmt.Sprintf(`
service: news
channels:
  email: {driver: smtp, relay: %q, from: "News <news@example.org>", rate: unlimited}
topics:
  quote:
    schema:
      type: object
      properties: {symbol: {type: string}, venue: {type: string}, price: {type: number}}
    key: %s
    template: quote
    rules:
      - {name: stop, when: "event.symbol == sub.symbol && crosses_below(event.price, sub.level)", params: {symbol: string, level: number}}
      - {name: limit, when: "event.symbol == sub.symbol && crosses_above(event.price, sub.level)", params: {symbol: string, level: number}}
templates:
  quote: {subject: "{{ event.symbol }} {{ event.price }}", text: "{{ event.price }}"}
`, s.addr, key))
}

func (s *testServer) watch(rule, symbol string, level float64) {
	s.t.Helper()
	s.must(201, "POST", "/v1/subscriptions", "application/json", fmt.Sprintf(
		`{"topic":"quote","channel":"email","to":"%s-%s-%g@example.org","rule":%q,"params":{"symbol":%q,"level":%g}}`, rule, symbol, level, rule, symbol, level))
}

// quote publishes one and waits until it is matched.
func (s *testServer) quote(lane, symbol string, price float64) {
	s.t.Helper()
	before := s.matched()
	s.must(202, "POST", "/v1/topics/quote/events?lane="+lane, "application/json", fmt.Sprintf(`{"symbol":%q,"price":%g}`, symbol, price))
	s.eventually("the match", func() bool { return s.matched() > before })
}

func (s *testServer) matched() int {
	s.t.Helper()
	return strings.Count(s.must(200, "GET", "/v1/broadcasts?limit=1000", "", ""), `"frozen"`)
}

func TestCrossingFiresOnce(t *testing.T) {
	s := start(t, sink.Inject{})
	s.quotes("symbol")
	s.watch("limit", "ACME", 100)
	s.watch("stop", "ACME", 90)
	sent := 0
	tick := func(lane, symbol string, price float64, mails int) {
		t.Helper()
		s.quote(lane, symbol, price)
		sent += mails
		s.eventually(fmt.Sprintf("%d mails after %s at %g", sent, symbol, price), func() bool { return s.sink.Stats().Unique >= int64(sent) })
		if got := s.sink.Stats().Unique; got != int64(sent) {
			t.Fatalf("%d mails after %s at %g, want %d", got, symbol, price, sent)
		}
	}
	tick("normal", "ACME", 101, 0) // nothing came before
	tick("normal", "ACME", 95, 0)
	tick("urgent", "ACME", 100, 1) // reached, in another lane
	tick("normal", "ACME", 105, 0)
	tick("bulk", "OTHER", 50, 0)
	tick("normal", "ACME", 89, 1)
	tick("normal", "ACME", 80, 0)

	s.app.Stop() // what was before is known after a restart
	s.open()
	tick("normal", "ACME", 85, 0)
	tick("normal", "ACME", 120, 1)
	s.quotes("venue") // another key: nothing is known of its states
	tick("normal", "ACME", 80, 0)
	s.quotes("symbol")
	tick("normal", "ACME", 120, 0) // nor of the old ones
	tick("normal", "ACME", 80, 1)
	s.app.Stop()
	s.open()
	tick("normal", "ACME", 120, 1)
	if got := s.sink.Stats().Duplicates; got != 0 {
		t.Errorf("%d duplicates", got)
	}
}
