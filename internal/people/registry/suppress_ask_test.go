package registry_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/people/registry"
	"fanfare.dev/fanfare/internal/people/suppression"
	"fanfare.dev/fanfare/internal/store/storetest"
)

func TestASuppressionStaysWithItsStrongestReason(t *testing.T) {
	r, _ := openAt(t, storetest.Place(t), withSuppressions)
	apply(t, r, weather)
	ctx := context.Background()
	for _, step := range []struct{ service, reason, want string }{
		{"notify", suppression.ReasonSoftBounces, suppression.ReasonSoftBounces},
		{"notify", suppression.ReasonComplaint, suppression.ReasonComplaint},
		{"notify", suppression.ReasonHardBounce, suppression.ReasonComplaint},
		{"", suppression.ReasonHardBounce, suppression.ReasonComplaint}, // of the service first
	} {
		ask := suppression.Request{Service: step.service, Address: "Ada@example.org", Reason: step.reason}
		if err := r.Suppress(ctx, []suppression.Request{ask}); err != nil {
			t.Fatal(err)
		}
		if s, err := r.Suppression(ctx, "notify", "ada@example.org"); err != nil || s.Reason != step.want {
			t.Errorf("after %+v: %+v (%v)", step, s, err)
		}
	}
}

func TestAnAddressThatAllServicesLeaveAloneCannotBeSubscribed(t *testing.T) {
	r, _ := openAt(t, storetest.Place(t), withSuppressions)
	apply(t, r, weather)
	if err := r.Suppress(context.Background(), []suppression.Request{{Address: "ada@example.org", Reason: suppression.ReasonHardBounce}}); err != nil {
		t.Fatal(err)
	}
	results := putAll(t, r, people.SubscriptionPut{Topic: "change", Channel: "email", To: "ada@example.org"})
	if fanfare.CodeOf(results[0].Err) != fanfare.Conflict {
		t.Errorf("it can be subscribed: %+v", results[0])
	}
}

func TestOneBadAskKeepsNothing(t *testing.T) {
	r, _ := openAt(t, storetest.Place(t), withSuppressions)
	apply(t, r, weather)
	good := suppression.Request{Service: "notify", Address: "ada@example.org", Reason: suppression.ReasonHardBounce}
	for pointer, bad := range map[string]suppression.Request{
		"/1/reason":  {Service: "notify", Address: "bob@example.org", Reason: "whim"},
		"/1/address": {Service: "notify", Address: "bob", Reason: suppression.ReasonHardBounce},
	} {
		err := r.Suppress(context.Background(), []suppression.Request{good, bad})
		if e, ok := errors.AsType[*fanfare.Error](err); !ok || e.Pointer != pointer {
			t.Errorf("%s: %v", pointer, err)
		}
	}
	if r.SuppressionCount() != 0 {
		t.Error("something was kept")
	}
}

// suppress puts one address on the list of notify.
func suppress(t *testing.T, r *registry.Registry, ask suppression.Request) {
	t.Helper()
	if ask.Service == "" {
		ask.Service = "notify"
	}
	if err := r.Suppress(context.Background(), []suppression.Request{ask}); err != nil {
		t.Fatal(err)
	}
}

func TestSuppressionsSurviveARestart(t *testing.T) {
	place := storetest.Place(t)
	r, _ := openAt(t, place, withSuppressions)
	apply(t, r, weather)
	until := time.Now().Add(time.Hour).UTC().Truncate(time.Millisecond)
	suppress(t, r, suppression.Request{Address: "Ada@example.org", Reason: suppression.ReasonHardBounce, Source: "smtp 192.0.2.1", Until: until})
	r.Close()
	r, _ = openAt(t, place, withSuppressions)
	s, err := r.Suppression(context.Background(), "notify", "ada@example.org")
	if err != nil || s.Reason != suppression.ReasonHardBounce || s.Source != "smtp 192.0.2.1" || !s.Until.Equal(until) {
		t.Errorf("it is %+v (%v)", s, err)
	}
	channel, _ := r.ChannelNamed("notify", "email")
	var seen, other uint64
	if why := r.SuppressionReason(channel, "ADA@example.org", &seen); why != suppression.ReasonHardBounce {
		t.Errorf("a message to it may leave: %q", why)
	}
	if why := r.SuppressionReason(channel, "bob@example.org", &other); why != "" {
		t.Errorf("a message to another may not: %q", why)
	}
	suppress(t, r, suppression.Request{Address: "bob@example.org", Reason: suppression.ReasonComplaint})
	if why := r.SuppressionReason(channel, "bob@example.org", &other); why != suppression.ReasonComplaint {
		t.Errorf("who asked before does not hear of it: %q", why)
	}
}

