package registry_test

import (
	"slices"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/condition"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/people/registry"
	"fanfare.dev/fanfare/internal/store/storetest"
)

func TestTheQuarantineOutlivesARestart(t *testing.T) {
	ctx, place := t.Context(), storetest.Place(t)
	r, _ := openAt(t, place)
	apply(t, r, weather)
	good(t, putAll(t, r, people.SubscriptionPut{ID: "one", Topic: "change", Channel: "email", To: "a@example.org", Filter: "event.mag > 5.0"}))
	topic, _ := r.Topic("notify", "change")
	since := time.Date(2026, 11, 23, 8, 0, 0, 0, time.UTC)
	filter := registry.Quarantine{Topic: topic.Number, Filter: "event.mag > 5.0", Since: since, Event: "evt-1", Index: "true", Evaluator: "false"}
	row := registry.Quarantine{Topic: topic.Number, Subscription: fanfare.NewRowID(3, 7), Hash: 1<<63 + 1, Since: since.Add(time.Second), Event: "evt-2", Index: "not true", Evaluator: "true"}
	every := registry.Quarantine{Topic: topic.Number, Since: since.Add(2 * time.Second), Event: "evt-3", Index: "not true", Evaluator: "true"}
	is := func(when string, want ...registry.Quarantine) {
		t.Helper()
		if got := r.Quarantined(); !slices.Equal(got, want) {
			t.Errorf("%s: in quarantine is %+v, want %+v", when, got, want)
		}
	}
	is("at first")
	for range 2 { // again changes nothing
		if err := r.Quarantine(ctx, []registry.Quarantine{filter, row, every}); err != nil {
			t.Fatal(err)
		}
		is("quarantined", filter, row, every)
	}
	r.Close()
	r, _ = openAt(t, place)
	is("after a restart", filter, row, every)
	if err := r.Release(ctx, []registry.Quarantine{row}); err != nil {
		t.Fatal(err)
	}
	is("released", filter, every)
	row.Subscription++
	if err := r.Quarantine(ctx, []registry.Quarantine{row}); err != nil {
		t.Fatal(err)
	}
	r.Close()
	r, _ = openAt(t, place)
	is("another in its place", filter, row, every)
}

func TestEntriesAreThoseOfTheActiveSubscriptionsOfSomePeople(t *testing.T) {
	ctx := t.Context()
	r, _ := openAt(t, storetest.Place(t))
	apply(t, r, weather)
	good(t, putAll(t, r,
		people.SubscriptionPut{ID: "one", Topic: "change", Channel: "email", To: "a@example.org", Filter: "event.mag > 5.0"},
		people.SubscriptionPut{ID: "two", Topic: "change", Channel: "email", To: "a@example.org"},
		people.SubscriptionPut{ID: "ended", Topic: "change", Channel: "email", To: "a@example.org", Filter: "event.mag > 6.0"},
		people.SubscriptionPut{ID: "paused", Topic: "change", Channel: "email", To: "a@example.org", Filter: "event.mag > 7.0", State: "paused"},
		people.SubscriptionPut{ID: "other", Topic: "change", Channel: "email", To: "b@example.org", Filter: "event.mag > 8.0"},
	))
	if err := r.EndSubscription(ctx, "notify", "ended", ""); err != nil {
		t.Fatal(err)
	}
	topic, _ := r.Topic("notify", "change")
	who, err := findSubscriber(r, "a@example.org")
	if err != nil {
		t.Fatal(err)
	}
	var filters []string
	err = r.ConditionEntries(ctx, topic.Number, []fanfare.RowID{who}, func(e *condition.Entry) error {
		if e.Subscriber != who {
			t.Errorf("%+v is somebody else's", e)
		}
		filters = append(filters, e.Filter)
		return nil
	})
	slices.Sort(filters)
	if err != nil || !slices.Equal(filters, []string{"", "event.mag > 5.0"}) {
		t.Errorf("%v, %q", err, filters)
	}
	if err := r.ConditionEntries(ctx, topic.Number+100, []fanfare.RowID{who}, func(e *condition.Entry) error { t.Errorf("%+v", e); return nil }); err != nil {
		t.Error(err)
	}
}
