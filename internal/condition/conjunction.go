package condition

import (
	"cmp"
	"hash/maphash"
	"math"
	"slices"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/condition/assert"
	"fanfare.dev/fanfare/internal/condition/expr"
	"fanfare.dev/fanfare/internal/failpoint"
)

// guardKind is the kind of guard that leads to a conjunction.
type guardKind uint8

const (
	guardNone       guardKind = iota // the filter is not a conjunction
	guardEveryEvent                  // none: it is a candidate for every event
	guardAccessPath                  // an access path of its first conjunct
	guardKey                         // the equality in its first conjunct
	guardKeyPair                     // the equalities in its first two conjuncts
)

// addConjunction makes fl a conjunction of parts.
func (s *filters) addConjunction(fl *filter, parts []compiledFilter, t *topic) {
	fl.conjuncts = make([]uint32, len(parts))
	for i := range parts {
		fl.conjuncts[i] = s.conjunctTable(parts[i].shape, t).storeRow(fanfare.RowID(fl.number), parts[i].values, t.texts)
	}
	ix := t.indexerFor(&s.pages)
	cost := s.chooseKeys(fl)
	if part, partCost := s.rarestAccessPath(fl, ix); part >= 0 && (fl.guard == guardEveryEvent || partCost < cost) {
		fl.conjuncts[0], fl.conjuncts[part] = fl.conjuncts[part], fl.conjuncts[0]
		fl.guard = guardAccessPath
		tb := s.pages.page(fl.conjuncts[0]).table
		tb.conjunct.accessPathRows++
		tb.plan.insert(ix, fl.conjuncts[0])
		return
	}
	g := &s.conjunctShapes.guards
	switch m := s.fingerprintsOf(fl); fl.guard {
	case guardKey:
		g.add(s.equalityKeyOf(fl.conjuncts[0]), m, fl, s.list)
	case guardKeyPair:
		g.addPair(s.equalityKeyOf(fl.conjuncts[0]), s.equalityKeyOf(fl.conjuncts[1]), m, fl, s.list)
	default:
		g.add(everyEventKey, m, fl, s.list)
	}
}

// removeConjunction removes the rows and the guard of fl.
func (s *filters) removeConjunction(fl *filter, t *topic) {
	g := &s.conjunctShapes.guards
	switch fl.guard {
	case guardAccessPath:
		tb := s.pages.page(fl.conjuncts[0]).table
		tb.conjunct.accessPathRows--
		tb.plan.remove(t.indexerFor(&s.pages), fl.conjuncts[0])
	case guardKey:
		g.remove(s.equalityKeyOf(fl.conjuncts[0]), fl, s.list)
	case guardKeyPair:
		g.removePair(s.equalityKeyOf(fl.conjuncts[0]), s.equalityKeyOf(fl.conjuncts[1]), fl, s.list)
	default:
		g.remove(everyEventKey, fl, s.list)
	}
	for _, row := range fl.conjuncts {
		tb := s.pages.page(row).table
		if tb.freeRow(row, t.texts); tb.rowCount == 0 {
			s.dropConjunctTable(tb, t)
		}
	}
}

// chooseKeys moves the rarest equalities of fl to the front, and returns the number of other
// conjunctions that share them.
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

// equalityKeyOf returns the key of a row that is an equality.
func (s *filters) equalityKeyOf(row uint32) uint64 {
	p := s.pages.page(row)
	return p.table.conjunct.rowKey(p, row)
}

// fingerprintsOf returns the fingerprints of the conjuncts outside of the guard, the rarest
// equalities first.
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
	g := &s.conjunctShapes.guards
	slices.SortStableFunc(keys, func(a, b uint64) int { return cmp.Compare(g.listSize(a), g.listSize(b)) })
	marks := make([]uint16, 0, len(rest))
	for _, key := range keys {
		marks = append(marks, fingerprintOf(key))
	}
	for _, row := range rest {
		if tb := s.pages.page(row).table; tb.conjunct.equality == nil {
			if mark, ok := tb.conjunct.rowFingerprint(tb, row); ok {
				marks = append(marks, mark)
			}
		}
	}
	return guardFingerprints{newPrefilter(keys, marks), newSignature(marks)}
}

// accessPathCost is the cost of a row on an access path relative to one in a list, because each
// such row is tested.
const accessPathCost = 16

// rarestAccessPath returns the conjunct of fl whose access paths lead to the fewest other rows, and
// their cost; -1 if there is none.
func (s *filters) rarestAccessPath(fl *filter, ix *rowIndexer) (part, cost int) {
	part = -1
	for i, row := range fl.conjuncts {
		tb := s.pages.page(row).table
		if tb.conjunct.equality != nil || !tb.plan.isSelective() {
			continue
		}
		if _, n := tb.plan.rarestGuard(ix, row); part < 0 || accessPathCost*(1+n) < cost {
			part, cost = i, accessPathCost*(1+n)
		}
	}
	return part, cost
}

