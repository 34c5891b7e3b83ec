package matching

import (
	"fmt"
	"strconv"

	"fanfare.dev/fanfare/internal/bench/loadgen"
	"fanfare.dev/fanfare/internal/condition"
)

// distinctFilters is B5: all filters are different. A third each is about a price, a
// word of a title with a least weight, and a kind of notice in one of two regions. An
// event has all of these fields and matches a few filters of each kind.
type distinctFilters struct {
	n    int
	seed uint64
}

const (
	differentKinds   = 3
	differentRegions = 20
	differentMatches = 3 // of each kind on average
)

func newDistinctFilters(n int, seed uint64) distinctFilters { return distinctFilters{n, seed} }

func (distinctFilters) definition() condition.Definition {
	return condition.Definition{Schema: []byte(`{"type":"object","properties":{"symbol":{"type":"string"},"price":{"type":"number"},` +
		`"title":{"type":"string"},"weight":{"type":"number"},"region":{"type":"string"},"notice":{"type":"string"},"severity":{"type":"number"}}}`)}
}

// groups returns the number of symbols, words and notices.
func (d distinctFilters) groups() int { return max(1, d.n/differentKinds/30) }

// own returns the group of subscription i and a level from 0 to 1 that no other
// subscription of the group has.
func (d distinctFilters) own(i int) (group int, level float64) {
	row, groups := i/differentKinds, d.groups()
	rows := float64(d.n/differentKinds/groups + 1)
	return row % groups, (float64(row/groups) + 0.9*loadgen.Unit(loadgen.Mix(d.seed^uint64(i)))) / rows
}

func (d distinctFilters) condition(i int) (filter, rule string, params []byte) {
	group, level := d.own(i)
	h := loadgen.Mix(d.seed + 1<<39 + uint64(i))
	switch i % differentKinds {
	case 0:
		filter = fmt.Sprintf("event.symbol == '%s' && event.price >= %s", loadgen.AppendSymbol(nil, group), digits(topPrice*level))
	case 1:
		filter = fmt.Sprintf("contains_ci(event.title, '%s') && event.weight > %s", loadgen.AppendWord(nil, group), digits(topLevel*level))
	default:
		one := h % differentRegions
		filter = fmt.Sprintf("event.region in ['region-%d', 'region-%d'] && event.notice == 'notice-%d' && event.severity >= %s",
			one, (one+1+h>>32%(differentRegions-1))%differentRegions, group, digits(topLevel*level))
	}
	return filter, "", nil
}

// digits formats a number so that numbers that differ by a ten-thousandth stay
// different.
func digits(v float64) string { return strconv.FormatFloat(v, 'f', 6, 64) }

func (d distinctFilters) event(i int) []byte {
	h := func(k int) uint64 { return loadgen.Mix(d.seed + 1<<40 + uint64(8*i+k)) }
	group := func(k int) int { return int(h(k) % uint64(d.groups())) }
	level := 2.0 * differentMatches / 30
	data := fmt.Appendf(nil, `{"symbol":"%s","price":%s,"title":"`, loadgen.AppendSymbol(nil, group(0)), digits(topPrice*level*loadgen.Unit(h(1))))
	at := int(h(2) % titleWords)
	for k := range titleWords {
		if k > 0 {
			data = append(data, ' ')
		}
		word := group(3)
		if k != at {
			word = 70*70*70*70 - 1 - int(loadgen.Mix(h(4)+uint64(k))%idleWords)
		}
		data = loadgen.AppendWord(data, word)
	}
	return fmt.Appendf(data, `","weight":%s,"region":"region-%d","notice":"notice-%d","severity":%s}`,
		digits(topLevel*level*loadgen.Unit(h(5))), h(6)%differentRegions, group(6), digits(topLevel*10*level*loadgen.Unit(h(7))))
}

func (d distinctFilters) bare(int) limitMatch { return lookUp(d.n) }
