package registry_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/catalog/document"
	"fanfare.dev/fanfare/internal/condition"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/people/registry"
	"fanfare.dev/fanfare/internal/store/storetest"
)

var changes = condition.Key{Service: "notify", Topic: "change"}

// ask puts subscriptions with these filters, each of another subscriber, and returns
// their results.
func ask(t *testing.T, r *registry.Registry, who string, filters ...string) []people.PutResult {
	t.Helper()
	puts := make([]people.SubscriptionPut, len(filters))
	for i, filter := range filters {
		puts[i] = people.SubscriptionPut{Topic: "change", Channel: "email", To: fmt.Sprintf("%s%d@example.org", who, i), Filter: filter}
	}
	results := make([]people.PutResult, len(puts))
	if err := r.PutSubscriptions(context.Background(), "notify", puts, results); err != nil {
		t.Fatal(err)
	}
	return results
}

func different(from, n int) (filters []string) {
	for i := range n {
		filters = append(filters, fmt.Sprintf("event.title != 'title %d'", from+i))
	}
	return filters
}

func refused(results []people.PutResult) (n int) {
	for i := range results {
		if results[i].Err != nil {
			n++
		}
	}
	return n
}

func TestThePriceOfAConditionIsPartOfTheAnswer(t *testing.T) {
	r, _ := openAt(t, storetest.Place(t))
	apply(t, r, weather)
	results := ask(t, r, "a", "event.mag > 5.0", "event.title != 'x'", "")
	for i, indexed := range []bool{true, false, true} {
		if c := results[i].Cost; results[i].Err != nil || c.Indexed() != indexed || (c.Why == "") != indexed {
			t.Errorf("put %d came to %+v", i, results[i])
		}
	}
}

// Conditions over the budget are rejected, whether they come in one call, in several
// calls or concurrently.
func TestABudgetRefusesWhatIsOverIt(t *testing.T) {
	r, index := openAt(t, storetest.Place(t))
	apply(t, r, "matching_budget: 4us\n"+weather[1:])
	one := ask(t, r, "first", different(0, 1)...)[0].Cost.Nanos
	fit := 4000/int(one) - 1
	if n := refused(ask(t, r, "a", different(1, fit)...)); n != 0 {
		t.Fatalf("%d of %d that fit were refused", n, fit)
	}
	results := ask(t, r, "b", different(1000, 3)...)
	if n := refused(results); n != 3 {
		t.Fatalf("%d of 3 that are over the budget were refused", n)
	}
	e, _ := errors.AsType[*fanfare.Error](results[0].Err)
	if e == nil || e.Code != fanfare.Invalid || e.Pointer != "/filter" || !strings.Contains(e.Message, "4µs") || !strings.Contains(e.Message, fmt.Sprint(one)) || e.Hint == "" {
		t.Errorf("refused with %+v", results[0].Err)
	}
	if got := index.UnindexedCost(changes); got != int64(fit+1)*one {
		t.Errorf("an event takes %d ns, want %d", got, int64(fit+1)*one)
	}
	if places, err := r.SubscriberPlaces(context.Background(), "notify", "b0@example.org"); err == nil {
		t.Errorf("who was refused was made: %v", places)
	}

	if n := refused(ask(t, r, "c", different(0, 3)...)); n != 0 {
		t.Errorf("%d were refused that others have already", n)
	}
	if n := refused(ask(t, r, "d", "event.mag > 5.0", "", "event.title == 'x'")); n != 0 {
		t.Errorf("%d were refused to which an index leads", n)
	}
	if n := refused(ask(t, r, "a", different(1, fit)...)); n != 0 {
		t.Errorf("%d were refused that are there already", n)
	}
	for _, who := range []string{"first0", "c0"} {
		if err := endOf(r, who+"@example.org"); err != nil {
			t.Fatal(err)
		}
	}
	if n := refused(ask(t, r, "e", different(2000, 2)...)); n != 1 {
		t.Errorf("%d of two were refused when one had left", n)
	}
}

