package registry_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/condition"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/people/registry"
	"fanfare.dev/fanfare/internal/store/storetest"
)

// address finds or creates the subscribers with these addresses.
func address(t *testing.T, r *registry.Registry, to ...string) []people.DirectRecipient {
	t.Helper()
	channel, ok := r.ChannelNamed("notify", "email")
	if !ok {
		t.Fatal("no channel")
	}
	all := make([]people.DirectRecipient, len(to))
	for i := range to {
		all[i].Address = to[i]
	}
	if err := r.FindDirectRecipients(context.Background(), "notify", channel, all); err != nil {
		t.Fatal(err)
	}
	if err := r.CreateDirectRecipients(context.Background(), "notify", channel, all); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestRecipientIsTheSubscriberWithTheAddress(t *testing.T) {
	place := storetest.Place(t)
	r, _ := openAt(t, place)
	apply(t, r, weather)
	good(t, putAll(t, r, people.SubscriptionPut{Topic: "change", Channel: "email", To: "ada@example.org"}))
	ada, err := r.FindSubscriber(context.Background(), "notify", "ada@example.org")
	if err != nil {
		t.Fatal(err)
	}
	seq := r.ChangeSeq()
	if got := address(t, r, "ada@EXAMPLE.org"); got[0].Place != ada || r.ChangeSeq() != seq {
		t.Errorf("ada is %+v, want place %d and no change", got[0], ada)
	}
	got := address(t, r, "new@example.org", "nobody", "ada@example.org", "new@example.ORG")
	if got[0].Place == 0 || got[3].Place != got[0].Place || got[2].Place != ada {
		t.Errorf("got %+v", got)
	}
	if fanfare.CodeOf(got[1].Err) != fanfare.Invalid || got[1].Place != 0 {
		t.Errorf("what is no address: %+v", got[1])
	}
	r.Close()
	r, _ = openAt(t, place)
	if again := address(t, r, "new@example.org"); again[0].Place != got[0].Place {
		t.Errorf("after a restart it is %+v, was %+v", again[0], got[0])
	}
	channel, _ := r.ChannelNamed("notify", "email")
	byID := []people.DirectRecipient{{Subscriber: people.SubscriberID(ada)}, {Subscriber: "nobody"}}
	if err := r.FindDirectRecipients(context.Background(), "notify", channel, byID); err != nil || byID[0].Place != ada || byID[0].Address != "ada@example.org" {
		t.Errorf("by id she is %+v, %v", byID[0], err)
	}
	if e, ok := errors.AsType[*fanfare.Error](byID[1].Err); !ok || e.Code != fanfare.Invalid || e.Pointer != "/subscriber" {
		t.Errorf("an unknown id: %+v", byID[1])
	}
	// A subscriber that was created by a direct message is like any other.
	sub := good(t, putAll(t, r, people.SubscriptionPut{Topic: "change", Channel: "email", To: "new@example.org"}))
	if full, err := r.Subscription(context.Background(), "notify", sub[0].ID); err != nil || full.Owner != got[0].Place {
		t.Errorf("the subscription belongs to %d, want %d: %v", full.Owner, got[0].Place, err)
	}
}

func TestManyAddressesAreMadeOnceEach(t *testing.T) {
	r, err := registry.Open(context.Background(), options(openStore(t, storetest.Place(t)), condition.New()))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	apply(t, r, weather)
	var to []string
	for i := range 10_000 {
		to = append(to, fmt.Sprintf("person%d@example.org", i))
	}
	first := address(t, r, to...)
	seen := map[fanfare.RowID]bool{}
	for i, a := range first {
		if a.Err != nil || a.Place == 0 || seen[a.Place] {
			t.Fatalf("%d: %+v", i, a)
		}
		seen[a.Place] = true
	}
	seq := r.ChangeSeq()
	for i, a := range address(t, r, to...) {
		if a != first[i] {
			t.Fatalf("%d: %+v, was %+v", i, a, first[i])
		}
	}
	if r.ChangeSeq() != seq {
		t.Error("finding them again was a change")
	}
}
