package registry_test

import (
	"slices"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/store/storetest"
)

const byLink = "unsubscribed by link"

func TestSubscriptionsThatOneRequestEndedAreRestored(t *testing.T) {
	ctx, place := t.Context(), storetest.Place(t)
	r, index := openAt(t, place)
	apply(t, r, weather)
	for _, id := range []string{"a", "b", "c", "d"} {
		good(t, putAll(t, r, people.SubscriptionPut{ID: id, Topic: "change", Channel: "email", To: "a@example.org", Filter: "event.mag > 5.0", Data: []byte(`{"n":"` + id + `"}`)}))
	}
	good(t, putAll(t, r, people.SubscriptionPut{ID: "other", Topic: "change", Channel: "email", To: "b@example.org"}))
	if err := r.PauseSubscription(ctx, "notify", "b", nil); err != nil {
		t.Fatal(err)
	}
	if err := r.EndSubscription(ctx, "notify", "d", "moved"); err != nil {
		t.Fatal(err)
	}
	before := map[string]people.Subscription{}
	var places []fanfare.RowID
	for _, id := range []string{"a", "b", "c", "d"} {
		before[id] = stateOf(t, r, id)
		places = append(places, before[id].Place)
	}
	seq, err := r.EndSubscriptions(ctx, "notify", places, people.Ending{Source: people.SourceOneClick, Text: byLink})
	if err != nil {
		t.Fatal(err)
	}
	person, err := r.PersonOf(ctx, "notify", places[0])
	if err != nil || len(person.Subscriptions) != 0 || person.Address != "a@example.org" {
		t.Fatalf("%+v, %v", person, err)
	}
	if again, err := r.EndSubscriptions(ctx, "notify", places, people.Ending{Source: people.SourceOneClick, Text: byLink}); err != nil || again != seq {
		t.Errorf("ended again: %d, %v, want %d", again, err, seq)
	}
	if n, err := r.Restore(ctx, "notify", places[0], seq+1, byLink); err != nil || n != 0 {
		t.Errorf("another request's: %d, %v", n, err)
	}
	for range 2 { // twice is once
		if n, err := r.Restore(ctx, "notify", places[0], seq, byLink); err != nil || n < 2 {
			t.Fatalf("%d, %v", n, err)
		}
	}
	check := func(step string) {
		t.Helper()
		for _, id := range []string{"a", "b", "c", "d"} {
			now, was := stateOf(t, r, id), before[id]
			if now.State != was.State || now.Place != was.Place || now.Filter != was.Filter || string(now.Data) != string(was.Data) || now.Reason != was.Reason ||
				now.Cadence != was.Cadence || r.Live(now.Place) != (now.State == "active") {
				t.Errorf("%s: %s is %+v, was %+v", step, id, now, was)
			}
		}
		if n := index.Len(changes); n != 3 {
			t.Errorf("%s: %d in the index", step, n)
		}
	}
	check("restored")
	r.Close()
	r, index = openAt(t, place)
	check("after a restart")
	if a := stateOf(t, r, "a"); a.PausedSeq != seq || a.ResumedSeq <= seq {
		t.Errorf("the time between is %d to %d, ended at %d", a.PausedSeq, a.ResumedSeq, seq)
	}
	if n, err := r.EndSubscriptions(ctx, "notify", places[:1], people.Ending{Text: byLink}); err != nil || n <= seq || stateOf(t, r, "a").State != "ended" {
		t.Errorf("ended once more: %d, %v, %+v", n, err, stateOf(t, r, "a"))
	}
}

func TestMovedAndForgottenSubscriptionsAreNotRestored(t *testing.T) {
	ctx := t.Context()
	r, _ := openAt(t, storetest.Place(t))
	apply(t, r, weather)
	good(t, putAll(t, r,
		people.SubscriptionPut{Topic: "change", Channel: "email", To: "a@example.org"}, people.SubscriptionPut{ID: "again", Topic: "change", Channel: "email", To: "a@example.org", Filter: "event.mag > 5.0"},
		people.SubscriptionPut{ID: "gone", Topic: "change", Channel: "email", To: "gone@example.org"}))
	person, err := r.SubscriberByAddress(ctx, "notify", "a@example.org")
	if err != nil {
		t.Fatal(err)
	}
	page, _, err := r.SubscriptionPage(ctx, "notify", people.SubscriptionFilter{Subscriber: person.ID}, 0, 10)
	if err != nil || len(page) != 2 {
		t.Fatalf("%+v, %v", page, err)
	}
	places := []fanfare.RowID{page[0].Place, page[1].Place}
	seq, err := r.EndSubscriptions(ctx, "notify", places, people.Ending{Source: people.SourceOneClick, Text: byLink})
	if err != nil {
		t.Fatal(err)
	}
	good(t, putAll(t, r, people.SubscriptionPut{ID: "again", Topic: "change", Channel: "email", To: "a@example.org"})) // by itself, meanwhile
	if n, err := r.Restore(ctx, "notify", places[0], seq, byLink); err != nil || n != 1 {
		t.Errorf("%d, %v", n, err)
	}
	if now, err := r.PersonOf(ctx, "notify", places[0]); err != nil || len(now.Subscriptions) != 2 ||
		slices.ContainsFunc(now.Subscriptions, func(s people.Subscription) bool { return s.Filter != "" }) {
		t.Errorf("%+v, %v", now, err)
	}

	gone := stateOf(t, r, "gone").Place
	if seq, err = r.EndSubscriptions(ctx, "notify", []fanfare.RowID{gone}, people.Ending{Text: byLink}); err != nil {
		t.Fatal(err)
	}
	whose, err := r.SubscriberByAddress(ctx, "notify", "gone@example.org")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.BeginErasure(ctx, "notify", whose.ID, false); err != nil {
		t.Fatal(err)
	}
	if n, err := r.Restore(ctx, "notify", gone, seq, byLink); fanfare.CodeOf(err) != fanfare.NotFound || n != 0 {
		t.Errorf("of who is erased: %d, %v", n, err)
	}
}

func TestALinkToNobodyFindsNobody(t *testing.T) {
	ctx := t.Context()
	r, _ := openAt(t, storetest.Place(t))
	apply(t, r, weather)
	if n, err := r.Restore(ctx, "nobody", 1, 1, byLink); fanfare.CodeOf(err) != fanfare.NotFound || n != 0 {
		t.Errorf("of no service: %d, %v", n, err)
	}
	if _, err := r.PersonOf(ctx, "notify", 12345); fanfare.CodeOf(err) != fanfare.NotFound {
		t.Errorf("of nobody: %v", err)
	}
}
