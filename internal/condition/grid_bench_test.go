package condition

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"fanfare.dev/fanfare/internal/condition/lang"
)

// BenchmarkPlaces has a million subscriptions to the surroundings of a place, with 10 to 200 km,
// all over the Earth.
func BenchmarkPlaces(b *testing.B) {
	const n = 1_000_000
	x, random := New(), rand.New(rand.NewPCG(1, 2))
	if err := x.Define(quakes, Definition{Rules: []Rule{nearby}}); err != nil {
		b.Fatal(err)
	}
	anywhere := func() lang.GeoPoint {
		return lang.GeoPoint{Lat: math.Asin(2*random.Float64()-1) / lang.Degree, Lon: 360*random.Float64() - 180}
	}
	before := heap()
	addMany(b, x, quakes, n, func(_ int, e *Entry) {
		at := anywhere()
		e.Rule, e.Params = "nearby", json.RawMessage(fmt.Sprintf(`{"lat":%.3f,"lon":%.3f,"km":%d,"mag":%d}`, at.Lat, at.Lon, 10+random.IntN(190), random.IntN(6)))
	})
	memory := heap() - before
	benchEvents(b, x, quakes, n, memory, func() string {
		at := anywhere()
		return fmt.Sprintf(`{"lat":%v,"lon":%v,"mag":3}`, at.Lat, at.Lon)
	})
}

// BenchmarkRanges has a million price ranges for ten thousand symbols.
func BenchmarkRanges(b *testing.B) {
	const n = 1_000_000
	x, random, key := New(), rand.New(rand.NewPCG(1, 2)), Key{"s", "quote"}
	def := Definition{Rules: []Rule{{Name: "band", When: "event.symbol == sub.symbol && event.price >= sub.low && event.price <= sub.high",
		Params: map[string]string{"symbol": "string", "low": "number", "high": "number"}}}}
	if err := x.Define(key, def); err != nil {
		b.Fatal(err)
	}
	before := heap()
	addMany(b, x, key, n, func(_ int, e *Entry) {
		low := 100 * random.Float64()
		e.Rule, e.Params = "band", json.RawMessage(fmt.Sprintf(`{"symbol":"S%d","low":%.2f,"high":%.2f}`, random.IntN(10_000), low, low+10*random.Float64()))
	})
	memory := heap() - before
	benchEvents(b, x, key, n, memory, func() string {
		return fmt.Sprintf(`{"symbol":"S%d","price":%.2f}`, random.IntN(10_000), 110*random.Float64())
	})
}

// benchEvents matches prepared events.
func benchEvents(b *testing.B, x *Index, key Key, n int, memory uint64, draw func() string) {
	b.Helper()
	events := make([]Event, 4096)
	for i := range events {
		events[i].Data = json.RawMessage(draw())
	}
	var hits []Hit
	matched, i := 0, 0
	for b.Loop() {
		var err error
		if hits, err = x.Match(key, events[i%len(events)], hits[:0]); err != nil {
			b.Fatal(err)
		}
		matched += len(hits)
		i++
	}
	b.ReportMetric(float64(matched)/float64(b.N), "hits/event")
	b.ReportMetric(float64(memory)/float64(n), "B/sub")
}
