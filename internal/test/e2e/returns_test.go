package e2e

import (
	"fmt"
	"strings"
	"testing"

	"fanfare.dev/fanfare"
)

// reported is a message with a report of some kind, and the header of the mail that
// it is about.
func reported(kind, report, header string) string {
	return strings.ReplaceAll(fmt.Sprintf(`From: <MAILER-DAEMON@mx.example.net>
Subject: about your mail
MIME-Version: 1.0
Content-Type: multipart/report; report-type=%s; boundary=b

--b
Content-Type: text/plain

Something happened.
--b
Content-Type: message/%s

%s
--b
Content-Type: text/rfc822-headers

%s
--b--`, kind, kind, report, header), "\n", "\r\n")
}

// abuse is a complaint (RFC 5965).
func abuse(fields, header string) string {
	return reported("feedback-report", "Feedback-Type: abuse\nUser-Agent: loop/1\nVersion: 1\n"+fields, header)
}

// undelivered is a report of delivery (RFC 3464) on some people.
func undelivered(status, said string, people ...string) string {
	report := "Reporting-MTA: dns; mx.example.net\n"
	for _, p := range people {
		report += fmt.Sprintf("\nFinal-Recipient: rfc822; %s\nAction: failed\nStatus: %s\nDiagnostic-Code: smtp; %s\n", p, status, said)
	}
	return reported("delivery-status", report, "Subject: news\n")
}

// why is the reason for which an address is suppressed, "" where it is not.
func (c *caller) why(address string) string {
	c.t.Helper()
	status, text, _ := c.send("GET", "/v1/suppressions?address="+address, "", "")
	if status == 404 {
		return ""
	}
	return into[struct{ Reason string }](c.t, text).Reason
}

// last is the state of each delivery of an event by its address, with the text of
// its last attempt where something came back.
func (s *server) last(event string) map[string]string {
	s.t.Helper()
	states := map[string]string{}
	for _, d := range s.http.deliveries(event, "") {
		states[d.Address] = d.State
		whole := into[fanfare.Delivery](s.t, s.http.must(200, "GET", "/v1/deliveries/"+d.ID, "", ""))
		if n := len(whole.Attempts); n > 1 {
			states[d.Address] += ": " + whole.Attempts[n-1].Text
		}
	}
	return states
}

// A complaint is about the message to whose return address it comes, or about the
// one that it encloses, where it comes to abuse. An address without a valid signature belongs to nobody.
func TestAComplaintEndsMailToItsReaderWhereverItComesIn(t *testing.T) {
	t.Parallel()
	s, r := mailed(t)
	people := []string{"ann@example.org", "bob@example.org", "cid@example.org", "dan@example.org"}
	s.subscribe(people...)
	event := s.http.publish(`{"title":"first"}`)
	s.http.completed(event)
	returnTo, header := map[string]string{}, map[string]string{}
	for _, m := range r.sink.Messages() {
		returnTo[m.To[0]] = m.From
		head, _, _ := strings.Cut(string(m.Body), "\r\n\r\n")
		header[m.To[0]] = strings.ReplaceAll(head, "\r\n", "\n") + "\n"
	}
	m := s.mailer(s.inbound().Listen)
	m.mail("loop@provider.example", returnTo["ann@example.org"], abuse("", "Subject: none of it\n"), "250")
	m.mail("loop@provider.example", "abuse@bounces.example.org", abuse("", header["bob@example.org"]), "250")
	m.mail("loop@provider.example", "abuse@bounces.example.org", abuse("Original-Rcpt-To: <cid@example.org>\n", "To: cid@example.org\n"), "250")
	m.mail("loop@provider.example", returnTo["dan@example.org"], reported("feedback-report", "Feedback-Type: not-spam\nUser-Agent: loop/1\nVersion: 1\n", header["dan@example.org"]), "250")
	const junk = "delivered: the recipient reported it as spam (abuse)"
	want := map[string]string{"ann@example.org": junk, "bob@example.org": junk, "cid@example.org": "accepted", "dan@example.org": "accepted"}
	if got := s.last(event); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for _, p := range people {
		complained := strings.HasPrefix(want[p], junk)
		if got := s.http.why(p); (got == "complaint") != complained || got != "" != complained {
			t.Errorf("%s is suppressed for %q", p, got)
		}
	}
	b := s.http.completed(s.http.publish(`{"title":"second"}`))
	if want := (fanfare.Counts{fanfare.Accepted: 2, fanfare.Suppressed: 2}); b.Counts != want {
		t.Errorf("the next story has %v, want %v", b.Counts, want)
	}
}

