package condition

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"fanfare.dev/fanfare"
)

// addMany adds n entries in groups, with ids spread over all partitions.
func addMany(b *testing.B, x *Index, key Key, n int, fill func(i int, e *Entry)) {
	b.Helper()
	group := make([]Entry, 0, 10_000)
	for i := range n {
		e := Entry{Place: fanfare.NewRowID(i%fanfare.Partitions, uint32(i/fanfare.Partitions))}
		e.Subscriber = e.Place
		fill(i, &e)
		if group = append(group, e); len(group) == cap(group) || i == n-1 {
			mustAdd(b, x, key, group...)
			group = group[:0]
		}
	}
}

// heap returns the bytes in use after a garbage collection.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkSharedFilter (B3) has a million subscriptions with NotifyBC's filter.
func BenchmarkSharedFilter(b *testing.B) {
	const n = 1_000_000
	x, key := New(), Key{"s", "load"}
	if err := x.Define(key, Definition{Schema: json.RawMessage(`{"properties":{"title":{"type":"string"}}}`)}); err != nil {
		b.Fatal(err)
	}
	before := heap()
	addMany(b, x, key, n, func(i int, e *Entry) { e.Filter = "contains_ci(title,'vancouver') || contains_ci(title,'victoria')" })
	data := json.RawMessage(`{"title":"Ferry to Victoria"}`)
	memory := heap() - before
	hits := make([]Hit, 0, n)
	for b.Loop() {
		hits, _ = x.Match(key, Event{Data: data}, hits[:0])
	}
	if len(hits) != n {
		b.Fatalf("%d hits", len(hits))
	}
	b.ReportMetric(float64(memory)/n, "B/sub")
}

// BenchmarkDistinctFilters (B4) has 10,000 different contains_ci filters, one in a hundred of
// which matches.
func BenchmarkDistinctFilters(b *testing.B) {
	const n = 10_000
	x := newQuakes(b)
	before := heap()
	addMany(b, x, quakes, n, func(i int, e *Entry) { e.Filter = fmt.Sprintf("contains_ci(event.place, 'town %d of')", i) })
	memory := heap() - before
	data := json.RawMessage(`{"mag":5.5,"place":"37km NNE of TOWN 77 OF Washington, a place with a rather long name"}`)
	var hits []Hit
	for b.Loop() {
		hits, _ = x.Match(quakes, Event{Data: data}, hits[:0])
	}
	if len(hits) != 1 {
		b.Fatalf("%d hits", len(hits))
	}
	b.ReportMetric(float64(memory)/n, "B/sub")
}

// BenchmarkDistinctAlternatives has NotifyBC's filter with two different words for each
// subscription.
func BenchmarkDistinctAlternatives(b *testing.B) {
	const n = 100_000
	x := newQuakes(b)
	before := heap()
	addMany(b, x, quakes, n, func(i int, e *Entry) {
		e.Filter = fmt.Sprintf("contains_ci(event.place, 'town %d of') || contains_ci(event.place, 'city %d.')", i, i)
	})
	memory := heap() - before
	data := json.RawMessage(`{"mag":5.5,"place":"37km NNE of TOWN 77 OF Washington, a place with a rather long name, City 99."}`)
	var hits []Hit
	for b.Loop() {
		hits, _ = x.Match(quakes, Event{Data: data}, hits[:0])
	}
	if len(hits) != 2 {
		b.Fatalf("%d hits", len(hits))
	}
	b.ReportMetric(float64(memory)/n, "B/sub")
}

