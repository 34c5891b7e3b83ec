package condition

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/condition/expr"
	"fanfare.dev/fanfare/internal/condition/lang"
)

// An ad is a filter with some of many facts, as in advertising: facts 0 to 9 are words with few or
// many values, 10 to 19 numbers.
type ad []adPredicate

type adPredicate struct {
	fact  int
	op    string
	value int
}

const adFacts = 20

func drawAd(random *rand.Rand) (a ad) {
	for _, fact := range random.Perm(adFacts)[:2+random.IntN(7)] {
		p := adPredicate{fact, "==", adWord(random, fact)}
		if fact >= adFacts/2 {
			p.op, p.value = []string{"<", "<=", ">", ">="}[random.IntN(4)], random.IntN(200)-100
		}
		a = append(a, p)
	}
	return a
}

func adWord(random *rand.Rand, fact int) int {
	return int(float64([]int{2, 3, 10, 50, 500}[fact%5]) * random.Float64() * random.Float64())
}

func (a ad) filter() string {
	conjuncts := make([]string, len(a))
	for i, p := range a {
		if conjuncts[i] = fmt.Sprintf("event.f%d %s %d", p.fact, p.op, p.value); p.op == "==" {
			conjuncts[i] = fmt.Sprintf("event.f%d == 'w%d'", p.fact, p.value)
		}
	}
	return strings.Join(conjuncts, " && ")
}

// meets returns the expected result of the filter.
func (a ad) meets(event map[int]int) bool {
	return !slices.ContainsFunc(a, func(p adPredicate) bool {
		value, there := event[p.fact]
		return !there || !map[string]bool{
			"==": value == p.value, "<": value < p.value, "<=": value <= p.value, ">": value > p.value, ">=": value >= p.value,
		}[p.op]
	})
}

func drawAdEvent(random *rand.Rand) (event map[int]int, data string) {
	event = map[int]int{}
	var members []string
	for _, fact := range random.Perm(adFacts)[:adFacts-random.IntN(5)] {
		if event[fact] = random.IntN(200) - 100; fact < adFacts/2 {
			event[fact] = adWord(random, fact)
			members = append(members, fmt.Sprintf(`"f%d":"w%d"`, fact, event[fact]))
		} else {
			members = append(members, fmt.Sprintf(`"f%d":%d`, fact, event[fact]))
		}
	}
	return event, "{" + strings.Join(members, ",") + "}"
}

// The test adds so many filters over the same facts that lists grow long and pairs are used, and
// removes most of them again.
func TestConjunctionsAreFoundByEachGuard(t *testing.T) {
	x, key := New(), Key{"s", "ads"}
	if err := x.Define(key, Definition{}); err != nil {
		t.Fatal(err)
	}
	topic := x.topics[key]
	topic.filters.conjunctShapes.guards.listLimitPerKey = 120
	const n = 20_000
	random := rand.New(rand.NewPCG(1, 2))
	ads := make([]ad, n)
	entries := make([]Entry, n)
	for i := range ads {
		ads[i] = drawAd(random)
		entries[i] = Entry{Place: fanfare.RowID(i), Filter: ads[i].filter()}
	}
	check := func(when string, from, to int) {
		t.Helper()
		hits := 0
		for range 30 {
			event, data := drawAdEvent(random)
			var want []fanfare.RowID
			for i, a := range ads {
				if i >= from && i < to && a.meets(event) {
					want = append(want, fanfare.RowID(i))
				}
			}
			hits += len(want)
			if got := places(t, x, key, data); !slices.Equal(got, want) {
				t.Errorf("%s: %s leads to %d, want %d", when, data, len(got), len(want))
			}
		}
		if hits < 100 {
			t.Errorf("%s: %d hits are not enough to tell", when, hits)
		}
	}
	for i := range 100 { // the same asked twice, of a word that is common
		ads[i] = append(ad{{1, "==", 0}, {1, "==", 0}}, ads[i]...)
		entries[i].Filter = ads[i].filter()
	}
	for i := 100; i < 4000; i++ { // common words alone, so that lists of one grow long
		a := ad{{0, "==", 0}, {1, "==", 0}, {5, "==", 0}}
		for _, n := range random.Perm(adFacts / 2)[:2+random.IntN(4)] {
			a = append(a, adPredicate{adFacts/2 + n, []string{"<", ">="}[random.IntN(2)], random.IntN(200) - 100})
		}
		ads[i] = a
		entries[i].Filter = ads[i].filter()
	}
	slices.Reverse(entries)
	mustAdd(t, x, key, entries...)
	check("added", 0, n)
	guards := map[guardKind]int{}
	for _, fl := range topic.filters.list {
		guards[fl.guard]++
	}
	if guards[guardEveryEvent] == 0 || guards[guardKey] == 0 || guards[guardKeyPair] == 0 {
		t.Errorf("not every kind of guard is in use: %v", guards)
	}
	longest := 0
	for _, l := range topic.filters.conjunctShapes.guards.lists {
		longest = max(longest, len(l.filters))
	}
	if longest <= scanBlock {
		t.Errorf("the longest list has %d: all of it is looked at in one go", longest)
	}
	if forms := len(topic.filters.shapes); forms > 30 {
		t.Errorf("%d forms are looked at for every event", forms)
	}
	if err := x.Define(key, Definition{Rules: []Rule{{Name: "r", When: "true"}}}); err != nil {
		t.Fatal(err)
	}
	check("redefined", 0, n)
	for i := 3000; i < n; i++ {
		x.Remove(key, fanfare.RowID(i))
	}
	check("most removed", 0, 3000)
	mustAdd(t, x, key, entries...)
	check("added again", 0, n)
	for i := range n {
		x.Remove(key, fanfare.RowID(i))
	}
	if f := topic.filters; f.shapeCount() > 0 || len(f.conjunctShapes.guards.byKey) > 0 || len(topic.paths.Values.Used)+len(topic.paths.Members.Used) > 0 {
		t.Error("something is kept after the last filter")
	}
}

