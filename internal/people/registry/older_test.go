package registry_test

import (
	"log/slog"
	"slices"
	"strings"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/condition"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/people/registry"
	"fanfare.dev/fanfare/internal/store/storetest"
)

// An older index accepts conditions that the current one rejects.
type older struct{ *condition.Index }

const tooLarge = `event.title.matches('(a?){1000}b?')`

func (o older) FilterCost(key condition.Key, filter string) (fanfare.Cost, error) {
	if filter == tooLarge {
		return fanfare.Cost{}, nil
	}
	return o.Index.FilterCost(key, filter)
}

func (o older) Add(key condition.Key, entries []condition.Entry) error {
	return o.Index.Add(key, slices.DeleteFunc(slices.Clone(entries), func(e condition.Entry) bool { return e.Filter == tooLarge }))
}

func TestAServerStartsWithConditionsThatAreNotUnderstoodAnyMore(t *testing.T) {
	place := storetest.Place(t)
	r, _ := openAt(t, place, func(o *registry.Options) { o.Conditions = older{o.Conditions.(*condition.Index)} })
	apply(t, r, weather)
	var puts []people.SubscriptionPut
	for _, filter := range []string{sharedFilter, tooLarge, `event.mag > 3.0`} {
		puts = append(puts, people.SubscriptionPut{Topic: "change", Channel: "email", To: "a@example.org", Filter: filter})
	}
	for _, result := range putAll(t, r, puts...) {
		if result.Err != nil {
			t.Fatal(result.Err)
		}
	}
	r.Close()
	var log strings.Builder
	r, index := openAt(t, place, func(o *registry.Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	if r.InvalidConditions() != 1 || !strings.Contains(log.String(), "more than 1000 parts") {
		t.Errorf("%d are said not to be understood: %s", r.InvalidConditions(), log.String())
	}
	hits, err := index.Match(condition.Key{Service: "notify", Topic: "change"}, condition.Event{Data: []byte(`{"title":"Victoria","mag":4}`)}, nil)
	if err != nil || len(hits) != 2 {
		t.Errorf("%d hits, %v", len(hits), err)
	}
}
