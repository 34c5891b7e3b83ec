package mail_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/mail/submission"
	"fanfare.dev/fanfare/internal/mailbox"
)

// A relay remembers messages for other servers, if it permits them.
type relay struct {
	mu      sync.Mutex
	permits bool
	sent    []submission.Outgoing
	states  []fanfare.Delivery
}

func (r *relay) Permits(string, string) bool { r.mu.Lock(); defer r.mu.Unlock(); return r.permits }

func (r *relay) Submit(_ context.Context, m *submission.Outgoing) (fanfare.EventRef, []error, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent = append(r.sent, *m)
	return fanfare.EventRef{Day: 20784, Seq: fanfare.EventSeq(len(r.sent))}, make([]error, len(m.Recipients)), nil
}

func (r *relay) Enter() func() { return func() {} }

func (r *relay) Known(string, string) (fanfare.EventRef, bool) { return fanfare.EventRef{}, false }

func (r *relay) Deliveries(context.Context, fanfare.EventRef) ([]fanfare.Delivery, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.states, nil
}

// first returns the id of the identity that the server makes.
func (w *world) first() string {
	w.Helper()
	return w.call("Identity/get", `{"ids":null}`)["list"].([]any)[0].(object)["id"].(string)
}

func TestRFC8621Section6IdentitiesHaveTheAddressOfTheAccount(t *testing.T) {
	w := newWorld(t)
	result := w.call("Identity/get", `{"ids":null}`)
	first := w.first()
	w.same("the first identity", result["list"], `[{"bcc":null,"email":"ann@example.org","htmlSignature":"","id":"`+first+`","mayDelete":false,"name":"","replyTo":null,"textSignature":""}]`)
	state := result["state"].(string)
	made := w.call("Identity/set", `{"ifInState":"`+state+`","create":{"k":{"email":"Ann@example.org"},"own":{"email":"ann@EXAMPLE.org","name":"Ann","replyTo":[{"name":null,"email":"lists@example.net"}]},
		"other":{"email":"eve@example.org"},"all":{"email":"*@example.org"},"none":{"name":"x"},"line":{"email":"ann@example.org","name":"a\r\nBcc: eve@example.org"},"copy":{"email":"ann@example.org","bcc":[{"email":"a@example.org\r\nX: y"}]},
		"readonly":{"email":"ann@example.org","mayDelete":true}}}`)
	own := made["created"].(object)["own"].(object)
	w.same("created", own, `{"bcc":null,"htmlSignature":"","id":"`+own["id"].(string)+`","mayDelete":true,"textSignature":""}`)
	for name, kind := range map[string]string{"k": "forbiddenFrom", "other": "forbiddenFrom", "all": "forbiddenFrom", "none": "invalidProperties", "line": "invalidProperties", "copy": "invalidProperties", "readonly": "invalidProperties"} {
		if failed, _ := made["notCreated"].(object)[name].(object); failed["type"] != kind {
			t.Errorf("%s: %v, want %s", name, failed, kind)
		}
	}
	id := own["id"].(string)
	if changes := w.call("Identity/changes", `{"sinceState":"`+state+`"}`); text(changes["created"]) != `["`+id+`"]` || text(changes["updated"]) != `[]` {
		t.Errorf("the changes are %v", changes)
	}
	before := w.state()
	set := w.call("Identity/set", `{"update":{"`+id+`":{"textSignature":"Ann","replyTo":null},"`+first+`":{"email":"eve@example.org"},"I999":{"name":"x"}}}`)
	w.same("updated", set["updated"], `{"`+id+`":null}`)
	w.same("the address", set["notUpdated"].(object)[first].(object)["type"], `"invalidProperties"`)
	w.same("unknown", set["notUpdated"].(object)["I999"].(object)["type"], `"notFound"`)
	w.same("changed", w.call("Identity/get", `{"ids":["`+id+`","x"],"properties":["name","replyTo","textSignature"]}`)["list"], `[{"id":"`+id+`","name":"Ann","replyTo":null,"textSignature":"Ann"}]`)
	set = w.call("Identity/set", `{"destroy":["`+id+`","`+first+`"]}`)
	w.same("destroyed", set["destroyed"], `["`+id+`"]`)
	w.same("the first one stays", set["notDestroyed"].(object)[first].(object)["type"], `"forbidden"`)
	w.same("changes", w.call("Identity/changes", `{"sinceState":"`+before+`"}`)["destroyed"], `["`+id+`"]`)
	w.fails("Identity/set", `{"ifInState":"1"}`, "stateMismatch")
	w.fails("Identity/changes", `{"sinceState":"99999"}`, "cannotCalculateChanges")
}