// BenchmarkEqualityAndRange (B1j) has a million stock alerts for 10,000 symbols, ten of which
// match each event.
func BenchmarkEqualityAndRange(b *testing.B) {
	const n, symbols = 1_000_000, 10_000
	x, key := New(), Key{"s", "quote"}
	rule := Rule{Name: "above", When: "event.symbol == sub.symbol && event.price >= sub.trigger", Params: map[string]string{"symbol": "string", "trigger": "number"}}
	if err := x.Define(key, Definition{Rules: []Rule{rule}}); err != nil {
		b.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	before := heap()
	addMany(b, x, key, n, func(i int, e *Entry) {
		e.Rule = "above"
		e.Params = json.RawMessage(fmt.Sprintf(`{"symbol":"S%d","trigger":%.2f}`, random.IntN(symbols), 1000*random.Float64()))
	})
	memory := heap() - before
	events := make([]json.RawMessage, 1000)
	for i := range events {
		events[i] = json.RawMessage(fmt.Sprintf(`{"symbol":"S%d","price":%.2f}`, random.IntN(symbols), 200*random.Float64()))
	}
	var hits []Hit
	total, i := 0, 0
	for b.Loop() {
		hits, _ = x.Match(key, Event{Data: events[i%len(events)]}, hits[:0])
		total += len(hits)
		i++
	}
	b.ReportMetric(float64(total)/float64(i), "hits/event")
	b.ReportMetric(float64(memory)/n, "B/sub")
}

// BenchmarkBroadRule (B2) has a million rows with only a range; one in a hundred matches.
func BenchmarkBroadRule(b *testing.B) {
	const n = 1_000_000
	x := newQuakes(b, Rule{Name: "strong", When: "event.mag >= sub.min", Params: map[string]string{"min": "number"}})
	random := rand.New(rand.NewPCG(1, 2))
	addMany(b, x, quakes, n, func(i int, e *Entry) {
		e.Rule, e.Params = "strong", json.RawMessage(fmt.Sprintf(`{"min":%.3f}`, 100*random.Float64()))
	})
	data := json.RawMessage(`{"mag":1.0}`)
	var hits []Hit
	for b.Loop() {
		hits, _ = x.Match(quakes, Event{Data: data}, hits[:0])
	}
	b.ReportMetric(float64(len(hits)), "hits/event")
}

// BenchmarkBroadPlaces is B2 without an order of the hits.
func BenchmarkBroadPlaces(b *testing.B) {
	const n = 1_000_000
	x := newQuakes(b, Rule{Name: "strong", When: "event.mag >= sub.min", Params: map[string]string{"min": "number"}})
	random := rand.New(rand.NewPCG(1, 2))
	addMany(b, x, quakes, n, func(i int, e *Entry) {
		e.Rule, e.Params = "strong", json.RawMessage(fmt.Sprintf(`{"min":%.3f}`, 100*random.Float64()))
	})
	ids := make([]uint32, 0, n)
	for b.Loop() {
		ids = ids[:0]
		_ = x.Places(quakes, Event{Data: json.RawMessage(`{"mag":1.0}`)}, func(places []uint32) { ids = append(ids, places...) })
	}
	b.ReportMetric(float64(len(ids)), "hits/event")
}

// BenchmarkEarthquakes is the demo: 100,000 subscriptions with a minimum magnitude and a place,
// and the events of a week.
func BenchmarkEarthquakes(b *testing.B) {
	const n = 100_000
	x := newQuakes(b, near)
	random := rand.New(rand.NewPCG(1, 2))
	names := []string{"Alaska", "California", "Hawaii", "Japan", "Indonesia", "Chile", "Nevada", "Puerto Rico", "Oregon", "Tonga"}
	addMany(b, x, quakes, n, func(i int, e *Entry) {
		e.Rule = "near"
		e.Params = json.RawMessage(fmt.Sprintf(`{"min_mag":%.1f,"place":%q}`, 1+6*random.Float64(), fmt.Sprintf("%s %d", names[random.IntN(len(names))], random.IntN(100))))
	})
	events := make([]json.RawMessage, 1707)
	for i := range events {
		events[i] = json.RawMessage(fmt.Sprintf(`{"mag":%.1f,"place":"%dkm NNE of Somewhere, %s %d"}`, 6*random.Float64(), i%90, names[i%len(names)], i%100))
	}
	var hits []Hit
	total := 0
	for b.Loop() {
		total = 0
		for _, e := range events {
			hits, _ = x.Match(quakes, Event{Data: e}, hits[:0])
			total += len(hits)
		}
	}
	b.ReportMetric(float64(total), "hits")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(events)), "ns/event")
}

// BenchmarkNewFilter measures adding a filter that no subscription has.
func BenchmarkNewFilter(b *testing.B) {
	x := newQuakes(b)
	i := 0
	for b.Loop() {
		filter := fmt.Sprintf("event.mag >= 5.0 && contains_ci(event.place, 'place %d')", i)
		if err := x.CheckFilter(quakes, filter); err != nil {
			b.Fatal(err)
		}
		mustAdd(b, x, quakes, Entry{Place: fanfare.RowID(i), Filter: filter})
		i++
	}
}

