package registry_test

import (
	"errors"
	"strings"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/store/storetest"
)

func TestASubscriptionHasItsOwnTitleElseThatOfItsRuleElseOfItsTopic(t *testing.T) {
	at := storetest.Place(t)
	r, _ := openAt(t, at)
	apply(t, r, strings.NewReplacer("name: strong, when", "name: strong, title: Strong ones, description: From 6.0, when", "  change:\n", "  change:\n    title: Changes\n").Replace(weather))
	put := func(to, rule, title, description string) people.PutResult {
		return good(t, putAll(t, r, people.SubscriptionPut{ID: "s-" + to, Topic: "change", Channel: "email", To: to + "@example.org", Rule: rule, Title: title, Description: description}))[0]
	}
	put("ada", "strong", "Near my flat", "Within 10 km")
	put("ben", "strong", "", "")
	put("cleo", "", "", "")
	if again := put("ada", "strong", "Near my home", "Within 10 km"); again.Created {
		t.Error("another title made another subscription")
	}
	r.Close()
	r, _ = openAt(t, at)
	for id, want := range map[string][2]string{"s-ada": {"Near my home", "Within 10 km"}, "s-ben": {"Strong ones", "From 6.0"}, "s-cleo": {"Changes", ""}} {
		s, err := r.Subscription(t.Context(), "notify", id)
		if err != nil {
			t.Fatal(err)
		}
		if own := id == "s-ada"; (s.Title != "") != own || own && s.Title != want[0] {
			t.Errorf("%s has the title %q", id, s.Title)
		}
		err = r.Subscriptions(t.Context(), []fanfare.RowID{s.Place}, func(row *people.SubscriptionRow) error {
			if row.Title != want[0] || row.Description != want[1] {
				t.Errorf("delivery of %s sees %q, %q", id, row.Title, row.Description)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	put("ada", "strong", "", "")
	if s, err := r.Subscription(t.Context(), "notify", "s-ada"); err != nil || s.Title != "" || s.Description != "" {
		t.Errorf("the texts stay: %+v, %v", s, err)
	}
}

func TestTextsOfASubscriptionAreOneShortLine(t *testing.T) {
	r, _ := openAt(t, storetest.Place(t))
	apply(t, r, weather)
	for pointer, p := range map[string]people.SubscriptionPut{
		"/title":       {Title: strings.Repeat("x", 101)},
		"/description": {Description: "two\nlines"},
	} {
		p.Topic, p.Channel, p.To = "change", "email", "ada@example.org"
		err := putAll(t, r, p)[0].Err
		var e *fanfare.Error
		if !errors.As(err, &e) || e.Code != fanfare.Invalid || e.Pointer != pointer {
			t.Errorf("%s: %v", pointer, err)
		}
	}
}
