package registry_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/catalog/document"
	"fanfare.dev/fanfare/internal/catalog/state"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/people/registry"
	"fanfare.dev/fanfare/internal/store/storetest"
)

var tester = audit.Actor{KeyID: "key-7", KeyName: "tests", Request: "r1"}

// audited lists the whole audit log, the oldest first, as "action kind name detail".
func audited(t *testing.T, r *registry.Registry) []string {
	t.Helper()
	lines, next, err := r.Audit(t.Context(), audit.Query{Limit: 1000})
	if err != nil || next != 0 {
		t.Fatalf("%d, %v", next, err)
	}
	var all []string
	for _, l := range slices.Backward(lines) {
		if l.Actor != tester {
			t.Errorf("by %+v", l.Actor)
		}
		all = append(all, strings.TrimSpace(fmt.Sprintf("%s: %s %s %s %s", l.Service, l.Action, l.Kind, l.Name, l.Detail)))
	}
	return all
}

func TestEachChangeIsOneLineOfTheAudit(t *testing.T) {
	r, _ := openAt(t, storetest.Place(t))
	apply(t, r, weather) // by nobody: no line
	ctx := audit.WithActor(t.Context(), tester)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	change := func(text string) {
		t.Helper()
		d, err := document.ParseDocument([]byte(text), "")
		must(err)
		_, err = r.Apply(ctx, d)
		must(err)
	}
	put := func(p people.SubscriptionPut) {
		t.Helper()
		results := make([]people.PutResult, 1)
		must(r.PutSubscriptions(ctx, "notify", []people.SubscriptionPut{p}, results))
		must(results[0].Err)
	}
	ada := people.SubscriptionPut{ID: "s1", Topic: "change", Channel: "email", To: "ada@example.org", Data: json.RawMessage(`{"a":"secret"}`)}

	change("service: notify\ntopics: {other: {title: Other}}\ntemplates: {a: {subject: S, text: one}}")
	change("service: notify\ntopics: {other: {title: Other}}") // changes nothing
	change("service: notify\ntemplates: {a: {subject: S, text: a body}}\nchannels: {print: {driver: file, path: /tmp/x, from: 'B <b@example.org>'}}")
	put(ada)
	put(ada) // changes nothing
	ada.Filter, ada.Locale = "mag > 1.0", "de"
	put(ada)
	ada.Topic, ada.Filter = "other", ""
	put(ada)
	put(people.SubscriptionPut{ID: "ada@example.org", Topic: "other", Channel: "email", To: "ada@example.org"})
	must(r.PauseSubscription(ctx, "notify", "s1", nil))
	must(r.PauseSubscription(ctx, "notify", "s1", nil)) // changes nothing
	must(r.ResumeSubscription(ctx, "notify", "s1", nil))
	must(r.ResumeSubscription(ctx, "notify", "s1", nil)) // changes nothing
	must(r.EndSubscription(ctx, "notify", "s1", "ada@example.org said so"))
	must(r.EndSubscription(ctx, "notify", "s1", "again")) // changes nothing
	must(r.SetPaused(ctx, fanfare.Scope{Kind: fanfare.ScopeChannel, Name: "notify/email"}, true, "why"))
	if paused := r.Paused(); len(paused) != 1 || paused[0].By != tester.KeyID+" ("+tester.KeyName+")" {
		t.Errorf("paused: %+v", paused)
	}
	must(r.SetPaused(ctx, fanfare.Scope{Kind: fanfare.ScopeChannel, Name: "notify/email"}, false, ""))
	newOperator, _, err := r.CreateKey(ctx, "", state.KeySettings{Name: "op"})
	must(err)
	key, secret, err := r.CreateKey(ctx, "notify", state.KeySettings{Name: "site", Scopes: catalog.ScopeRead})
	must(err)
	_, err = r.ChangeKey(ctx, "", key.ID, func(s *state.KeySettings) error { s.Scopes = catalog.ScopePublish; return nil })
	must(err)
	_, rotated, err := r.RotateKey(ctx, "", key.ID, 0)
	must(err)
	must(r.DeleteKey(ctx, "", key.ID))
	must(r.Record(ctx, audit.Operation{Service: "notify", Action: "import", Kind: "subscriptions"}, &audit.Detail{Counts: map[string]int64{"created": 7}}))
	must(r.PutSubscriptions(audit.WithoutActor(ctx), "notify", []people.SubscriptionPut{{Topic: "other", Channel: "email", To: "bob@example.org"}}, make([]people.PutResult, 1)))

	got := audited(t, r)
	want := []string{
		`notify: create template a`,
		`notify: update topic other {"fields":[{"field":"title","old":"","new":"Other"}]}`,
		`notify: update channel print {"fields":[{"field":"from","old":"","new":"changed"},{"field":"path","old":"/tmp/mails","new":"/tmp/x"}]}`,
		`notify: update template a {"fields":[{"field":"text","old":"","new":"changed"}]}`,
		`notify: create subscription s1`,
		`notify: update subscription s1 {"changed":["locale","filter"]}`,
		`notify: replace subscription s1`,
		`notify: create subscription sub-`,
		`notify: pause subscription s1`,
		`notify: resume subscription s1`,
		`notify: end subscription s1`,
		`notify: pause channel notify/email`,
		`notify: resume channel notify/email`,
		`: create key ` + newOperator.ID,
		`notify: create key ` + key.ID,
		`notify: update key ` + key.ID + ` {"fields":[{"field":"scopes","old":"read","new":"publish"}]}`,
		`notify: rotate key ` + key.ID,
		`notify: delete key ` + key.ID,
		`notify: import subscriptions  {"counts":{"created":7}}`,
	}
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] && (!strings.HasSuffix(want[i], "sub-") || !strings.HasPrefix(got[i], want[i])) {
			t.Fatalf("line %d of\n%s\nwant\n%s", i, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	for _, hidden := range []string{"ada@", "b@example", "secret", secret, rotated, "a body"} {
		if strings.Contains(strings.Join(got, "\n"), hidden) {
			t.Errorf("%q is in the audit", hidden)
		}
	}
}

func TestFailedChangesAreNotInTheAuditLog(t *testing.T) {
	r, _ := openAt(t, storetest.Place(t))
	apply(t, r, weather)
	ctx := audit.WithActor(t.Context(), tester)
	results := make([]people.PutResult, 1)
	if err := r.PutSubscriptions(ctx, "notify", []people.SubscriptionPut{{Topic: "none", Channel: "email", To: "a@b.c"}}, results); err != nil || results[0].Err == nil {
		t.Fatal(err, results)
	}
	_ = r.EndSubscription(ctx, "notify", "none", "")
	_, _, _ = r.CreateKey(ctx, "nobody", state.KeySettings{})
	_ = r.SetPaused(ctx, fanfare.Scope{Kind: fanfare.ScopeService, Name: "none"}, true, "")
	if got := audited(t, r); len(got) > 0 {
		t.Error(got)
	}
}

// For every query of the audit log, the pages together equal a plain filter over all entries, in
// the same order.
func TestTheAuditIsPagedWithoutLossOrRepeat(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := &clock{time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}
		r := openTimed(rt, storetest.Place(rt), c)
		defer r.Close()
		services, actions := []string{"", "a", "b"}, []string{"create", "delete"}
		type line struct {
			service, action, name string
			at                    time.Time
		}
		var all []line
		for i := range rapid.IntRange(0, 30).Draw(rt, "lines") {
			c.at = c.at.Add(time.Duration(rapid.IntRange(-2, 3).Draw(rt, "time")) * time.Second) // clocks go back, too
			l := line{service: rapid.SampledFrom(services).Draw(rt, "service"), action: rapid.SampledFrom(actions).Draw(rt, "action"), name: fmt.Sprint(i)}
			if err := r.Record(audit.WithActor(t.Context(), tester), audit.Operation{Service: l.service, Action: l.action, Kind: "thing", Name: l.name}, nil); err != nil {
				rt.Fatal(err)
			}
			all = append(all, l)
		}
		written, _, err := r.Audit(t.Context(), audit.Query{Limit: 1000})
		if err != nil {
			rt.Fatal(err)
		}
		for i := range all {
			all[i].at = written[len(all)-1-i].Time()
		}
		q := audit.Query{Limit: rapid.IntRange(1, 7).Draw(rt, "limit"), Service: rapid.SampledFrom(services).Draw(rt, "asked service"),
			Action: rapid.SampledFrom(append(actions, "")).Draw(rt, "asked action")}
		if rapid.Bool().Draw(rt, "bounded") && len(all) > 0 {
			q.Since, q.Until = all[rapid.IntRange(0, len(all)-1).Draw(rt, "since")].at, all[rapid.IntRange(0, len(all)-1).Draw(rt, "until")].at
		}
		var want, got []string
		for _, l := range slices.Backward(all) {
			if (q.Service == "" || q.Service == l.service) && (q.Action == "" || q.Action == l.action) &&
				(q.Since.IsZero() || !l.at.Before(q.Since)) && (q.Until.IsZero() || l.at.Before(q.Until)) {
				want = append(want, l.name)
			}
		}
		for {
			page, next, err := r.Audit(t.Context(), q)
			if err != nil || len(page) > q.Limit {
				rt.Fatal(len(page), err)
			}
			for _, l := range page {
				got = append(got, l.Name)
			}
			if next == 0 {
				break
			}
			q.Before = next
		}
		if !slices.Equal(got, want) {
			rt.Fatalf("%+v: got %v, want %v", q, got, want)
		}
	})
}

