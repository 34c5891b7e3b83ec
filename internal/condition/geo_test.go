package condition

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/condition/lang"
)

// km is exactly the distance, rounded up or down.
func TestABoxContainsTheEdgeOfItsCircle(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for range 20_000 {
		a, b := drawPlace(random), drawPlace(random)
		switch random.IntN(4) {
		case 0:
			b = lang.GeoPoint{Lat: -a.Lat, Lon: a.Lon - math.Copysign(180, a.Lon)} // antipodes
		case 1:
			b = lang.GeoPoint{Lat: a.Lat, Lon: a.Lon + 1e-9}
		}
		km := a.Distance(b)
		if !b.IsValid() {
			continue
		}
		if !a.Within(b, km) {
			t.Fatalf("%v is not within %v km of %v", b, km, a)
		}
		fixed := func(x float64) numberOrParam { return numberOrParam{-1, x} }
		c := circleSpace{center: [2]numberOrParam{fixed(a.Lat), fixed(a.Lon)}, km: fixed(km)}
		box, ok := c.box(nil, 0)
		if !ok {
			t.Fatalf("no box for %v km around %v", km, a)
		}
		for axis, x := range b.Vector() {
			if !(box.low[axis] <= x && x <= box.high[axis]) {
				t.Fatalf("%v is outside of the box of %v km around %v", b, km, a)
			}
		}
	}
}

var nearby = Rule{Name: "nearby", When: "geo.within(event.lat, event.lon, sub.lat, sub.lon, sub.km) && event.mag >= sub.mag",
	Params: map[string]string{"lat": "number", "lon": "number", "km": "number", "mag": "number"}}

// drawPlace draws a place, mostly where a grid of degrees has special cases.
func drawPlace(random *rand.Rand) lang.GeoPoint {
	switch random.IntN(5) {
	case 0:
		return lang.GeoPoint{Lat: []float64{90, -90, 89.999, -89.999}[random.IntN(4)], Lon: 360*random.Float64() - 180}
	case 1:
		return lang.GeoPoint{Lat: 180*random.Float64() - 90, Lon: []float64{180, -180, 179.99, -179.99}[random.IntN(4)]}
	case 2:
		return lang.GeoPoint{Lat: 50 + random.Float64(), Lon: -123 + random.Float64()}
	}
	return lang.GeoPoint{Lat: math.Asin(2*random.Float64()-1) / lang.Degree, Lon: 360*random.Float64() - 180}
}

func TestPlacesLeadToFewRowsAndAllOfThem(t *testing.T) {
	const n = 3000
	random := rand.New(rand.NewPCG(3, 4))
	x := newQuakesOf(t, nearby)
	type row struct {
		lang.GeoPoint
		km, mag float64
	}
	rows := make([]row, n)
	for i := range rows {
		km := []float64{0, 0.001, 5, 40, 200, 1500}[random.IntN(6)]
		if i%500 == 0 {
			km = []float64{10_007, 20_000, 20_016, 1e9}[random.IntN(4)]
		}
		rows[i] = row{drawPlace(random), km, float64(random.IntN(7))}
		mustAdd(t, x, quakes, Entry{Place: fanfare.RowID(i), Rule: "nearby",
			Params: json.RawMessage(fmt.Sprintf(`{"lat":%v,"lon":%v,"km":%v,"mag":%v}`, rows[i].Lat, rows[i].Lon, km, rows[i].mag))})
	}
	looked, met := 0, 0
	const events = 500
	for i := range events {
		at := drawPlace(random)
		if i%3 == 0 { // where a row is
			at = rows[random.IntN(n)].GeoPoint
		}
		data := fmt.Sprintf(`{"lat":%v,"lon":%v,"mag":3}`, at.Lat, at.Lon)
		want := []fanfare.RowID{}
		for i, r := range rows {
			if r.Within(at, r.km) && r.mag <= 3 {
				want = append(want, fanfare.RowID(i))
			}
		}
		if got := places(t, x, quakes, data); !slices.Equal(got, want) {
			t.Fatalf("%s: got %v, want %v", data, got, want)
		}
		looked += candidates(t, x, quakes, data)
		met += len(want)
	}
	if looked > 12*met {
		t.Errorf("%d rows are looked at for %d hits", looked, met)
	}
}

func newQuakesOf(t *testing.T, rules ...Rule) *Index {
	t.Helper()
	x := New()
	if err := x.Define(quakes, Definition{Rules: rules}); err != nil {
		t.Fatal(err)
	}
	return x
}

