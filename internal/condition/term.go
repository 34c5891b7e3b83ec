package condition

import (
	"hash/maphash"
	"math"

	"fanfare.dev/fanfare/internal/failpoint"
)

// A term is what one conjunct of many compounds has in common: a form whose rows are
// each that conjunct of one compound.
//
// A compound is a filter a && b && c whose skeleton few others have. Each of its
// conjuncts is a row of a term. One or two of them, the guard, lead to it: those by
// which it is met together with the fewest others. What an event meets so has a sign
// (sign.go), and if it meets that too, all conjuncts are tested. So the work for an
// event grows with the fields that compounds ask for, and with those that meet it, and
// not with the ways to combine fields.
type term struct {
	test     test         // the whole conjunct
	equality *equalityKey // where that is all it is
	span     *spanKey     // or this
	steps    steps        // of the span
	salt     uint64       // differs from that of other terms
	marked   bool         // an event sets its mark where it is true: it has no params
	onWays   int          // rows on the plan's ways
}

// terms are those of a topic.
type terms struct {
	list   []*rule
	byKey  map[string]*rule
	seed   maphash.Seed // so that nobody can choose values that have the keys of others
	guards guards
}

func newTerms() terms {
	return terms{byKey: map[string]*rule{}, seed: maphash.MakeSeed(), guards: guards{byKey: map[uint64]guarded{}, crowd: defaultCrowd}}
}

// term returns the rows of a term.
func (s *filters) term(fm *form, t *topic) *rule {
	r := s.terms.byKey[fm.key]
	if r == nil {
		r = s.newRule(fm, t)
		r.term = &term{salt: maphash.String(s.terms.seed, fm.key)}
		r.term.is(fm)
		if r.term.equality != nil {
			s.terms.guards.keys++
		}
		r.at = len(s.terms.list)
		s.terms.list, s.terms.byKey[fm.key] = append(s.terms.list, r), r
	}
	return r
}

// dropTerm forgets a term that has no rows.
func (s *filters) dropTerm(r *rule, t *topic) {
	s.dropRule(r, t)
	delete(s.terms.byKey, r.key)
	s.terms.list = without(s.terms.list, r)
	if r.term.equality != nil {
		s.terms.guards.keys--
	}
}

// is makes fm what tm tests.
func (tm *term) is(fm *form) {
	tm.test, tm.equality, tm.span = fm.test, nil, nil
	w := fm.plan.guards[0][0]
	gates := len(w.gates)
	if failpoint.Fault("terms-without-gates") { // as it was once: see TestAParenthesisedAndIsTestedWhole
		gates = 0
	}
	if !fm.plan.direct || len(fm.plan.residuals)+gates+len(w.statics) > 0 || w.needle != nil || w.probe != nil || w.cells != nil {
		return
	}
	switch {
	case len(w.equalities) == 1 && w.span == nil:
		tm.equality = &w.equalities[0]
	case len(w.equalities) == 0 && w.span != nil && w.span.crossed == nil:
		tm.span = w.span
	}
}

// key is that of the equality of a row.
func (tm *term) key(p *page, row uint32) uint64 {
	return mix(tm.salt, tm.equality.part(p, int(row&pageMask)))
}

// markedFrom is how many compounds share a term without params before an event
// answers it for all of them.
const markedFrom = 64

// mark returns the mark of a row that is no equality, if there is one.
func (tm *term) mark(r *rule, row uint32) (mark uint16, ok bool) {
	switch {
	case tm.span != nil:
		step, ok := tm.steps.take(r.rows.page(row).numbers[tm.span.column][row&pageMask], tm.span.op)
		return tm.stepMark(step), ok
	case len(r.params) > 0:
		return 0, false
	}
	tm.marked = tm.marked || r.live >= markedFrom
	return markOf(tm.salt), tm.marked
}

func (tm *term) stepMark(step uint16) uint16 { return markOf(mix(tm.salt, uint64(step))) }

// An answer is what an event has to say about a term: the part of its key, or its
// number; not ok where no row can be true.
type answer struct {
	value uint64
	ok    bool
}

// say sets the marks of what the event says about a term, and keeps its key.
func (tm *term) say(f *frame, o *lookout) (a answer) {
	switch {
	case tm.equality != nil:
		if a.value, a.ok = tm.equality.partOf(f); a.ok {
			key := mix(tm.salt, a.value)
			o.keys = append(o.keys, key)
			o.says.say(markOf(key))
		}
	case tm.span != nil:
		v, _ := tm.span.load(f)
		if x, ok := toFloat(v); ok {
			a = answer{math.Float64bits(x), true}
			for _, step := range tm.steps.met(x, tm.span.op) {
				o.says.say(tm.stepMark(step))
			}
		}
	case tm.marked && tm.test.eval(f) == yes:
		o.says.say(markOf(tm.salt))
	}
	return a
}

// asks is what a row asks for, where that is one value.
func (tm *term) asks(p *page, row int) uint64 {
	switch {
	case tm.equality != nil:
		return tm.equality.part(p, row)
	case tm.span != nil:
		return math.Float64bits(p.numbers[tm.span.column][row])
	}
	return 0
}

// meets reports whether a row, which asks for that, is true.
func (tm *term) meets(f *frame, p *page, row int, asked uint64) bool {
	answer, is := f.lookout.answers[p.rule.at], false
	switch {
	case tm.equality != nil:
		is = answer.ok && answer.value == asked
	case tm.span != nil:
		is = answer.ok && tm.span.op.orders(math.Float64frombits(answer.value), math.Float64frombits(asked))
	default:
		f.page, f.row = p, row
		return tm.test.eval(f) == yes
	}
	if assertions { // the comparison is all that the conjunct says
		f.page, f.row = p, row
		assert(is == (tm.test.eval(f) == yes), "the term %s of row %d is answered %v without its test", p.rule.name, row, is)
	}
	return is
}

// searchTerms finds the compounds that match.
func (s *filters) searchTerms(f *frame) {
	if len(s.terms.list) == 0 {
		return
	}
	if f.lookout == nil {
		f.lookout = new(lookout)
	}
	o := f.lookout
	o.begin()
	for _, r := range s.terms.list {
		o.answers = append(o.answers, r.term.say(f, o))
	}
	s.terms.guards.search(o)
	for _, r := range s.terms.list {
		if r.term.onWays > 0 {
			r.search(f)
		}
	}
	s.takeCandidates(f)
}

// replant puts the compounds that a way leads to on those of fresh, what the terms are
// to be: what is an equality, and what is a range, no schema changes. It changes
// nothing that a match reads.
func (s *filters) replant(fresh []*form, at *placing) {
	for _, fl := range s.list {
		if fl == nil || fl.guard != guardWay {
			continue
		}
		fresh[s.rows.page(fl.parts[0]).rule.at].plan.insert(at, fl.parts[0])
	}
}

// redefine makes fresh what the terms are.
func (s *filters) redefine(fresh []*form, paths *paths) {
	for i, r := range s.terms.list {
		paths.unlink(r.plan.paths)
		r.plan = fresh[i].plan
		r.term.is(fresh[i])
		paths.link(r.plan.paths)
	}
}
