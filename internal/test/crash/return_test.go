//go:build crashsteps

package crash

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net/smtp"
	"slices"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/internal/sink"
	"fanfare.dev/fanfare/internal/test/pgtest"
)

// returnSteps are passed between the end of a message that came back and the 250
// that is said to it.
var returnSteps = []string{"before-return-count", "before-return-suppression", "before-return-record", "after-return-record", "before-return-reply"}

// returning is a service whose mail comes back: who is unknown is given up at once,
// whose server says no without a word of why at the second time.
const returning = `
service: news
bounces: {unknown: {after: 1}, hard: {after: 2}}
channels:
  email: {driver: smtp, relay: %q, from: "News <news@example.org>", rate: unlimited, connections: %d, returns: bounces.example.org}
topics:
  story: {template: message}
templates:
  message:
    subject: "{{ event.title }}"
    text: "Hello {{ subscriber.address }}\n"
`

// inboundSettings let mail come in.
var inboundSettings = []string{"FANFARE_INBOUND=127.0.0.1:0", "FANFARE_INBOUND_DOMAINS=bounces.example.org", "FANFARE_PUBLIC_URL=https://news.example.org"}

// A mailbag is a server whose mail goes to a sink in this process, which knows the
// return addresses.
type mailbag struct {
	t      *teller
	server *server
	sink   *sink.Server
}

// TestABounceCountsOnceWhereverTheServerDies has the server die at each step, some
// bounces after its start, and then brings again what had no answer, and only that.
func TestABounceCountsOnceWhereverTheServerDies(t *testing.T) {
	t.Parallel()
	for durability, passings := range map[string][]int{"relaxed": {2}, "fsync": {1, 3}} {
		t.Run(durability, func(t *testing.T) {
			m := openMailbag(tell(t), durability)
			const each = 4 // people for each death
			var people []string
			for i := range len(returnSteps) * len(passings) * each {
				people = append(people, person(i))
			}
			m.subscribe(people)
			event, returnTo := m.story("first", people)
			for next, step := range returnSteps {
				for turn, passing := range passings {
					from := (next*len(passings) + turn) * each
					m.dieAmid(step, passing, people[from:from+each], returnTo)
				}
			}
			m.server.kill(m.server.current()) // what had a 250 stays
			m.live()
			m.expect(event, people, "failed", 2)
			m.expectSuppressed(people, isUnknown)
			if b := m.event(event); b.Counts != (fanfare.Counts{fanfare.Failed: int64(len(people))}) {
				m.t.Errorf("the counts are %v", b.Counts)
			}

			// One bounce more is the second of who has one that counts, not the first
			// and not the third.
			var others []string
			for i, p := range people {
				if !isUnknown(i) {
					others = append(others, p)
				}
			}
			_, returnTo = m.story("second", others)
			for i, p := range people {
				if !isUnknown(i) {
					m.bounce(p, i, returnTo[p])
				}
			}
			m.expectSuppressed(people, func(int) bool { return true })
		})
	}
}

func person(i int) string { return fmt.Sprintf("person%d@example.org", i) }

// isUnknown tells who is nobody, by status and by words, from whose server says no.
func isUnknown(i int) bool { return i%2 == 0 }

func openMailbag(t *teller, durability string) *mailbag {
	t.Helper()
	m := &mailbag{t: t, server: newServer(t, durability, pgtest.Chosen(t)), sink: sink.New(sink.Config{KeepFirst: 1000})}
	address, err := m.sink.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = m.sink.Serve() }() // what goes wrong with it shows as a mail that does not come
	t.Cleanup(func() { _ = m.sink.Close() })
	m.live()
	m.must(func(ctx context.Context, api *client.Client) error {
		_, err := api.Apply(ctx, fmt.Appendf(nil, returning, address, connections), false)
		return err
	})
	return m
}

// live starts the server, and returns when it is ready.
func (m *mailbag) live(env ...string) *life {
	m.t.Helper()
	l := m.server.start(append(env, inboundSettings...)...)
	m.server.awaitReady(l)
	return l
}

func (m *mailbag) must(call func(context.Context, *client.Client) error) {
	m.t.Helper()
	if err := m.server.do(m.t.Context(), call); err != nil {
		m.t.Fatal(err)
	}
}

func (m *mailbag) subscribe(people []string) {
	m.t.Helper()
	var lines bytes.Buffer
	for _, p := range people {
		fmt.Fprintf(&lines, `{"topic":"story","channel":"email","to":%q}`+"\n", p)
	}
	m.must(func(ctx context.Context, api *client.Client) error {
		sum, err := api.ImportSubscriptions(ctx, bytes.NewReader(lines.Bytes()), nil)
		if err == nil && sum.Created != int64(len(people)) {
			err = fmt.Errorf("of %d people: %+v", len(people), sum)
		}
		return err
	})
}