// BenchmarkAddRules measures adding subscriptions to a rule, in groups of 10,000.
func BenchmarkAddRules(b *testing.B) {
	x := newQuakes(b, near)
	next := 0
	for b.Loop() {
		group := make([]Entry, 10_000)
		for i := range group {
			group[i] = Entry{Place: fanfare.RowID(next), Rule: "near", Params: json.RawMessage(fmt.Sprintf(`{"min_mag":%d.%d,"place":"p%d"}`, next%9, next%10, next%1000))}
			next++
		}
		mustAdd(b, x, quakes, group...)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(next), "ns/sub")
}

// BenchmarkCriteria has subscriptions like those of GOV.UK: any or all of the values of several
// lists; an empty list matches everything.
func BenchmarkCriteria(b *testing.B) {
	const n, kinds, bodies = 20_000, 60, 1000
	x, key := New(), Key{"govuk", "change"}
	rule := Rule{Name: "criteria", Params: map[string]string{"kinds": "strings", "any": "strings", "all": "strings"},
		When: "(event.kind in sub.kinds || size(sub.kinds) == 0) && (size(sub.any) == 0 || event.orgs.exists(o, o.id in sub.any)) && sub.all.all(id, event.orgs.exists(o, o.id == id))"}
	if err := x.Define(key, Definition{Rules: []Rule{rule}}); err != nil {
		b.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	list := func(name string, of, most int) string {
		var values []string
		for range random.IntN(most + 1) {
			values = append(values, fmt.Sprintf("%s%d", name, random.IntN(of)))
		}
		text, _ := json.Marshal(append([]string{}, values...))
		return string(text)
	}
	before := heap()
	addMany(b, x, key, n, func(i int, e *Entry) {
		kind, anyOf, all := list("k", kinds, 2), `["o1"]`, "[]"
		switch i % 3 {
		case 0:
			anyOf = list("o", bodies, 3)
		case 1:
			all = list("o", bodies, 2)
		}
		e.Rule, e.Params = "criteria", json.RawMessage(fmt.Sprintf(`{"kinds":%s,"any":%s,"all":%s}`, kind, anyOf, all))
	})
	memory := heap() - before
	events := make([]json.RawMessage, 100)
	for i := range events {
		events[i] = json.RawMessage(fmt.Sprintf(`{"kind":"k%d","orgs":[{"id":"o%d"},{"id":"o%d"}]}`, random.IntN(kinds), random.IntN(bodies), random.IntN(bodies)))
	}
	var hits []Hit
	total, i := 0, 0
	for b.Loop() {
		hits, _ = x.Match(key, Event{Data: events[i%len(events)]}, hits[:0])
		total += len(hits)
		i++
	}
	b.ReportMetric(float64(total)/float64(i), "hits/event")
	b.ReportMetric(float64(memory)/n, "B/sub")
}

// BenchmarkJMESPath has 100,000 subscriptions with 1,000 distinct filters of NotifyBC, half of which
// match; BenchmarkJMESPathAsCEL has the same filters in CEL.
func BenchmarkJMESPath(b *testing.B) {
	benchmarkNotifyBC(b, `jmespath(event, "contains_ci(title,'vancouver') || contains_ci(title,'place %d x')")`, `jmespath(event, "contains_ci(title,'kelowna') || contains_ci(title,'place %d x')")`)
}

func BenchmarkJMESPathAsCEL(b *testing.B) {
	benchmarkNotifyBC(b, "contains_ci(title,'vancouver') || contains_ci(title,'place %d x')", "contains_ci(title,'kelowna') || contains_ci(title,'place %d x')")
}

func benchmarkNotifyBC(b *testing.B, matching, other string) {
	const n, distinct = 100_000, 1000
	x, key := New(), Key{"s", "load"}
	if err := x.Define(key, Definition{Schema: json.RawMessage(`{"properties":{"title":{"type":"string"}}}`)}); err != nil {
		b.Fatal(err)
	}
	addMany(b, x, key, n, func(i int, e *Entry) {
		text := other
		if i%2 == 0 {
			text = matching
		}
		e.Filter = fmt.Sprintf(text, i%distinct)
	})
	data := json.RawMessage(`{"title":"Some words about a ferry to North Vancouver","description":"more words","pubDate":"2020-01-01","link":"https://example.com/"}`)
	hits := make([]Hit, 0, n)
	for b.Loop() {
		hits, _ = x.Match(key, Event{Data: data}, hits[:0])
	}
	if len(hits) != n/2 {
		b.Fatalf("%d hits", len(hits))
	}
}
