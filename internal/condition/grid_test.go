package condition

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/condition/expr"
)

// A line is a space with one axis and given boxes and points.
type line struct {
	low, high, at float64
}

func (l *line) axes() int { return 1 }
func (l *line) box(*expr.ParamPage, int) (box, bool) {
	return box{[maxAxes]float64{l.low}, [maxAxes]float64{l.high}}, l.low <= l.high
}
func (l *line) point(*expr.Frame) ([maxAxes]float64, bool) { return [maxAxes]float64{l.at}, true }

// The test draws numbers of all magnitudes and their neighbours, as ends of boxes and between
// them.
func TestAnEventFindsEveryBoxThatContainsIt(t *testing.T) {
	finite := rapid.Custom(func(t *rapid.T) float64 {
		x := rapid.SampledFrom([]float64{0, 1, -1, 0.1, 1 << 53, math.MaxFloat64, -math.MaxFloat64, math.SmallestNonzeroFloat64, -1e-320, 1e300}).Draw(t, "from")
		if rapid.Bool().Draw(t, "any") {
			x = rapid.Float64Range(-math.MaxFloat64, math.MaxFloat64).Draw(t, "x")
		}
		for range rapid.IntRange(0, 3).Draw(t, "steps") {
			x = math.Nextafter(x, rapid.SampledFrom([]float64{-math.MaxFloat64, math.MaxFloat64}).Draw(t, "to"))
		}
		return x
	})
	rapid.Check(t, func(t *rapid.T) {
		three := []float64{finite.Draw(t, "a"), finite.Draw(t, "b"), finite.Draw(t, "c")}
		slices.Sort(three)
		c := grid{gridSpace: &line{low: three[0], high: three[2], at: three[1]}}
		want, on, ok := c.keyOf(7, nil, 0)
		if !ok {
			t.Fatal("the box has no cell")
		}
		c.countRows(on, 1)
		found := 0
		c.eachCellAt(nil, 7, func(key uint64) {
			if key == want {
				found++
			}
		})
		if found == 0 {
			t.Fatalf("%v is not found in %v..%v, level %v", three[1], three[0], three[2], on)
		}
		if c.countRows(on, -1); len(c.levels) > 0 {
			t.Fatalf("a level without rows is kept: %v", c.levels)
		}
	})
}

// candidates returns the number of rows that an event leads to.
func candidates(t *testing.T, x *Index, key Key, data string) int {
	t.Helper()
	tp := x.topics[key]
	c := tp.compiled.Load()
	event, err := expr.DecodeData(json.RawMessage(data), c.filterScope.Event)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	f := &matchFrame{}
	f.begin(&Event{}, tp.texts, tp.paths.Values.Size)
	f.Data = expr.WholeDocument(event)
	for _, tb := range append(slices.Clone(tp.rules), tp.filters.shapes...) {
		for _, guard := range tb.plan.guards {
			for _, a := range guard {
				a.search(f, tb.store, func(rows []uint32) { n += len(rows) })
			}
		}
	}
	return n
}

