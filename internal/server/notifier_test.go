package server_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/notifier"
	"fanfare.dev/fanfare/internal/sink"
	"fanfare.dev/fanfare/internal/store"
	"fanfare.dev/fanfare/internal/store/deliveries"
	"fanfare.dev/fanfare/internal/store/sqlite"
)

// hears subscribes the service to the outcomes of its deliveries.
func (s *testServer) hears(h *hook, topics ...string) {
	s.t.Helper()
	s.must(200, "POST", "/v1/apply", "application/yaml", `
service: news
channels:
  hook: {driver: webhook, allow_http: true, rate: unlimited, retry: [1s, 1s]}
topics:
  fanfare.deliveries: {}
  fanfare.failures: {}
`)
	for _, topic := range topics {
		s.must(201, "POST", "/v1/subscriptions", "application/json", fmt.Sprintf(`{"id":%q,"topic":%q,"channel":"hook","to":"%s/%s"}`, topic, topic, h.URL, topic))
	}
}

// A told is a notification event of a service, with the requests that delivered it.
type told struct {
	notifier.Data
	Type, EventID string
	request
}

// told reads the events that a receiver got, and verifies their signatures.
func (h *hook) told(s *testServer) (all []told) {
	s.t.Helper()
	for _, p := range h.all() {
		var secret struct{ Secrets []string }
		if err := json.Unmarshal([]byte(s.must(200, "GET", "/v1/channels/hook/secret?to="+h.URL+p.path, "", "")), &secret); err != nil || len(secret.Secrets) != 1 {
			s.t.Fatalf("%v: %+v", err, secret)
		}
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret.Secrets[0], "whsec_"))
		if err != nil {
			s.t.Fatal(err)
		}
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(p.head.Get("webhook-id") + "." + p.head.Get("webhook-timestamp") + "." + p.body))
		if want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)); p.head.Get("webhook-signature") != want {
			s.t.Errorf("signed with %q, want %q", p.head.Get("webhook-signature"), want)
		}
		var document struct {
			Data struct {
				Event struct {
					ID, Type string
					Data     notifier.Data
				}
			}
		}
		if err := json.Unmarshal([]byte(p.body), &document); err != nil {
			s.t.Fatalf("%v: %s", err, p.body)
		}
		e := document.Data.Event
		all = append(all, told{e.Data, e.Type, e.ID, p})
	}
	return all
}

// outcomes counts the outcomes that a receiver got, as "kind delivery".
func (h *hook) outcomes(s *testServer) map[string]int {
	s.t.Helper()
	counts := map[string]int{}
	for _, e := range h.told(s) {
		if e.Count != len(e.Deliveries) {
			s.t.Errorf("%d deliveries, and a count of %d", len(e.Deliveries), e.Count)
		}
		for _, d := range e.Deliveries {
			counts[e.Kind+" "+d.Delivery]++
		}
	}
	return counts
}

// metric returns the value of a metric without labels.
func (s *testServer) metric(name string) (value float64) {
	s.t.Helper()
	for line := range strings.Lines(s.must(200, "GET", "/metrics", "", "")) {
		if rest, ok := strings.CutPrefix(line, name+" "); ok {
			if _, err := fmt.Sscan(rest, &value); err != nil {
				s.t.Fatal(err)
			}
			return value
		}
	}
	s.t.Fatalf("no metric %s", name)
	return 0
}