func TestGeoWithinRefusesInvalidPlaces(t *testing.T) {
	x := newQuakesOf(t, nearby)
	here := `{"lat":49.3,"lon":-123,"km":50,"mag":0}`
	for i, c := range []struct {
		params, event string
		near, far     bool // neither is an error: its negation does not match either
	}{
		{here, `{"lat":49,"lon":-123,"mag":5}`, true, false},
		{here, `{"lat":49,"lon":-124,"mag":5}`, false, true},
		{here, `{"lat":"49","lon":-123,"mag":5}`, false, false},
		{here, `{"lat":null,"lon":-123,"mag":5}`, false, false},
		{here, `{"lon":-123,"mag":5}`, false, false},
		{here, `{"lat":49,"lon":237,"mag":5}`, false, false},
		{here, `{"lat":1e400,"lon":-123,"mag":5}`, false, false},
		{`{"lat":91,"lon":-123,"km":20000,"mag":0}`, `{"lat":90,"lon":-123,"mag":5}`, false, false},
		{`{"lat":90,"lon":181,"km":20000,"mag":0}`, `{"lat":90,"lon":180,"mag":5}`, false, false},
		{`{"lat":49,"lon":-123,"km":-1,"mag":0}`, `{"lat":49,"lon":-123,"mag":5}`, false, false},
		{`{"lat":49,"lon":-123,"km":0,"mag":0}`, `{"lat":49,"lon":-123,"mag":5}`, true, false},
	} {
		mustAdd(t, x, quakes,
			Entry{Place: 1, Rule: "nearby", Params: json.RawMessage(c.params)},
			Entry{Place: 2, Filter: fmt.Sprintf("geo.within(event.lat, event.lon, %s)", circleText(t, c.params))},
			Entry{Place: 3, Filter: fmt.Sprintf("!geo.within(event.lat, event.lon, %s)", circleText(t, c.params))},
		)
		want := []fanfare.RowID{}
		if c.near {
			want = append(want, 1, 2)
		}
		if c.far {
			want = append(want, 3)
		}
		if got := places(t, x, quakes, c.event); !slices.Equal(got, want) {
			t.Errorf("%d: %s on %s: got %v, want %v", i, c.params, c.event, got, want)
		}
	}
}

func circleText(t *testing.T, params string) string {
	t.Helper()
	var p struct{ Lat, Lon, Km float64 }
	if err := json.Unmarshal([]byte(params), &p); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%v, %v, %v", p.Lat, p.Lon, p.Km)
}

func TestGeoWithinInFilters(t *testing.T) {
	x := newQuakesOf(t)
	for i, filter := range []string{
		"geo.within(event.lat, event.lon, 49.3, -123.1, 50)",
		"geo.within(48, -123.5, event.lat, event.lon, 100.5)",
		"geo.within(event.lat, event.lon, -33.9, 18.4, 50)",
		"geo.within(event.lat, event.lon, event.home.lat, event.home.lon, 10)",
		"geo.within(event.lat, event.lon, 49.3, -123.1, event.radius)",
		"event.mag > 3 && !geo.within(event.lat, event.lon, -33.9, 18.4, 50)",
		"geo.within(event.lat + 1.0, event.lon, 50.3, -123, 1)",
	} {
		mustAdd(t, x, quakes, Entry{Place: fanfare.RowID(i), Filter: filter})
	}
	got := places(t, x, quakes, `{"lat":49.3,"lon":-123,"mag":4.5,"radius":8,"home":{"lat":49.25,"lon":-123}}`)
	if !slices.Equal(got, []fanfare.RowID{0, 3, 4, 5, 6}) {
		t.Errorf("got %v", got)
	}
	for filter, want := range map[string]string{
		"geo.within(event.lat, event.lon, 'x', 0, 50)":        "geo.within requires numbers, not a string",
		"geo.within(event.lat, event.lon, 50)":                "found no matching overload",
		"geo.withn(event.lat, event.lon, 49.3, -123.1, 50.0)": "geo",
	} {
		if e := asError(t, x.CheckFilter(quakes, filter)); !lang.ContainsFolded(e.Error(), want) {
			t.Errorf("%s: got %v", filter, e)
		}
	}
}

// A topic may have a field named geo.
func TestGeoAsAFieldStaysAField(t *testing.T) {
	x := newQuakes(t)
	mustAdd(t, x, quakes, Entry{Place: 1, Filter: "geo.within(geo.lat, geo.lon, 10, 20, 5) && geo.lat > 9"})
	if got := places(t, x, quakes, `{"geo":{"lat":10.01,"lon":20}}`); len(got) != 1 {
		t.Errorf("got %v", got)
	}
}

func TestAnExplanationNamesAnInvalidPlace(t *testing.T) {
	x := newQuakesOf(t, nearby)
	for data, want := range map[string]string{
		`{"lat":95,"lon":20,"mag":5}`:   lang.GeoRange,
		`{"lat":"10","lon":20,"mag":5}`: "geo.within requires numbers, but event.lat is a string",
		`{"lat":10,"mag":5}`:            "event.lon is missing",
	} {
		part, err := x.Explain(quakes, Entry{Rule: "nearby", Params: json.RawMessage(`{"lat":10,"lon":20,"km":5,"mag":1}`)}, Event{Data: json.RawMessage(data)})
		if err != nil {
			t.Fatal(err)
		}
		if got := part.Parts[0]; got.Result != fanfare.PartError || got.Error != want {
			t.Errorf("%s: %s, %q", data, got.Result, got.Error)
		}
	}
}