func TestRangesWithTwoSidesLeadToFewRows(t *testing.T) {
	const n = 2000
	random := rand.New(rand.NewPCG(1, 2))
	for when, test := range map[string]func(symbol int, price, volume, low, high float64) bool{
		"event.price >= sub.low && event.price <= sub.high":                              func(_ int, p, _, low, high float64) bool { return low <= p && p <= high },
		"sub.high > event.price && event.price > sub.low":                                func(_ int, p, _, low, high float64) bool { return low < p && p < high },
		"event.symbol == sub.symbol && event.price >= sub.low && event.price < sub.high": func(s int, p, _, low, high float64) bool { return s == 1 && low <= p && p < high },
		"event.price > sub.low && event.volume <= sub.high && event.price <= sub.high && event.volume > sub.low": func(_ int, p, v, low, high float64) bool {
			return low < p && p <= high && low < v && v <= high
		},
		"(event.price >= sub.low && event.price <= sub.high || event.symbol == sub.symbol && event.volume < sub.low)": func(s int, p, v, low, high float64) bool {
			return low <= p && p <= high || s == 1 && v < low
		},
		"event.price >= sub.low && event.price <= sub.high && event.volume >= sub.low": func(_ int, p, v, low, high float64) bool {
			return low <= p && p <= high && v >= low
		},
	} {
		t.Run(when, func(t *testing.T) {
			x, key := New(), Key{"s", "t"}
			def := Definition{Rules: []Rule{{Name: "r", When: when, Params: map[string]string{"low": "number", "high": "number", "symbol": "string"}}}}
			if err := x.Define(key, def); err != nil {
				t.Fatal(err)
			}
			type row struct {
				symbol    int
				low, high float64
			}
			rows := make([]row, n)
			for i := range rows {
				low := math.Trunc(random.Float64() * 1000)
				rows[i] = row{i % 20, low, low + math.Trunc(math.Pow(2, random.Float64()*6)) - 2} // some from high to low, some of a point
				mustAdd(t, x, key, Entry{Place: fanfare.RowID(i), Rule: "r", Params: json.RawMessage(fmt.Sprintf(`{"symbol":"s%d","low":%v,"high":%v}`, rows[i].symbol, low, rows[i].high))})
			}
			for i := range n / 2 {
				x.Remove(key, fanfare.RowID(2*i))
			}
			looked := 0
			const events = 300
			for range events {
				price, volume := math.Trunc(random.Float64()*2000)/2, math.Trunc(random.Float64()*1000)
				data := fmt.Sprintf(`{"symbol":"s1","price":%v,"volume":%v}`, price, volume)
				want := []fanfare.RowID{}
				for i, r := range rows {
					ok := test(r.symbol, price, volume, r.low, r.high)
					if i%2 == 1 && (ok && r.symbol == 1 || test(-1, price, volume, r.low, r.high)) {
						want = append(want, fanfare.RowID(i))
					}
				}
				if got := places(t, x, key, data); !slices.Equal(got, want) {
					t.Fatalf("%s: got %v, want %v", data, got, want)
				}
				looked += candidates(t, x, key, data)
			}
			if mean := looked / events; mean > n/2/8 {
				t.Errorf("an event looks at %d rows of %d", mean, n/2)
			}
		})
	}
}

func TestFiltersWithRangesAreRowsInCells(t *testing.T) {
	x, key := New(), Key{"s", "t"}
	if err := x.Define(key, Definition{}); err != nil {
		t.Fatal(err)
	}
	const n = 500
	for i := range n {
		mustAdd(t, x, key, Entry{Place: fanfare.RowID(i), Filter: fmt.Sprintf("event.n >= %d && event.n < %d.5", i, i+1)})
	}
	if got := places(t, x, key, `{"n":101.25}`); !slices.Equal(got, []fanfare.RowID{100, 101}) {
		t.Errorf("got %v", got)
	}
	for _, data := range []string{`{"n":1e400}`, `{"n":-1e400}`, `{"n":"101"}`, `{"n":null}`, `{}`, `[]`} {
		if got := places(t, x, key, data); len(got) > 0 {
			t.Errorf("%s: got %v", data, got)
		}
	}
	if got := candidates(t, x, key, `{"n":101.25}`); got > 10 {
		t.Errorf("the event looks at %d rows of %d", got, n)
	}
}

// An event visits every level, so there must be few for any widths.
func TestAGridHasFewLevels(t *testing.T) {
	var c grid
	for exponent := -1074; exponent < 1024; exponent++ {
		b := box{high: [maxAxes]float64{math.Ldexp(1, exponent)}}
		c.countRows(levelOf(&b, 1), 1)
	}
	if len(c.levels) > 100 {
		t.Errorf("%d levels", len(c.levels))
	}
}

// The number of a text and that of a level are both small: once, the cells of one symbol were
// those of another symbol on another level.
func TestRowsOfOtherKeysAreInOtherCells(t *testing.T) {
	x, key := New(), Key{"s", "t"}
	def := Definition{Rules: []Rule{{Name: "r", When: "event.symbol == sub.symbol && event.price >= sub.low && event.price <= sub.high", Params: map[string]string{"low": "number", "high": "number", "symbol": "string"}}}}
	if err := x.Define(key, def); err != nil {
		t.Fatal(err)
	}
	const symbols, levels = 64, 8
	for i := range symbols {
		for level := range levels {
			mustAdd(t, x, key, Entry{Place: fanfare.RowID(i*levels + level), Rule: "r", Params: json.RawMessage(fmt.Sprintf(`{"symbol":"s%d","low":0,"high":%d}`, i, 1<<level))})
		}
	}
	for i := range symbols {
		if got := candidates(t, x, key, fmt.Sprintf(`{"symbol":"s%d","price":0.5}`, i)); got > levels {
			t.Fatalf("an event of symbol %d looks at %d rows, of which %d are its own", i, got, levels)
		}
	}
}
