package registry_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/document"
	"fanfare.dev/fanfare/internal/store/storetest"
)

func TestTheRulesOfBouncesAreKeptAndThoseLeftOutAreTheDefaults(t *testing.T) {
	place := storetest.Place(t)
	r, _ := openAt(t, place)
	apply(t, r, weather)
	usual := r.Bounces("notify")
	if usual.Unknown.After != 1 || usual.Hard.After != 3 || usual.Soft.ForDays != 90 || usual != r.Bounces("nobody") {
		t.Fatalf("the defaults are %+v", usual)
	}
	const text = "service: notify\nbounces: {soft: {after: 2, within_days: 9, over_days: 3, for_days: 5}, hard: {never: true}}\n"
	if diff := apply(t, r, text); len(diff.Changes) != 1 || len(diff.Changes[0].Fields) != 1 {
		t.Errorf("the difference is %+v", diff)
	}
	want := usual
	want.Soft = catalog.BounceRule{After: 2, WithinDays: 9, OverDays: 3, ForDays: 5}
	want.Hard = catalog.BounceRule{Never: true}
	r.Close()
	r, _ = openAt(t, place)
	if got := r.Bounces("notify"); got != want {
		t.Errorf("after a restart they are %+v, want %+v", got, want)
	}
	doc, err := document.ParseDocument([]byte(text), "")
	if err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	if diff := apply(t, r, string(again)); len(diff.Changes) != 0 {
		t.Errorf("the same once more is a difference: %+v", diff)
	}
	apply(t, r, "service: notify\nbounces: {}\n")
	if got := r.Bounces("notify"); got != usual {
		t.Errorf("taken away they are %+v", got)
	}
	for _, wrong := range []string{"often", "{soft: 3}", "{soft: {within_days: 3}}", "{hard: {after: 0}}", "{hard: {after: 3, within_days: 200}}",
		"{full: {after: 3, within_days: 3, over_days: 4}}", "{full: {never: true, after: 3}}", "{block: {after: 3}}", "{complaint: {after: 101}}"} {
		if _, err := document.ParseDocument([]byte("service: notify\nbounces: "+wrong+"\n"), ""); err == nil {
			t.Errorf("%s is taken", wrong)
		}
	}
}

func TestARuleOfBouncesCountsThoseOfItsDays(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name string
		rule catalog.BounceRule
		days []int // before now
		want bool
	}{
		{"none", catalog.BounceRule{After: 1, WithinDays: 30}, nil, false},
		{"the first", catalog.BounceRule{After: 1, WithinDays: 30}, []int{0}, true},
		{"too few", catalog.BounceRule{After: 3, WithinDays: 30}, []int{0, 1}, false},
		{"enough at once", catalog.BounceRule{After: 3, WithinDays: 30}, []int{0, 0, 0}, true},
		{"one too old", catalog.BounceRule{After: 3, WithinDays: 30}, []int{0, 1, 31}, false},
		{"too close to each other", catalog.BounceRule{After: 3, WithinDays: 14, OverDays: 4}, []int{0, 1, 3}, false},
		{"far enough apart", catalog.BounceRule{After: 3, WithinDays: 14, OverDays: 4}, []int{0, 1, 4}, true},
		{"only with one that is too old", catalog.BounceRule{After: 3, WithinDays: 14, OverDays: 4}, []int{0, 1, 2, 15}, false},
		{"in any order", catalog.BounceRule{After: 2, WithinDays: 14, OverDays: 4}, []int{4, 0}, true},
		{"never", catalog.BounceRule{Never: true}, []int{0, 1, 2, 3, 4, 5}, false},
	} {
		var at []time.Time
		for _, days := range c.days {
			at = append(at, now.AddDate(0, 0, -days))
		}
		before := slices.Clone(at)
		if got := c.rule.Reached(at, now); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
		if !slices.Equal(at, before) {
			t.Errorf("%s: what was asked about has changed", c.name)
		}
	}
	soft := catalog.BounceRule{After: 1, WithinDays: 1, ForDays: 2}
	if until := soft.Until(now); !until.Equal(now.AddDate(0, 0, 2)) {
		t.Errorf("until %v", until)
	}
}
