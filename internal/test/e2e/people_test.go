package e2e

import (
	"net/http"
	"strings"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/sink"
)

// The link in a mail ends the subscription when it is posted to, and only then:
// scanners of mail follow links.
func TestUnsubscribeLinkOfAMailActsOnPostOnly(t *testing.T) {
	t.Parallel()
	s, r := newsroom(t, sink.Config{}, "")
	s.subscribe("leaving@example.org", "staying@example.org")
	s.http.completed(s.http.publish(`{"title":"first"}`))
	mail := r.one("leaving@example.org")
	link := strings.Trim(field(mail, "List-Unsubscribe"), "<>")
	if got := field(mail, "List-Unsubscribe-Post"); got != "List-Unsubscribe=One-Click" {
		t.Errorf("List-Unsubscribe-Post is %q", got)
	}
	path, ours := strings.CutPrefix(link, "https://news.example.org/")
	if !ours {
		t.Fatalf("List-Unsubscribe is %q", link)
	}
	if !strings.Contains(mail, link) {
		t.Error("the link of the header is not in the text")
	}
	people := s.http.with("")
	for range 2 {
		page := people.must(200, "GET", "/"+path, "", "")
		if !strings.Contains(page, "<form") || !strings.Contains(page, "Unsubscribe") {
			t.Errorf("no page for people: %s", page)
		}
	}
	s.http.completed(s.http.publish(`{"title":"second"}`))
	if got := len(r.of("leaving@example.org")); got != 2 {
		t.Fatalf("after looking at the page: %d mails, want 2", got)
	}
	for range 2 { // one click may come twice
		people.must(200, "POST", "/"+path, "application/x-www-form-urlencoded", "List-Unsubscribe=One-Click")
	}
	s.http.completed(s.http.publish(`{"title":"third"}`))
	if got := len(r.of("leaving@example.org")); got != 2 {
		t.Errorf("after unsubscribing: %d mails, want 2", got)
	}
	if got := len(r.of("staying@example.org")); got != 3 {
		t.Errorf("the other person got %d mails, want 3", got)
	}
	if forged := path[:len(path)-4] + "AAAA"; forged != path {
		people.must(404, "POST", "/"+forged, "", "")
	}
}

// The end of a subscription wins over its mail as long as that has not left.
func TestEndedSubscriptionIsSuppressedWhileItsMailWaits(t *testing.T) {
	t.Parallel()
	s, r := newsroom(t, sink.Config{}, "")
	s.subscribe("staying@example.org")
	id := s.http.subscribe(`{"id":"leaving","topic":"story","channel":"email","to":"leaving@example.org"}`)
	s.mustRun("", "pause", "--channel", "news/email", "--reason", "test")
	event := s.http.publish(`{"title":"waits"}`)
	eventually(t, "the event is frozen", func() bool {
		status, _, _ := s.http.send("GET", "/v1/events/"+event, "", "")
		return status == 200 && s.http.broadcast(event).Messages == 2
	})
	s.http.must(204, "DELETE", "/v1/subscriptions/"+id, "", "")
	if got := into[struct{ State string }](t, s.http.must(200, "GET", "/v1/subscriptions/"+id, "", "")); got.State != "ended" {
		t.Errorf("the state is %q", got.State)
	}
	s.mustRun("", "resume", "--channel", "news/email")
	b := s.http.completed(event)
	if b.Counts[fanfare.Accepted] != 1 || b.Counts[fanfare.Suppressed] != 1 {
		t.Errorf("got %v", b.Counts)
	}
	r.only("staying@example.org")
	if got := s.http.deliveries(event, "&recipient=leaving@example.org"); len(got) != 1 || got[0].State != "suppressed" {
		t.Errorf("got %+v", got)
	}
}

// A subscription that is put again under its id is another one from then on.
func TestPutOfTheSameIDChangesTheCondition(t *testing.T) {
	t.Parallel()
	s, r := newsroom(t, sink.Config{}, "")
	put := func(status int, filter string) {
		s.http.must(status, "PUT", "/v1/subscriptions/mine", plain, `{"topic":"story","channel":"email","to":"a@example.org","filter":"`+filter+`"}`)
	}
	put(201, "event.level >= 5")
	s.http.completed(s.http.publish(`{"title":"low","level":1}`))
	if r.total() != 0 {
		t.Fatal("a filter let pass what it refuses")
	}
	put(200, "event.level < 5")
	s.http.completed(s.http.publish(`{"title":"high","level":9}`))
	s.http.completed(s.http.publish(`{"title":"low again","level":1}`))
	if mail := r.one("a@example.org"); field(mail, "Subject") != "low again" {
		t.Errorf("the subject is %q", field(mail, "Subject"))
	}
}

