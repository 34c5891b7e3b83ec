package matching

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"fanfare.dev/fanfare/internal/bench/loadgen"
	"fanfare.dev/fanfare/internal/condition"
)

// A stockMarket is the model of the stock case: 1,000 symbols, and people with five
// alerts each, by four rules in turn, on symbols chosen by Zipf. It knows the people
// that each quote must reach, so that the sink can be compared with it.
type stockMarket struct {
	n       int
	seed    uint64
	symbols []symbolState
	told    int64 // mails that the quotes so far must lead to
	quotes  int
}

// A symbolState has the last change of a symbol since the opening, and the alerts on the
// symbol.
type symbolState struct {
	opening float64
	change  float64 // percent
	price   float64
	quoted  bool
	stops   []alert // by level
	limits  []alert
	moves   []alert
	bands   []alert // by their lower end
}

type alert struct {
	level  float64
	person int
}

const (
	marketSymbols = 1000
	// Alerts are spread over half of the opening price in both directions.
	reachPercent = 50
	bandPercent  = 0.1 // of the opening price, from low to high
)

// marketDefinition has the four rules. Three of them compare a quote with the last quote
// of the symbol; the fourth matches every quote in a band.
func marketDefinition() condition.Definition {
	rule := func(name, when string, params ...string) condition.Rule {
		r := condition.Rule{Name: name, When: "event.symbol == sub.symbol && " + when, Params: map[string]string{"symbol": "string"}}
		for _, p := range params {
			r.Params[p] = "number"
		}
		return r
	}
	return condition.Definition{
		Key:    "symbol",
		Schema: []byte(`{"type": "object", "required": ["symbol", "price", "change"], "properties": {"id": {"type": "string"}, "symbol": {"type": "string"}, "price": {"type": "number"}, "change": {"type": "number"}}}`),
		Rules: []condition.Rule{
			rule("stop", "crosses_below(event.price, sub.level)", "level"),
			rule("limit", "crosses_above(event.price, sub.level)", "level"),
			rule("move", "crosses(event.change, sub.percent)", "percent"),
			rule("band", "event.price >= sub.low && event.price <= sub.high", "low", "high"),
		},
	}
}

// stockConfiguration returns the document of the stock case.
func stockConfiguration(relay, retry string) []byte {
	return stockDocument(relay, fmt.Sprintf("connections: 50, retry: [%s]", retry))
}

// stockDocument returns it with further settings of the channel.
func stockDocument(relay, channel string) []byte {
	d := marketDefinition()
	rules, _ := json.Marshal(func() (all []map[string]any) { // JSON is valid YAML; marshalling strings cannot fail
		for _, r := range d.Rules {
			all = append(all, map[string]any{"name": r.Name, "when": r.When, "params": r.Params})
		}
		return all
	}())
	return fmt.Appendf(nil, `service: %s
channels:
  email: {driver: smtp, relay: %q, from: "Alerts <alerts@example.org>", rate: unlimited, %s}
topics:
  quote:
    key: %s
    schema: %s
    rules: %s
    template: quote
templates:
  quote:
    subject: "{{ event.symbol }} at {{ event.price }}"
    text: |
      {{ event.symbol }} is at {{ event.price }}, {{ event.change }} %% since the opening.
      Leave this list: {{ unsubscribe_url }}
`, loadgen.Service, relay, channel, d.Key, d.Schema, rules)
}

func newStockMarket(n int, seed uint64) *stockMarket {
	m := &stockMarket{n: n, seed: seed, symbols: make([]symbolState, marketSymbols)}
	for i := range m.symbols {
		m.symbols[i].opening = 20 + math.Round(480*loadgen.Unit(loadgen.Mix(seed+1<<40+uint64(i))))
	}
	byLevel := func(a, b alert) int { return cmp.Compare(a.level, b.level) }
	chosen := loadgen.NewZipf(marketSymbols)
	for i := range n {
		symbol, level, _ := m.alert(chosen, i)
		of := m.symbols[symbol].list(i)
		*of = append(*of, alert{level, i / loadgen.AlertsOfEach})
	}
	for i := range m.symbols {
		for kind := range marketRules {
			slices.SortFunc(*m.symbols[i].list(kind), byLevel)
		}
	}
	return m
}

const marketRules = 4

// list returns the alerts of the rule that alert i has.
func (s *symbolState) list(i int) *[]alert {
	return [...]*[]alert{&s.stops, &s.limits, &s.moves, &s.bands}[i%marketRules]
}