func TestServiceIsNotifiedOnceOfEachOutcome(t *testing.T) {
	s, h := start(t, sink.Inject{Seed: 3, PermFail: 0.1}), startHook(t)
	s.apply()
	s.hears(h, fanfare.TopicDeliveries, fanfare.TopicFailures)
	s.must(200, "POST", "/v1/subscriptions?quiet=true", "application/x-ndjson", people(500))
	s.must(202, "POST", "/v1/topics/story/events?id=s-1", "application/json", `{"title":"of all","level":9}`)
	var event string
	s.eventually("the story's end", func() bool {
		var list struct{ Broadcasts []fanfare.Broadcast }
		if err := json.Unmarshal([]byte(s.must(200, "GET", "/v1/broadcasts", "", "")), &list); err != nil {
			t.Fatal(err)
		}
		for _, b := range list.Broadcasts {
			if b.Topic == "story" {
				event = b.Event
				return b.State == "completed"
			}
		}
		return false
	})
	s.eventually("all outcomes", func() bool { return len(h.outcomes(s)) == 500 })
	var page struct{ Deliveries []fanfare.Delivery }
	if err := json.Unmarshal([]byte(s.must(200, "GET", "/v1/events/"+event+"/deliveries?limit=1000", "", "")), &page); err != nil {
		t.Fatal(err)
	}
	got, failed := h.outcomes(s), 0
	for i := range page.Deliveries {
		d := &page.Deliveries[i]
		if got[d.State+" "+d.ID] != 1 {
			t.Errorf("%s is %s, and was told so %d times", d.ID, d.State, got[d.State+" "+d.ID])
		}
		if d.State == "failed" {
			failed++
		}
	}
	if failed == 0 || len(page.Deliveries) != 500 {
		t.Fatalf("%d of %d failed", failed, len(page.Deliveries))
	}
	for _, e := range h.told(s) {
		want := told{Data: notifier.Data{Kind: "accepted", Channel: "email", Topic: "story", Event: event, ID: "s-1", Source: "/news"}, Type: "fanfare.delivery.accepted"}
		if strings.HasSuffix(e.path, "failures") {
			want.Kind, want.Type, want.Class = "failed", "fanfare.delivery.failed", fanfare.ClassInvalid
		}
		if e.Kind != want.Kind || e.Type != want.Type || e.Class != want.Class || e.Channel != want.Channel || e.Topic != want.Topic || e.Event != want.Event || e.ID != want.ID || e.Source != want.Source {
			t.Errorf("told %+v, want %+v", e.Data, want.Data)
		}
		for _, d := range e.Deliveries {
			if !strings.HasPrefix(d.Subscriber, "per-") || len(d.Subscriptions) != 1 || d.Attempt != 1 || d.At.IsZero() || d.Code == 0 {
				t.Errorf("told of %+v", d)
			}
		}
		if strings.Contains(e.body, "example.org") || strings.Contains(e.body, "@") {
			t.Errorf("an address is told: %s", e.body)
		}
	}

	// Outcomes of notifications are counted, but not reported.
	s.eventually("that all is looked at", func() bool {
		return s.metric("fanfare_notices_waiting") == 0 && s.metric("fanfare_notices_total") >= 500+float64(len(h.all()))
	})
	if more := len(h.outcomes(s)); more != 500 {
		t.Errorf("told of %d outcomes", more)
	}

	s.app.Stop() // and nothing of it comes again after a restart
	s.open()
	s.must(202, "POST", "/v1/topics/story/events", "application/json", `{"title":"another","level":0}`)
	s.eventually("the next outcomes", func() bool { return len(h.outcomes(s)) == 550 })
	for what, times := range h.outcomes(s) {
		if times != 1 {
			t.Errorf("%s was told %d times", what, times)
		}
	}
}

