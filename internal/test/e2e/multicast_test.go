package e2e

import (
	"fmt"
	"net/mail"
	"slices"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/sink"
)

// grouped has a story whose mail says the same to all.
func grouped(relay, settings string) string {
	return fmt.Sprintf(`service: news
channels:
  email: {driver: smtp, relay: %q, from: "News <news@example.org>", multicast: 100, %s}
topics:
  story: {template: story}
templates:
  story: {subject: "{{ event.title }}", text: "This is {{ event.title }}."}
`, relay, settings)
}

// transactions are to how many each message went that a relay took, in ascending order.
func (r *relay) transactions() (sizes []int) {
	for _, m := range r.sink.Messages() {
		sizes = append(sizes, len(m.To))
	}
	slices.Sort(sizes)
	return sizes
}

// TestRecipientsShareAMessageUnderARate counts the transactions at the relay: a channel
// sends in groups that its rate allows in a second.
func TestRecipientsShareAMessageUnderARate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		settings   string
		delay      time.Duration
		recipients int
		want       []int
	}{
		"without a rate of its own a channel has 30 in a second": {"connections: 4", 0, 61, []int{1, 30, 30}},
		"a rate above multicast, two connections, a slow relay":  {"connections: 2, rate: 600/s", 400 * time.Millisecond, 300, []int{100, 100, 100}},
		"a fast rate":   {"connections: 4, rate: 3000/s", 0, 500, []int{100, 100, 100, 100, 100}},
		"without limit": {"connections: 4, rate: unlimited", 0, 500, []int{100, 100, 100, 100, 100}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRelay(t, sink.Config{KeepFirst: 1000, Inject: sink.Inject{Delay: c.delay, DelayShare: 1}})
			s := serve(t)
			s.http.must(200, "POST", "/v1/apply", yaml, grouped(r.addr, c.settings))
			s.subscribe(crowd(c.recipients)...)
			b := s.http.completed(s.http.publish(`{"title":"It works"}`))
			if b.Counts[fanfare.Accepted] != int64(c.recipients) {
				t.Errorf("got %v", b.Counts)
			}
			if got := r.transactions(); !slices.Equal(got, c.want) {
				t.Errorf("%d recipients got messages in groups of %v, want %v", c.recipients, got, c.want)
			}
		})
	}
}

// TestSharedMessageToOnePersonNamesThatPerson has one recipient too many for the
// groups, and an event for one person alone.
func TestSharedMessageToOnePersonNamesThatPerson(t *testing.T) {
	t.Parallel()
	r := newRelay(t, sink.Config{KeepFirst: 1000})
	s := serve(t)
	s.http.must(200, "POST", "/v1/apply", yaml, grouped(r.addr, "rate: unlimited"))
	headers := func() (groups, alone mail.Header) {
		t.Helper()
		before := len(r.sink.Messages())
		event := s.http.publish(`{"title":"It works"}`)
		s.http.completed(event)
		for _, m := range r.sink.Messages()[before:] {
			parsed, err := mail.ReadMessage(strings.NewReader(string(m.Body)))
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case len(m.To) > 1:
				groups = parsed.Header
			case parsed.Header.Get("To") != m.To[0] || !strings.HasPrefix(parsed.Header.Get("List-Unsubscribe"), "<https://news.example.org/"):
				t.Errorf("to %s alone went\n%s", m.To[0], m.Body)
			default:
				alone = parsed.Header
			}
		}
		return groups, alone
	}
	s.subscribe(crowd(1)...)
	if _, alone := headers(); !strings.HasPrefix(alone.Get("Message-ID"), "<dlv-") {
		t.Errorf("the only recipient of an event has the Message-ID %s", alone.Get("Message-ID"))
	}
	s.subscribe(crowd(101)[1:]...)
	shared, alone := headers()
	if shared.Get("To") != "undisclosed-recipients:;" || shared.Get("List-Unsubscribe") != "" {
		t.Errorf("a hundred got %v", shared)
	}
	if id := alone.Get("Message-ID"); id != shared.Get("Message-ID") || !strings.HasPrefix(id, "<evt-") {
		t.Errorf("the Message-ID of one is %s, and that of the others %s", id, shared.Get("Message-ID"))
	}
}
