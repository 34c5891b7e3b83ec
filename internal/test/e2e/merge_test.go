package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/sink"
)

// After a merge there is one person with the addresses, the subscriptions and
// the history of both, also after a restart.
func TestTwoSubscribersBecomeOne(t *testing.T) {
	t.Parallel()
	s, r := newsroom(t, sink.Config{}, "")
	s.http.must(201, "PUT", "/v1/subscribers/old", plain, `{"addresses":[{"kind":"mail","address":"old@example.org"},{"kind":"mail","address":"older@example.org"}],"locale":"de","time_zone":"Europe/Vienna","attributes":{"a":1,"b":1}}`)
	s.http.must(201, "PUT", "/v1/subscribers/new", plain, `{"addresses":[{"kind":"mail","address":"new@example.org"}],"locale":"en","attributes":{"b":2}}`)
	for _, put := range []string{
		`{"topic":"story","channel":"email","subscriber":"old"}`,
		`{"id":"kept","topic":"story","channel":"email","subscriber":"old","filter":"event.level > 1"}`,
		`{"topic":"story","channel":"email","subscriber":"new"}`,
	} {
		s.http.subscribe(put)
	}
	first := s.http.publish(`{"title":"first"}`)
	s.http.completed(first)
	old := into[subscriber](t, s.http.must(200, "POST", "/v1/subscribers/old/merge", plain, `{"into":"new"}`))
	if old.ID != "new" || len(old.Addresses) != 3 || old.Addresses[0].Address != "new@example.org" || old.Locale != "en" || old.TimeZone != "Europe/Vienna" {
		t.Errorf("merged: %+v", old)
	}
	s.http.must(200, "POST", "/v1/subscribers/old/merge", plain, `{"into":"new"}`)
	check := func(when string) {
		t.Helper()
		for _, path := range []string{"/v1/subscribers/old", "/v1/subscribers/old/deliveries", "/v1/subscribers/old/export"} {
			if got := s.http.refused(404, "GET", path, "", ""); !strings.Contains(got.Hint, "new") {
				t.Errorf("%s: %s: %+v", when, path, got)
			}
		}
		if got := s.http.must(200, "GET", "/v1/subscribers/new", "", ""); !strings.Contains(got, `"attributes":{"a":1,"b":2}`) {
			t.Errorf("%s: %s", when, got)
		}
		if got := s.http.subscriptionsOf("subscriber=new"); len(got) != 3 {
			t.Errorf("%s: subscriptions %v", when, got)
		}
		history := s.http.history("new")
		of := map[string]int{}
		for _, d := range history {
			of[d.Address]++
			if d.Subscriber != "new" {
				t.Errorf("%s: a delivery of %s", when, d.Subscriber)
			}
		}
		if of["old@example.org"] == 0 || of["old@example.org"] != of["new@example.org"] {
			t.Errorf("%s: the history is of %v", when, of)
		}
	}
	check("at once")
	if b := s.http.completed(s.http.publish(`{"title":"second"}`)); b.Messages != 2 || b.Counts[fanfare.Accepted] != 2 {
		t.Errorf("after the merge: %+v", b.Counts)
	}
	if mail := r.of("old@example.org"); len(mail) != 2 {
		t.Errorf("the old address got %d mails", len(mail))
	}
	s.mustStop()
	s.start()
	check("after a restart")
	for merge, status := range map[string]int{`{"into":"new"}`: 422, `{"into":"nobody"}`: 422, `{"into":"old"}`: 422} {
		s.http.must(status, "POST", "/v1/subscribers/new/merge", plain, merge)
	}
	s.http.must(404, "POST", "/v1/subscribers/nobody/merge", plain, `{"into":"new"}`)
	if got := s.http.refused(422, "POST", "/v1/subscriptions", plain, `{"topic":"story","channel":"email","subscriber":"old"}`); got.Pointer != "/subscriber" || !strings.Contains(got.Hint, "new") {
		t.Errorf("who subscribes with the old id is told %+v", got)
	}
	s.http.must(204, "DELETE", "/v1/subscribers/new", "", "")
	if b := s.http.completed(s.http.publish(`{"title":"third"}`)); b.Matched != 0 {
		t.Errorf("after the end of both: %d matched", b.Matched)
	}
}

// An export has all that is kept of a person and nothing of others.
func TestAnExportHasEverythingOfOnePerson(t *testing.T) {
	t.Parallel()
	s, _ := newsroom(t, sink.Config{}, "")
	s.http.must(201, "PUT", "/v1/subscribers/ada", plain, `{"addresses":[{"kind":"mail","address":"ada@example.org"},{"kind":"mail","address":"ada@work.example"}],"attributes":{"floor":3}}`)
	s.http.subscribe(`{"id":"one","topic":"story","channel":"email","subscriber":"ada","data":{"mine":true}}`)
	s.http.subscribe(`{"id":"two","topic":"story","channel":"email","subscriber":"ada","to":"ada@work.example"}`)
	s.http.subscribe(`{"id":"else","topic":"story","channel":"email","to":"else@example.org"}`)
	s.http.completed(s.http.publish(`{"title":"first"}`))
	s.http.must(204, "DELETE", "/v1/subscriptions/two", "", "")
	message := into[struct{ ID, Event string }](t, s.http.must(201, "POST", "/v1/messages?wait=10s", plain,
		`{"channel":"email","recipients":[{"to":"ada@example.org","data":{"n":"hers"}},{"to":"else@example.org","data":{"n":"not hers"}}],"content":{"subject":"S","text":"{{ sub.n }}"},"data":{"all":1}}`))
	s.http.completed(message.Event)
	status, text, header := s.http.send("GET", "/v1/subscribers/ada/export", "", "")
	if status != 200 || header.Get("Content-Type") != lines {
		t.Fatalf("%d %s", status, header.Get("Content-Type"))
	}
	kinds := map[string]int{}
	for line := range strings.Lines(text) {
		var l map[string]json.RawMessage
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		var kind string
		if err := json.Unmarshal(l["type"], &kind); err != nil || l[kind] == nil || len(l) != 2 {
			t.Errorf("a line of its own kind: %s", line)
		}
		kinds[kind]++
	}
	want := map[string]int{"subscriber": 1, "subscription": 2, "delivery": 3, "message": 1, "audit": 4}
	for kind, n := range want {
		if kinds[kind] != n {
			t.Errorf("%d lines of %s, want %d", kinds[kind], kind, n)
		}
	}
	for _, in := range []string{`"floor":3`, `"mine":true`, `"state":"ended"`, `"hers"`, `"all":1`, "ada@work.example", `"relay":"127.0.0.1:`, message.ID} {
		if !strings.Contains(text, in) {
			t.Errorf("%s is not in it", in)
		}
	}
	for _, out := range []string{"else", "not hers"} {
		if strings.Contains(text, out) {
			t.Errorf("%s of somebody else is in it", out)
		}
	}
	if t.Failed() {
		t.Log(text)
	}
	s.http.must(204, "DELETE", "/v1/subscribers/ada", "", "")
	s.http.must(200, "GET", "/v1/subscribers/ada/export", "", "")
	s.http.must(404, "GET", "/v1/subscribers/nobody/export", "", "")
}