func TestALargeImportDoesNotPassTheBudget(t *testing.T) {
	r, index := openAt(t, storetest.Place(t))
	apply(t, r, "matching_budget: 40us\n"+weather[1:])
	steps := r.Import("notify")
	var over []<-chan error
	var all [][]people.PutResult
	for step := range 4 {
		puts, results := make([]people.SubscriptionPut, 800), make([]people.PutResult, 800)
		for i, filter := range different(step*700, 800) { // a hundred of each are in the next too
			puts[i] = people.SubscriptionPut{Topic: "change", Channel: "email", To: fmt.Sprintf("s%d-%d@example.org", step, i), Filter: filter}
		}
		over, all = append(over, steps.Begin(context.Background(), puts, results)), append(all, results)
	}
	taken := 0
	for i := range over {
		if err := <-over[i]; err != nil {
			t.Fatal(err)
		}
		taken += len(all[i]) - refused(all[i])
	}
	load, one := index.UnindexedCost(changes), all[0][0].Cost.Nanos
	if load > 40_000 || load+one <= 40_000 {
		t.Errorf("an event takes %d ns, want the budget of 40µs and not more (a condition is %d)", load, one)
	}
	if distinct := int(load / one); taken < distinct {
		t.Errorf("%d were taken, of %d filters", taken, distinct)
	}
}

func TestALowerBudgetTakesNothingAway(t *testing.T) {
	place := storetest.Place(t)
	r, _ := openAt(t, place)
	apply(t, r, weather)
	if n := refused(ask(t, r, "a", different(0, 100)...)); n != 0 {
		t.Fatalf("%d were refused", n)
	}
	diff := apply(t, r, "matching_budget: 1us\n"+weather[1:])
	if len(diff.Changes) != 1 || diff.Changes[0].Fields[0] != (audit.FieldChange{Field: "matching_budget", Old: "1ms", New: "1µs"}) {
		t.Errorf("the change is told as %+v", diff)
	}
	r.Close()
	r, index := openAt(t, place)
	if index.Len(changes) != 100 {
		t.Errorf("%d subscriptions are left of 100", index.Len(changes))
	}
	if r.Configuration().Service("notify").MatchingBudget.String() != "1µs" {
		t.Error("the budget did not outlive a restart")
	}
	if n := refused(ask(t, r, "b", different(200, 1)...)); n != 1 {
		t.Error("one more was taken")
	}
}

func TestTheAdminOfAServiceDoesNotRaiseItsBudget(t *testing.T) {
	r, _ := openAt(t, storetest.Place(t))
	apply(t, r, "service: notify\nmatching_budget: 2ms\n")
	for _, c := range []struct {
		budget, tenant string
		code           fanfare.Code
	}{{"3ms", "notify", fanfare.Forbidden}, {"1ms", "notify", ""}, {"3ms", "", ""}, {"2s", "", fanfare.Invalid}} {
		d, err := document.ParseDocument([]byte("service: notify\nmatching_budget: "+c.budget+"\n"), "")
		if err != nil {
			t.Fatal(err)
		}
		_, err = r.Apply(audit.WithActor(context.Background(), audit.Actor{KeyID: "key-1", Tenant: c.tenant}), d)
		if e, _ := errors.AsType[*fanfare.Error](err); c.code == "" && err != nil || c.code != "" && (e == nil || e.Code != c.code || e.Line != 2) {
			t.Errorf("%s by %q: %v", c.budget, c.tenant, err)
		}
	}
}

// endOf ends the only subscription of a subscriber.
func endOf(r *registry.Registry, who string) error {
	page, _, err := r.SubscriptionPage(context.Background(), "notify", people.SubscriptionFilter{Subscriber: who, State: "active"}, 0, 1)
	if err != nil {
		return err
	}
	return r.EndSubscription(context.Background(), "notify", page[0].ID, "")
}
