package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/sink"
)

// publishTo publishes a story and returns its public id.
func (s *testServer) publishTo(topic, title string) string {
	s.t.Helper()
	answer := s.must(202, "POST", "/v1/topics/"+topic+"/events", "application/json", fmt.Sprintf(`{"title":%q,"level":9}`, title))
	_, id, _ := strings.Cut(answer, `"id":"`)
	id, _, _ = strings.Cut(id, `"`)
	return id
}

func (s *testServer) broadcast(id string) (b fanfare.Broadcast) {
	s.t.Helper()
	if err := json.Unmarshal([]byte(s.must(200, "GET", "/v1/events/"+id, "", "")), &b); err != nil {
		s.t.Fatal(err)
	}
	return b
}

// until waits until a broadcast is in a state.
func (s *testServer) until(id, state string) {
	s.t.Helper()
	s.eventually(id+" is "+state, func() bool { return s.broadcast(id).State == state })
}

// keyFor creates a key with a scope.
func (s *testServer) keyFor(scope string) string {
	s.t.Helper()
	answer := s.must(201, "POST", "/v1/keys", "application/json", fmt.Sprintf(`{"service":"news","name":"the %s key","scopes":[%q]}`, scope, scope))
	var key struct{ Key string }
	if err := json.Unmarshal([]byte(answer), &key); err != nil || key.Key == "" {
		s.t.Fatal(answer, err)
	}
	return key.Key
}

// as is call with another key.
func (s *testServer) as(key, method, path, body string) (int, string) {
	s.t.Helper()
	own := s.key
	s.key = key
	defer func() { s.key = own }()
	return s.call(method, path, "application/json", body)
}

func TestLargeBroadcastWaitsForApproval(t *testing.T) {
	s := start(t, sink.Inject{})
	s.apply()
	s.must(200, "POST", "/v1/apply", "application/yaml", "service: news\nhold_above: 99\n")
	s.must(200, "POST", "/v1/subscriptions?quiet=true", "application/x-ndjson", people(300))
	s.must(202, "POST", "/v1/topics/story/events", "application/json", `{"title":"Few","level":2}`)
	s.eventually("what is small leaves", func() bool { return s.sink.Stats().Unique == 90 })

	large, refused := s.publishTo("story", "Many"), s.publishTo("story", "Wrong")
	s.until(large, "held")
	s.until(refused, "held")
	b := s.broadcast(large)
	if !strings.Contains(b.Reason, "300 messages are more than the limit of 99 of service news") || b.Messages != 300 || b.Counts[fanfare.Pending] != 300 {
		t.Errorf("held is %+v", b)
	}
	s.eventually("the status shows it", func() bool {
		return strings.Contains(s.must(200, "GET", "/v1/status", "", ""), `"state":"held"`)
	})

	s.reopen()
	approve := fmt.Sprintf(`{"event":%q}`, large)
	for _, scope := range []string{"publish", "read"} {
		if code, answer := s.as(s.keyFor(scope), "POST", "/v1/approve", approve); code != 403 {
			t.Errorf("a key with the scope %s: %d %s", scope, code, answer)
		}
	}
	if code, answer := s.call("POST", "/v1/resume", "application/json", fmt.Sprintf(`{"scope":{"kind":"broadcast","name":%q}}`, large)); code != 409 || !strings.Contains(answer, "fanfare approve") {
		t.Errorf("resumed: %d %s", code, answer)
	}
	// A pause and its end do not approve it.
	for _, what := range []string{"pause", "resume"} {
		s.must(204, "POST", "/v1/"+what, "application/json", fmt.Sprintf(`{"scope":{"kind":"broadcast","name":%q}}`, large))
	}
	s.must(204, "POST", "/v1/cancel", "application/json", fmt.Sprintf(`{"scope":{"kind":"broadcast","name":%q},"reason":"no"}`, refused))
	s.eventually("what is refused is cancelled", func() bool { return s.broadcast(refused).Counts[fanfare.Cancelled] == 300 })
	if got := s.sink.Stats().Unique; got != 90 {
		t.Fatalf("%d mails left before the approval", got-90)
	}
	s.until(large, "held")

	if code, answer := s.as(s.keyFor("approve"), "POST", "/v1/approve", approve); code != 204 {
		t.Fatalf("approved: %d %s", code, answer)
	}
	s.until(large, "completed")
	b = s.broadcast(large)
	if got := s.sink.Stats(); got.Unique != 390 || got.Duplicates != 0 || b.Counts[fanfare.Accepted] != 300 || !strings.Contains(b.ApprovedBy, "the approve key") {
		t.Errorf("%d mails, %d twice; %+v", got.Unique, got.Duplicates, b)
	}
	if audit := s.must(200, "GET", "/v1/audit?action=approve", "", ""); !strings.Contains(audit, large) || !strings.Contains(audit, "the approve key") {
		t.Errorf("the audit has %s", audit)
	}
	if code, answer := s.call("POST", "/v1/approve", "application/json", approve); code != 409 {
		t.Errorf("approved again: %d %s", code, answer)
	}
}

