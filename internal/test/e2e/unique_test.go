package e2e

import (
	"slices"
	"strings"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/sink"
)

// With unique: subscription, equal subscriptions are separate, each gets its own mail, and the links of a mail
// end only its own subscription, also after a restart.
func TestEachSubscriptionGetsItsOwnMail(t *testing.T) {
	t.Parallel()
	r := newRelay(t, sink.Config{KeepFirst: 1000})
	s := serve(t)
	document := strings.Replace(grouped(r.addr, "rate: unlimited"), "story: {template: story}", "story: {template: story, unique: subscription}", 1)
	s.http.must(200, "POST", "/v1/apply", yaml, document)
	const same = `{"topic":"story","channel":"email","to":"ada@example.org"}`
	var ids []string
	for range 3 {
		ids = append(ids, s.http.subscribe(same))
	}
	s.http.subscribe(`{"topic":"story","channel":"email","to":"grace@example.org"}`)
	s.http.subscribe(`{"id":"mine","topic":"story","channel":"email","to":"grace@example.org"}`)
	s.http.subscribe(`{"id":"mine","topic":"story","channel":"email","to":"grace@example.org"}`) // an id is still unique
	slices.Sort(ids)
	if len(slices.Compact(slices.Clone(ids))) != 3 {
		t.Fatalf("equal subscriptions have the ids %v", ids)
	}

	b := s.http.completed(s.http.publish(`{"title":"first"}`))
	if b.Matched != 5 || b.Messages != 5 || b.Counts[fanfare.Accepted] != 5 {
		t.Errorf("%d matched, %d messages, %v", b.Matched, b.Messages, b.Counts)
	}
	for _, m := range r.sink.Messages() {
		to := slices.Sorted(slices.Values(m.To))
		if len(slices.Compact(to)) != len(m.To) {
			t.Errorf("one transaction has a recipient twice: %v", m.To)
		}
	}
	deliveries := s.http.deliveries(b.Event, "&recipient=ada@example.org")
	var of []string
	for _, d := range deliveries {
		if len(d.Subscriptions) != 1 {
			t.Errorf("a message is about %v", d.Subscriptions)
		}
		of = append(of, d.Subscriptions...)
	}
	if slices.Sort(of); !slices.Equal(of, ids) {
		t.Errorf("the mails are about %v, not %v", of, ids)
	}

	// An event for one subscriber is not sent in groups, so that each mail has its links.
	s.http.must(200, "POST", "/v1/apply", yaml, strings.Replace(document, "multicast: 100, ", "", 1))
	s.http.completed(s.http.publish(`{"title":"second"}`))
	var links []string
	for _, body := range r.of("ada@example.org") {
		if field(body, "Subject") == "second" {
			links = append(links, strings.Trim(field(body, "List-Unsubscribe"), "<>"))
		}
	}
	slices.Sort(links)
	if len(links) != 3 || len(slices.Compact(slices.Clone(links))) != 3 {
		t.Fatalf("the links are %v", links)
	}
	path, _ := strings.CutPrefix(links[1], "https://news.example.org/")
	s.http.with("").must(200, "POST", "/"+path, "application/x-www-form-urlencoded", "List-Unsubscribe=One-Click")
	ended := 0
	for _, id := range ids {
		if into[struct{ State string }](t, s.http.must(200, "GET", "/v1/subscriptions/"+id, "", "")).State == "ended" {
			ended++
		}
	}
	if ended != 1 {
		t.Errorf("%d subscriptions ended", ended)
	}

	s.stop()
	s.start()
	s.http.subscribe(same)
	if b := s.http.completed(s.http.publish(`{"title":"third"}`)); b.Messages != 5 {
		t.Errorf("after a restart and another subscription: %d messages, want 5", b.Messages)
	}

	refused := s.http.must(409, "POST", "/v1/apply", yaml, grouped(r.addr, "rate: unlimited"))
	if !strings.Contains(refused, "/topics/story/unique") {
		t.Errorf("the refusal is %s", refused)
	}
	refused = s.http.must(422, "POST", "/v1/apply", yaml, strings.Replace(document, "unique: subscription", "unique: subscription, digest: {template: story}", 1))
	if !strings.Contains(refused, "/topics/story/unique") {
		t.Errorf("the refusal is %s", refused)
	}
	refused = s.http.must(422, "POST", "/v1/apply", yaml, strings.Replace(document, "unique: subscription", "unique: person", 1))
	if !strings.Contains(refused, "/topics/story/unique") {
		t.Errorf("the refusal is %s", refused)
	}
}