// A plan from an earlier run does not grow. Work that was stored after it is also reported,
// although no new work wakes the notifier.
func TestOutcomesBehindAnOldPlanAreNotifiedAfterTheStart(t *testing.T) {
	s, h := startOn(t, "", sink.Inject{}), startHook(t)
	s.apply()
	s.hears(h, fanfare.TopicDeliveries)
	for _, who := range []string{"one", "two"} {
		s.must(201, "POST", "/v1/subscriptions", "application/json", `{"topic":"story","channel":"email","to":"`+who+`@example.org","data":{"why":"you asked"}}`)
	}
	_, to := s.delivered()
	s.eventually("both are told", func() bool { return len(h.outcomes(s)) == 2 })
	s.eventually("all is forgotten, what became of that too", func() bool {
		return s.metric("fanfare_notices_waiting") == 0 && s.metric("fanfare_notices_total") >= 2+float64(len(h.all()))
	})
	if err := s.app.Stop(); err != nil {
		t.Fatal(err)
	}

	db, err := sqlite.Open(t.Context(), s.dir, store.Relaxed)
	if err != nil {
		t.Fatal(err)
	}
	kept := deliveries.New(db)
	keep := func(ref fanfare.DeliveryRef, state fanfare.State) {
		t.Helper()
		again := fanfare.Commit{Entries: []fanfare.Entry{{Delivery: ref, Attempt: 2, State: state, Code: 250, At: time.Now().UTC(), Told: true}}}
		if err := kept.Commit(t.Context(), ref.Day, &again); err != nil {
			t.Fatal(err)
		}
	}
	one, two := to["one@example.org"], to["two@example.org"]
	keep(one, fanfare.Failed) // of which nobody hears, so that nothing comes of it
	if plan, err := kept.PlanNotices(t.Context(), one.Day, 64); err != nil || len(plan) != 1 {
		t.Fatal(plan, err)
	}
	keep(two, fanfare.Accepted)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}

	s.open()
	s.eventually("what came behind the plan is told", func() bool { return h.outcomes(s)["accepted "+two.String()] == 2 })
}

func TestBouncesAndComplaintsAreNotified(t *testing.T) {
	s, h := start(t, sink.Inject{}), startHook(t)
	s.apply()
	s.hears(h)
	s.must(201, "POST", "/v1/subscriptions", "application/json", fmt.Sprintf(`{"topic":"fanfare.failures","channel":"hook","to":"%s/lost","filter":"event.kind == 'bounced' && event.class == 'invalid'"}`, h.URL))
	s.must(201, "POST", "/v1/subscriptions", "application/json", fmt.Sprintf(`{"topic":"fanfare.failures","channel":"hook","to":"%s/junk","filter":"event.kind == 'complained'"}`, h.URL))
	for _, who := range []string{"unknown", "full", "junk"} {
		s.must(201, "POST", "/v1/subscriptions", "application/json", `{"topic":"story","channel":"email","to":"`+who+`@example.org","data":{"why":"you asked"}}`)
	}
	_, to := s.delivered()
	s.takeBack(to["unknown@example.org"], report("unknown@example.org", "5.1.1", "550 5.1.1 <unknown@example.org>: User unknown"))
	s.takeBack(to["full@example.org"], report("full@example.org", "5.2.2", "552 5.2.2 Mailbox full"))
	s.takeBack(to["junk@example.org"], []byte(complaint))
	s.eventually("both", func() bool { return len(h.all()) == 2 })
	for _, e := range h.told(s) {
		d := e.Deliveries[0]
		switch e.path {
		case "/lost":
			if d.Delivery != to["unknown@example.org"].String() || d.Attempt != 2 || d.Text != "bounced (invalid): 550 5.1.1 [address] User unknown" {
				t.Errorf("told of %+v", d)
			}
		case "/junk":
			if d.Delivery != to["junk@example.org"].String() || e.Kind != "complained" {
				t.Errorf("told of %+v", d)
			}
		}
	}
	s.eventually("that all is looked at", func() bool { return s.metric("fanfare_notices_waiting") == 0 })
	if n := len(h.all()); n != 2 {
		t.Errorf("%d requests", n)
	}
}

