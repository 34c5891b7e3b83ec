package match

import (
	"encoding/json"
	"testing"

	"fanfare.dev/fanfare"
)

// FuzzFilter feeds any text as a filter: it is refused with a reason or agrees
// with cel-go on every sample event.
func FuzzFilter(f *testing.F) {
	for _, seed := range []string{
		"event.mag >= 5.0", "contains_ci(place,'x') || !has(event.geo.lat)", "mag in [1, 2.0, 'a', null]", "event['mag'] == null",
		"tags.exists(t, t.name == 'a')", "place.matches('^a') ? sig > 2 : mag < 1.0", "event.\u00e9", "'\\xff' == place", "[[1]][0][0] == sig",
		"mag == 1 && mag == 1.0 && 1u == sig", "sub.x", "size(place) > 0u", "type(place) == string", "has(event.mag.x)",
	} {
		f.Add(seed)
	}
	samples := []string{
		`{"mag":5.5,"place":"Alaska","sig":3,"type":"q","geo":{"lat":1,"lon":2.5},"tags":[{"name":"a"}]}`,
		`{"mag":null,"place":"","sig":0,"tags":[]}`, `{}`, `null`, `[1]`, `{"mag":"x","place":3,"geo":[1],"tags":{"name":1}}`,
	}
	x := New()
	def := Definition{Schema: json.RawMessage(quakeSchema), Rules: []Rule{near}}
	if err := x.Define(quakes, def); err != nil {
		f.Fatal(err)
	}
	sc := x.topics[quakes].compile.Load().filters
	f.Fuzz(func(t *testing.T, text string) {
		if text == "" {
			return
		}
		if err := x.CheckFilter(quakes, text); err != nil {
			if e := asError(t, err); e.Message == "" || e.Pointer != "/filter" {
				t.Fatalf("a refusal without a reason or a place: %+v", e)
			}
			return
		}
		mustAdd(t, x, quakes, Entry{Place: 1, Filter: text})
		defer x.Remove(quakes, fanfare.Place(1))
		for _, data := range samples {
			event, err := decode(json.RawMessage(data), sc.event)
			if err != nil {
				t.Fatal(err)
			}
			got := len(places(t, x, quakes, data)) == 1
			if want := naive(t, sc, text, event, nil); got != want {
				t.Errorf("%q on %s: got %v, cel-go says %v", text, data, got, want)
			}
		}
	})
}