// submissionAge is the age at which the store removes submissions.
const submissionAge = 30 * 24 * time.Hour

func TestRFC8621Section6AliasesHaveIdentities(t *testing.T) {
	w := newWorld(t)
	first := w.first()
	state := w.state()
	for _, alias := range []string{"sales@example.org", "info@example.org"} {
		if _, _, err := w.store.AddAlias(t.Context(), w.id, alias); err != nil {
			t.Fatal(err)
		}
	}
	changes := w.call("Identity/changes", `{"sinceState":"`+state+`"}`)
	if made, _ := changes["created"].([]any); len(made) != 2 {
		t.Fatalf("after two aliases, the changes are %v", changes)
	}
	ids := map[string]string{}
	for _, one := range w.call("Identity/get", `{"ids":null}`)["list"].([]any) {
		o := one.(object)
		if o["mayDelete"] != false {
			t.Errorf("the identity %v may be deleted", o)
		}
		ids[o["email"].(string)] = o["id"].(string)
	}
	if len(ids) != 3 || ids["ann@example.org"] != first {
		t.Fatalf("the identities are %v", ids)
	}
	made := w.call("Identity/set", `{"create":{"own":{"email":"sales@EXAMPLE.org","name":"Sales"},"other":{"email":"Sales@example.org"},"eve":{"email":"eve@example.org"}},"destroy":["`+ids["info@example.org"]+`"]}`)
	own := made["created"].(object)["own"].(object)["id"].(string)
	for _, name := range []string{"other", "eve"} {
		if failed, _ := made["notCreated"].(object)[name].(object); failed["type"] != "forbiddenFrom" {
			t.Errorf("%s: %v", name, failed)
		}
	}
	w.same("not destroyed", made["notDestroyed"].(object)[ids["info@example.org"]].(object)["type"], `"forbidden"`)

	w.relay.permits = true
	sales := w.add(1, "From: sales@example.org\r\nTo: carl@example.net\r\n\r\nx\r\n")
	if _, failed := w.submit(sales, own, ""); failed != nil || len(w.relay.sent) != 1 || w.relay.sent[0].From != "sales@EXAMPLE.org" {
		t.Errorf("the identity of an alias: %v, the relay has %+v", failed, w.relay.sent)
	}
	if err := w.store.RemoveAlias(t.Context(), w.id, "sales@example.org"); err != nil {
		t.Fatal(err)
	}
	if _, failed := w.submit(sales, first, ""); failed["type"] != "forbiddenFrom" {
		t.Errorf("From is a removed alias: %v", failed)
	}
	emails := []string{}
	for _, one := range w.call("Identity/get", `{"ids":null,"properties":["email"]}`)["list"].([]any) {
		emails = append(emails, one.(object)["email"].(string))
	}
	if len(emails) != 3 || emails[0] != "ann@example.org" || emails[1] != "info@example.org" || emails[2] != "sales@EXAMPLE.org" {
		t.Errorf("without the alias, the identities are %q; the one that the client made stays", emails)
	}
	if _, failed := w.submit(sales, own, ""); failed["type"] != "forbiddenFrom" {
		t.Errorf("the identity of a removed alias sends: %v", failed)
	}
}

const fromAnn = "From: Ann <ann@example.org>\r\n"

// submit sends a message and returns the result of the record k.
func (w *world) submit(email, identity, rest string) (made, failed object) {
	w.Helper()
	result := w.call("EmailSubmission/set", `{"create":{"k":{"emailId":"`+email+`","identityId":"`+identity+`"`+rest+`}}}`)
	created, _ := result["created"].(object)
	refused, _ := result["notCreated"].(object)
	made, _ = created["k"].(object)
	failed, _ = refused["k"].(object)
	return made, failed
}

