package condition

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/condition/expr"
)

// costKinds are unindexed conditions, one for each part that the estimate counts. %[1]d differs
// between filters.
var costKinds = []struct{ name, filter string }{
	{"unequal", `place != '%[1]d'`},
	{"unequal, two", `place != '%[1]d' && event.type != 'automatic'`},
	{"negation", `!(event.type == 'automatic') && place != '%[1]d'`},
	{"text", `place != '%[1]d' && !place.contains('mi')`},
	{"number", `mag != %[1]d.0`},
	{"choice of tests", `sig > 100000 ? place != '%[1]d' : mag != %[1]d.0`},
	{"there or not", `!has(event.place) || !has(event.type) || place == '%[1]d' || has(event.at) && mag != %[1]d.0`},
	{"place", `!geo.within(geo.lat, event.mag, 40.0, 0.0, 20000.0 - %[1]d.0 / 100000.0)`},
	{"place, near", `!geo.within(geo.lat, event.mag, 3.5, 1.5, %[1]d.5)`},
	{"crossing", `!crosses(mag, %[1]d)`},
	{"folded text", `!contains_ci(place, '%[1]d')`},
	{"one of some", `!(place in ['%[1]d', 'a', 'b', 'c'])`},
	{"one of some numbers", `!(sig in [%[1]d, 1000001, 1000002, 1000003])`},
	{"has an element", `!tags.exists(t, t.name == '%[1]d')`},
	{"regex, short", `place.matches('^%[1]d+ km$')`},
	{"regex, a word anywhere", `place.matches('Nowhere%[1]d')`},
	{"regex, alternatives", `place.matches('(storm|flood|fire|quake|wind)%[1]d')`},
	{"regex, any case", `place.matches('(?i)nowhere%[1]d')`},
	{"regex, repeated", `place.matches('[a-z]{3,20}%[1]d$')`},
	{"regex, start and later", `place.matches('^[0-9]+ km .* of %[1]d')`},
	{"regex, anything between", `place.matches('north.*middle.*%[1]d')`},
	{"regex, words", `place.matches('\\b(north|south|east|west)\\b.*%[1]d')`},
	{"regex, many alternatives", `place.matches('(alabama|alaska|arizona|arkansas|california|colorado|connecticut|delaware|florida|georgia|hawaii|idaho|illinois)%[1]d')`},
	{"regex, class", `place.matches('[A-Z][a-z]+%[1]d')`},
	{"regex, large", `place.matches('([a-z]{1,10} ){1,20}%[1]d')`},
	{"arithmetic", `mag + %[1]d.0 < geo.lat`},
	{"arithmetic, long", `(mag * %[1]d.0 + geo.lat) / 2.0 - mag * 3.0 > geo.lat * 1000000.0 + %[1]d.0`},
	{"conversion", `int(mag * 10.0) %% 1000 == %[1]d + sig`},
	{"text of a number", `string(sig) + ' %[1]d' == place`},
	{"joined texts", `place + '%[1]d' == event.type + place`},
	{"size", `size(place) + %[1]d < sig`},
	{"time", `timestamp(event.at) - duration('%[1]dh') > timestamp('2030-01-01T00:00:00Z')`},
	{"clock", `timestamp(event.at).getHours('Europe/Berlin') + %[1]d < sig`},
	{"choice", `(sig > 100000 ? mag : mag + %[1]d.0) < geo.lat`},
	{"loop, a comparison", `tags.exists(t, t.name != t.name && t.n > %[1]d)`},
	{"loop, texts", `tags.exists(t, t.name.startsWith('%[1]d'))`},
	{"loop, three parts", `tags.exists(t, t.name.startsWith('x') && t.n > %[1]d && t.name.size() > 3)`},
	{"loop, arithmetic", `tags.all(t, t.n * 2 + 1 < %[1]d - 100000)`},
	{"loop, all of them", `tags.exists_one(t, t.n > 3 && t.n < %[1]d - 100000)`},
	{"loop, filter", `size(tags.filter(t, t.n > %[1]d)) > 100`},
	{"loop, map", `tags.map(t, t.n + %[1]d) == [1]`},
	{"loop in a loop", `tags.exists(t, tags.exists(u, u.n > t.n + %[1]d))`},
	{"loop, regex", `tags.exists(t, t.name.matches('^x[0-9]+%[1]d$'))`},
	{"loop, folded", `tags.exists(t, contains_ci(t.name, 'x%[1]d'))`},
	{"list of numbers", `tags.exists(t, t.n in [%[1]d, 1000001, 1000002, 1000003])`},
}

// costEvent has a list of loopElements elements, and a text as long as a title.
const costEvent = `{"place":"12 km north-north-east of Nowhere, the middle of it","type":"reviewed","mag":1.5,"sig":7,"at":"2026-07-01T06:30:00Z","geo":{"lat":3.0},
	"tags":[{"name":"tag-1","n":1},{"name":"tag-2","n":2},{"name":"tag-3","n":3},{"name":"tag-4","n":4},{"name":"tag-5","n":5},{"name":"tag-6","n":6},{"name":"tag-7","n":7},{"name":"tag-8","n":8}]}`

const costSchema = `{"type":"object","properties":{"place":{"type":"string"},"type":{"type":"string"},"mag":{"type":"number"},"sig":{"type":"integer"},"at":{"type":"string"},
	"geo":{"properties":{"lat":{"type":"number"}}},"tags":{"type":"array","items":{"properties":{"name":{"type":"string"},"n":{"type":"integer"}}}}}}`

// BenchmarkCost prints the measured and the estimated cost of conditions: some hundreds that
// differ in a literal, and an event for which none is true. ratio is measured / estimated.
func BenchmarkCost(b *testing.B) {
	const n = 10_000
	for _, kind := range costKinds {
		b.Run(strings.ReplaceAll(kind.name, " ", "_"), func(b *testing.B) {
			x := New()
			if err := x.Define(quakes, Definition{Key: "type", Schema: json.RawMessage(costSchema)}); err != nil {
				b.Fatal(err)
			}
			cost, err := x.FilterCost(quakes, fmt.Sprintf(kind.filter, 100_000))
			if err != nil || cost.Indexed() {
				b.Fatal(cost, err)
			}
			addMany(b, x, quakes, n, func(i int, e *Entry) { e.Filter = fmt.Sprintf(kind.filter, i+100_000) })
			var hits []Hit
			event := expr.Event{Data: json.RawMessage(costEvent), Previous: json.RawMessage(costEvent)}
			for b.Loop() {
				hits, _ = x.Match(quakes, event, hits[:0])
			}
			each := float64(b.Elapsed().Nanoseconds()) / float64(b.N) / n
			b.ReportMetric(each, "ns/condition")
			b.ReportMetric(float64(cost.Nanos), "estimated")
			b.ReportMetric(each/float64(cost.Nanos), "ratio")
			b.ReportMetric(0, "ns/op")
		})
	}
}