// A person with several matching subscriptions gets one mail that lists them all. The order of
// rules in the topic selects its template.
func TestOnePersonGetsOneMailForAllThatMatches(t *testing.T) {
	t.Parallel()
	s, r := newsroom(t, sink.Config{}, "")
	for _, subscription := range []string{
		`{"id":"own","topic":"story","channel":"email","to":"a@example.org","filter":"event.level > 1"}`,
		`{"id":"high","topic":"story","channel":"email","to":"a@example.org","rule":"level","params":{"from":3}}`,
		`{"id":"near","topic":"story","channel":"email","to":"A@example.org","rule":"near","params":{"place":"Vienna"}}`,
		`{"id":"far","topic":"story","channel":"email","to":"a@example.org","rule":"near","params":{"place":"Graz"}}`,
		`{"id":"other","topic":"story","channel":"email","to":"b@example.org","rule":"level","params":{"from":3}}`,
	} {
		s.http.subscribe(strings.Replace(subscription, "A@", "a@", 1))
	}
	b := s.http.completed(s.http.publish(`{"title":"both","level":4,"place":"near VIENNA"}`))
	if b.Matched != 4 || b.Messages != 2 {
		t.Errorf("%d matched, %d messages", b.Matched, b.Messages)
	}
	mail := r.one("a@example.org")
	if got := field(mail, "Subject"); got != "Near you: both" {
		t.Errorf("the subject is %q", got)
	}
	_, body := headerOf(mail)
	for id, in := range map[string]bool{"own": true, "high": true, "near": true, "far": false, "other": false} {
		if strings.Contains(body, "because of "+id+"\r\n") != in {
			t.Errorf("subscription %s in the mail: want %v: %s", id, in, body)
		}
	}
	if got := field(r.one("b@example.org"), "Subject"); got != "both" {
		t.Errorf("the subject of the other is %q", got)
	}

	// The order of the document counts, also when it changes.
	level := `      - {name: level, when: "event.level >= sub.from", params: {from: number}}` + "\n"
	document := strings.Replace(strings.Replace(news(r.addr, ""), level, "", 1), "    rules:\n", "    rules:\n"+level, 1)
	if got := s.mustRun(document, "apply", "-f", "-"); got == "no changes\n" {
		t.Error("another order of rules is no change")
	}
	s.http.completed(s.http.publish(`{"title":"turned","level":4,"place":"Vienna"}`))
	if got := field(r.of("a@example.org")[1], "Subject"); got != "turned" {
		t.Errorf("the subject is %q", got)
	}
}

// An event that is sent again is known, and nobody hears of it twice.
func TestRepeatedEventIsKnown(t *testing.T) {
	t.Parallel()
	s, r := newsroom(t, sink.Config{}, "")
	s.subscribe("a@example.org")
	send := func() (string, bool) {
		got := into[accepted](t, s.http.must(202, "POST", "/v1/topics/story/events?id=n1&source=/editor", plain, `{"title":"once"}`)).Events[0]
		return got.ID, got.Duplicate
	}
	first, duplicate := send()
	if duplicate {
		t.Error("the first one is called a duplicate")
	}
	s.http.completed(first)
	check := func(when string) {
		if id, duplicate := send(); id != first || !duplicate {
			t.Errorf("%s: got %s, duplicate %v", when, id, duplicate)
		}
	}
	check("again")
	s.mustStop()
	s.start()
	check("after a restart")
	if got := into[accepted](t, s.http.must(202, "POST", "/v1/topics/story/events?id=n1&source=/other", plain, `{"title":"once"}`)).Events[0]; got.Duplicate {
		t.Error("the same id of another source is called a duplicate")
	} else {
		s.http.completed(got.ID)
	}
	if r.total() != 2 {
		t.Errorf("%d mails, want 2", r.total())
	}
}

// Events come in all the shapes of CloudEvents over HTTP.
func TestCloudEventsInAllModes(t *testing.T) {
	t.Parallel()
	s, r := newsroom(t, sink.Config{}, "")
	s.subscribe("a@example.org")
	event := func(id string) string {
		return `{"specversion":"1.0","id":"` + id + `","source":"/editor","type":"story","time":"2026-11-20T08:00:00Z","data":{"title":"` + id + `"}}`
	}
	for _, send := range []struct {
		path, contentType, body string
		headers                 []string
		ids                     []string
	}{
		{"/v1/events", cloudevent, event("structured"), nil, []string{"structured"}},
		{"/v1/topics/story/events", cloudevent + "; charset=utf-8", event("structured to a topic"), nil, []string{"structured to a topic"}},
		{"/v1/events", cloudbatch, "[" + event("batched 1") + "," + event("batched 2") + "]", nil, []string{"batched 1", "batched 2"}},
		{"/v1/events", plain, `{"title":"binary"}`, []string{"ce-specversion", "1.0", "ce-id", "binary", "ce-source", "/editor", "ce-type", "story"}, []string{"binary"}},
		{"/v1/events?format=cloudevents", lines, event("line 1") + "\n" + event("line 2") + "\n", nil, []string{"line 1", "line 2"}},
	} {
		s.http.must(202, "POST", send.path, send.contentType, send.body, send.headers...)
		for _, id := range send.ids {
			eventually(t, "a mail of "+id, func() bool {
				for _, mail := range r.of("a@example.org") {
					if field(mail, "Subject") == id {
						return true
					}
				}
				return false
			})
		}
	}
	if r.total() != 7 {
		t.Errorf("%d mails, want 7", r.total())
	}
	got := s.http.broadcast("batched%201")
	if got.Source != "/editor" || got.SourceID != "batched 1" {
		t.Errorf("traced as %+v", got)
	}
	if status, _, header := s.http.send("PUT", "/v1/events", "", ""); status != http.StatusMethodNotAllowed || !strings.Contains(header.Get("Allow"), "POST") {
		t.Errorf("got %d, Allow %q", status, header.Get("Allow"))
	}
}