// reopen stops the server and starts it again.
func (s *testServer) reopen() {
	s.t.Helper()
	if err := s.app.Stop(); err != nil {
		s.t.Fatal(err)
	}
	s.open()
}

func TestChannelRateChangesWhileItSends(t *testing.T) {
	s := start(t, sink.Inject{})
	s.apply()
	s.must(200, "POST", "/v1/subscriptions?quiet=true", "application/x-ndjson", people(2000))
	rate := func(text string) {
		t.Helper()
		s.must(204, "POST", "/v1/rate", "application/json", fmt.Sprintf(`{"scope":{"kind":"channel","name":"news/email"},"rate":%q}`, text))
	}
	rate("1/min")
	id := s.publishTo("story", "Slow")
	s.eventually("the first leaves", func() bool { return s.sink.Stats().Unique >= 1 })
	if got := s.sink.Stats().Unique; got > 2 {
		t.Fatalf("%d left at one a minute", got)
	}
	status := func(want string) {
		t.Helper()
		if got := s.must(200, "GET", "/v1/status", "", ""); !strings.Contains(got, want) {
			t.Errorf("the status has no %s: %s", want, got)
		}
	}
	status(`"rate_limit":"1/min","rate_set_by_hand":true`)
	s.reopen()
	status(`"rate_limit":"1/min","rate_set_by_hand":true`)
	if got := s.sink.Stats().Unique; got > 4 {
		t.Fatalf("%d left at one a minute", got)
	}
	rate("configured")
	status(`"rate_limit":"unlimited"`)
	s.until(id, "completed")
	if got := s.sink.Stats(); got.Unique != 2000 || got.Duplicates != 0 {
		t.Errorf("%d mails, %d twice", got.Unique, got.Duplicates)
	}
	if code, answer := s.call("POST", "/v1/rate", "application/json", `{"scope":{"kind":"channel","name":"news/email"},"rate":"fast"}`); code != 422 || !strings.Contains(answer, "30/s") {
		t.Errorf("no rate: %d %s", code, answer)
	}
}

