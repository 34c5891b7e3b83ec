package registry_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/people/registry"
	"fanfare.dev/fanfare/internal/store/storetest"
)

func withSuppressions(o *registry.Options) { o.SuppressionKey = []byte("of a test") }

// person puts a subscriber with one address.
func person(t *testing.T, r *registry.Registry, id, address string) error {
	t.Helper()
	_, _, err := r.PutSubscriber(context.Background(), "notify", id, people.SubscriberPut{Addresses: []people.Address{{Kind: "mail", Address: address}}}, nil)
	return err
}

// erase erases a subscriber and suppresses its addresses.
func erase(t *testing.T, r *registry.Registry, id string) {
	t.Helper()
	e, err := r.BeginErasure(context.Background(), "notify", id, true)
	if err == nil {
		err = r.FinishErasures(context.Background(), []registry.Erasure{e})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A former address of a subscriber, which belonged to another subscriber when that one
// was erased, remains suppressed if it is put again.
func TestASuppressedAddressDoesNotComeBackFromHistory(t *testing.T) {
	r, _ := openAt(t, storetest.Place(t), withSuppressions)
	apply(t, r, weather)
	for _, step := range [][2]string{{"ada", "shared@example.org"}, {"ada", "ada@example.org"}, {"bob", "shared@example.org"}} {
		if err := person(t, r, step[0], step[1]); err != nil {
			t.Fatal(err)
		}
	}
	erase(t, r, "bob")
	if err := person(t, r, "ada", "shared@example.org"); fanfare.CodeOf(err) != fanfare.Conflict {
		t.Errorf("the address is ada's again: %v", err)
	}
	results := putAll(t, r, people.SubscriptionPut{Topic: "change", Channel: "email", Subscriber: "ada", To: "shared@example.org"})
	if fanfare.CodeOf(results[0].Err) != fanfare.Conflict {
		t.Errorf("it can be subscribed for ada: %+v", results[0])
	}
}

func TestASuppressedAddressIsSuppressedHoweverItIsWritten(t *testing.T) {
	r, _ := openAt(t, storetest.Place(t), withSuppressions)
	apply(t, r, weather)
	const composed, decomposed = "R\u00e9n\u00e9@example.org", "rE\u0301ne\u0301@example.org"
	for i, address := range []string{"Ada.Lovelace@example.org", composed} {
		if err := person(t, r, fmt.Sprint("p", i), address); err != nil {
			t.Fatal(err)
		}
		erase(t, r, fmt.Sprint("p", i))
	}
	for _, written := range []string{"Ada.Lovelace@example.org", "ada.lovelace@EXAMPLE.org", "ADA.LOVELACE@example.org", composed, decomposed} {
		if results := putAll(t, r, people.SubscriptionPut{Topic: "change", Channel: "email", To: written}); fanfare.CodeOf(results[0].Err) != fanfare.Conflict {
			t.Errorf("%s can be subscribed: %+v", written, results[0])
		}
		if _, err := r.Suppression(context.Background(), "notify", written); err != nil {
			t.Errorf("%s: %v", written, err)
		}
	}
	good(t, putAll(t, r, people.SubscriptionPut{Topic: "change", Channel: "email", To: "ada.lovelace+news@example.org"})) // another address
}

// In a list of recipients, the suppressed one is reported and the others
// are found.
func TestASuppressedRecipientIsTheOnlyOneRefused(t *testing.T) {
	r, _ := openAt(t, storetest.Place(t), withSuppressions)
	apply(t, r, weather)
	if err := person(t, r, "ada", "ada@example.org"); err != nil {
		t.Fatal(err)
	}
	erase(t, r, "ada")
	channel, _ := r.ChannelNamed("notify", "email")
	all := []people.DirectRecipient{{Address: "bob@example.org"}, {Address: "ada@example.org"}, {Address: "eve@example.org"}}
	if err := r.FindDirectRecipients(context.Background(), "notify", channel, all); err != nil {
		t.Fatal(err)
	}
	if all[0].Err != nil || all[2].Err != nil || fanfare.CodeOf(all[1].Err) != fanfare.Conflict {
		t.Errorf("found %+v", all)
	}
}

// A filter that was erased with the person whom it named is stored as a new filter when
// it is put again, even if it was looked up before the erasure.
func TestAFilterThatIsForgottenMeanwhileIsKeptAnew(t *testing.T) {
	const filter = `event.title == "ada-lovelace"`
	checking, erased := make(chan struct{}), make(chan struct{})
	r, _ := openAt(t, storetest.Place(t), withSuppressions, func(o *registry.Options) {
		o.ParseAddress = func(s string) (string, error) {
			if s == "slow@example.org" { // the last of the list is checked while ada is erased
				close(checking)
				<-erased
				s = "quick@example.org"
			}
			return parseAddress(s)
		}
	})
	apply(t, r, weather)
	good(t, putAll(t, r, people.SubscriptionPut{Topic: "change", Channel: "email", To: "ada-lovelace@example.org", Filter: filter}))
	id, err := r.FindSubscriber(context.Background(), "notify", "ada-lovelace@example.org")
	if err != nil {
		t.Fatal(err)
	}
	again := make(chan []people.PutResult)
	go func() {
		results := make([]people.PutResult, 2)
		err := r.PutSubscriptions(context.Background(), "notify", []people.SubscriptionPut{
			{ID: "again", Topic: "change", Channel: "email", To: "other@example.org", Filter: filter}, {Topic: "change", Channel: "email", To: "slow@example.org"}}, results)
		if err != nil {
			t.Error(err)
		}
		again <- results
	}()
	<-checking
	e, err := r.BeginErasure(context.Background(), "notify", people.SubscriberID(id), false)
	if err == nil {
		err = r.FinishErasures(context.Background(), []registry.Erasure{e})
	}
	if err != nil {
		t.Fatal(err)
	}
	close(erased)
	good(t, <-again)
	s, err := r.Subscription(context.Background(), "notify", "again")
	if err != nil || s.Filter != filter {
		t.Errorf("the filter is %q (%v)", s.Filter, err)
	}
}

func TestAuditLogNamesTheActorOfLiftsAndErasures(t *testing.T) {
	r, _ := openAt(t, storetest.Place(t), withSuppressions)
	apply(t, r, weather)
	ctx := audit.WithActor(context.Background(), audit.Actor{KeyID: "key-7"})
	made, err := r.CreateSubscriber(context.Background(), "notify", people.SubscriberPut{Addresses: []people.Address{{Kind: "mail", Address: "ada@example.org"}}})
	if err != nil {
		t.Fatal(err)
	}
	e, err := r.BeginErasure(ctx, "notify", made.ID, true)
	if err == nil {
		err = r.FinishErasures(ctx, []registry.Erasure{e})
	}
	if err == nil {
		err = r.Unsuppress(ctx, "notify", "ada@example.org")
	}
	if err == nil {
		err = r.Unsuppress(ctx, "notify", "ada@example.org") // it is not on the list any more
	}
	if err != nil {
		t.Fatal(err)
	}
	lines, _, err := r.Audit(context.Background(), audit.Query{Limit: 10, KeyID: "key-7"})
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, l := range lines {
		fmt.Fprintf(&got, "%s %s %q; ", l.Action, l.Kind, l.Name)
	}
	if want := fmt.Sprintf("lift suppression \"\"; erase subscriber %q; ", made.ID); got.String() != want {
		t.Errorf("the audit has %s, want %s", got.String(), want)
	}
}

// The search in files ignores the case of ASCII characters only.
func TestNamesOfAnErasureAreFoundAsTheyWereWritten(t *testing.T) {
	r, _ := openAt(t, storetest.Place(t), withSuppressions)
	apply(t, r, weather)
	if err := person(t, r, "Ada", "\u00c4RGERnis@example.org"); err != nil {
		t.Fatal(err)
	}
	e, err := r.BeginErasure(context.Background(), "notify", "Ada", false)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\u00c4rgernis@example.org", "\u00e4rgernis@example.org", "\u00c4rgernis"} {
		if !slices.Contains(e.Names, want) {
			t.Errorf("%q is not searched for: %q", want, e.Names)
		}
	}
}

// A person that subscribes again during an erasure stores the filter again. The next erasure
// deletes it.
func TestAFilterIsForgottenWithTheLastWhoHasIt(t *testing.T) {
	place := storetest.Place(t)
	r, _ := openAt(t, place, withSuppressions)
	apply(t, r, weather)
	const filter = `event.title == "ada-lovelace"`
	put := people.SubscriptionPut{Topic: "change", Channel: "email", To: "ada-lovelace@example.org", Filter: filter}
	begin := func() []registry.Erasure {
		s, err := r.SubscriberByAddress(context.Background(), "notify", put.To)
		if err != nil {
			t.Fatal(err)
		}
		e, err := r.BeginErasure(context.Background(), "notify", s.ID, false)
		if err != nil {
			t.Fatal(err)
		}
		return []registry.Erasure{e}
	}
	finish := func(all []registry.Erasure) (kept bool) {
		if err := r.FinishErasures(context.Background(), all); err != nil {
			t.Fatal(err)
		}
		return len(storetest.Find(t, place, filter)) > 0
	}
	good(t, putAll(t, r, put))
	first := begin()
	good(t, putAll(t, r, put))
	if !finish(first) {
		t.Fatal("the filter is gone although somebody has it")
	}
	if finish(begin()) {
		t.Error("the filter is kept although nobody has it")
	}
}