// story publishes one and returns to where each mail of it would come back.
func (m *mailbag) story(title string, people []string) (event string, returnTo map[string]string) {
	m.t.Helper()
	m.must(func(ctx context.Context, api *client.Client) error {
		accepted, err := api.Publish(ctx, "story", map[string]string{"title": title}, client.PublishOptions{ID: title})
		event = accepted.ID
		return err
	})
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for limit := time.Now().Add(patience); m.event(event).State != "completed"; <-look.C {
		if time.Now().After(limit) {
			m.t.Fatalf("story %s is not completed: %+v", title, m.event(event))
		}
	}
	returnTo = map[string]string{}
	for _, mail := range m.sink.Messages() {
		if bytes.Contains(mail.Body, []byte("Subject: "+title+"\r\n")) {
			returnTo[mail.To[0]] = mail.From
		}
	}
	if got := slices.Sorted(maps.Keys(returnTo)); !slices.Equal(got, slices.Sorted(slices.Values(people))) {
		m.t.Fatalf("story %s went to %q", title, got)
	}
	return event, returnTo
}

// event is what an event set off.
func (m *mailbag) event(id string) (b fanfare.Broadcast) {
	m.t.Helper()
	m.must(func(ctx context.Context, api *client.Client) (err error) {
		b, err = api.Event(ctx, id)
		if fanfare.CodeOf(err) == fanfare.NotFound { // not frozen yet
			err = nil
		}
		return err
	})
	return b
}

// dieAmid has a server die at a step while the mail of some people comes back, one
// after the other, and the next one hear again what this one did not answer.
func (m *mailbag) dieAmid(step string, passing int, people []string, returnTo map[string]string) {
	m.t.Helper()
	m.server.stop(m.server.current())
	l := m.live(fmt.Sprintf("FANFARE_CRASH_AT=%s:%d", step, passing))
	var open []string
	for _, p := range people {
		if err := bounce(l.mail, p, number(p), returnTo[p]); err != nil {
			open = append(open, p)
		}
	}
	m.server.awaitDeath(m.t.Context(), l, "came to "+step)
	if len(open) != len(people)-passing+1 {
		m.t.Fatalf("at %s:%d %d of %d have no answer: %q", step, passing, len(open), len(people), open)
	}
	m.live()
	for _, p := range open {
		m.bounce(p, number(p), returnTo[p])
	}
}

func number(person string) (i int) {
	_, _ = fmt.Sscanf(person, "person%d@", &i)
	return i
}

// bounce brings the mail of somebody back, and is answered 250.
func (m *mailbag) bounce(who string, i int, returnTo string) {
	m.t.Helper()
	if err := bounce(m.server.current().mail, who, i, returnTo); err != nil {
		m.t.Fatal(err)
	}
}

// bounce says to an inbound server that a mail was not delivered.
func bounce(at, who string, i int, returnTo string) error {
	words := "550 5.1.1 User unknown"
	if !isUnknown(i) {
		words = "550 5.1.1 No"
	}
	report := strings.ReplaceAll(fmt.Sprintf(`From: <MAILER-DAEMON@mx.example.net>
Subject: Undelivered
Content-Type: multipart/report; report-type=delivery-status; boundary=b

--b
Content-Type: message/delivery-status

Reporting-MTA: dns; mx.example.net

Final-Recipient: rfc822; %s
Action: failed
Status: 5.1.1
Diagnostic-Code: smtp; %s
--b--
`, who, words), "\n", "\r\n")
	return smtp.SendMail(at, nil, "", []string{returnTo}, []byte(report))
}

// expect compares the state of all deliveries of an event, and how many attempts
// each has.
func (m *mailbag) expect(event string, people []string, state string, attempts int) {
	m.t.Helper()
	var page client.DeliveryPage
	m.must(func(ctx context.Context, api *client.Client) (err error) {
		page, err = api.Deliveries(ctx, event, client.DeliveryQuery{Limit: 1000})
		return err
	})
	if len(page.Deliveries) != len(people) {
		m.t.Errorf("%d deliveries to %d people", len(page.Deliveries), len(people))
	}
	for _, d := range page.Deliveries {
		m.must(func(ctx context.Context, api *client.Client) (err error) {
			d, err = api.Delivery(ctx, d.ID)
			return err
		})
		if d.State != state || len(d.Attempts) != attempts {
			m.t.Errorf("%s is %s after %d attempts, want %s after %d: %+v", d.Address, d.State, len(d.Attempts), state, attempts, d.Attempts)
		}
	}
}

// expectSuppressed compares who is given up.
func (m *mailbag) expectSuppressed(people []string, want func(i int) bool) {
	m.t.Helper()
	for i, p := range people {
		m.must(func(ctx context.Context, api *client.Client) error {
			found, err := api.Suppression(ctx, p)
			if fanfare.CodeOf(err) == fanfare.NotFound && err != nil {
				err = nil
			}
			if got := found.Reason == "hard_bounce"; got != want(i) {
				m.t.Errorf("%s is suppressed for %q, want so: %t", p, found.Reason, want(i))
			}
			return err
		})
	}
}
