package condition

import (
	"encoding/json"
	"slices"
	"testing"

	"fanfare.dev/fanfare"
)

// In these conditions, an operand of && is itself an && of one comparison and parts without a
// literal. Such an operand becomes a conjunct of the conjunction, which must not be reduced to its
// comparison.
func TestAParenthesisedAndIsTestedWhole(t *testing.T) {
	const (
		schema = `{"type":"object","properties":{"host":{"type":"string"},"percent":{"type":"number"},"disk":{"type":"number"},"ack":{"type":"string"}}}`
		event  = `{"host":"db1","percent":97,"disk":95}`
		acked  = `{"host":"db1","percent":97,"disk":98,"ack":"ada"}`
	)
	for _, c := range []struct {
		name, filter string
		event, acked bool // what it says of each
	}{
		{"a field that is missing", `event.percent > 90 && (event.disk > 80 && has(event.ack))`, false, true},
		{"behind an equality", `event.host == 'db1' && (event.disk > 80 && has(event.ack))`, false, true},
		{"two fields compared", `event.percent > 90 && (event.disk > 80 && event.disk > event.percent)`, false, true},
		{"a regular expression", `event.percent > 90 && (event.disk > 80 && event.host.matches('^web'))`, false, false},
		{"null", `event.percent > 90 && (event.disk > 80 && event.ack == null)`, false, false},
		{"a literal", `event.percent > 90 && (event.disk > 80 && false)`, false, false},
		{"no parentheses", `event.percent > 90 && event.disk > 80 && has(event.ack)`, false, true},
		{"the part without a literal first", `event.percent > 90 && (has(event.ack) && event.disk > 80)`, false, true},
		{"an equality inside", `event.percent > 90 && (event.host == 'db1' && has(event.ack))`, false, true},
		{"an equality and a text inside", `event.percent > 90 && (event.host == 'db1' && event.host.endsWith('2'))`, false, false},
		{"two parts without a literal", `event.percent > 90 && (event.disk > 80 && has(event.ack) && event.disk > event.percent)`, false, true},
		{"a negation", `event.percent > 90 && (event.disk > 80 && !has(event.host))`, false, false},
		{"an || without a literal", `event.percent > 90 && (event.disk > 80 && (has(event.ack) || event.disk > event.percent))`, false, true},
		{"an || around it", `event.percent > 99 || event.percent > 90 && (event.disk > 80 && has(event.ack))`, false, true},
		{"an || of two of them", `event.host == 'db1' && ((event.disk > 80 && has(event.ack)) || (event.percent > 99 && has(event.ack)))`, false, true},
		{"three levels", `event.percent > 90 && (event.disk > 80 && (event.host == 'db1' && has(event.ack)))`, false, true},
		{"three levels, the field in the middle", `event.percent > 90 && (has(event.ack) && (event.host == 'db1' && (event.disk > 80 && has(event.host))))`, false, true},
		{"both operands nested", `(event.percent > 90 && has(event.ack)) && (event.disk > 80 && has(event.ack))`, false, true},
		{"a choice", `event.percent > 90 && (event.disk > 80 && (has(event.ack) ? true : false))`, false, true},
		{"a range of two sides", `event.percent > 90 && (event.disk > 80 && event.disk < 99 && has(event.ack))`, false, true},
		{"bare names", `percent > 90 && (disk > 80 && has(event.ack))`, false, true},
		{"fields in brackets", `event['percent'] > 90 && (event['disk'] > 80 && has(event.ack))`, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := New()
			// As a filter of one topic, among others of a second, and with the params of a rule.
			rule := Rule{Name: "r", When: c.filter + " && event.percent >= sub.least", Params: map[string]string{"least": "number"}}
			topics := []Key{{"s", "alone"}, {"s", "among others"}, {"s", "rules"}}
			for _, key := range topics {
				if err := x.Define(key, Definition{Schema: json.RawMessage(schema), Rules: []Rule{rule}}); err != nil {
					t.Fatal(err)
				}
			}
			entries := map[Key][]Entry{
				topics[0]: {{Place: 1, Filter: c.filter}},
				topics[1]: {{Place: 2, Filter: `event.percent > 1000 && (event.disk > 80 && has(event.ack))`}, {Place: 3, Filter: c.filter},
					{Place: 4, Filter: `event.percent > 1000 && (event.disk > 1000 && has(event.ack))`}},
				topics[2]: {{Place: 5, Rule: "r", Params: json.RawMessage(`{"least":1}`)}, {Place: 6, Rule: "r", Params: json.RawMessage(`{"least":1000}`)}},
			}
			for i, key := range topics {
				if err := x.Add(key, entries[key]); err != nil {
					t.Fatal(err)
				}
				for _, e := range []struct {
					data string
					want bool
				}{{event, c.event}, {acked, c.acked}} {
					var want []fanfare.RowID
					if e.want {
						want = []fanfare.RowID{fanfare.RowID(2*i + 1)}
					}
					if got := places(t, x, key, e.data); !slices.Equal(got, want) {
						t.Errorf("topic %q: %s leads to %v, want %v", key.Topic, e.data, got, want)
					}
				}
			}
		})
	}
}
