package condition

import (
	celast "cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"

	"fanfare.dev/fanfare/internal/condition/assert"
	"fanfare.dev/fanfare/internal/condition/expr"
	"fanfare.dev/fanfare/internal/condition/lang"
)

// A plan finds the rows of a table that match an event. The condition is a chain of conjuncts,
// which must all be true. Access paths lead to all rows that can match, and to few other rows:
//
//   - If an access path answers equalities or a text, all rows are on it. The conjuncts that it
//     does not answer are residuals, evaluated for each row that it leads to.
//   - The same holds where equalities lead to a grid. A grid answers no conjunct completely.
//   - Otherwise a grid is a guard, and so is each conjunct with access paths; an || has one for
//     each of its sides. A row is on the access paths of the guard that it shares with the fewest
//     others. All conjuncts are residuals.
//   - Otherwise all rows are on one access path that leads to them for every event.
type plan struct {
	paths           []*expr.Path
	eventPredicates expr.And        // read no param: evaluated once per event
	guards          [][]*accessPath // one or more
	singlePath      bool            // one guard with one access path, which has each row once: residuals are only the conjuncts that it does not answer
	residuals       []residual
}

// A residual is a conjunct that is evaluated for each row. If it depends on one text only, it is
// evaluated once per event for each distinct text.
type residual struct {
	expr.Predicate
	column int // of the only param that it reads, if that is a text; else -1
	memo   int // its number among the topic's memos
}

// newPlan compiles a condition. The caller links the paths of the plan.
func newPlan(b *expr.Builder) (*plan, error) {
	conjuncts := lang.Flatten(b.Ast.Expr(), operators.LogicalAnd, nil)
	a := newAccessPath()
	rest := a.takeConjuncts(b, conjuncts)
	p := &plan{guards: [][]*accessPath{{a}}, singlePath: true}
	switch {
	case a.grid != nil: // rows in a cell are tested for all conjuncts
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
			continue // it is an event predicate
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

// maxAlternatives limits the sides of an || with access paths, maxGuards the guards of a plan.
const (
	maxAlternatives = 16
	maxGuards       = 8
)

// guardsOf returns the access paths of each conjunct that has some.
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

// accessPathsOf returns an access path for each side of an || and for each value of a list, or nil.
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

// insert puts a row on the access paths of its rarest guard.
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

// rarestGuard returns the guard that a row shares with the fewest others, and their number.
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
		assert.True(int(guard) < len(p.guards), "row %d has guard %d, but the plan has only %d guards", row, guard, len(p.guards))
	}
	for _, a := range p.guards[guard] {
		ix.remove(a, row)
	}
}