// A time beyond the Unix nanoseconds would overflow into the past.
func TestASuppressionToTheEndOfTimeIsForGood(t *testing.T) {
	r, _ := openAt(t, storetest.Place(t), withSuppressions)
	apply(t, r, weather)
	channel, _ := r.ChannelNamed("notify", "email")
	for _, year := range []int{2262, 2263, 2500, 2700, 3000, 9999} {
		address := fmt.Sprintf("y%d@example.org", year)
		suppress(t, r, suppression.Request{Address: address, Reason: suppression.ReasonManual, Until: time.Date(year, 12, 31, 23, 59, 59, 0, time.UTC)})
		s, err := r.Suppression(context.Background(), "notify", address)
		if err != nil || !s.Until.IsZero() {
			t.Errorf("%s: it is %+v (%v)", address, s, err)
		}
		var seen uint64
		if why := r.SuppressionReason(channel, address, &seen); why != suppression.ReasonManual {
			t.Errorf("a message to %s may leave: %q", address, why)
		}
	}
	last := time.Date(2262, 4, 11, 0, 0, 0, 0, time.UTC)
	suppress(t, r, suppression.Request{Address: "ada@example.org", Reason: suppression.ReasonManual, Until: last})
	if s, err := r.Suppression(context.Background(), "notify", "ada@example.org"); err != nil || !s.Until.Equal(last) {
		t.Errorf("it is %+v (%v)", s, err)
	}
}

func TestASuppressionEndsByItself(t *testing.T) {
	now := time.Now()
	r, _ := openAt(t, storetest.Place(t), withSuppressions, func(o *registry.Options) { o.Now = func() time.Time { return now } })
	apply(t, r, weather)
	ctx := context.Background()
	suppress(t, r, suppression.Request{Address: "ada@example.org", Reason: suppression.ReasonSoftBounces, Until: now.Add(time.Hour)})
	suppress(t, r, suppression.Request{Address: "bob@example.org", Reason: suppression.ReasonSoftBounces, Until: now.Add(time.Hour)})
	suppress(t, r, suppression.Request{Address: "bob@example.org", Reason: suppression.ReasonSoftBounces}) // for longer: for good
	now = now.Add(2 * time.Hour)
	channel, _ := r.ChannelNamed("notify", "email")
	var seen uint64
	if why := r.SuppressionReason(channel, "ada@example.org", &seen); why != "" {
		t.Errorf("it is suppressed still: %s", why)
	}
	if err := r.TrimSuppressions(ctx); err != nil || r.SuppressionCount() != 1 {
		t.Errorf("%d are kept (%v)", r.SuppressionCount(), err)
	}
	if page, _, err := r.Suppressions(ctx, suppression.Filter{Service: "notify"}, nil, 10); err != nil || len(page) != 1 || page[0].Address != "bob@example.org" {
		t.Errorf("the list is %+v (%v)", page, err)
	}
}

// A suppressed subscriber keeps the subscriptions it has and gets no further ones.
func TestASuppressedSubscriberCannotSubscribeToMore(t *testing.T) {
	r, _ := openAt(t, storetest.Place(t), withSuppressions)
	apply(t, r, weather)
	has := people.SubscriptionPut{Topic: "change", Channel: "email", To: "ada@example.org"}
	good(t, putAll(t, r, has))
	suppress(t, r, suppression.Request{Address: "ada@example.org", Reason: suppression.ReasonHardBounce})
	good(t, putAll(t, r, has))
	more := has
	more.ID = "more"
	results := putAll(t, r, more)
	if e, ok := errors.AsType[*fanfare.Error](results[0].Err); !ok || e.Code != fanfare.Conflict || !strings.Contains(e.Hint, "/v1/suppressions") {
		t.Errorf("it can subscribe: %+v", results[0])
	}
	if err := r.Unsuppress(context.Background(), "notify", "ADA@example.org"); err != nil {
		t.Fatal(err)
	}
	good(t, putAll(t, r, more))
}

