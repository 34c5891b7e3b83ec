package e2e

import (
	"fmt"
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/sink"
)

// news is the document that most tests apply. The channel goes to the relay at
// the address; more of its settings may follow.
func news(relay, settings string) string {
	if settings == "" {
		settings = "rate: unlimited, retry: [1s, 1s, 1s]"
	}
	return fmt.Sprintf(`service: news
channels:
  email: {driver: smtp, relay: %q, from: "News <news@example.org>", %s}
topics:
  story:
    schema:
      type: object
      required: [title]
      additionalProperties: false
      properties:
        title: {type: string}
        level: {type: number}
        place: {type: string}
    template: story
    rules:
      - {name: near, when: "contains_ci(event.place, sub.place)", params: {place: string}, template: near}
      - {name: level, when: "event.level >= sub.from", params: {from: number}}
templates:
  story:
    subject: "{{ event.title }}"
    text: |
      Hello {{ subscriber.address }}, this is {{ event.title }}.
      {%% for s in subscriptions %%}because of {{ s.id }}
      {%% endfor %%}{{ unsubscribe_url }}
  near:
    subject: "Near you: {{ event.title }}"
    text: |
      {%% for s in subscriptions %%}because of {{ s.id }}
      {%% endfor %%}
`, relay, settings)
}

// newsroom is a server with the document applied, and its relay.
func newsroom(t *testing.T, config sink.Config, settings string, flags ...string) (*server, *relay) {
	t.Helper()
	r := newRelay(t, config)
	s := serve(t, flags...)
	s.http.must(200, "POST", "/v1/apply", yaml, news(r.addr, settings))
	return s, r
}

// crowd names n people.
func crowd(n int) []string {
	people := make([]string, n)
	for i := range people {
		people[i] = fmt.Sprintf("person%d@example.org", i)
	}
	return people
}

// subscribe lets people have every story.
func (s *server) subscribe(people ...string) {
	s.t.Helper()
	var b strings.Builder
	for _, p := range people {
		fmt.Fprintf(&b, `{"topic":"story","channel":"email","to":%q}`+"\n", p)
	}
	sum := into[summary](s.t, s.http.must(200, "POST", "/v1/subscriptions?quiet=true", lines, b.String()))
	if sum.Created != len(people) || sum.Failed != 0 {
		s.t.Fatalf("of %d subscriptions: %+v", len(people), sum)
	}
}

type summary struct {
	Created, Updated, Failed, Accepted, Duplicates int
	Errors                                         []struct {
		Line  int
		Error member
	}
}