func TestRFC8621Section7AMessageIsSentToMailboxesAndOtherServers(t *testing.T) {
	w := newWorld(t)
	w.relay.permits = true
	if _, err := w.store.Create(t.Context(), mailbox.Owner{ID: 8, Service: "press", Address: "bob@example.org"}); err != nil {
		t.Fatal(err)
	}
	identity, start := w.first(), w.state()
	email := w.add(2, fromAnn+"To: bob@example.org, team: carl@example.net;\r\nCc: Bob <bob@example.org>\r\nBcc: eve@example.net\r\nSubject: hello\r\n\r\nbody")
	list := w.request(`[["EmailSubmission/set",{"accountId":"a7","create":{"k":{"emailId":"` + email + `","identityId":"` + identity + `"}},
		"onSuccessUpdateEmail":{"#k":{"mailboxIds/B2":null,"mailboxIds/B3":true,"keywords/$draft":null}}},"0"]]`)
	if len(list) != 2 || list[0][0] != "EmailSubmission/set" || list[1][0] != "Email/set" || list[1][2] != "0" {
		t.Fatalf("the responses are %s", text(list))
	}
	w.same("the message is moved", list[1][1].(object)["updated"], `{"`+email+`":null}`)
	made := list[0][1].(object)["created"].(object)["k"].(object)
	id := made["id"].(string)
	w.same("undoStatus", made["undoStatus"], `"final"`)
	w.same("the envelope", made["envelope"], `{"mailFrom":{"email":"ann@example.org","parameters":null},"rcptTo":[{"email":"bob@example.org","parameters":null},{"email":"carl@example.net","parameters":null},{"email":"eve@example.net","parameters":null}]}`)
	if len(w.relay.sent) != 1 {
		t.Fatalf("the relay has %+v", w.relay.sent)
	}
	sent := w.relay.sent[0]
	if m := string(sent.Message); text(sent.Recipients) != `["carl@example.net","eve@example.net"]` || sent.From != "ann@example.org" || strings.Contains(m, "eve@") ||
		!strings.HasPrefix(m, "Received: by mx.example.org with JMAP;\r\n ") || !strings.Contains(m, "\r\nMessage-ID: <") || !strings.HasSuffix(m, "Subject: hello\r\n\r\nbody\r\n") {
		t.Errorf("the relay has %+v: %s", sent, m)
	}
	inbox, _, err := w.store.Messages(t.Context(), 8, mailbox.InboxID)
	if err != nil || len(inbox) != 1 {
		t.Fatalf("the mailbox has %v, %v", inbox, err)
	}
	if content, err := w.store.Content(t.Context(), 8, inbox[0].Email); err != nil || !strings.HasPrefix(string(content), "Return-Path: <ann@example.org>\r\nReceived: ") || strings.Contains(string(content), "eve@") {
		t.Errorf("the message is %s, %v", content, err)
	}
	get := func() object {
		return w.call("EmailSubmission/get", `{"ids":["`+id+`","S999"]}`)["list"].([]any)[0].(object)
	}
	w.same("the states", get()["deliveryStatus"], `{"bob@example.org":{"delivered":"yes","displayed":"unknown","smtpReply":"250 2.6.0 delivered"},"carl@example.net":{"delivered":"queued","displayed":"unknown","smtpReply":"250 2.0.0 queued"},"eve@example.net":{"delivered":"queued","displayed":"unknown","smtpReply":"250 2.0.0 queued"}}`)
	w.same("created", w.call("EmailSubmission/changes", `{"sinceState":"`+start+`"}`)["created"], `["`+id+`"]`)

	before := w.state()
	w.relay.states = []fanfare.Delivery{{Address: "carl@example.net", State: "accepted", Attempts: []fanfare.Attempt{{Code: 250, Text: "2.0.0 taken"}}}, {Address: "eve@example.net", State: "failed", Attempts: []fanfare.Attempt{{Code: 550, Text: "5.1.1 no"}}}}
	w.clock.advance(time.Hour)
	if err := w.sender.Look(t.Context()); err != nil {
		t.Fatal(err)
	}
	status := get()["deliveryStatus"].(object)
	w.same("carl", status["carl@example.net"], `{"delivered":"unknown","displayed":"unknown","smtpReply":"250 2.0.0 taken"}`)
	w.same("eve", status["eve@example.net"], `{"delivered":"no","displayed":"unknown","smtpReply":"550 5.1.1 no"}`)
	w.same("updated", w.call("EmailSubmission/changes", `{"sinceState":"`+before+`"}`)["updated"], `["`+id+`"]`)
	if report := w.call("Email/query", `{"filter":{"inMailbox":"B1","text":"delivered to eve@example.net"}}`); len(report["ids"].([]any)) != 1 {
		t.Errorf("the sender has no report: %v", report)
	}
}

