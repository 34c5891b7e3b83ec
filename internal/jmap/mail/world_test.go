package mail_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"fanfare.dev/fanfare/internal/jmap/core"
	"fanfare.dev/fanfare/internal/jmap/mail"
	"fanfare.dev/fanfare/internal/mail/recipients"
	"fanfare.dev/fanfare/internal/mail/submission"
	"fanfare.dev/fanfare/internal/mailbox"
	"fanfare.dev/fanfare/internal/store/storetest"
)

// A testClock stands still until it is set.
type testClock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *testClock) Now() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.now }

func (c *testClock) advance(d time.Duration) { c.mu.Lock(); defer c.mu.Unlock(); c.now = c.now.Add(d) }

// A world is an account in a real store, and the methods on it.
type world struct {
	*testing.T
	store   *mailbox.Store
	clock   *testClock
	methods *mail.Methods
	relay   *relay
	sender  *submission.Submitter
	server  *core.Server
	id      mailbox.AccountID
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldWith(t, mailbox.Options{SearchTexts: mail.SearchTexts})
}

func newWorldWith(t *testing.T, o mailbox.Options) *world {
	t.Helper()
	w := &world{T: t, clock: &testClock{now: time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)}, id: 7}
	log := slog.New(slog.DiscardHandler)
	o.Clock, o.Logger, o.Submissions = w.clock, log, submissionAge
	w.store = mailbox.New(storetest.OpenAt(t, t.TempDir()), o)
	t.Cleanup(w.store.Close)
	if _, err := w.store.Create(t.Context(), mailbox.Owner{ID: w.id, Service: "press", Address: "ann@example.org"}); err != nil {
		t.Fatal(err)
	}
	w.relay = &relay{}
	w.sender = submission.New(submission.Options{Store: w.store, Recipients: recipients.New(recipients.Options{Accounts: w.store.RecipientsOf, Clock: w.clock}), Relay: w.relay, Name: "mx.example.org", Hourly: 50, Clock: w.clock, Logger: log})
	w.methods = mail.New(mail.Options{Store: w.store, Sender: w.sender, Clock: w.clock, Logger: log})
	w.server = &core.Server{
		Methods: w.methods.Table(), Capabilities: []string{core.Capability, mail.Capability, mail.QuotaCapability, mail.SubmissionCapability}, Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Limits: core.Limits{MaxCallsInRequest: 16, MaxObjectsInGet: 100, MaxObjectsInSet: 100},
	}
	return w
}

// An object is a JSON object.
type object = map[string]any

// request makes calls and returns the responses: name, arguments, id.
func (w *world) request(calls string) [][3]any {
	w.Helper()
	r, refused := core.ParseRequest([]byte(`{"using":["urn:ietf:params:jmap:core","urn:ietf:params:jmap:mail","urn:ietf:params:jmap:quota","urn:ietf:params:jmap:submission"],"methodCalls":` + calls + `}`))
	if refused != nil {
		w.Fatalf("%s: %v", calls, refused)
	}
	response, refused := w.server.Run(w.Context(), "a7", r, "s")
	if refused != nil {
		w.Fatal(refused)
	}
	text, err := json.Marshal(response.Responses)
	if err != nil {
		w.Fatal(err)
	}
	var list [][3]any
	if err := json.Unmarshal(text, &list); err != nil {
		w.Fatal(err)
	}
	return list
}

// call makes one call with arguments besides accountId, and returns the result.
func (w *world) call(method, arguments string) object {
	w.Helper()
	name, result := w.try(method, arguments)
	if name != method {
		w.Fatalf("%s %s failed: %v", method, arguments, result)
	}
	return result
}

// try makes one call, which may fail.
func (w *world) try(method, arguments string) (string, object) {
	w.Helper()
	separator := ","
	if strings.TrimSpace(strings.Trim(arguments, "{}")) == "" {
		separator = ""
	}
	arguments = `{"accountId":"a7"` + separator + strings.TrimPrefix(arguments, "{")
	list := w.request(`[["` + method + `",` + arguments + `,"0"]]`)
	return list[0][0].(string), list[0][1].(object)
}

// fails makes one call and expects an error.
func (w *world) fails(method, arguments, kind string) {
	w.Helper()
	if name, result := w.try(method, arguments); name != "error" || result["type"] != kind {
		w.Errorf("%s %s: got %s %v, want the error %s", method, arguments, name, result, kind)
	}
}

// text returns a value as JSON.
func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func (w *world) same(what string, got any, want string) {
	w.Helper()
	if text(got) != want {
		w.Errorf("%s:\n got %s\nwant %s", what, text(got), want)
	}
}

// message returns a message with a subject, lines of the header, and a body.
func message(subject, body string, fields ...string) string {
	return strings.Join(append(fields, "Subject: "+subject, "", body, ""), "\r\n")
}

// add stores a message and returns its id.
func (w *world) add(box mailbox.MailboxID, content string) string {
	w.Helper()
	list, err := w.store.Append(w.Context(), w.id, []mailbox.NewMessage{{Mailbox: box, Content: []byte(content), Received: w.clock.Now()}})
	if err != nil {
		w.Fatal(err)
	}
	w.clock.advance(time.Minute)
	return fmt.Sprintf("M%d", list[0].Email)
}

// get returns properties of a message.
func (w *world) get(id, arguments string) object {
	w.Helper()
	result := w.call("Email/get", `{"ids":["`+id+`"]`+arguments+`}`)
	list := result["list"].([]any)
	if len(list) != 1 {
		w.Fatalf("%s is not found: %v", id, result)
	}
	return list[0].(object)
}

// state returns the state of the account.
func (w *world) state() string {
	w.Helper()
	return w.call("Email/get", `{"ids":[]}`)["state"].(string)
}

// upload stores a blob and returns its id.
func (w *world) upload(data string) string {
	w.Helper()
	id, err := w.methods.Upload(w.Context(), w.id, []byte(data))
	if err != nil {
		w.Fatal(err)
	}
	return string(id)
}
