package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/mail/bounce"
	"fanfare.dev/fanfare/internal/sink"
)

// report returns a delivery report in the form in which a mail server sends it.
func report(to, status, said string) []byte {
	return []byte(strings.ReplaceAll(fmt.Sprintf(`From: MAILER-DAEMON@mx.example.org
Subject: Undelivered Mail Returned to Sender
Content-Type: multipart/report; report-type=delivery-status; boundary=b

--b

It came back.
--b
Content-Type: message/delivery-status

Reporting-MTA: dns; mx.example.org

Final-Recipient: rfc822; %s
Action: failed
Status: %s
Diagnostic-Code: smtp; %s
--b--
`, to, status, said), "\n", "\r\n"))
}

// delivered publishes a story and returns its deliveries by address when all are accepted,
// except those to suppressed addresses.
func (s *testServer) delivered() (event string, to map[string]fanfare.DeliveryRef) {
	s.t.Helper()
	event = s.publishMany(1)[0].Event
	var page struct{ Deliveries []fanfare.Delivery }
	if err := json.Unmarshal([]byte(s.must(200, "GET", "/v1/events/"+event+"/deliveries?limit=100", "", "")), &page); err != nil {
		s.t.Fatal(err)
	}
	to = map[string]fanfare.DeliveryRef{}
	for _, d := range page.Deliveries {
		ref, ok := fanfare.ParseDeliveryRef(d.ID)
		switch {
		case ok && d.State == "accepted":
			to[d.Address] = ref
		case !ok || d.State != "suppressed":
			s.t.Fatalf("a delivery is %+v", d)
		}
	}
	return event, to
}

func (s *testServer) takeBack(ref fanfare.DeliveryRef, raw []byte) {
	s.t.Helper()
	if err := s.app.Take(s.t.Context(), bounce.Arrival{Delivery: ref, Raw: raw, Source: "smtp 192.0.2.1", At: time.Now()}); err != nil {
		s.t.Fatal(err)
	}
}

func (s *testServer) delivery(ref fanfare.DeliveryRef) (d fanfare.Delivery) {
	s.t.Helper()
	if err := json.Unmarshal([]byte(s.must(200, "GET", "/v1/deliveries/"+ref.String(), "", "")), &d); err != nil {
		s.t.Fatal(err)
	}
	return d
}

// suppressed returns the reason why an address is suppressed, or "".
func (s *testServer) suppressed(address string) string {
	s.t.Helper()
	code, answer := s.call("GET", "/v1/suppressions?address="+address, "", "")
	if code == 404 {
		return ""
	}
	var found struct{ Reason string }
	if err := json.Unmarshal([]byte(answer), &found); code != 200 || err != nil {
		s.t.Fatalf("%d %s: %v", code, answer, err)
	}
	return found.Reason
}

const complaint = "Content-Type: multipart/report; report-type=feedback-report; boundary=b\r\n\r\n--b\r\nContent-Type: message/feedback-report\r\n\r\nFeedback-Type: abuse\r\nUser-Agent: x/1\r\nVersion: 1\r\n--b--\r\n"

func TestReportsAreAppliedOnceByTheirOutcome(t *testing.T) {
	s := start(t, sink.Inject{})
	s.apply()
	for _, who := range []string{"unknown", "full", "blocked", "away", "junk", "fine", "bare"} {
		s.must(201, "POST", "/v1/subscriptions", "application/json", `{"topic":"story","channel":"email","to":"`+who+`@example.org","data":{"why":"you asked"}}`)
	}
	event, to := s.delivered()
	for range 2 { // and again: nothing more follows
		s.takeBack(to["unknown@example.org"], report("unknown@example.org", "5.1.1", "550 5.1.1 User unknown"))
		s.takeBack(to["full@example.org"], report("full@example.org", "5.2.2", "552 5.2.2 Mailbox full"))
		s.takeBack(to["blocked@example.org"], report("blocked@example.org", "5.1.1", "550 5.1.1 blocked using zen.spamhaus.org"))
		s.takeBack(to["bare@example.org"], report("bare@example.org", "5.1.1", "550 5.1.1 No"))
		s.takeBack(to["away@example.org"], []byte("From: away@example.org\r\nSubject: Out of office\r\nAuto-Submitted: auto-replied\r\n\r\nUntil Monday.\r\n"))
		s.takeBack(to["junk@example.org"], []byte(complaint))
	}
	for who, want := range map[string]struct{ state, text, suppressed string }{
		"unknown": {"failed", "bounced (invalid): 550 5.1.1 User unknown", "hard_bounce"},
		"full":    {"failed", "bounced (full): 552 5.2.2 Mailbox full", ""},
		"blocked": {"failed", "bounced (blocked): 550 5.1.1 blocked using zen.spamhaus.org", ""},
		"bare":    {"failed", "bounced (invalid): 550 5.1.1 No", ""},
		"away":    {"accepted", "", ""},
		"junk":    {"delivered", "the recipient reported it as spam (abuse)", "complaint"},
		"fine":    {"accepted", "", ""},
	} {
		d := s.delivery(to[who+"@example.org"])
		last := d.Attempts[len(d.Attempts)-1]
		if d.State != want.state || want.text != "" && last.Text != want.text || len(d.Attempts) > 2 {
			t.Errorf("%s is %s with %d entries, the last %q; want %s, %q", who, d.State, len(d.Attempts), last.Text, want.state, want.text)
		}
		if got := s.suppressed(who + "@example.org"); got != want.suppressed {
			t.Errorf("%s is suppressed for %q, want %q", who, got, want.suppressed)
		}
	}
	b := s.broadcast(event)
	if want := (fanfare.Counts{fanfare.Accepted: 2, fanfare.Failed: 4, fanfare.Delivered: 1}); b.Counts != want || b.State != "completed" {
		t.Errorf("the broadcast is %s with %v, want %v", b.State, b.Counts, want)
	}

	s.app.Stop()
	s.open()
	s.takeBack(to["unknown@example.org"], report("unknown@example.org", "5.1.1", "550 5.1.1 User unknown"))
	if d := s.delivery(to["unknown@example.org"]); len(d.Attempts) != 2 {
		t.Errorf("after a restart it is applied again: %+v", d.Attempts)
	}
	if again := s.broadcast(event); again.Counts != b.Counts {
		t.Errorf("after a restart the counts are %v, were %v", again.Counts, b.Counts)
	}
	for range 2 { // two more messages that came back, and the third hard bounce
		_, more := s.delivered()
		s.takeBack(more["bare@example.org"], report("bare@example.org", "5.1.1", "550 5.1.1 No"))
	}
	if got := s.suppressed("bare@example.org"); got != "hard_bounce" {
		t.Errorf("after three hard bounces it is suppressed for %q", got)
	}
}