func TestRFC8621Section75SubmissionsAreRefused(t *testing.T) {
	w := newWorld(t)
	identity := w.first()
	good := w.add(1, fromAnn+"To: ann@example.org\r\n\r\nx\r\n")
	foreign := w.add(1, "From: eve@example.org\r\nTo: ann@example.org\r\n\r\nx\r\n")
	two := w.add(1, fromAnn+"From: eve@example.org\r\nTo: ann@example.org\r\n\r\nx\r\n")
	nobody := w.add(1, fromAnn+"\r\nx\r\n")
	outside := w.add(1, fromAnn+"To: carl@example.net\r\n\r\nx\r\n")
	bare := w.add(1, fromAnn+"To: ann@example.org\r\nSubject: a\rBcc: eve@example.net\r\n\r\nx\n.\nMAIL FROM:<eve@example.org>\r\n")
	many := `,"envelope":{"mailFrom":{"email":"ann@example.org"},"rcptTo":[` + strings.TrimSuffix(strings.Repeat(`{"email":"ann@example.org"},`, 201), ",") + `]}`
	for name, test := range map[string]struct{ email, identity, rest, want string }{
		"no identity":              {good, "I999", "", "invalidProperties"},
		"no email":                 {"M999", identity, "", "invalidProperties"},
		"another account's email":  {"M1000000", identity, "", "invalidProperties"},
		"foreign From":             {foreign, identity, "", "forbiddenFrom"},
		"two From fields":          {two, identity, "", "invalidEmail"},
		"no recipients":            {nobody, identity, "", "noRecipients"},
		"an empty envelope":        {good, identity, `,"envelope":{"mailFrom":{"email":"ann@example.org"},"rcptTo":[]}`, "noRecipients"},
		"foreign mailFrom":         {good, identity, `,"envelope":{"mailFrom":{"email":"eve@example.org"},"rcptTo":[{"email":"ann@example.org"}]}`, "forbiddenMailFrom"},
		"no mailFrom":              {good, identity, `,"envelope":{"rcptTo":[{"email":"ann@example.org"}]}`, "invalidProperties"},
		"another server":           {outside, identity, "", "invalidRecipients"},
		"a command in an address":  {good, identity, `,"envelope":{"mailFrom":{"email":"ann@example.org"},"rcptTo":[{"email":"a@example.org>\r\nDATA"}]}`, "invalidRecipients"},
		"a parameter":              {good, identity, `,"envelope":{"mailFrom":{"email":"ann@example.org","parameters":{"HOLDFOR":"60"}},"rcptTo":[{"email":"ann@example.org"}]}`, "invalidProperties"},
		"too many":                 {good, identity, many, "tooManyRecipients"},
		"lines without CR":         {bare, identity, "", "invalidEmail"},
		"a property of the server": {good, identity, `,"sendAt":"2026-11-27T12:00:00Z"`, "invalidProperties"},
	} {
		made, failed := w.submit(test.email, test.identity, test.rest)
		if made != nil || failed["type"] != test.want {
			t.Errorf("%s: %v, %v, want %s", name, made, failed, test.want)
		}
		if test.want == "invalidRecipients" && len(failed["invalidRecipients"].([]any)) != 1 {
			t.Errorf("%s: %v", name, failed)
		}
	}
	if n := len(w.relay.sent); n > 0 {
		t.Errorf("the relay has %d messages", n)
	}
	if list := w.call("EmailSubmission/query", `{}`); text(list["ids"]) != "[]" {
		t.Errorf("there are submissions: %v", list)
	}
	if list := w.request(`[["EmailSubmission/set",{"accountId":"a8","create":{"k":{"emailId":"` + good + `","identityId":"` + identity + `"}}},"0"]]`); text(list[0][1]) != `{"type":"accountNotFound"}` {
		t.Errorf("another account: %s", text(list))
	}
	for i := range 50 {
		if made, failed := w.submit(good, identity, ""); made == nil {
			t.Fatalf("message %d is refused: %v", i, failed)
		}
	}
	if made, failed := w.submit(good, identity, ""); made != nil || failed["type"] != "rateLimit" {
		t.Errorf("a message above the limit: %v, %v", made, failed)
	}
}