// A shape finds many rows at once.
func TestAFrequentKindOfFilterGetsAShape(t *testing.T) {
	x, key := New(), Key{"s", "t"}
	if err := x.Define(key, Definition{}); err != nil {
		t.Fatal(err)
	}
	const n = conjunctionsPerShape + 10
	for i := range n {
		mustAdd(t, x, key, Entry{Place: fanfare.RowID(i), Filter: fmt.Sprintf("event.a == 'x%d' && event.b > %d", i, i)})
	}
	if f := x.topics[key].filters; len(f.shapes) != 1 || f.shapes[0].rowCount != 10 {
		t.Errorf("%d forms", len(f.shapes))
	}
	for i := range n {
		if got := places(t, x, key, fmt.Sprintf(`{"a":"x%d","b":%d}`, i, i+1)); !slices.Equal(got, []fanfare.RowID{fanfare.RowID(i)}) {
			t.Errorf("filter %d: %v", i, got)
		}
	}
}

// A conjunct that is not Boolean is refused as in the whole condition.
func TestAConjunctThatIsNotBooleanIsRefused(t *testing.T) {
	x := newQuakes(t)
	for _, part := range []string{"0u", "1", "'a'", "null", "[true]", "{}", "duration('1s')", "place.size()"} {
		if x.CheckFilter(quakes, "mag > 1.0 && "+part) == nil {
			t.Errorf("%s is taken", part)
		}
	}
}

func TestOnlyAChainIsTakenApart(t *testing.T) {
	for text, want := range map[string][]string{
		`a == 1 && b == 2`:                        {"a == 1", "b == 2"},
		`a == ')' && (b == 2 || c == 3) && !d`:    {"a == ')'", "(b == 2 || c == 3)", "!d"},
		`l.exists(x, x == 1 && x == 2) && e['f']`: {"l.exists(x, x == 1 && x == 2)", "e['f']"},
		`a == 1 && b == 2 || c == 3`:              nil,
		`a == 1 && b == 2 ? c : d`:                nil,
		`(a == 1 && b == 2)`:                      nil,
		`a == 1`:                                  nil,
		`a == 1 && ` + strings.Repeat("(", 17) + `b` + strings.Repeat(")", 17): nil,
	} {
		tf, _ := lang.Tokenize(text, nil)
		var got []string
		for _, part := range tf.Conjuncts() {
			got = append(got, part.TextOf(text))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// The test covers every order of two numbers.
func TestARangeHasTheQuantizedBoundOfItsNumber(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	number := func() float64 {
		return []float64{0, -0.5, 1, -1e300, 1e300, 5e-324, 1000 * random.NormFloat64(), float64(random.IntN(9))}[random.IntN(8)]
	}
	for _, op := range []expr.Comparison{expr.Less, expr.LessOrEqual, expr.Greater, expr.GreaterOrEqual} {
		var s quantizedBounds
		for range 20_000 {
			x, y := number(), number()
			step, ok := s.add(x, op)
			if len(s) > maxQuantizedBounds {
				t.Fatalf("%d steps", len(s))
			}
			if ok && map[expr.Comparison]bool{expr.Less: y < x, expr.LessOrEqual: y <= x, expr.Greater: y > x, expr.GreaterOrEqual: y >= x}[op] &&
				!slices.Contains(s.reached(y, op), step) {
				t.Fatalf("%v is in the range to %v, and misses its step", y, x)
			}
		}
	}
}

// BenchmarkAdvertising is a smaller B6.
func BenchmarkAdvertising(b *testing.B) {
	const n = 300_000
	x, key := New(), Key{"s", "ads"}
	if err := x.Define(key, Definition{}); err != nil {
		b.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	before := heap()
	addMany(b, x, key, n, func(i int, e *Entry) { e.Filter = drawAd(random).filter() })
	memory := heap() - before
	events := make([]json.RawMessage, 200)
	for i := range events {
		_, data := drawAdEvent(random)
		events[i] = json.RawMessage(data)
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

// Otherwise somebody could choose a value whose key collides with that of another filter, or with
// everyEventKey, so that a filter is found twice.
func TestKeysAreUnpredictable(t *testing.T) {
	salts := map[uint64]bool{}
	for range 3 {
		x, key := New(), Key{"s", "t"}
		if err := x.Define(key, Definition{}); err != nil {
			t.Fatal(err)
		}
		mustAdd(t, x, key, Entry{Place: 1, Filter: "event.a == 1 && event.b == 2"})
		for _, tb := range x.topics[key].filters.conjunctShapes.list {
			salts[tb.conjunct.salt] = true
		}
	}
	if len(salts) != 6 {
		t.Errorf("%d different salts of 6", len(salts))
	}
}
