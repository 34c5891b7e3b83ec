package submission_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/mail/recipients"
	"fanfare.dev/fanfare/internal/mail/submission"
	"fanfare.dev/fanfare/internal/mailbox"
	"fanfare.dev/fanfare/internal/store/storetest"
)

const joe = "joe@example.org"

var own = []string{joe}

var noon = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

func TestRFC6409TheHeaderIsCheckedAndCompleted(t *testing.T) {
	const from = "From: Joe <joe@example.org>\r\n"
	for text, want := range map[string]string{
		"": "no header", "Subject: x\r\n\r\n": "one From", from + from + "\r\n": "one From",
		"From: ann@example.org\r\n\r\n":                                           "From must be joe@example.org",
		"From: joe@example.org, ann@example.org\r\n\r\n":                          "From must be joe@example.org",
		"From: \"joe@example.org\" <ann@example.org>\r\n\r\n":                     "From must be joe@example.org",
		"From: joe@example.org <ann@example.org>\r\n\r\n":                         "From",
		"From: friends: joe@example.org;\r\n\r\n":                                 "From must be joe@example.org",
		from + "Sender: ann@example.org\r\n\r\n":                                  "Sender must be joe@example.org",
		from + "Subject: a\r\nSubject: b\r\n\r\n":                                 "at most one field subject",
		from + "To: a@example.org\r\nTO: b@example.org\r\n\r\n":                   "at most one field to",
		from + "Content-Type: text/plain\r\nContent-Type: text/html\r\n\r\nx\r\n": "at most one field content-type",
	} {
		_, err := submission.Complete([]byte(text), own, "mx.example.org", noon)
		if refusal, ok := errors.AsType[*submission.Refusal](err); !ok || !strings.Contains(refusal.Text, want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	const complete = from + "To: ann@example.net\r\nDate: Fri, 27 Nov 2026 12:00:00 +0000\r\nMessage-ID: <1@example.org>\r\n\r\nBcc: body\r\n"
	got, err := submission.Complete([]byte(complete), []string{"Joe@EXAMPLE.org"}, "mx.example.org", noon)
	if err == nil {
		t.Errorf("another local part is accepted: %s", got)
	}
	if got, err = submission.Complete([]byte(complete), []string{"joe@EXAMPLE.org"}, "mx.example.org", noon); err != nil || string(got) != complete {
		t.Errorf("a complete message became %q, %v", got, err)
	}
	hidden := strings.Replace(complete, "To:", "Bcc: eve@example.net,\r\n\tmallory@example.net\r\nbCC : oscar@example.net\r\nTo:", 1)
	if got, err = submission.Complete([]byte(hidden), own, "mx.example.org", noon); err != nil || string(got) != complete {
		t.Errorf("with Bcc it became %q, %v", got, err)
	}
	got, err = submission.Complete([]byte(from+"\r\nbody\r\n"), own, "mx.example.org", noon)
	if err != nil || !strings.HasPrefix(string(got), "Date: Fri, 27 Nov 2026 12:00:00 +0000\r\nMessage-ID: <") || !strings.HasSuffix(string(got), "@mx.example.org>\r\n"+from+"\r\nbody\r\n") {
		t.Errorf("a short message became %q, %v", got, err)
	}
}

func TestAccountsAreLimited(t *testing.T) {
	l := submission.NewLimiter(720)
	if err := l.Take(noon, 1, 200); err != nil {
		t.Fatal(err)
	}
	if err := l.Take(noon, 1, 1); err == nil || !strings.Contains(err.Error(), "5 seconds") && !strings.Contains(err.Error(), "6 seconds") {
		t.Errorf("after the burst: %v", err)
	}
	if err := l.Take(noon, 2, 1); err != nil {
		t.Errorf("another account: %v", err)
	}
	if err := l.Take(noon.Add(5*time.Second), 1, 1); err != nil {
		t.Errorf("after the interval: %v", err)
	}
	if err := submission.NewLimiter(3).Take(noon, 1, 4); err == nil {
		t.Error("more recipients than permitted in an hour are accepted at once")
	}
}

// A relay remembers messages and has the states that a test sets.
type relay struct {
	mu       sync.Mutex
	sent     []submission.Outgoing
	states   map[string]fanfare.Delivery // by address
	refuse   map[string]error
	fail     error
	missing  bool // there are no deliveries yet
	accepted map[string]fanfare.EventRef
}

func (r *relay) Permits(string, string) bool { return true }

func (r *relay) Submit(_ context.Context, m *submission.Outgoing) (ref fanfare.EventRef, refused []error, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fail != nil {
		return ref, nil, r.fail
	}
	for _, to := range m.Recipients {
		refused = append(refused, r.refuse[to])
	}
	r.sent = append(r.sent, *m)
	ref = fanfare.EventRef{Day: 20784, Seq: fanfare.EventSeq(len(r.sent))}
	r.accepted[m.ID] = ref
	return ref, refused, nil
}

func (r *relay) Enter() func() { return func() {} }

func (r *relay) Known(_, id string) (fanfare.EventRef, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	ref, ok := r.accepted[id]
	return ref, ok
}

func (r *relay) Deliveries(context.Context, fanfare.EventRef) (list []fanfare.Delivery, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.missing {
		return nil, &fanfare.Error{Code: fanfare.NotFound, Message: "no such event"}
	}
	for _, d := range r.states {
		list = append(list, d)
	}
	return list, nil
}

func (r *relay) set(to, state string, code int, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.states[to] = fanfare.Delivery{Address: to, State: state, Attempts: []fanfare.Attempt{{Number: 1, Code: code, Text: text}}}
}

// A testClock stands still until it is set.
type testClock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *testClock) Now() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.now }