// isSelective reports whether every guard of p leads directly to few rows.
func (p *plan) isSelective() bool {
	for _, paths := range p.guards {
		for _, a := range paths {
			if !a.isSelective() {
				return false
			}
		}
	}
	return true
}

// A conjunctShape is the common structure of one conjunct in many conjunctions. Each row of its
// table is that conjunct in one conjunction.
//
// A conjunction is a filter a && b && c with a rare shape. Each of its conjuncts is a row
// of a conjunct shape. Its guard, one or two of them, leads to it: those that it shares with the
// fewest others. An event then compares the signature of each conjunction that its guard leads to
// (fingerprint.go), and evaluates all conjuncts of those that match. The work for an event grows
// with the number of fields in conjunctions and with the conjunctions that match, and not with the
// combinations of fields.
type conjunctShape struct {
	predicate      expr.Predicate  // the whole conjunct
	equality       *equalityKey    // set if it is an equality and nothing else
	rangeKey       *rangeKey       // or a range and nothing else
	bounds         quantizedBounds // of rangeKey
	salt           uint64          // differs between shapes
	hasFingerprint bool            // it has no params, and an event adds its fingerprint if it is true
	accessPathRows int             // number of rows on the access paths of the plan
}

// conjunctShapes are the conjunct shapes of a topic.
type conjunctShapes struct {
	list   []*table
	byKey  map[string]*table
	seed   maphash.Seed // random, so that an attacker cannot choose values with colliding keys
	guards guardTable
}

func newConjunctShapes() conjunctShapes {
	return conjunctShapes{byKey: map[string]*table{}, seed: maphash.MakeSeed(), guards: guardTable{byKey: map[uint64]guardEntry{}, listLimitPerKey: defaultListLimit}}
}

// conjunctTable returns the table of a conjunct shape.
func (s *filters) conjunctTable(shape *filterShape, t *topic) *table {
	tb := s.conjunctShapes.byKey[shape.key]
	if tb == nil {
		tb = s.newTable(shape, t)
		tb.conjunct = &conjunctShape{salt: maphash.String(s.conjunctShapes.seed, shape.key)}
		tb.conjunct.setPlan(shape)
		if tb.conjunct.equality != nil {
			s.conjunctShapes.guards.equalityShapes++
		}
		tb.position = len(s.conjunctShapes.list)
		s.conjunctShapes.list, s.conjunctShapes.byKey[shape.key] = append(s.conjunctShapes.list, tb), tb
	}
	return tb
}

// dropConjunctTable removes the table of a conjunct shape that has no rows.
func (s *filters) dropConjunctTable(tb *table, t *topic) {
	s.dropTable(tb, t)
	delete(s.conjunctShapes.byKey, tb.key)
	s.conjunctShapes.list = removeTable(s.conjunctShapes.list, tb)
	if tb.conjunct.equality != nil {
		s.conjunctShapes.guards.equalityShapes--
	}
}

// setPlan sets the predicate of c to that of shape.
func (c *conjunctShape) setPlan(shape *filterShape) {
	c.predicate, c.equality, c.rangeKey = shape.predicate, nil, nil
	a := shape.plan.guards[0][0]
	gates := len(a.eventPredicates)
	if failpoint.Fault("terms-without-gates") { // reproduces an old defect: see TestAParenthesisedAndIsTestedWhole
		gates = 0
	}
	if !shape.plan.singlePath || len(shape.plan.residuals)+gates+len(a.rowPredicates) > 0 || a.substring != nil || a.sharedText != nil || a.grid != nil {
		return
	}
	switch {
	case len(a.equalities) == 1 && a.rangeKey == nil:
		c.equality = &a.equalities[0]
	case len(a.equalities) == 0 && a.rangeKey != nil && a.rangeKey.crossing == nil:
		c.rangeKey = a.rangeKey
	}
}

// rowKey returns the key of the equality in a row.
func (c *conjunctShape) rowKey(p *page, row uint32) uint64 {
	return hashMix(c.salt, c.equality.rowPart(&p.ParamPage, int(row&pageMask)))
}

// minFingerprintRows is the number of conjunctions sharing a conjunct shape without params from
// which an event evaluates it in advance.
const minFingerprintRows = 64