func TestRepeatedReportIsAppliedOnce(t *testing.T) {
	s := start(t, sink.Inject{})
	s.apply()
	s.must(200, "POST", "/v1/subscriptions?quiet=true", "application/x-ndjson", people(50))
	s.must(200, "POST", "/v1/apply", "application/yaml", "service: news\nbounces: {unknown: {after: 2}}\n")
	s.must(202, "POST", "/v1/topics/story/events", "application/json", `{"title":"of all","level":9}`)
	s.eventually("50 mails", func() bool { return s.sink.Stats().Unique == 50 })
	var page struct{ Deliveries []fanfare.Delivery }
	var event string
	s.eventually("the end", func() bool {
		var list struct{ Broadcasts []fanfare.Broadcast }
		if err := json.Unmarshal([]byte(s.must(200, "GET", "/v1/broadcasts", "", "")), &list); err != nil {
			t.Fatal(err)
		}
		event = list.Broadcasts[0].Event
		return list.Broadcasts[0].State == "completed"
	})
	if err := json.Unmarshal([]byte(s.must(200, "GET", "/v1/events/"+event+"/deliveries?limit=100", "", "")), &page); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 4 {
		for i := range page.Deliveries {
			ref, _ := fanfare.ParseDeliveryRef(page.Deliveries[i].ID)
			all.Go(func() { s.takeBack(ref, report(page.Deliveries[i].Address, "5.1.1", "550 5.1.1 User unknown")) })
		}
	}
	all.Wait()
	if b := s.broadcast(event); b.Counts != (fanfare.Counts{fanfare.Failed: 50}) {
		t.Errorf("the counts are %v", b.Counts)
	}
	for i := range page.Deliveries {
		ref, _ := fanfare.ParseDeliveryRef(page.Deliveries[i].ID)
		if d := s.delivery(ref); len(d.Attempts) != 2 || d.State != "failed" {
			t.Errorf("%s: %+v", d.Address, d.Attempts)
		}
		if got := s.suppressed(page.Deliveries[i].Address); got != "" {
			t.Errorf("%s is suppressed for %s by one bounce that came four times", page.Deliveries[i].Address, got)
		}
	}
}

func TestReportsAboutUnknownMessagesAreDropped(t *testing.T) {
	s := start(t, sink.Inject{})
	s.apply()
	s.must(201, "POST", "/v1/subscriptions", "application/json", `{"topic":"story","channel":"email","to":"ada@example.org","data":{"why":"you asked"}}`)
	_, to := s.delivered()
	ref := to["ada@example.org"]
	raw := report("ada@example.org", "5.1.1", "550 5.1.1 User unknown")
	s.takeBack(fanfare.DeliveryRef{}, raw) // without a return address nobody is believed
	s.takeBack(fanfare.DeliveryRef{Day: ref.Day - 400, Manifest: ref.Manifest}, raw)
	s.takeBack(fanfare.DeliveryRef{Day: ref.Day, Manifest: ref.Manifest + 64<<20}, raw)
	if d := s.delivery(ref); d.State != "accepted" {
		t.Errorf("it is %s", d.State)
	}
	if got := s.suppressed("ada@example.org"); got != "" {
		t.Errorf("suppressed for %s", got)
	}
	if metrics := s.must(200, "GET", "/metrics", "", ""); !strings.Contains(metrics, `fanfare_returns_total{class="invalid",kind="failed"} 3`) || !strings.Contains(metrics, "fanfare_returns_unknown_total 2") {
		t.Error("the metrics do not count what came back")
	}
}