// An erasure keeps only the hash of an address that bounced.
func TestAnErasureLeavesTheHashOfASuppressedAddress(t *testing.T) {
	place := storetest.Place(t)
	r, _ := openAt(t, place, withSuppressions)
	apply(t, r, weather)
	if err := person(t, r, "ada", "ada.lovelace@example.org"); err != nil {
		t.Fatal(err)
	}
	suppress(t, r, suppression.Request{Address: "ada.lovelace@example.org", Reason: suppression.ReasonHardBounce})
	if err := r.Suppress(context.Background(), []suppression.Request{{Address: "ada.lovelace@example.org", Reason: suppression.ReasonComplaint}}); err != nil {
		t.Fatal(err)
	}
	e, err := r.BeginErasure(context.Background(), "notify", "ada", false)
	if err == nil {
		err = r.FinishErasures(context.Background(), []registry.Erasure{e})
	}
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	if found := storetest.Find(t, place, "ada.lovelace"); len(found) > 0 {
		t.Errorf("the address is in %v", found)
	}
	r, _ = openAt(t, place, withSuppressions)
	for service, want := range map[string]string{"notify": suppression.ReasonHardBounce, "": suppression.ReasonComplaint} {
		if s, err := r.Suppression(context.Background(), service, "ada.lovelace@example.org"); err != nil || s.Reason != want {
			t.Errorf("%q: %+v (%v)", service, s, err)
		}
	}
}

func TestTheListIsReadInPartsWithTheLatestFirst(t *testing.T) {
	r, _ := openAt(t, storetest.Place(t), withSuppressions)
	apply(t, r, weather)
	var asks []suppression.Request
	for i := range 250 {
		asks = append(asks, suppression.Request{Service: "notify", Address: fmt.Sprintf("p%d@example.org", i), Reason: suppression.Reasons[i%2]})
	}
	if err := r.Suppress(context.Background(), asks); err != nil {
		t.Fatal(err)
	}
	suppress(t, r, suppression.Request{Address: "last@example.org", Reason: suppression.ReasonManual})
	for reason, want := range map[string]int{"": 251, suppression.ReasonSoftBounces: 125, suppression.ReasonManual: 1} {
		seen := map[string]bool{}
		var cursor *suppression.Cursor
		for first := true; first || cursor != nil; first = false {
			page, next, err := r.Suppressions(context.Background(), suppression.Filter{Service: "notify", Reason: reason}, cursor, 100)
			if err != nil {
				t.Fatal(err)
			}
			if first && reason != suppression.ReasonSoftBounces && page[0].Address != "last@example.org" {
				t.Errorf("%q: the first is %+v", reason, page[0])
			}
			for _, s := range page {
				seen[s.Address] = true
			}
			cursor = next
		}
		if len(seen) != want {
			t.Errorf("%q: %d, want %d", reason, len(seen), want)
		}
	}
}

func BenchmarkSuppressing(b *testing.B) {
	for _, n := range []int{0, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			r, _ := openAt(b, storetest.Place(b), withSuppressions)
			apply(b, r, weather)
			asks := make([]suppression.Request, n)
			for i := range asks {
				asks[i] = suppression.Request{Service: "notify", Address: fmt.Sprintf("gone%d@example.org", i), Reason: suppression.ReasonHardBounce}
			}
			if err := r.Suppress(context.Background(), asks); err != nil {
				b.Fatal(err)
			}
			channel, _ := r.ChannelNamed("notify", "email")
			b.Run("first", func(b *testing.B) {
				for b.Loop() {
					var seen uint64
					r.SuppressionReason(channel, "ada.lovelace@example.org", &seen)
				}
			})
			b.Run("again", func(b *testing.B) {
				var seen uint64
				for b.Loop() {
					r.SuppressionReason(channel, "ada.lovelace@example.org", &seen)
				}
			})
		})
	}
}