func TestBroadcastRateChangesWhileItSends(t *testing.T) {
	s := start(t, sink.Inject{})
	s.apply()
	s.must(200, "POST", "/v1/subscriptions?quiet=true", "application/x-ndjson", people(1500))
	control := func(what, id, more string) {
		t.Helper()
		s.must(204, "POST", "/v1/"+what, "application/json", fmt.Sprintf(`{"scope":{"kind":"broadcast","name":%q}%s}`, id, more))
	}
	s.must(204, "POST", "/v1/pause", "application/json", `{"scope":{"kind":"channel","name":"news/email"}}`)
	slow := s.publishTo("story", "Slow")
	s.until(slow, "paused")
	control("rate", slow, `,"rate":"1/min"`)
	s.must(204, "POST", "/v1/resume", "application/json", `{"scope":{"kind":"channel","name":"news/email"}}`)
	quick := s.publishTo("story", "Quick")
	s.until(quick, "completed")
	if b := s.broadcast(slow); b.RateLimit != "1/min" || b.Counts[fanfare.Accepted] > 2 {
		t.Errorf("at one a minute: %+v", b)
	}
	s.reopen()
	again := s.publishTo("story", "Again")
	s.until(again, "completed")
	if b := s.broadcast(slow); b.RateLimit != "1/min" || b.Counts[fanfare.Accepted] > 4 {
		t.Errorf("at one a minute after a restart: %+v", b)
	}
	control("rate", slow, `,"rate":"unlimited"`)
	s.until(slow, "completed")
	if b, got := s.broadcast(slow), s.sink.Stats(); b.RateLimit != "" || got.Unique != 4500 || got.Duplicates != 0 {
		t.Errorf("%d mails, %d twice; %+v", got.Unique, got.Duplicates, b)
	}
	if audit := s.must(200, "GET", "/v1/audit?action=rate", "", ""); !strings.Contains(audit, slow) || !strings.Contains(audit, "1/min") {
		t.Errorf("the audit has %s", audit)
	}
}

func TestDryRunCountsAndSendsNothing(t *testing.T) {
	s := start(t, sink.Inject{})
	s.apply()
	s.must(200, "POST", "/v1/apply", "application/yaml", "service: news\nhold_above: 100\n")
	s.must(200, "POST", "/v1/subscriptions?quiet=true", "application/x-ndjson", people(300))
	s.must(204, "POST", "/v1/rate", "application/json", `{"scope":{"kind":"channel","name":"news/email"},"rate":"2/s"}`)
	for _, test := range []struct{ path, body, want string }{
		{"/v1/topics/story/match", `{"title":"All","level":9}`, `"messages":300,"hold":"waits for approval: 300 messages are more than the limit of 100 of service news","channels":[{"channel":"email","messages":300,"rate":"2/s","seconds":150}]`},
		{"/v1/topics/story/match", `{"title":"Some","level":2}`, `"messages":90,"channels":[{"channel":"email","messages":90,"rate":"2/s","seconds":45}]`},
		{"/v1/topics/story/match", `{"level":2}`, ""},
		{"/v1/dry-run/messages", `{"channel":"email","to":"ada@example.org","content":{"subject":"Hello","text":"You"}}`, `{"channel":"email","messages":1,"rate":"2/s"}`},
		{"/v1/dry-run/messages", `{"channel":"email","recipients":[{"to":"ada@example.org"},{"to":"nobody"}],"content":{"subject":"Hello","text":"You"}}`, `"errors":[{"index":1,`},
	} {
		code, answer := s.call("POST", test.path, "application/json", test.body)
		if test.want == "" {
			if code != 422 {
				t.Errorf("%s: %d %s", test.body, code, answer)
			}
		} else if code != 200 || !strings.Contains(answer, test.want) {
			t.Errorf("%s: %d %s, want %s", test.body, code, answer, test.want)
		}
	}
	for _, many := range []string{"application/x-ndjson", "application/cloudevents-batch+json"} {
		if code, answer := s.call("POST", "/v1/topics/story/match", many, `[]`); code != 422 || !strings.Contains(answer, "one of application/json, application/cloudevents+json\"") {
			t.Errorf("many events as %s: %d %s", many, code, answer)
		}
	}
	for _, path := range []string{"/v1/topics/story/events", "/v1/events", "/v1/messages"} { // whoever asks for what is no more sends nothing
		if code, answer := s.call("POST", path+"?dry_run=true", "application/json", `{"title":"All"}`); code != 422 || !strings.Contains(answer, "unknown query parameter dry_run") {
			t.Errorf("%s: %d %s", path, code, answer)
		}
	}
	if got := s.must(200, "GET", "/v1/broadcasts", "", ""); !strings.Contains(got, `"broadcasts":[]`) || s.sink.Stats().Unique != 0 {
		t.Errorf("it was not dry: %s", got)
	}
}
