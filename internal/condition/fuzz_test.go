package condition

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/condition/lang"
)

// fuzzEvents are the events for which fuzzed conditions are evaluated.
func fuzzEvents() []Event {
	at := time.Date(2026, 2, 1, 23, 30, 0, 0, time.UTC)
	return []Event{
		{Data: json.RawMessage(`{"mag":5.5,"place":"Alaska","sig":3,"type":"q","geo":{"lat":1,"lon":2.5},"tags":[{"name":"a"}]}`),
			Previous:   json.RawMessage(`{"mag":4,"place":"Peru","sig":9007199254740993,"geo":{"lat":2}}`),
			Attributes: Attributes{ID: "1", Source: "/a", Type: "q", Subject: "Alaska", Time: at, Extensions: map[string]json.RawMessage{"ext": json.RawMessage("2")}}},
		{Data: json.RawMessage(`{"mag":null,"place":"","sig":0,"tags":[]}`)},
		{Data: json.RawMessage(`{}`), Previous: json.RawMessage(`{"mag":7}`)},
		{Data: json.RawMessage(`null`)},
		{Data: json.RawMessage(`[1]`)},
		{Data: json.RawMessage(`{"mag":"x","place":3,"geo":[1],"tags":{"name":1}}`), Previous: json.RawMessage(`{"mag":7}`)},
		{Data: json.RawMessage(`{"mag":-0.0,"place":"a","sig":9007199254740993,"geo":{"lat":90,"lon":-180}}`), Attributes: Attributes{Time: at}},
	}
}

func fuzzTopic() Definition {
	return Definition{Key: "place", Schema: json.RawMessage(quakeSchema), Rules: []Rule{near}}
}

// relative returns the filter with other literals of the same kinds.
func relative(filter string) string {
	tf, ok := lang.Tokenize(filter, nil)
	if !ok {
		return filter
	}
	var b strings.Builder
	for _, tok := range tf.Tokens {
		switch tok.Kind {
		case lang.KindString:
			tok.Text = "'Alaska'"
		case lang.KindInt:
			tok.Text = "3"
		case lang.KindDouble:
			tok.Text = "5.5"
		}
		b.WriteString(tok.Text + " ")
	}
	return b.String()
}

// checkRefusal checks that an error has a reason and a position.
func checkRefusal(t *testing.T, err error, where string) {
	t.Helper()
	if e := asError(t, err); e.Message == "" || e.Pointer != where {
		t.Fatalf("a refusal without a reason or a place: %+v", e)
	}
}

// FuzzFilter adds any text as a filter. It is refused with a reason, or agrees with cel-go on
// every sample event, next to a filter that differs in its literals.
func FuzzFilter(f *testing.F) {
	for _, seed := range []string{
		"event.mag >= 5.0", "contains_ci(place,'x') || !has(event.geo.lat)", "mag in [1, 2.0, 'a', null]", "event['mag'] == null",
		"tags.exists(t, t.name == 'a')", "place.matches('^a') ? sig > 2 : mag < 1.0", "event.\u00e9", "'\\xff' == place", "[[1]][0][0] == sig",
		"mag == 1 && mag == 1.0 && 1u == sig", "sub.x", "size(place) > 0u", "type(place) == string", "has(event.mag.x)",
	} {
		f.Add(seed)
	}
	x := New()
	if err := x.Define(quakes, fuzzTopic()); err != nil {
		f.Fatal(err)
	}
	sc := x.topics[quakes].compiled.Load().filterScope
	f.Fuzz(func(t *testing.T, text string) {
		if text == "" {
			return
		}
		if err := x.CheckFilter(quakes, text); err != nil {
			checkRefusal(t, err, "/filter")
			return
		}
		filters := []string{text}
		if other := relative(text); x.CheckFilter(quakes, other) == nil {
			filters = append(filters, other)
		}
		for i, filter := range filters {
			mustAdd(t, x, quakes, Entry{Place: fanfare.RowID(i), Filter: filter})
			defer x.Remove(quakes, fanfare.RowID(i))
		}
		for _, event := range fuzzEvents() {
			met := met(t, x, event)
			for i, filter := range filters {
				if want := naive(t, sc, filter, event, nil); met[fanfare.RowID(i)] != want {
					t.Errorf("%q on %s after %s: got %v, cel-go says %v", filter, event.Data, event.Previous, !want, want)
				}
			}
		}
	})
}

// FuzzRule adds any text as the condition of a rule, for subscriptions with several params.
func FuzzRule(f *testing.F) {
	for _, seed := range []string{
		"event.mag >= sub.x && contains_ci(place, sub.z)", "sub.l.exists(x, x == place) || mag == sub.x", "crosses(mag, sub.x)", "geo.within(geo.lat, geo.lon, sub.x, sub.y, 500)",
		"sub.x <= mag && mag <= sub.y", "ce.subject in sub.l", "sub == event", "sub.v ? place == sub.z : sig < sub.y", "tags.exists(t, t.name in sub.l)", "sub.l.all(x, x in tags)",
	} {
		f.Add(seed)
	}
	params := []string{
		`{"x":5.5,"y":7,"z":"Alaska","w":"a","v":true,"l":["Alaska","a"]}`,
		`{"x":-1,"y":5,"z":"","w":"LA","v":false,"l":[]}`,
		`{"x":9007199254740992,"y":9007199254740994,"z":"a","w":"","v":false,"l":["","x","x"]}`,
	}
	f.Fuzz(func(t *testing.T, when string) {
		x, def := New(), fuzzTopic()
		def.Rules = []Rule{{Name: "r", When: when, Params: ruleParams()}}
		if err := x.Define(quakes, def); err != nil {
			checkRefusal(t, err, "/rules/0/when")
			return
		}
		for i, p := range params {
			mustAdd(t, x, quakes, Entry{Place: fanfare.RowID(i), Rule: "r", Params: json.RawMessage(p)})
		}
		sc := x.topics[quakes].compiled.Load().ruleScopes[0]
		for _, event := range fuzzEvents() {
			met := met(t, x, event)
			for i, p := range params {
				if want := naive(t, sc, when, event, readSub(t, json.RawMessage(p))); met[fanfare.RowID(i)] != want {
					t.Errorf("%q with %s on %s after %s: got %v, cel-go says %v", when, p, event.Data, event.Previous, !want, want)
				}
			}
		}
	})
}

// met returns the ids of the matching subscriptions.
func met(t *testing.T, x *Index, event Event) map[fanfare.RowID]bool {
	t.Helper()
	hits, err := x.Match(quakes, event, nil)
	if err != nil {
		t.Fatal(err)
	}
	found := map[fanfare.RowID]bool{}
	for _, h := range hits {
		found[h.Place] = true
	}
	return found
}