// Several people got one message with one return address: a report is about those
// of them whom it names.
func TestAReportOnAMessageToSeveralIsAboutWhomItNames(t *testing.T) {
	t.Parallel()
	s, r := mailed(t)
	s.http.must(200, "POST", "/v1/apply", yaml, fmt.Sprintf(`service: news
channels:
  email: {driver: smtp, relay: %q, from: "News <news@example.org>", rate: unlimited, returns: bounces.example.org, multicast: 10}
templates:
  story: {subject: "{{ event.title }}", text: "The same to all.\n"}
`, r.addr))
	people := []string{"ann@example.org", "bob@example.org", "cid@example.org", "dan@example.org", "eve@example.org"}
	s.subscribe(people...)
	event := s.http.publish(`{"title":"first"}`)
	s.http.completed(event)
	returnTo := map[string]string{}
	for _, m := range r.sink.Messages() {
		for _, to := range m.To {
			returnTo[to] = m.From
		}
	}
	if shared := returnTo["ann@example.org"]; len(returnTo) != 5 || shared != returnTo["eve@example.org"] {
		t.Fatalf("it did not leave as one message: %v", returnTo)
	}
	m, shared := s.mailer(s.inbound().Listen), returnTo["ann@example.org"]
	for range 2 { // and again: nothing more follows
		m.mail("", shared, undelivered("5.1.1", "550 5.1.1 User unknown", "ann@example.org", "CID@example.org", "stranger@example.org"), "250")
		m.mail("loop@provider.example", shared, abuse("Original-Rcpt-To: <dan@example.org>\n", "Subject: news\n"), "250")
		m.mail("loop@provider.example", shared, abuse("", "Subject: news\n"), "250") // about whom?
		m.mail("", shared, undelivered("5.1.1", "550 5.1.1 User unknown"), "250")
	}
	const gone = "failed: bounced (invalid): 550 5.1.1 User unknown"
	want := map[string]string{"ann@example.org": gone, "bob@example.org": "accepted", "cid@example.org": gone, "dan@example.org": "delivered: the recipient reported it as spam (abuse)", "eve@example.org": "accepted"}
	if got := s.last(event); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for p, want := range map[string]string{"ann@example.org": "hard_bounce", "bob@example.org": "", "cid@example.org": "hard_bounce", "dan@example.org": "complaint", "eve@example.org": ""} {
		if got := s.http.why(p); got != want {
			t.Errorf("%s is suppressed for %q, want %q", p, got, want)
		}
	}
	if b := s.http.broadcast(event); b.Counts != (fanfare.Counts{fanfare.Accepted: 2, fanfare.Failed: 2, fanfare.Delivered: 1}) {
		t.Errorf("the counts are %v", b.Counts)
	}
}

// A suppression that is lifted gives the address as many tries as a new one.
func TestALiftedSuppressionCountsBouncesAnew(t *testing.T) {
	t.Parallel()
	s, r := mailed(t)
	s.http.must(200, "POST", "/v1/apply", yaml, "service: news\nbounces: {hard: {after: 2}}\n")
	const ann = "ann@example.org"
	s.subscribe(ann)
	bounces := 0
	bounce := func() {
		t.Helper()
		s.http.completed(s.http.publish(fmt.Sprintf(`{"title":"story %d"}`, bounces)))
		if bounces++; r.total() != bounces {
			t.Fatalf("%d mails left, want %d", r.total(), bounces)
		}
		from := r.sink.Messages()[bounces-1].From
		s.mailer(s.inbound().Listen).mail("", from, undelivered("5.1.1", "550 5.1.1 No", ann), "250")
	}
	for round := range 2 {
		if bounce(); s.http.why(ann) != "" {
			t.Fatalf("in round %d the first bounce suppresses", round)
		}
		if bounce(); s.http.why(ann) != "hard_bounce" {
			t.Fatalf("in round %d the second bounce does not suppress", round)
		}
		s.http.must(204, "DELETE", "/v1/suppressions?address="+ann, "", "")
	}
}
