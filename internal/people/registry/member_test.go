package registry_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/document"
	"fanfare.dev/fanfare/internal/catalog/state"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/store/storetest"
)

func anything(catalog.Configuration) error { return nil }

// However rules are put, deleted and listed with their topic, their order is that of a
// simple list: a new rule becomes the last, an existing one keeps its position, and the
// list of the topic sets the whole order. A restart changes nothing.
func TestRulesKeepTheOrderThatTheyWereGiven(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		place := storetest.Place(rt)
		r, _ := openAt(rt, place)
		defer func() { r.Close() }()
		topic := document.Member{Service: "s", Kind: "topic", Name: "t"}
		rule := func(name string) document.Member {
			return document.Member{Service: "s", Kind: "rule", Name: "t", Rule: name}
		}
		if _, err := r.ApplyMember(t.Context(), parsed(rt, topic, "{}"), anything); err != nil {
			rt.Fatal(err)
		}
		var model []string
		names := []string{"a", "b", "c", "d", "e"}
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			name := rapid.SampledFrom(names).Draw(rt, "rule")
			switch rapid.SampledFrom([]string{"put", "delete", "list", "title", "restart"}).Draw(rt, "step") {
			case "put":
				text := fmt.Sprintf("when: '%d > 1'", rapid.IntRange(1, 3).Draw(rt, "when"))
				if _, err := r.ApplyMember(t.Context(), parsed(rt, rule(name), text), anything); err != nil {
					rt.Fatal(err)
				}
				if !slices.Contains(model, name) {
					model = append(model, name)
				}
			case "delete":
				if err := r.DeleteMember(t.Context(), rule(name), anything); err != nil {
					rt.Fatal(err)
				}
				model = slices.DeleteFunc(model, func(n string) bool { return n == name })
			case "list":
				model = rapid.Permutation(names).Draw(rt, "order")[:rapid.IntRange(0, len(names)).Draw(rt, "length")]
				var list []string
				for _, n := range model {
					list = append(list, fmt.Sprintf("{name: %s, when: 'true'}", n))
				}
				if _, err := r.ApplyMember(t.Context(), parsed(rt, topic, "rules: ["+strings.Join(list, ", ")+"]"), anything); err != nil {
					rt.Fatal(err)
				}
			case "title":
				if _, err := r.ApplyMember(t.Context(), parsed(rt, topic, "title: "+name), anything); err != nil {
					rt.Fatal(err)
				}
			case "restart":
				r.Close()
				r, _ = openAt(rt, place)
			}
			var got []string
			for _, rule := range r.Configuration().Topic("s", "t").Rules {
				got = append(got, rule.Name)
			}
			if !slices.Equal(got, model) {
				rt.Fatalf("the order is %v, want %v", got, model)
			}
		}
	})
}

func parsed(tb TB, m document.Member, text string) *document.Document {
	tb.Helper()
	d, err := document.ParseMember(m, []byte(text), "")
	if err != nil {
		tb.Fatal(err)
	}
	return d
}

// The check gets the configuration that is changed, even if another change came first. In
// this test, a change comes whenever the check is called for the first time.
func TestACheckIsAskedAgainWhereTheConfigurationMoved(t *testing.T) {
	r, _ := openAt(t, storetest.Place(t))
	apply(t, r, weather)
	other := document.Member{Service: "notify", Kind: "topic", Name: "other"}
	asked := 0
	refused := errors.New("it has a title already")
	_, err := r.ApplyMember(t.Context(), parsed(t, other, "title: late"), func(c catalog.Configuration) error {
		asked++
		if asked == 1 {
			apply(t, r, "service: notify\ntopics: {other: {title: early}}")
		}
		if c.Topic("notify", "other").Title != "" {
			return refused
		}
		return nil
	})
	if !errors.Is(err, refused) || asked != 2 {
		t.Errorf("asked %d times, %v", asked, err)
	}
	if got := r.Configuration().Topic("notify", "other").Title; got != "early" {
		t.Errorf("the title is %q", got)
	}
}

func TestADeletedServiceTakesWhatItHadWithIt(t *testing.T) {
	place := storetest.Place(t)
	r, _ := openAt(t, place)
	apply(t, r, weather)
	key, secret := newKey(t, r, "notify", state.KeySettings{})
	whole := document.Member{Service: "notify", Kind: "service", Name: "notify"}
	put := good(t, putAll(t, r, people.SubscriptionPut{Topic: "change", Channel: "email", To: "a@example.org"}))
	if err := r.DeleteMember(t.Context(), whole, anything); fanfare.CodeOf(err) != fanfare.Conflict {
		t.Fatalf("with an active subscription: %v", err)
	}
	if _, ok := r.Authenticate(secret); !ok || r.Configuration().Topic("notify", "change") == nil {
		t.Fatal("a refused deletion took something")
	}
	if err := r.EndSubscription(t.Context(), "notify", put[0].ID, ""); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := r.DeleteMember(t.Context(), whole, anything); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if _, ok := r.Authenticate(secret); ok {
			t.Errorf("%s still opens", key.ID)
		}
		c := r.Configuration()
		if c.Service("notify") != nil || len(c.Topics("notify"))+len(c.Channels("notify")) > 0 || len(r.Services()) > 0 || len(r.Keys("")) > 0 {
			t.Error("something is left")
		}
		r.Close()
		r, _ = openAt(t, place)
	}
	apply(t, r, weather)
	if got := good(t, putAll(t, r, people.SubscriptionPut{Topic: "change", Channel: "email", To: "a@example.org"})); got[0].ID == put[0].ID {
		t.Errorf("%s is active again", put[0].ID)
	}
}

func TestAPlanFindsFiltersThatAChangedSchemaBreaks(t *testing.T) {
	r, _ := openAt(t, storetest.Place(t))
	apply(t, r, weather)
	good(t, putAll(t, r, people.SubscriptionPut{Topic: "other", Channel: "email", To: "a@example.org", Filter: "event.mag > 3.0"}))
	d, err := document.ParseDocument([]byte("service: notify\ntopics:\n  other:\n    schema: {type: object, additionalProperties: false, properties: {title: {type: string}}}"), "")
	if err != nil {
		t.Fatal(err)
	}
	_, planned := r.Plan(t.Context(), d)
	_, applied := r.Apply(t.Context(), d)
	if planned == nil || applied == nil || planned.Error() != applied.Error() || fanfare.CodeOf(planned) != fanfare.Conflict || !strings.Contains(planned.Error(), "line 4") {
		t.Errorf("planned: %v\napplied: %v", planned, applied)
	}
	if r.Configuration().Topic("notify", "other").Schema != nil {
		t.Error("a plan has changed something")
	}
}
