package condition

import (
	celast "cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"

	"fanfare.dev/fanfare/internal/condition/assert"
	"fanfare.dev/fanfare/internal/condition/expr"
	"fanfare.dev/fanfare/internal/condition/lang"
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
	paths           []*expr.Path
	eventPredicates expr.And        // name no param: once per event
	guards          [][]*accessPath // at least one
	singlePath      bool            // one guard of one way, on which a row is once: residuals are what it does not answer
	residuals       []residual
}

// A residual is a conjunct that is evaluated for each row. Where it hangs on
// one text alone, each distinct text is evaluated once per event.
type residual struct {
	expr.Predicate
	column int // of the only param it reads, a text; -1 if there is none such
	memo   int // its number among the topic's memos
}

// newPlan compiles a rule, or a form. The plan's paths are yet to be linked.
func newPlan(b *expr.Builder) (*plan, error) {
	conjuncts := lang.Flatten(b.Ast.Expr(), operators.LogicalAnd, nil)
	a := newAccessPath()
	rest := a.takeConjuncts(b, conjuncts)
	p := &plan{guards: [][]*accessPath{{a}}, singlePath: true}
	switch {
	case a.grid != nil: // what lies in them is tested for everything
		p.eventPredicates, p.singlePath = a.eventPredicates, false
		if len(a.equalities) == 0 {
			p.guards = append(p.guards, guardsOf(b, rest)...)
		}
		rest = conjuncts
	case !a.isSelective():
		if guards := guardsOf(b, rest); guards != nil {
			p.eventPredicates, p.guards, p.singlePath = a.eventPredicates, guards, false
			rest = conjuncts
		}
	}
	for _, conjunct := range rest {
		reads, sub := expr.ParamsIn(b, conjunct)
		if !sub {
			continue // a gate
		}
		r := residual{Predicate: b.Build(conjunct), column: -1}
		if len(reads) == 1 && !reads[0].IsNumber() {
			r.column = reads[0].Column
		}
		p.residuals = append(p.residuals, r)
	}
	a.covering = p.singlePath && len(p.residuals) == 0 && a.canCover()
	p.paths = b.Paths
	return p, b.Err
}

// maxSides is how many sides of an || are followed, maxGuards how many guards a
// rule has.
const (
	maxAlternatives = 16
	maxGuards       = 8
)

// guardsOf returns the ways of each conjunct that has some.
func guardsOf(b *expr.Builder, conjuncts []celast.Expr) (guards [][]*accessPath) {
	for _, conjunct := range conjuncts {
		if _, sub := expr.ParamsIn(b, conjunct); !sub || len(guards) == maxGuards {
			continue
		}
		if a := newAccessPath(); a.takeSubstring(b, conjunct) || a.takeSharedText(b, conjunct) {
			guards = append(guards, []*accessPath{a})
		} else if paths := accessPathsOf(b, conjunct); paths != nil {
			guards = append(guards, paths)
		}
	}
	return guards
}

// accessPathsOf returns a way for each side of an ||, and for each value of which one is
// asked for, or none.
func accessPathsOf(b *expr.Builder, e celast.Expr) []*accessPath {
	sides := lang.Flatten(e, operators.LogicalOr, nil)
	if len(sides) > maxAlternatives {
		return nil
	}
	var paths []*accessPath
	for _, side := range sides {
		if members := accessPathsOfIn(b, side); members != nil {
			paths = append(paths, members...)
			continue
		}
		if len(sides) == 1 {
			return nil
		}
		a := newAccessPath()
		rest := a.takeConjuncts(b, lang.Flatten(side, operators.LogicalAnd, nil))
		for n := 0; n < len(rest) && !a.isSelective(); n++ {
			a.takeSharedText(b, rest[n])
		}
		if !a.restricts() {
			return nil
		}
		paths = append(paths, a)
	}
	return paths
}

// insert puts a row on the ways of the guard by which it is met the most rarely.
func (p *plan) insert(ix *rowIndexer, row uint32) {
	guard := 0
	if len(p.guards) > 1 {
		guard, _ = p.rarestGuard(ix, row)
		ix.pages.page(row).setGuard(row, uint8(guard))
	}
	for _, a := range p.guards[guard] {
		ix.insert(a, row)
	}
}

// rarestGuard is the guard that a row shares with the fewest others, and with how many.
func (p *plan) rarestGuard(ix *rowIndexer, row uint32) (guard, cost int) {
	for i, paths := range p.guards {
		sum := 0
		for _, a := range paths {
			sum += ix.cost(a, row)
		}
		if i == 0 || sum < cost {
			guard, cost = i, sum
		}
	}
	return guard, cost
}

func (p *plan) remove(ix *rowIndexer, row uint32) {
	guard := uint8(0)
	if len(p.guards) > 1 {
		guard = ix.pages.page(row).guards[row&pageMask]
		assert.That(int(guard) < len(p.guards), "row %d is on guard %d of %d", row, guard, len(p.guards))
	}
	for _, a := range p.guards[guard] {
		ix.remove(a, row)
	}
}
