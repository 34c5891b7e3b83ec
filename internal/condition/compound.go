package condition

import (
	"cmp"
	"slices"

	"fanfare.dev/fanfare"
)

// guardKind is what leads to a compound.
type guardKind uint8

const (
	guardNone       guardKind = iota // the filter is none
	guardEveryEvent                  // every event
	guardAccessPath                  // a way of its first part
	guardKey                         // the equality that is its first part
	guardKeyPair                     // and that which is its second
)

// addConjunction makes fl the compound of its parts.
func (s *filters) addConjunction(fl *filter, parts []compiledFilter, t *topic) {
	fl.conjuncts = make([]uint32, len(parts))
	for i := range parts {
		fl.conjuncts[i] = s.conjunctTable(parts[i].shape, t).storeRow(fanfare.RowID(fl.number), parts[i].values, t.texts)
	}
	at := t.indexerFor(&s.pages)
	cost := s.chooseKeys(fl)
	if way, wayCost := s.rarestAccessPath(fl, at); way >= 0 && (fl.guard == guardEveryEvent || wayCost < cost) {
		fl.conjuncts[0], fl.conjuncts[way] = fl.conjuncts[way], fl.conjuncts[0]
		fl.guard = guardAccessPath
		r := s.pages.page(fl.conjuncts[0]).table
		r.conjunct.accessPathRows++
		r.plan.insert(at, fl.conjuncts[0])
		return
	}
	c := &s.conjunctShapes.guards
	switch m := s.fingerprintsOf(fl); fl.guard {
	case guardKey:
		c.add(s.equalityKeyOf(fl.conjuncts[0]), m, fl, s.list)
	case guardKeyPair:
		c.addPair(s.equalityKeyOf(fl.conjuncts[0]), s.equalityKeyOf(fl.conjuncts[1]), m, fl, s.list)
	default:
		c.add(everyEvent, m, fl, s.list)
	}
}

// removeConjunction takes the compound fl apart.
func (s *filters) removeConjunction(fl *filter, t *topic) {
	c := &s.conjunctShapes.guards
	switch fl.guard {
	case guardAccessPath:
		r := s.pages.page(fl.conjuncts[0]).table
		r.conjunct.accessPathRows--
		r.plan.remove(t.indexerFor(&s.pages), fl.conjuncts[0])
	case guardKey:
		c.remove(s.equalityKeyOf(fl.conjuncts[0]), fl, s.list)
	case guardKeyPair:
		c.removePair(s.equalityKeyOf(fl.conjuncts[0]), s.equalityKeyOf(fl.conjuncts[1]), fl, s.list)
	default:
		c.remove(everyEvent, fl, s.list)
	}
	for _, row := range fl.conjuncts {
		r := s.pages.page(row).table
		if r.freeRow(row, t.texts); r.rowCount == 0 {
			s.dropConjunctTable(r, t)
		}
	}
}

// chooseKeys makes the rarest of its equalities the first parts of fl, and returns with
// how many others it shares them.
func (s *filters) chooseKeys(fl *filter) (cost int) {
	var keys []uint64
	var of []int
	for i, row := range fl.conjuncts {
		if s.pages.page(row).table.conjunct.equality != nil {
			keys, of = append(keys, s.equalityKeyOf(row)), append(of, i)
		}
	}
	first, second, cost := s.conjunctShapes.guards.chooseKeys(keys)
	if first < 0 {
		fl.guard = guardEveryEvent
		return 0
	}
	fl.guard = guardKey
	rows := []uint32{fl.conjuncts[of[first]]}
	if second >= 0 {
		fl.guard = guardKeyPair
		rows = append(rows, fl.conjuncts[of[second]])
	}
	for i, row := range fl.conjuncts {
		if i != of[first] && (second < 0 || i != of[second]) {
			rows = append(rows, row)
		}
	}
	fl.conjuncts = rows
	return cost
}

// equalityKeyOf is the key of a row that is an equality.
func (s *filters) equalityKeyOf(row uint32) uint64 {
	p := s.pages.page(row)
	return p.table.conjunct.rowKey(p, row)
}

// fingerprintsOf is that of what is not in the key of fl, the rarest equalities first.
func (s *filters) fingerprintsOf(fl *filter) guardFingerprints {
	rest := fl.conjuncts
	switch fl.guard {
	case guardKey:
		rest = rest[1:]
	case guardKeyPair:
		rest = rest[2:]
	}
	var keys []uint64
	for _, row := range rest {
		if s.pages.page(row).table.conjunct.equality != nil {
			keys = append(keys, s.equalityKeyOf(row))
		}
	}
	c := &s.conjunctShapes.guards
	slices.SortStableFunc(keys, func(a, b uint64) int { return cmp.Compare(c.listSize(a), c.listSize(b)) })
	marks := make([]uint16, 0, len(rest))
	for _, key := range keys {
		marks = append(marks, fingerprintOf(key))
	}
	for _, row := range rest {
		if r := s.pages.page(row).table; r.conjunct.equality == nil {
			if mark, ok := r.conjunct.rowFingerprint(r, row); ok {
				marks = append(marks, mark)
			}
		}
	}
	return guardFingerprints{newPrefilter(keys, marks), newSignature(marks)}
}

// accessPathCost is how much dearer a row on a way is than one in a list: it is tested.
const accessPathCost = 16

// rarestAccessPath is the part of fl whose ways lead to the fewest others, and what that
// costs; -1 if there is none.
func (s *filters) rarestAccessPath(fl *filter, at *rowIndexer) (part, cost int) {
	part = -1
	for i, row := range fl.conjuncts {
		r := s.pages.page(row).table
		if r.conjunct.equality != nil || !r.plan.isSelective() {
			continue
		}
		if _, n := r.plan.rarestGuard(at, row); part < 0 || accessPathCost*(1+n) < cost {
			part, cost = i, accessPathCost*(1+n)
		}
	}
	return part, cost
}

// isSelective reports whether every guard of p goes straight to few rows.
func (p *plan) isSelective() bool {
	for _, ways := range p.guards {
		for _, w := range ways {
			if !w.isSelective() {
				return false
			}
		}
	}
	return true
}