func TestNothingIsNotifiedWithoutSubscribers(t *testing.T) {
	s, h := start(t, sink.Inject{}), startHook(t)
	s.apply()
	s.hears(h, fanfare.TopicFailures)
	for i := range 5 {
		s.must(201, "POST", "/v1/subscriptions", "application/json", fmt.Sprintf(`{"topic":"story","channel":"email","to":"person%d@example.org","data":{"why":"you asked"}}`, i))
	}
	s.publishMany(3) // taken, and nobody hears of that
	s.must(204, "DELETE", "/v1/subscriptions/fanfare.failures", "", "")
	s.publishMany(3) // nobody hears of anything
	s.hears(h, fanfare.TopicDeliveries)
	last := s.publishMany(1)[0].Event
	s.eventually("what became of the last story", func() bool { return len(h.outcomes(s)) == 5 })
	for _, e := range h.told(s) {
		if e.Event != last {
			t.Errorf("told of %s", e.Event)
		}
	}
}

func TestServiceIsNotNotifiedOfOthers(t *testing.T) {
	s, h := start(t, sink.Inject{}), startHook(t)
	s.apply()
	s.hears(h, fanfare.TopicDeliveries)
	s.operator = true
	s.must(200, "POST", "/v1/apply", "application/yaml", fmt.Sprintf(`
service: other
channels:
  email: {driver: smtp, relay: %q, from: "Other <other@example.org>", rate: unlimited}
  hook: {driver: webhook, allow_http: true}
topics:
  story: {template: story}
  fanfare.deliveries: {}
templates:
  story: {subject: "{{ event.title }}", text: "Hello"}
`, s.addr))
	s.must(201, "POST", "/v1/subscriptions?service=other", "application/json", `{"topic":"story","channel":"email","to":"ada@example.org"}`)
	s.must(202, "POST", "/v1/topics/story/events?service=other", "application/json", `{"title":"x"}`)
	s.operator = false
	s.must(201, "POST", "/v1/subscriptions", "application/json", `{"topic":"story","channel":"email","to":"bob@example.org","data":{"why":"you asked"}}`)
	s.must(202, "POST", "/v1/topics/story/events", "application/json", `{"title":"y"}`)
	s.eventually("the mails", func() bool { return s.sink.Stats().Unique == 2 })
	s.eventually("what was told", func() bool { return len(h.all()) > 0 && s.metric("fanfare_notices_waiting") == 0 })
	all := h.told(s)
	if len(all) != 1 || all[0].Count != 1 || all[0].Source != "/news" {
		t.Errorf("told %+v", all)
	}
}

func TestTopicsOfFanfareAreReserved(t *testing.T) {
	s, h := start(t, sink.Inject{}), startHook(t)
	s.apply()
	s.hears(h)
	for body, says := range map[string]string{
		"fanfare.mine: {}":                                  "has no topic",
		"fanfare.failures: {schema: {type: object}}":        "/topics/fanfare.failures/schema",
		"fanfare.deliveries: {key: event}":                  "/topics/fanfare.deliveries/key",
		"fanfare.deliveries: {rules: [{name: a, when: x}]}": "/topics/fanfare.deliveries",
	} {
		code, answer := s.call("POST", "/v1/apply", "application/yaml", "service: news\ntopics:\n  "+body+"\n")
		if code != 422 && code != 400 || !strings.Contains(answer, says) {
			t.Errorf("%s: %d %s", body, code, answer)
		}
	}
	if answer := s.must(403, "POST", "/v1/topics/fanfare.failures/events", "application/json", `{"kind":"failed"}`); !strings.Contains(answer, "only Fanfare itself can publish") {
		t.Error(answer)
	}
	code, answer := s.call("POST", "/v1/subscriptions", "application/json", fmt.Sprintf(`{"topic":"fanfare.failures","channel":"hook","to":"%s","filter":"event.knd == 'failed'"}`, h.URL))
	if code != 422 && code != 400 || !strings.Contains(answer, "knd") {
		t.Errorf("%d %s", code, answer)
	}
	if again := s.must(200, "POST", "/v1/apply", "application/yaml", "service: news\ntopics: {fanfare.failures: {}}\n"); !strings.Contains(again, `"changes":[]`) {
		t.Errorf("applied again: %s", again)
	}
}