func TestRFC8621Section7SubmissionsAreQueriedAndDestroyed(t *testing.T) {
	w := newWorld(t)
	identity := w.first()
	var emails, ids []string
	for i := range 3 {
		emails = append(emails, w.add(1, fmt.Sprintf("%sTo: ann@example.org\r\nSubject: %d\r\n\r\nx\r\n", fromAnn, i)))
	}
	for _, email := range []string{emails[2], emails[0], emails[1]} {
		made, failed := w.submit(email, identity, "")
		if failed != nil {
			t.Fatal(failed)
		}
		ids = append(ids, made["id"].(string))
		w.clock.advance(time.Minute)
	}
	query := func(arguments string) string { return text(w.call("EmailSubmission/query", arguments)["ids"]) }
	for arguments, want := range map[string][]string{
		`{"sort":[{"property":"sentAt","isAscending":false}]}`:                            {ids[2], ids[1], ids[0]},
		`{"sort":[{"property":"emailId"}]}`:                                               {ids[1], ids[2], ids[0]},
		`{"filter":{"emailIds":["` + emails[0] + `"]}}`:                                   {ids[1]},
		`{"filter":{"identityIds":["` + identity + `"],"undoStatus":"pending"}}`:          {},
		`{"filter":{"before":"2026-11-27T12:04:00Z"}}`:                                    {ids[0]},
		`{"filter":{"after":"2026-11-27T12:04:00Z"}}`:                                     {ids[1], ids[2]},
		`{"filter":{"operator":"NOT","conditions":[{"emailIds":["` + emails[2] + `"]}]}}`: {ids[1], ids[2]},
	} {
		if want == nil {
			want = []string{}
		}
		if got := query(arguments); got != text(want) {
			t.Errorf("%s: %s, want %s", arguments, got, text(want))
		}
	}
	w.fails("EmailSubmission/query", `{"filter":{"x":1}}`, "unsupportedFilter")
	w.fails("EmailSubmission/query", `{"sort":[{"property":"x"}]}`, "unsupportedSort")
	state := w.state()
	set := w.call("EmailSubmission/set", `{"update":{"`+ids[0]+`":{"undoStatus":"canceled"},"`+ids[1]+`":{"emailId":"M1"}}}`)
	w.same("a sent message", set["notUpdated"].(object)[ids[0]].(object)["type"], `"cannotUnsend"`)
	w.same("a fixed property", set["notUpdated"].(object)[ids[1]].(object)["type"], `"invalidProperties"`)
	list := w.request(`[["EmailSubmission/set",{"accountId":"a7","destroy":["` + ids[1] + `","S999"],"onSuccessDestroyEmail":["` + ids[1] + `","` + ids[0] + `"]},"0"]]`)
	if len(list) != 2 || text(list[0][1].(object)["destroyed"]) != `["`+ids[1]+`"]` || text(list[1][1].(object)["destroyed"]) != `["`+emails[0]+`"]` {
		t.Errorf("the responses are %s", text(list))
	}
	changes := w.call("EmailSubmission/queryChanges", `{"sinceQueryState":"`+state+`","calculateTotal":true}`)
	w.same("the results changed", []any{changes["removed"], changes["added"], changes["total"]}, `[["`+ids[1]+`"],[],2]`)
	w.same("what is left", w.call("EmailSubmission/get", `{"ids":["`+ids[1]+`"]}`)["notFound"], `["`+ids[1]+`"]`)
	w.fails("EmailSubmission/changes", `{"sinceState":"x"}`, "cannotCalculateChanges")
}

func TestRFC8621Section7OldSubmissionsAreDestroyed(t *testing.T) {
	w := newWorld(t)
	identity := w.first()
	email := w.add(1, fromAnn+"To: ann@example.org\r\n\r\nx\r\n")
	made, failed := w.submit(email, identity, "")
	if failed != nil {
		t.Fatal(failed)
	}
	id := made["id"].(string)
	w.clock.advance(submissionAge - time.Hour)
	second, failed := w.submit(email, identity, "")
	if failed != nil {
		t.Fatal(failed)
	}
	state := w.state()
	w.clock.advance(2 * time.Hour)
	if err := w.store.RemoveOldSubmissions(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.same("destroyed", w.call("EmailSubmission/changes", `{"sinceState":"`+state+`"}`)["destroyed"], `["`+id+`"]`)
	all := w.call("EmailSubmission/get", `{"ids":null,"properties":["id"]}`)
	w.same("what is left", all["list"], `[{"id":"`+second["id"].(string)+`"}]`)
	named := w.call("EmailSubmission/get", `{"ids":["`+id+`","`+second["id"].(string)+`"],"properties":["id"]}`)
	w.same("by their ids", []any{named["list"], named["notFound"]}, `[[{"id":"`+second["id"].(string)+`"}],["`+id+`"]]`)
	set := w.call("EmailSubmission/set", `{"destroy":["`+id+`"]}`)
	w.same("it cannot be destroyed again", set["notDestroyed"].(object)[id].(object)["type"], `"notFound"`)
}
