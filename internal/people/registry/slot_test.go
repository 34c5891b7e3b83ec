package registry_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog/document"
	"fanfare.dev/fanfare/internal/condition"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/people/registry"
	"fanfare.dev/fanfare/internal/store/control"
	"fanfare.dev/fanfare/internal/store/storetest"
)

// putWaiting puts a subscription with a cadence under an id.
func putWaiting(t *testing.T, r *registry.Registry, p people.SubscriptionPut) {
	t.Helper()
	p.Topic, p.Channel = "other", "email"
	results := make([]people.PutResult, 1)
	if err := r.PutSubscriptions(t.Context(), "notify", []people.SubscriptionPut{p}, results); err != nil || results[0].Err != nil {
		t.Fatal(err, results[0].Err)
	}
}

// slotOf returns the name of the slot of a subscription, and its number.
func slotWithID(t *testing.T, r *registry.Registry, id string) (name string, number uint16) {
	t.Helper()
	s, err := r.Subscription(t.Context(), "notify", id)
	if err != nil {
		t.Fatal(err)
	}
	err = r.Subscriptions(t.Context(), []fanfare.RowID{s.Place}, func(row *people.SubscriptionRow) error {
		number = row.Slot
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if number == 0 {
		return "", 0
	}
	slot, known := r.Slot(number)
	if !known || slot.Number != number || slot.Service != "notify" {
		t.Fatalf("slot %d is %+v", number, slot)
	}
	return slot.Cadence.String() + ", " + slot.Zone.String(), number
}

func TestNumbersOfSlotsAreKeptAndNotGivenAgain(t *testing.T) {
	place := storetest.Place(t)
	r, _ := openAt(t, place)
	apply(t, r, waiting)
	putWaiting(t, r, people.SubscriptionPut{ID: "a", To: "a@example.org", Cadence: "daily 08:00"})
	putWaiting(t, r, people.SubscriptionPut{ID: "b", To: "b@example.org", Cadence: "daily 08:00", TimeZone: "Asia/Tokyo"})
	_, first := slotWithID(t, r, "a")
	_, second := slotWithID(t, r, "b")
	if err := r.EndSubscription(t.Context(), "notify", "b", ""); err != nil {
		t.Fatal(err)
	}
	r.Close()

	r, _ = openAt(t, place)
	if slots := r.Slots(); len(slots) != 1 || slots[0].Number != first {
		t.Fatalf("in use are %+v, want slot %d", slots, first)
	}
	putWaiting(t, r, people.SubscriptionPut{ID: "c", To: "c@example.org", Cadence: "window 30s"})
	putWaiting(t, r, people.SubscriptionPut{ID: "d", To: "b@example.org", Cadence: "daily 08:00"})
	putWaiting(t, r, people.SubscriptionPut{ID: "e", To: "c@example.org", Cadence: "Daily  08:00"})
	if _, third := slotWithID(t, r, "c"); third == first || third == second {
		t.Errorf("a new slot has the number %d of another", third)
	}
	if name, again := slotWithID(t, r, "d"); again != second || name != "daily 08:00, Asia/Tokyo" {
		t.Errorf("%s has number %d, want %d", name, again, second)
	}
	if name, again := slotWithID(t, r, "e"); again != first || name != "daily 08:00, UTC" {
		t.Errorf("%s has number %d, want %d", name, again, first)
	}
}

func TestOpenRefusesASlotOfAnUnknownService(t *testing.T) {
	place := storetest.Place(t)
	r, _ := openAt(t, place)
	r.Close()
	slot := control.ConfigRecord{Kind: "slot", Number: 1, Service: 7, Name: "daily 08:00", Body: []byte(`{"zone":"UTC"}`)}
	if err := openStore(t, place).Commit(&control.Batch{Config: []control.ConfigRecord{slot}}); err != nil {
		t.Fatal(err)
	}
	_, err := registry.Open(t.Context(), options(openStore(t, place), condition.New()))
	if err == nil || !strings.Contains(err.Error(), "slot daily 08:00: unknown service number 7") {
		t.Errorf("Open returned %v", err)
	}
}

// All ways to change the time zone of a subscriber, and their effect on cadences in local time.
func TestDigestsFollowAChangedTimeZone(t *testing.T) {
	tokyo := people.SubscriberPut{Addresses: []people.Address{{Kind: "mail", Address: "a@example.org"}}, TimeZone: "Asia/Tokyo"}
	for name, change := range map[string]func(ctx context.Context, r *registry.Registry) error{
		"put": func(ctx context.Context, r *registry.Registry) error {
			_, _, err := r.PutSubscriber(ctx, "notify", "one", tokyo, nil)
			return err
		},
		"patch": func(ctx context.Context, r *registry.Registry) error {
			_, err := r.PatchSubscriber(ctx, "notify", "one", json.RawMessage(`{"time_zone":"Asia/Tokyo"}`), nil)
			return err
		},
		"merge": func(ctx context.Context, r *registry.Registry) error {
			other := people.SubscriberPut{Addresses: []people.Address{{Kind: "mail", Address: "b@example.org"}}, TimeZone: "Asia/Tokyo"}
			if _, _, err := r.PutSubscriber(ctx, "notify", "two", other, nil); err != nil {
				return err
			}
			_, err := r.MergeSubscriber(ctx, "notify", "one", "two")
			return err
		},
		"a subscription's line": func(ctx context.Context, r *registry.Registry) error {
			results := make([]people.PutResult, 1)
			err := r.PutSubscriptions(ctx, "notify", []people.SubscriptionPut{{Topic: "other", Channel: "print", To: "a@example.org", TimeZone: "Asia/Tokyo"}}, results)
			return errors.Join(err, results[0].Err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := openAt(t, storetest.Place(t))
			apply(t, r, waiting)
			if _, _, err := r.PutSubscriber(t.Context(), "notify", "one", people.SubscriberPut{Addresses: tokyo.Addresses, TimeZone: "Europe/London"}, nil); err != nil {
				t.Fatal(err)
			}
			cadences := map[string]string{"daily": "daily 08:00", "own": "daily 08:00 in Europe/London", "window": "window 1m", "once": "immediate"}
			for id, text := range cadences {
				putWaiting(t, r, people.SubscriptionPut{ID: id, To: "a@example.org", Cadence: text, Params: nil})
			}
			_, before := slotWithID(t, r, "daily")
			if err := change(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			for id, want := range map[string]string{"daily": "daily 08:00, Asia/Tokyo", "own": "daily 08:00 in Europe/London, Europe/London", "window": "window 1m, UTC", "once": ""} {
				if got, _ := slotWithID(t, r, id); got != want {
					t.Errorf("%s is due %q, want %q", id, got, want)
				}
			}
			if moves := r.PendingMoves(); len(moves) != 1 || !slices.Equal(moves[0].PastSlots, []uint16{before}) {
				t.Errorf("moved are %+v, want one that was in %d", moves, before)
			}
		})
	}
}

// ConfirmMoves must use the slots that the caller read, not the current ones.
func TestItemsCarriedIntoAnAbandonedSlotAreCarriedAgain(t *testing.T) {
	place := storetest.Place(t)
	r, _ := openAt(t, place)
	apply(t, r, waiting)
	put := func(text string) {
		putWaiting(t, r, people.SubscriptionPut{ID: "a", To: "a@example.org", Cadence: text})
	}
	put("daily 08:00")
	_, eight := slotWithID(t, r, "a")
	put("daily 09:00")
	_, nine := slotWithID(t, r, "a")
	seen := r.PendingMoves()
	put("daily 10:00")
	if err := r.ConfirmMoves(t.Context(), seen); err != nil {
		t.Fatal(err)
	}
	r.Close()
	r, _ = openAt(t, place)
	moves := r.PendingMoves()
	if len(moves) != 1 || !slices.Equal(moves[0].PastSlots, []uint16{eight, nine}) {
		t.Fatalf("open are %+v, want one from %d and %d", moves, eight, nine)
	}
	if err := r.ConfirmMoves(t.Context(), moves); err != nil {
		t.Fatal(err)
	}
	r.Close()
	r, _ = openAt(t, place)
	if moves := r.PendingMoves(); len(moves) != 0 {
		t.Fatalf("open are %+v after they were carried", moves)
	}
	put("immediate")
	if moves := r.PendingMoves(); len(moves) != 1 || moves[0].Slot != 0 {
		t.Fatalf("open are %+v, want one that is due at once", moves)
	}
	if err := r.EndSubscription(t.Context(), "notify", "a", ""); err != nil {
		t.Fatal(err)
	}
	if moves := r.PendingMoves(); len(moves) != 0 {
		t.Fatalf("open are %+v of what has ended", moves)
	}
}

func TestACadenceThatChangesTooOftenBeforeItIsCarriedIsRefused(t *testing.T) {
	r, _ := openAt(t, storetest.Place(t))
	apply(t, r, waiting)
	for minute := range 18 {
		p := people.SubscriptionPut{ID: "a", Topic: "other", Channel: "email", To: "a@example.org", Cadence: "daily 08:" + string(rune('0'+minute/10)) + string(rune('0'+minute%10))}
		results := make([]people.PutResult, 1)
		if err := r.PutSubscriptions(t.Context(), "notify", []people.SubscriptionPut{p}, results); err != nil {
			t.Fatal(err)
		}
		e, refused := errors.AsType[*fanfare.Error](results[0].Err)
		if refused != (minute == 17) || refused && (e.Code != fanfare.Unavailable || e.Pointer != "/cadence") {
			t.Fatalf("change %d: %v", minute, results[0].Err)
		}
	}
	if name, _ := slotWithID(t, r, "a"); name != "daily 08:16, UTC" {
		t.Errorf("it is due %s after what was refused", name)
	}
}

func TestNothingWaitsWhereTheTopicHasNotWhatItTakes(t *testing.T) {
	r, _ := openAt(t, storetest.Place(t))
	apply(t, r, weather)
	put := func(text string) error {
		results := make([]people.PutResult, 1)
		if err := r.PutSubscriptions(t.Context(), "notify", []people.SubscriptionPut{{ID: "a", Topic: "other", Channel: "email", To: "a@example.org", Cadence: text}}, results); err != nil {
			t.Fatal(err)
		}
		return results[0].Err
	}
	with := func(topic string) error {
		d, err := document.ParseDocument([]byte("service: notify\ntemplates: {several: {subject: s, text: t}}\ntopics: {other: {"+topic+"}}"), "")
		if err == nil {
			_, err = r.Apply(t.Context(), d)
		}
		return err
	}
	for _, c := range []struct {
		topic   string
		cadence string // of a put; "-": none
		pointer string // of what is refused, "" is nothing
		code    fanfare.Code
	}{
		{"", "daily 08:00", "/cadence", fanfare.Invalid},
		{"", "window 1m", "/cadence", fanfare.Invalid},
		{"", "immediate", "", ""},
		{"cadence: 'daily 08:00'", "-", "/topics/other/cadence", fanfare.Invalid},
		{"cadence: hourly", "-", "/topics/other/cadence", fanfare.Invalid},
		{"cadence: Immediate", "-", "", ""},
		{"digest: {template: several}", "daily 08:00 of state", "/cadence", fanfare.Invalid},
		{"digest: {template: several}, cadence: 'daily 08:00 of state'", "-", "/topics/other/cadence", fanfare.Invalid},
		{"digest: {template: several}", "fortnightly", "/cadence", fanfare.Invalid},
		{"digest: {template: several}, key: k", "daily 08:00 of state", "", ""},
		{"", "-", "/topics/other/digest", fanfare.Conflict},
		{"digest: {template: several}", "immediate", "", ""},
		{"", "-", "", ""},
	} {
		err := with(c.topic)
		if err == nil && c.cadence != "-" {
			err = put(c.cadence)
		}
		e, refused := errors.AsType[*fanfare.Error](err)
		if refused != (c.pointer != "") || refused && (e.Pointer != c.pointer || e.Code != c.code || e.Hint == "") {
			t.Errorf("topic {%s} and %q: %+v, want one at %q", c.topic, c.cadence, err, c.pointer)
		}
	}
}

func TestANewSubscriptionHasTheCadenceOfItsTopicAndKeepsIt(t *testing.T) {
	r, _ := openAt(t, storetest.Place(t))
	apply(t, r, waiting)
	withDefault := func(text string) {
		apply(t, r, "service: notify\ntopics: {other: {key: k, digest: {template: several}, cadence: '"+text+"'}}")
	}
	cadenceOf := func(id string) string {
		s, err := r.Subscription(t.Context(), "notify", id)
		if err != nil {
			t.Fatal(err)
		}
		return s.Cadence
	}
	withDefault("daily 08:00")
	putWaiting(t, r, people.SubscriptionPut{ID: "a", To: "a@example.org"})
	putWaiting(t, r, people.SubscriptionPut{ID: "b", To: "b@example.org", Cadence: "immediate"})
	withDefault("weekly saturday 08:00")
	putWaiting(t, r, people.SubscriptionPut{ID: "a", To: "a@example.org", Data: json.RawMessage(`{"n":1}`)})
	putWaiting(t, r, people.SubscriptionPut{ID: "c", To: "c@example.org"})
	for id, want := range map[string]string{"a": "daily 08:00", "b": "immediate", "c": "weekly saturday 08:00"} {
		if got := cadenceOf(id); got != want {
			t.Errorf("%s has %q, want %q", id, got, want)
		}
	}
	// An export contains cadences that differ from the default of the topic.
	exported := map[string]string{}
	err := r.ExportSubscriptions(t.Context(), "notify", people.SubscriptionFilter{}, func(p *people.SubscriptionPut) error {
		exported[p.ID] = p.Cadence
		return nil
	})
	if want := map[string]string{"a": "daily 08:00", "b": "immediate", "c": ""}; err != nil || !maps.Equal(exported, want) {
		t.Errorf("exported %v, %v; want %v", exported, err, want)
	}
}

func TestAServiceHasSoManyCadencesAndNoMore(t *testing.T) {
	r, _ := openAt(t, storetest.Place(t))
	apply(t, r, waiting)
	const most = 16_384
	puts := make([]people.SubscriptionPut, most+2)
	for i := range puts {
		puts[i] = people.SubscriptionPut{Topic: "other", Channel: "email", To: fmt.Sprintf("person%d@example.org", i), Cadence: fmt.Sprintf("cron %d %d %d * *", i%60, i/60%24, 1+i/1440)}
	}
	puts[most+1].Cadence = puts[0].Cadence
	results := make([]people.PutResult, len(puts))
	if err := r.PutSubscriptions(t.Context(), "notify", puts, results); err != nil {
		t.Fatal(err)
	}
	for i := range results {
		e, refused := errors.AsType[*fanfare.Error](results[i].Err)
		if refused != (i == most) || refused && (e.Code != fanfare.TooLarge || e.Pointer != "/cadence") {
			t.Fatalf("%d: %v", i, results[i].Err)
		}
	}
	if n := len(r.Slots()); n != most {
		t.Errorf("there are %d slots, want %d", n, most)
	}
	// The subscriber keeps the former cadence slot, and nothing else is rejected.
	results = make([]people.PutResult, 1)
	moving := []people.SubscriptionPut{{Topic: "other", Channel: "email", To: "person5@example.org", TimeZone: "Asia/Tokyo"}}
	if err := r.PutSubscriptions(t.Context(), "notify", moving, results); err != nil || results[0].Err != nil {
		t.Errorf("a move: %v, %v", err, results[0].Err)
	}
}