// alert returns the symbol and the level of subscription i: a level below the opening,
// one above it, a percentage, or the lower end of a band.
func (m *stockMarket) alert(chosen loadgen.Zipf, i int) (symbol int, level float64, params string) {
	h := loadgen.Mix(m.seed ^ uint64(i))
	symbol = chosen.Rank(loadgen.Unit(h))
	opening, u := m.symbols[symbol].opening, loadgen.Unit(loadgen.Mix(h))
	switch i % marketRules {
	case 0:
		level = cents(opening * (1 - u*reachPercent/100))
		return symbol, level, fmt.Sprintf(`"level":%v`, level)
	case 1:
		level = cents(opening * (1 + u*reachPercent/100))
		return symbol, level, fmt.Sprintf(`"level":%v`, level)
	case 2:
		level = cents((2*u - 1) * reachPercent)
		return symbol, level, fmt.Sprintf(`"percent":%v`, level)
	}
	level = cents(opening * (1 + (2*u-1)*reachPercent/100))
	return symbol, level, fmt.Sprintf(`"low":%v,"high":%v`, level, bandEnd(level, opening))
}

func bandEnd(low, opening float64) float64 { return cents(low + opening*bandPercent/100) }

// cents rounds prices and percentages to four digits, as they are written.
func cents(v float64) float64 { return math.Round(v*1e4) / 1e4 }

// lines returns a function that appends the line of alert i in the form of the bulk
// import.
func (m *stockMarket) lines() func(dst []byte, i int) []byte {
	chosen, names := loadgen.NewZipf(marketSymbols), [marketRules]string{"stop", "limit", "move", "band"}
	return func(dst []byte, i int) []byte {
		symbol, _, params := m.alert(chosen, i)
		dst = append(dst, `{"topic":"quote","channel":"email","to":"`...)
		dst = loadgen.Person(i / loadgen.AlertsOfEach).AppendAddress(dst)
		return fmt.Appendf(dst, `","rule":"%s","params":{"symbol":"%s",%s}}`+"\n", names[i%marketRules], loadgen.AppendSymbol(nil, symbol), params)
	}
}

// appendQuote appends the line of the next quote, and returns how many people it must
// reach. Quotes are of the symbols in turn, each at most a step from the last one.
func (m *stockMarket) appendQuote(dst []byte, stepPercent float64) ([]byte, int) {
	s := &m.symbols[m.quotes%marketSymbols]
	step := stepPercent * (2*loadgen.Unit(loadgen.Mix(m.seed+1<<41+uint64(m.quotes))) - 1)
	if math.Abs(s.change+step) > reachPercent*0.8 {
		step = -step
	}
	was := *s
	s.change = cents(s.change + step)
	s.price = cents(s.opening * (1 + s.change/100))
	s.quoted = true
	dst = fmt.Appendf(dst, `{"id":"quote-%d","symbol":"%s","price":%v,"change":%v}`+"\n", m.quotes, loadgen.AppendSymbol(nil, m.quotes%marketSymbols), s.price, s.change)
	m.quotes++
	told := s.matchedPeople(&was)
	m.told += int64(told)
	return dst, told
}

// matchedPeople counts the people whose alerts a quote matches. Each gets one mail.
func (s *symbolState) matchedPeople(was *symbolState) int {
	var people []int
	take := func(alerts []alert, from, to float64, fromIncluded, toIncluded bool) {
		for i, _ := slices.BinarySearchFunc(alerts, from, func(a alert, from float64) int { return cmp.Compare(a.level, from) }); i < len(alerts); i++ {
			level := alerts[i].level
			if level > to || level == to && !toIncluded {
				break
			}
			if level > from || fromIncluded {
				people = append(people, alerts[i].person)
			}
		}
	}
	if was.quoted {
		take(s.stops, s.price, was.price, true, false)   // reached from above
		take(s.limits, was.price, s.price, false, true)  // reached from below
		take(s.moves, was.change, s.change, false, true) // either way
		take(s.moves, s.change, was.change, true, false)
	}
	widest := s.opening*bandPercent/100 + 1e-3
	for i, _ := slices.BinarySearchFunc(s.bands, s.price-widest, func(a alert, from float64) int { return cmp.Compare(a.level, from) }); i < len(s.bands) && s.bands[i].level <= s.price; i++ {
		if s.price <= bandEnd(s.bands[i].level, s.opening) {
			people = append(people, s.bands[i].person)
		}
	}
	slices.Sort(people)
	return len(slices.Compact(people))
}