func TestOldLinesOfTheAuditGo(t *testing.T) {
	c := &clock{time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}
	place := storetest.Place(t)
	r := openTimed(t, place, c)
	ctx := audit.WithActor(t.Context(), tester)
	for i := range 10 {
		c.at = c.at.Add(24 * time.Hour)
		if err := r.Record(ctx, audit.Operation{Action: "create", Kind: "thing", Name: fmt.Sprint(i)}, nil); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := r.TrimAudit(t.Context(), c.at.Add(-3*24*time.Hour)); err != nil {
			t.Fatal(err)
		}
		if got := audited(t, r); len(got) != 4 || !strings.Contains(got[0], "thing 6") {
			t.Error(got)
		}
	}
	r.Close()
	// After a restart with a clock that was set back, order and ids continue.
	c.at = c.at.Add(-100 * 24 * time.Hour)
	r = openTimed(t, place, c)
	if err := r.Record(ctx, audit.Operation{Action: "create", Kind: "thing", Name: "late"}, nil); err != nil {
		t.Fatal(err)
	}
	if got := audited(t, r); len(got) != 5 || !strings.HasSuffix(got[4], "late") {
		t.Error(got)
	}
}

func TestTheUseOfAKeyIsKept(t *testing.T) {
	c := &clock{time.Date(2026, 11, 20, 12, 0, 59, 0, time.UTC)}
	place := storetest.Place(t)
	r := openTimed(t, place, c)
	key, secret := newKey(t, r, "", state.KeySettings{})
	if k, _ := r.Key("", key.ID); !k.LastUsed.IsZero() {
		t.Errorf("used before it was: %v", k.LastUsed)
	}
	r.Authenticate(secret)
	if err := r.StoreKeyUses(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.Close()
	c.at = c.at.Add(time.Hour)
	r = openTimed(t, place, c)
	if k, err := r.Key("", key.ID); err != nil || !k.LastUsed.Equal(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)) {
		t.Errorf("%v, %v", k.LastUsed, err)
	}
}

// A PUT that moves an id to another row ends the former row, and the response waits for
// the messages of that row that are in flight.
func TestAReplacedSubscriptionIsWaitedForLikeAnEndedOne(t *testing.T) {
	var awaited []fanfare.RowID
	r, _ := openAt(t, storetest.Place(t), func(o *registry.Options) { o.WaitInFlight = func(p fanfare.RowID) { awaited = append(awaited, p) } })
	apply(t, r, weather)
	good(t, putAll(t, r, people.SubscriptionPut{ID: "x", Topic: "change", Channel: "email", To: "a@example.org"}))
	first, err := r.Subscription(t.Context(), "notify", "x")
	if err != nil {
		t.Fatal(err)
	}
	good(t, putAll(t, r, people.SubscriptionPut{ID: "x", Topic: "change", Channel: "email", To: "a@example.org", Filter: "mag > 2.0"}))
	if len(awaited) != 0 {
		t.Errorf("an update waited for %v", awaited)
	}
	good(t, putAll(t, r, people.SubscriptionPut{ID: "x", Topic: "other", Channel: "email", To: "a@example.org"}))
	if !slices.Equal(awaited, []fanfare.RowID{first.Place}) {
		t.Errorf("waited for %v, want %v", awaited, first.Place)
	}
}
