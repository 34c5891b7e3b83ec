package condition

import (
	"cmp"
	"slices"

	"fanfare.dev/fanfare"
)

// guardKind is what leads to a compound.
type guardKind uint8

const (
	guardNone  guardKind = iota // the filter is none
	guardEvery                  // every event
	guardWay                    // a way of its first part
	guardOne                    // the equality that is its first part
	guardPair                   // and that which is its second
)

// join makes fl the compound of its parts.
func (s *filters) join(fl *filter, parts []draft, t *topic) {
	fl.parts = make([]uint32, len(parts))
	for i := range parts {
		fl.parts[i] = s.term(parts[i].form, t).keep(fanfare.RowID(fl.number), parts[i].values, t.texts)
	}
	at := t.at(&s.rows)
	cost := s.choose(fl)
	if way, wayCost := s.rarestWay(fl, at); way >= 0 && (fl.guard == guardEvery || wayCost < cost) {
		fl.parts[0], fl.parts[way] = fl.parts[way], fl.parts[0]
		fl.guard = guardWay
		r := s.rows.page(fl.parts[0]).rule
		r.term.onWays++
		r.plan.insert(at, fl.parts[0])
		return
	}
	c := &s.terms.guards
	switch m := s.markingOf(fl); fl.guard {
	case guardOne:
		c.add(s.keyOf(fl.parts[0]), m, fl, s.list)
	case guardPair:
		c.addPair(s.keyOf(fl.parts[0]), s.keyOf(fl.parts[1]), m, fl, s.list)
	default:
		c.add(everyEvent, m, fl, s.list)
	}
}

// part takes the compound fl apart.
func (s *filters) part(fl *filter, t *topic) {
	c := &s.terms.guards
	switch fl.guard {
	case guardWay:
		r := s.rows.page(fl.parts[0]).rule
		r.term.onWays--
		r.plan.remove(t.at(&s.rows), fl.parts[0])
	case guardOne:
		c.remove(s.keyOf(fl.parts[0]), fl, s.list)
	case guardPair:
		c.removePair(s.keyOf(fl.parts[0]), s.keyOf(fl.parts[1]), fl, s.list)
	default:
		c.remove(everyEvent, fl, s.list)
	}
	for _, row := range fl.parts {
		r := s.rows.page(row).rule
		if r.release(row, t.texts); r.live == 0 {
			s.dropTerm(r, t)
		}
	}
}

// choose makes the rarest of its equalities the first parts of fl, and returns with
// how many others it shares them.
func (s *filters) choose(fl *filter) (cost int) {
	var keys []uint64
	var of []int
	for i, row := range fl.parts {
		if s.rows.page(row).rule.term.equality != nil {
			keys, of = append(keys, s.keyOf(row)), append(of, i)
		}
	}
	first, second, cost := s.terms.guards.guard(keys)
	if first < 0 {
		fl.guard = guardEvery
		return 0
	}
	fl.guard = guardOne
	rows := []uint32{fl.parts[of[first]]}
	if second >= 0 {
		fl.guard = guardPair
		rows = append(rows, fl.parts[of[second]])
	}
	for i, row := range fl.parts {
		if i != of[first] && (second < 0 || i != of[second]) {
			rows = append(rows, row)
		}
	}
	fl.parts = rows
	return cost
}

// keyOf is the key of a row that is an equality.
func (s *filters) keyOf(row uint32) uint64 {
	p := s.rows.page(row)
	return p.rule.term.key(p, row)
}

// markingOf is that of what is not in the key of fl, the rarest equalities first.
func (s *filters) markingOf(fl *filter) marking {
	rest := fl.parts
	switch fl.guard {
	case guardOne:
		rest = rest[1:]
	case guardPair:
		rest = rest[2:]
	}
	var keys []uint64
	for _, row := range rest {
		if s.rows.page(row).rule.term.equality != nil {
			keys = append(keys, s.keyOf(row))
		}
	}
	c := &s.terms.guards
	slices.SortStableFunc(keys, func(a, b uint64) int { return cmp.Compare(c.size(a), c.size(b)) })
	marks := make([]uint16, 0, len(rest))
	for _, key := range keys {
		marks = append(marks, markOf(key))
	}
	for _, row := range rest {
		if r := s.rows.page(row).rule; r.term.equality == nil {
			if mark, ok := r.term.mark(r, row); ok {
				marks = append(marks, mark)
			}
		}
	}
	return marking{newOpening(keys, marks), newSign(marks)}
}

// wayCost is how much dearer a row on a way is than one in a list: it is tested.
const wayCost = 16

// rarestWay is the part of fl whose ways lead to the fewest others, and what that
// costs; -1 if there is none.
func (s *filters) rarestWay(fl *filter, at *placing) (part, cost int) {
	part = -1
	for i, row := range fl.parts {
		r := s.rows.page(row).rule
		if r.term.equality != nil || !r.plan.leads() {
			continue
		}
		if _, n := r.plan.rarest(at, row); part < 0 || wayCost*(1+n) < cost {
			part, cost = i, wayCost*(1+n)
		}
	}
	return part, cost
}

// leads reports whether every guard of p goes straight to few rows.
func (p *plan) leads() bool {
	for _, ways := range p.guards {
		for _, w := range ways {
			if !w.leads() {
				return false
			}
		}
	}
	return true
}