// rowFingerprint returns the fingerprint of a row that is no equality, if it has one.
func (c *conjunctShape) rowFingerprint(tb *table, row uint32) (mark uint16, ok bool) {
	switch {
	case c.rangeKey != nil:
		step, ok := c.bounds.add(tb.store.page(row).Numbers[c.rangeKey.column][row&pageMask], c.rangeKey.op)
		return c.boundFingerprint(step), ok
	case len(tb.params) > 0:
		return 0, false
	}
	c.hasFingerprint = c.hasFingerprint || tb.rowCount >= minFingerprintRows
	return fingerprintOf(c.salt), c.hasFingerprint
}

func (c *conjunctShape) boundFingerprint(step uint16) uint16 {
	return fingerprintOf(hashMix(c.salt, uint64(step)))
}

// An eventValue is the value of the event for a conjunct shape: its part of the key, or a number.
// It is not ok if no row can be true.
type eventValue struct {
	value uint64
	ok    bool
}

// addEvent adds the fingerprints and the key of the event's value to s.
func (c *conjunctShape) addEvent(f *matchFrame, s *conjunctionScratch) (a eventValue) {
	switch {
	case c.equality != nil:
		if a.value, a.ok = c.equality.eventPart(&f.Frame); a.ok {
			key := hashMix(c.salt, a.value)
			s.keys = append(s.keys, key)
			s.fingerprints.add(fingerprintOf(key))
		}
	case c.rangeKey != nil:
		v, _ := c.rangeKey.Load(&f.Frame)
		if x, ok := expr.ToFloat(v); ok {
			a = eventValue{math.Float64bits(x), true}
			for _, step := range c.bounds.reached(x, c.rangeKey.op) {
				s.fingerprints.add(c.boundFingerprint(step))
			}
		}
	case c.hasFingerprint && c.predicate.Eval(&f.Frame) == expr.True:
		s.fingerprints.add(fingerprintOf(c.salt))
	}
	return a
}

// rowValue returns the value that a row requires, if it requires a single one.
func (c *conjunctShape) rowValue(p *page, row int) uint64 {
	switch {
	case c.equality != nil:
		return c.equality.rowPart(&p.ParamPage, row)
	case c.rangeKey != nil:
		return math.Float64bits(p.Numbers[c.rangeKey.column][row])
	}
	return 0
}

// holds reports whether the conjunct in a row is true. asked is the row's value.
func (c *conjunctShape) holds(f *matchFrame, p *page, row int, asked uint64) bool {
	answer, is := f.scratch.eventValues[p.table.position], false
	switch {
	case c.equality != nil:
		is = answer.ok && answer.value == asked
	case c.rangeKey != nil:
		is = answer.ok && c.rangeKey.op.Matches(math.Float64frombits(answer.value), math.Float64frombits(asked))
	default:
		f.Page, f.Row = &p.ParamPage, row
		return c.predicate.Eval(&f.Frame) == expr.True
	}
	if assert.Enabled { // the predicate must agree
		f.Page, f.Row = &p.ParamPage, row
		assert.True(is == (c.predicate.Eval(&f.Frame) == expr.True), "the term %s of row %d was answered with %v, but its predicate disagrees", p.table.name, row, is)
	}
	return is
}

// searchConjunctions finds the conjunctions that match.
func (s *filters) searchConjunctions(f *matchFrame) {
	if len(s.conjunctShapes.list) == 0 {
		return
	}
	if f.scratch == nil {
		f.scratch = new(conjunctionScratch)
	}
	o := f.scratch
	o.begin()
	for _, tb := range s.conjunctShapes.list {
		o.eventValues = append(o.eventValues, tb.conjunct.addEvent(f, o))
	}
	s.conjunctShapes.guards.search(o)
	for _, tb := range s.conjunctShapes.list {
		if tb.conjunct.accessPathRows > 0 {
			tb.search(f)
		}
	}
	s.testCandidates(f)
}

// insertIntoPlans inserts the conjunctions with a guardAccessPath into the plans of fresh, which
// will replace the current shapes. A schema changes neither equalities nor ranges. It does not
// change anything that a match reads.
func (s *filters) insertIntoPlans(fresh []*filterShape, ix *rowIndexer) {
	for _, fl := range s.list {
		if fl == nil || fl.guard != guardAccessPath {
			continue
		}
		fresh[s.pages.page(fl.conjuncts[0]).table.position].plan.insert(ix, fl.conjuncts[0])
	}
}

// replaceConjunctPlans replaces the plans of the conjunct shapes by those of fresh.
func (s *filters) replaceConjunctPlans(fresh []*filterShape, paths *expr.PathTable) {
	for i, tb := range s.conjunctShapes.list {
		paths.Unlink(tb.plan.paths)
		tb.plan = fresh[i].plan
		tb.conjunct.setPlan(fresh[i])
		paths.Link(tb.plan.paths)
	}
}
