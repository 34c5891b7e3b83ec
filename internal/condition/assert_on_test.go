//go:build assertions

package condition

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/condition/expr"
)

// The test puts the index into wrong states, as a faulty change could, and matches events.
func TestAssertionsDetectWrongAssumptions(t *testing.T) {
	const percent = `event.percent > 90 && (event.disk > 80 && has(event.ack))`
	for name, c := range map[string]struct {
		entries []Entry
		when    string
		data    string
		mistake func(*topic)
		message string
	}{
		"a term is taken for its comparison": {
			entries: []Entry{{Filter: percent}},
			data:    `{"percent":97,"disk":95}`,
			mistake: func(tp *topic) {
				for _, tb := range tp.filters.conjunctShapes.list {
					tb.conjunct.rangeKey = tb.plan.guards[0][0].rangeKey
				}
			},
			message: "was answered with true, but its predicate disagrees",
		},
		"a conjunct is lost": {
			entries: []Entry{{Rule: "r", Params: json.RawMessage(`{"s":"a","n":2}`)}}, when: `event.s == sub.s && event.n != sub.n`,
			data:    `{"s":"a","n":2}`,
			mistake: func(tp *topic) { tp.rules[0].plan.residuals = nil },
			message: "is a hit, but its condition is 0",
		},
		"a way leads nowhere": {
			entries: []Entry{{Rule: "r", Params: json.RawMessage(`{"s":"a","n":2}`)}}, when: `event.s == sub.s && event.n >= sub.n`,
			data:    `{"s":"a","n":2}`,
			mistake: func(tp *topic) { clear(tp.rules[0].plan.guards[0][0].buckets) },
			message: "is not a hit, but its condition is true",
		},
		"a range includes its end": {
			entries: []Entry{{Filter: `event.n > 2`}, {Place: 1, Filter: `event.n > 3`}},
			data:    `{"n":2}`,
			mistake: func(tp *topic) { tp.filters.shapes[0].plan.guards[0][0].rangeKey.op = expr.GreaterOrEqual },
			message: "is a hit, but its condition is 0",
		},
		"a row is hit twice": {
			entries: []Entry{{Rule: "r", Params: json.RawMessage(`{"s":"a","n":2}`)}}, when: `event.s == sub.s`,
			data: `{"s":"a"}`,
			mistake: func(tp *topic) {
				a := tp.rules[0].plan.guards[0][0]
				for key, ref := range a.buckets {
					many := &bucket{}
					many.insert(0, a.entry(tp.pages, ref.row))
					many.insert(0, a.entry(tp.pages, ref.row))
					a.buckets[key] = bucketRef{bucket: many}
				}
			},
			message: "is a hit twice",
		},
		"a memo is of another text": {
			entries: []Entry{{Rule: "r", Params: json.RawMessage(`{"s":"a","n":2}`)}, {Place: 1, Rule: "r", Params: json.RawMessage(`{"s":"a","n":3}`)}}, when: `event.s != sub.s && event.n < sub.n`,
			data:    `{"s":"b","n":1}`,
			mistake: func(tp *topic) { tp.rules[0].plan.residuals[0].Predicate = &flipping{} },
			message: "the cached result for text",
		},
		"two paths share a slot": {
			entries: []Entry{{Filter: `event.a != 'x'`}, {Place: 1, Filter: `event.b != 'x'`}},
			data:    `{"a":"y","b":"x"}`,
			mistake: func(tp *topic) {
				for _, form := range tp.filters.shapes {
					for _, p := range form.plan.paths {
						p.Index = 0
					}
				}
			},
			message: "for one condition and",
		},
	} {
		t.Run(name, func(t *testing.T) {
			x, key := New(), Key{"s", "t"}
			def := Definition{}
			if c.when != "" {
				def.Rules = []Rule{{Name: "r", When: c.when, Params: map[string]string{"s": "string", "n": "number"}}}
				if !strings.Contains(c.when, "sub.n") {
					def.Rules[0].When += " && (sub.n == sub.n || true)"
				}
			}
			if err := x.Define(key, def); err != nil {
				t.Fatal(err)
			}
			mustAdd(t, x, key, c.entries...)
			c.mistake(x.topics[key])
			defer func() {
				if message := fmt.Sprint(recover()); !strings.Contains(message, c.message) {
					t.Errorf("the match panics with %s, want %q", message, c.message)
				}
			}()
			_, err := x.Match(key, Event{Data: json.RawMessage(c.data)}, nil)
			t.Errorf("nothing was noticed, %v", err)
		})
	}
}

// flipping returns true in every other call.
type flipping struct{ is bool }

func (t *flipping) Eval(*expr.Frame) expr.Truth { t.is = !t.is; return expr.TruthOf(t.is) }