func (c *testClock) advance(d time.Duration) { c.mu.Lock(); defer c.mu.Unlock(); c.now = c.now.Add(d) }

type world struct {
	*testing.T
	*submission.Submitter
	store   *mailbox.Store
	relay   *relay
	clock   *testClock
	account mailbox.Account
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, clock: &testClock{now: noon}, relay: &relay{states: map[string]fanfare.Delivery{}, refuse: map[string]error{}, accepted: map[string]fanfare.EventRef{}}}
	w.store = mailbox.New(storetest.OpenAt(t, t.TempDir()), mailbox.Options{Clock: w.clock, Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(w.store.Close)
	var err error
	if w.account, err = w.store.Create(t.Context(), mailbox.Owner{ID: 7, Service: "press", Address: joe}); err != nil {
		t.Fatal(err)
	}
	w.Submitter = submission.New(submission.Options{Store: w.store, Recipients: recipients.New(recipients.Options{Accounts: w.store.RecipientsOf, Clock: w.clock}), Relay: w.relay, Name: "mx.example.org", Clock: w.clock, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
	return w
}

// send sends a message to others.
func (w *world) send(client string, to ...submission.Recipient) (mailbox.RecordID, *submission.Record) {
	w.Helper()
	record := &submission.Record{Client: []byte(client)}
	if client == "" {
		record.Client = nil
	}
	for _, one := range to {
		one.Outside = true
		record.Recipients = append(record.Recipients, one)
	}
	id, err := w.Relayed(w.Context(), &w.account, joe, []byte("From: joe@example.org\r\nSubject: hello\r\nX-Secret: x\r\n\r\nbody\r\n"), record)
	if err != nil {
		w.Fatal(err)
	}
	return id, record
}

func (w *world) look() {
	w.Helper()
	w.clock.advance(2 * time.Minute)
	if err := w.Look(w.Context()); err != nil {
		w.Fatal(err)
	}
}

// states returns the states of the recipients of a submission.
func (w *world) states(id mailbox.RecordID) string {
	w.Helper()
	stored, err := w.store.Record(w.Context(), 7, mailbox.SubmissionRecord, id)
	if err != nil {
		return err.Error()
	}
	record, err := submission.ParseRecord(&stored)
	if err != nil {
		w.Fatal(err)
	}
	var all []string
	for _, r := range record.Recipients {
		all = append(all, fmt.Sprintf("%s %s %q", r.Address, r.Delivered, r.Reply))
	}
	return fmt.Sprint(strings.Join(all, ", "), " work ", stored.Work)
}

// inbox returns the messages in the inbox of the sender.
func (w *world) inbox() (all []string) {
	w.Helper()
	list, _, err := w.store.Messages(w.Context(), 7, mailbox.InboxID)
	if err != nil {
		w.Fatal(err)
	}
	for _, m := range list {
		content, err := w.store.Content(w.Context(), 7, m.Email)
		if err != nil {
			w.Fatal(err)
		}
		all = append(all, string(content))
	}
	return all
}

func TestTheRecordHasTheStateOfEachRecipient(t *testing.T) {
	w := newWorld(t)
	id, _ := w.send(`{}`, submission.Recipient{Address: "ann@example.net"}, submission.Recipient{Address: "bob@example.net"}, submission.Recipient{Address: "ann@example.net"})
	if m := w.relay.sent[0]; fmt.Sprint(m.Recipients) != "[ann@example.net bob@example.net]" || m.From != joe || m.Sender != 7 || m.Service != "press" {
		t.Errorf("the relay has %+v", m)
	}
	w.relay.missing = true
	w.look()
	if got := w.states(id); got != `ann@example.net queued "", bob@example.net queued "", ann@example.net queued "" work true` {
		t.Errorf("before the event is matched: %s", got)
	}
	w.relay.missing = false
	w.relay.set("ann@example.net", "accepted", 250, "2.0.0 ok")
	w.relay.set("bob@example.net", "deferred", 451, "4.7.1 later")
	w.look()
	if got := w.states(id); got != `ann@example.net unknown "250 2.0.0 ok", bob@example.net queued "451 4.7.1 later", ann@example.net unknown "250 2.0.0 ok" work true` {
		t.Errorf("after the first attempts: %s", got)
	}
	w.relay.set("bob@example.net", "failed", 550, "5.1.1 no such user\r\nBcc: x")
	w.look()
	w.look()
	if got := w.states(id); !strings.Contains(got, `bob@example.net no "550 5.1.1 no such user  Bcc: x"`) || !strings.HasSuffix(got, "work false") {
		t.Errorf("after the failure: %s", got)
	}
	reports := w.inbox()
	if len(reports) != 1 {
		t.Fatalf("the sender has the reports %q", reports)
	}
	for _, want := range []string{"Return-Path: <>\r\n", "To: <joe@example.org>\r\n", "report-type=delivery-status", "Final-Recipient: rfc822;bob@example.net\r\nAction: failed\r\nStatus: 5.1.1\r\nDiagnostic-Code: smtp;550 5.1.1 no such user  Bcc: x\r\n", "Content-Type: text/rfc822-headers\r\n\r\nFrom: joe@example.org\r\nSubject: hello\r\n\r\n"} {
		if !strings.Contains(reports[0], want) {
			t.Errorf("the report lacks %q:\n%s", want, reports[0])
		}
	}
	for _, other := range []string{"ann@example.net", "X-Secret"} {
		if strings.Contains(reports[0], other) {
			t.Errorf("the report has %q:\n%s", other, reports[0])
		}
	}
}

func TestRFC3461TheSenderChoosesTheReports(t *testing.T) {
	w := newWorld(t)
	id, _ := w.send("", submission.Recipient{Address: "a@example.net", Never: true}, submission.Recipient{Address: "b@example.net", Success: true, Original: "rfc822;b+x@example.net"})
	w.relay.set("a@example.net", "failed", 550, "no")
	w.relay.set("b@example.net", "accepted", 250, "ok")
	w.look()
	reports := w.inbox()
	if len(reports) != 1 || !strings.Contains(reports[0], "Original-Recipient: rfc822;b+x@example.net\r\nFinal-Recipient: rfc822;b@example.net\r\nAction: relayed\r\n") || strings.Contains(reports[0], "a@example.net") {
		t.Errorf("the reports are %q", reports)
	}
	if got := w.states(id); !strings.Contains(got, "does not exist") {
		t.Errorf("a submission that no client sees stays after its end: %s", got)
	}
}

func TestARefusedSubmissionLeavesNoRecord(t *testing.T) {
	w := newWorld(t)
	w.relay.fail = errors.New("the disk is full")
	record := &submission.Record{Recipients: []submission.Recipient{{Address: "ann@example.net", Outside: true}}}
	if _, err := w.Relayed(t.Context(), &w.account, joe, []byte("From: joe@example.org\r\n\r\n"), record); !errors.Is(err, w.relay.fail) {
		t.Errorf("got %v", err)
	}
	if list, _, err := w.store.Records(t.Context(), 7, mailbox.SubmissionRecord); err != nil || len(list) != 0 {
		t.Errorf("records %+v, %v", list, err)
	}
	w.relay.fail, w.relay.refuse["x@example.net"] = nil, errors.New("the address\r\nis wrong")
	id, refused := w.send(`{}`, submission.Recipient{Address: "x@example.net"}, submission.Recipient{Address: "ann@example.net"})
	if r := refused.Recipients[0]; r.Delivered != submission.No || r.Reply != "550 5.1.3 the address  is wrong" {
		t.Errorf("the refused recipient is %+v", r)
	}
	if got := w.states(id); !strings.Contains(got, "ann@example.net queued") {
		t.Errorf("the other recipient: %s", got)
	}
}

// A record whose deliveries were not stored is that of a server that was killed in between.
func TestAnInterruptedSubmissionIsCompletedOrForgotten(t *testing.T) {
	w := newWorld(t)
	add := func(event string) mailbox.RecordID {
		body := fmt.Sprintf(`{"event_id":%q,"sent_at":%d,"recipients":[{"address":"ann@example.net","outside":true,"delivered":"queued","reply":""}],"client":{}}`, event, noon.Unix())
		r, err := w.store.AddRecord(t.Context(), 7, mailbox.SubmissionRecord, true, body, 0)
		if err != nil {
			t.Fatal(err)
		}
		return r.ID
	}
	sent, lost := add("sent"), add("lost")
	w.relay.accepted["sent"] = fanfare.EventRef{Day: 20784, Seq: 1}
	w.relay.set("ann@example.net", "delivered", 250, "ok")
	w.look()
	if got := w.states(sent); !strings.HasPrefix(got, "ann@example.net yes") {
		t.Errorf("the one that was sent: %s", got)
	}
	if got := w.states(lost); !strings.Contains(got, "queued") {
		t.Errorf("the other one may still be on its way: %s", got)
	}
	w.clock.advance(time.Hour)
	w.look()
	if got := w.states(lost); !strings.Contains(got, "does not exist") {
		t.Errorf("the other one after an hour: %s", got)
	}
}

func TestAHiddenSubmissionIsStillReported(t *testing.T) {
	w := newWorld(t)
	id, _ := w.send(`{}`, submission.Recipient{Address: "ann@example.net"})
	if _, err := w.store.EditRecord(t.Context(), 7, mailbox.SubmissionRecord, id, submission.Hide); err != nil {
		t.Fatal(err)
	}
	w.relay.set("ann@example.net", "expired", 0, "not sent in time")
	w.look()
	if reports := w.inbox(); len(reports) != 1 || !strings.Contains(reports[0], "not sent in time") {
		t.Errorf("the reports are %q", reports)
	}
	if got := w.states(id); !strings.Contains(got, "does not exist") {
		t.Errorf("it stays: %s", got)
	}
}

// The account was read before it was disabled, as by a session that has begun.
func TestADisabledAccountSendsNothing(t *testing.T) {
	w := newWorld(t)
	if err := w.store.SetDisabled(t.Context(), w.account.ID, true); err != nil {
		t.Fatal(err)
	}
	record := &submission.Record{Recipients: []submission.Recipient{{Address: "ann@example.net", Outside: true}}}
	if _, err := w.Relayed(t.Context(), &w.account, joe, []byte("From: joe@example.org\r\n\r\n"), record); fanfare.CodeOf(err) != fanfare.Forbidden {
		t.Errorf("got %v", err)
	}
	if len(w.relay.sent) != 0 {
		t.Errorf("the relay has %+v", w.relay.sent)
	}
}
