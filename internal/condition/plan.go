package condition

import (
	"slices"

	celast "cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
)

// A plan answers a rule: which of its rows match an event. The rule is a chain of
// conjuncts, each of which must be true. Ways lead to all rows that can match, and
// to few others:
//
//   - Where a way takes equalities or a text, all rows are on it. What it does not
//     answer are residuals, tested for each row to which it leads.
//   - So they are where equalities lead to cells, which answer nothing for good.
//   - Else cells are a guard, and each conjunct that has ways is a guard: an || has one for each of its
//     sides. A row is on the ways of the guard that shares it with the fewest
//     others, and is tested for the whole rule.
//   - Else all rows are on one way that leads to them always.
type plan struct {
	paths     []*path
	gates     allOf    // name no param: once per event
	guards    [][]*way // at least one
	direct    bool     // one guard of one way, on which a row is once: residuals are what it does not answer
	residuals []residual
}

// A residual is a conjunct that is evaluated for each row. Where it hangs on
// one text alone, each distinct text is evaluated once per event.
type residual struct {
	test
	column int // of the only param it reads, a text; -1 if there is none such
	memo   int // its number among the topic's memos
}

// newPlan compiles a rule, or a form. The plan's paths are yet to be linked.
func newPlan(b *builder) (*plan, error) {
	conjuncts := chain(b.ast.Expr(), operators.LogicalAnd, nil)
	w := newWay()
	rest := w.take(b, conjuncts)
	p := &plan{guards: [][]*way{{w}}, direct: true}
	switch {
	case w.cells != nil: // what lies in them is tested for everything
		p.gates, p.direct = w.gates, false
		if len(w.equalities) == 0 {
			p.guards = append(p.guards, guardsOf(b, rest)...)
		}
		rest = conjuncts
	case !w.leads():
		if guards := guardsOf(b, rest); guards != nil {
			p.gates, p.guards, p.direct = w.gates, guards, false
			rest = conjuncts
		}
	}
	for _, conjunct := range rest {
		reads, sub := readsOf(b, conjunct)
		if !sub {
			continue // a gate
		}
		r := residual{test: b.build(conjunct), column: -1}
		if len(reads) == 1 && !reads[0].isNumber() {
			r.column = reads[0].column
		}
		p.residuals = append(p.residuals, r)
	}
	w.entire = p.direct && len(p.residuals) == 0 && w.isEntire()
	p.paths = b.paths
	return p, b.err
}

// maxSides is how many sides of an || are followed, maxGuards how many guards a
// rule has.
const (
	maxSides  = 16
	maxGuards = 8
)

// guardsOf returns the ways of each conjunct that has some.
func guardsOf(b *builder, conjuncts []celast.Expr) (guards [][]*way) {
	for _, conjunct := range conjuncts {
		if _, sub := readsOf(b, conjunct); !sub || len(guards) == maxGuards {
			continue
		}
		if w := newWay(); w.takeNeedle(b, conjunct) || w.takeProbe(b, conjunct) {
			guards = append(guards, []*way{w})
		} else if ways := waysOf(b, conjunct); ways != nil {
			guards = append(guards, ways)
		}
	}
	return guards
}

// waysOf returns a way for each side of an ||, and for each value of which one is
// asked for, or none.
func waysOf(b *builder, e celast.Expr) []*way {
	sides := chain(e, operators.LogicalOr, nil)
	if len(sides) > maxSides {
		return nil
	}
	var ways []*way
	for _, side := range sides {
		if members := waysOfMember(b, side); members != nil {
			ways = append(ways, members...)
			continue
		}
		if len(sides) == 1 {
			return nil
		}
		w := newWay()
		rest := w.take(b, chain(side, operators.LogicalAnd, nil))
		for n := 0; n < len(rest) && !w.leads(); n++ {
			w.takeProbe(b, rest[n])
		}
		if !w.narrows() {
			return nil
		}
		ways = append(ways, w)
	}
	return ways
}

// insert puts a row on the ways of the guard by which it is met the most rarely.
func (p *plan) insert(at *placing, row uint32) {
	guard := 0
	if len(p.guards) > 1 {
		guard, _ = p.rarest(at, row)
		at.rows.page(row).guard(row, uint8(guard))
	}
	for _, w := range p.guards[guard] {
		at.insert(w, row)
	}
}

// rarest is the guard that a row shares with the fewest others, and with how many.
func (p *plan) rarest(at *placing, row uint32) (guard, cost int) {
	for i, ways := range p.guards {
		sum := 0
		for _, w := range ways {
			sum += at.cost(w, row)
		}
		if i == 0 || sum < cost {
			guard, cost = i, sum
		}
	}
	return guard, cost
}

func (p *plan) remove(at *placing, row uint32) {
	guard := uint8(0)
	if len(p.guards) > 1 {
		guard = at.rows.page(row).guards[row&pageMask]
		assert(int(guard) < len(p.guards), "row %d is on guard %d of %d", row, guard, len(p.guards))
	}
	for _, w := range p.guards[guard] {
		at.remove(w, row)
	}
}

// readsOf lists the params that e reads, if it can be told, and whether it
// reads sub at all.
func readsOf(b *builder, e celast.Expr) (reads []param, sub bool) {
	whole := false
	var visit func(celast.Expr)
	visit = func(e celast.Expr) {
		if p, ok := b.param(e); ok {
			sub = true
			for _, known := range reads {
				if known == p {
					return
				}
			}
			reads = append(reads, p)
			return
		}
		if e.Kind() == celast.IdentKind && bareIdent(e) == "sub" {
			sub, whole = true, true
		}
		for _, part := range parts(e) {
			visit(part)
		}
	}
	visit(e)
	if whole {
		reads = nil
	}
	return reads, sub
}

// readsEvent reports whether e reads the event, or a variable that is named as a
// field of it is.
func readsEvent(b *builder, e celast.Expr) bool {
	if e.Kind() == celast.IdentKind {
		_, reads := b.steps(e)
		return reads || b.ast.captured[e.ID()]
	}
	return slices.ContainsFunc(parts(e), func(part celast.Expr) bool { return readsEvent(b, part) })
}

// parts lists the expressions directly inside e.
func parts(e celast.Expr) []celast.Expr {
	switch e.Kind() {
	case celast.SelectKind:
		return []celast.Expr{e.AsSelect().Operand()}
	case celast.CallKind:
		call := e.AsCall()
		if call.IsMemberFunction() {
			return append([]celast.Expr{call.Target()}, call.Args()...)
		}
		return call.Args()
	case celast.ListKind:
		return e.AsList().Elements()
	case celast.MapKind:
		var list []celast.Expr
		for _, entry := range e.AsMap().Entries() {
			list = append(list, entry.AsMapEntry().Key(), entry.AsMapEntry().Value())
		}
		return list
	case celast.ComprehensionKind:
		f := e.AsComprehension()
		return []celast.Expr{f.IterRange(), f.AccuInit(), f.LoopCondition(), f.LoopStep(), f.Result()}
	case celast.StructKind:
		var list []celast.Expr
		for _, entry := range e.AsStruct().Fields() {
			list = append(list, entry.AsStructField().Value())
		}
		return list
	}
	return nil
}
