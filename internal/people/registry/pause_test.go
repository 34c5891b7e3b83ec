package registry_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog/document"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/people/registry"
	"fanfare.dev/fanfare/internal/store/storetest"
)

func stateOf(t *testing.T, r *registry.Registry, id string) people.Subscription {
	t.Helper()
	s, err := r.Subscription(t.Context(), "notify", id)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Each step of a pause gets a change sequence, is in force when the call returns,
// and survives a restart.
func TestAPauseIsInForceWhenItIsAnswered(t *testing.T) {
	ctx, place := t.Context(), storetest.Place(t)
	var silent []fanfare.RowID
	r, index := openAt(t, place, func(o *registry.Options) { o.WaitInFlight = func(p fanfare.RowID) { silent = append(silent, p) } })
	apply(t, r, weather)
	one := people.SubscriptionPut{ID: "one", Topic: "change", Channel: "email", To: "a@example.org", Filter: "event.mag > 5.0"}
	good(t, putAll(t, r, one))
	at := stateOf(t, r, "one").Place
	is := func(step, state string, seq uint64) {
		t.Helper()
		s, n := stateOf(t, r, "one"), index.Len(changes)
		if s.Place != at || s.State != state || s.PausedAt.IsZero() != (state != "paused") || r.ChangeSeq() != seq || (n == 1) != (state == "active") || r.Live(at) != (state == "active") {
			t.Fatalf("%s: %+v, %d in the index, live %v, change %d, want %s and %d", step, s, n, r.Live(at), r.ChangeSeq(), state, seq)
		}
	}
	seq := r.ChangeSeq()
	for _, step := range []struct {
		name  string
		do    func() error
		state string
		takes uint64
	}{
		{"pause", func() error { return r.PauseSubscription(ctx, "notify", "one", nil) }, "paused", 1},
		{"pause again", func() error { return r.PauseSubscription(ctx, "notify", "one", nil) }, "paused", 0},
		{"put the same", func() error { return putAll(t, r, one)[0].Err }, "paused", 0},
		{"put other data", func() error { one.Data = []byte(`{"n":1}`); return putAll(t, r, one)[0].Err }, "paused", 1},
		{"put another condition", func() error { one.Filter = "event.mag > 6.0"; return putAll(t, r, one)[0].Err }, "paused", 1},
		{"restart", func() error { r.Close(); r, index = openAt(t, place); return nil }, "paused", 0},
		{"resume", func() error { return r.ResumeSubscription(ctx, "notify", "one", nil) }, "active", 1},
		{"resume again", func() error { return r.ResumeSubscription(ctx, "notify", "one", nil) }, "active", 0},
		{"pause by a put", func() error { one.State = "paused"; return putAll(t, r, one)[0].Err }, "paused", 1},
		{"resume by a put", func() error { one.State = "active"; return putAll(t, r, one)[0].Err }, "active", 1},
		{"restart again", func() error { r.Close(); r, index = openAt(t, place); return nil }, "active", 0},
	} {
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		seq += step.takes
		is(step.name, step.state, seq)
	}
	if len(silent) != 2 || silent[0] != at || silent[1] != at { // before the restart
		t.Errorf("waited for %v", silent)
	}
	if s := stateOf(t, r, "one"); s.PausedSeq == 0 || s.ResumedSeq != s.PausedSeq+1 {
		t.Errorf("the last pause is %d to %d", s.PausedSeq, s.ResumedSeq)
	}
}

func TestAPutThatPausesWaitsForWhatIsOnTheWire(t *testing.T) {
	var silent []fanfare.RowID
	r, _ := openAt(t, storetest.Place(t), func(o *registry.Options) { o.WaitInFlight = func(p fanfare.RowID) { silent = append(silent, p) } })
	apply(t, r, weather)
	one := people.SubscriptionPut{ID: "one", Topic: "change", Channel: "email", To: "a@example.org"}
	good(t, putAll(t, r, one))
	one.State = "paused"
	good(t, putAll(t, r, one))
	if at := stateOf(t, r, "one").Place; len(silent) != 1 || silent[0] != at {
		t.Errorf("waited for %v, want %v", silent, at)
	}
}

// An export keeps the state of paused subscriptions.
func TestAPauseIsListedAndExported(t *testing.T) {
	ctx := t.Context()
	r, _ := openAt(t, storetest.Place(t))
	apply(t, r, weather)
	for _, id := range []string{"a", "p", "e"} {
		good(t, putAll(t, r, people.SubscriptionPut{ID: id, Topic: "change", Channel: "email", To: id + "@example.org"}))
	}
	if err := errors.Join(r.PauseSubscription(ctx, "notify", "p", nil), r.EndSubscription(ctx, "notify", "e", "")); err != nil {
		t.Fatal(err)
	}
	for state, want := range map[string]string{"": "a p e", "active": "a", "paused": "p", "ended": "e"} {
		page, _, err := r.SubscriptionPage(ctx, "notify", people.SubscriptionFilter{State: state}, 0, 10)
		if err != nil || len(page) != len(strings.Fields(want)) || !strings.Contains(want, page[0].ID) {
			t.Errorf("%q: %+v, %v, want %s", state, page, err, want)
		}
	}
	var exported []people.SubscriptionPut
	if err := r.ExportSubscriptions(ctx, "notify", people.SubscriptionFilter{}, func(p *people.SubscriptionPut) error { exported = append(exported, *p); return nil }); err != nil {
		t.Fatal(err)
	}
	other, index := openAt(t, storetest.Place(t))
	apply(t, other, weather)
	good(t, putAll(t, other, exported...))
	if stateOf(t, other, "p").State != "paused" || stateOf(t, other, "a").State != "active" || len(exported) != 2 || index.Len(changes) != 1 {
		t.Errorf("exported %+v", exported)
	}
}

func TestAResumeIsRefusedWhereTheConditionDoesNotFit(t *testing.T) {
	ctx := context.Background()
	r, index := openAt(t, storetest.Place(t))
	apply(t, r, "matching_budget: 100ns\n"+weather[1:])
	good(t, putAll(t, r, people.SubscriptionPut{ID: "schema", Topic: "change", Channel: "email", To: "a@example.org", Filter: "event.title == 'x'"},
		people.SubscriptionPut{ID: "dear", Topic: "change", Channel: "email", To: "b@example.org", Filter: "event.mag != 7.0", State: "paused"}))
	if err := r.PauseSubscription(ctx, "notify", "schema", nil); err != nil {
		t.Fatal(err)
	}
	apply(t, r, "service: notify\nmatching_budget: 1ns\ntopics: {change: {schema: {type: object, properties: {title: {type: number}, mag: {type: number}}}, rules: [{name: near, delete: true}]}}")
	for id, why := range map[string]string{"schema": "no longer valid for topic", "dear": "budget of 1ns"} {
		err := r.ResumeSubscription(ctx, "notify", id, nil)
		if e, ok := errors.AsType[*fanfare.Error](err); !ok || !strings.Contains(e.Message, why) || e.Hint == "" || stateOf(t, r, id).State != "paused" {
			t.Errorf("%s: %v", id, err)
		}
	}
	if n := index.Len(changes); n != 0 {
		t.Errorf("%d are in the index", n)
	}
	if err := r.EndSubscription(ctx, "notify", "dear", ""); err != nil {
		t.Fatal(err)
	}
	for _, set := range []func(context.Context, string, string, func(*people.Subscription) error) error{r.PauseSubscription, r.ResumeSubscription} {
		if err := set(ctx, "notify", "dear", nil); fanfare.CodeOf(err) != fanfare.Conflict {
			t.Errorf("of an ended one: %v", err)
		}
		if err := set(ctx, "notify", "nobody", nil); fanfare.CodeOf(err) != fanfare.NotFound {
			t.Errorf("of none: %v", err)
		}
	}
}

func TestObjectsThatPausedSubscriptionsUseAreNotDeleted(t *testing.T) {
	r, _ := openAt(t, storetest.Place(t))
	apply(t, r, weather)
	good(t, putAll(t, r, people.SubscriptionPut{ID: "x", Topic: "change", Channel: "print", To: "a@example.org", Rule: "strong", State: "paused"}))
	gone := map[string]string{
		"/channels/print":      "channels: {print: {delete: true}}",
		"/topics/change":       "topics: {change: {delete: true}}",
		"/topics/change/rules": "topics: {change: {rules: [{name: strong, delete: true}]}}",
	}
	for at, text := range gone {
		d, err := document.ParseDocument([]byte("service: notify\n"+text), "")
		if err != nil {
			t.Fatal(err)
		}
		_, err = r.Apply(t.Context(), d)
		if e, ok := errors.AsType[*fanfare.Error](err); !ok || e.Code != fanfare.Conflict || e.Pointer != at || !strings.Contains(e.Message, "1 active or paused subscriptions use it") {
			t.Errorf("%s: %v", at, err)
		}
	}
	if err := r.EndSubscription(t.Context(), "notify", "x", ""); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{gone["/topics/change/rules"], gone["/topics/change"], gone["/channels/print"]} {
		apply(t, r, "service: notify\n"+text)
	}
}
