package condition

import (
	"math"

	celast "cel.dev/cel-go/common/ast"
)

// rangeSpace are the extents of rows that say of one or two fields, each: at least
// this, and at most that.
type rangeSpace []fieldRange

type fieldRange struct {
	field
	low, high int // columns
}

// maxRanges is how many of a rule's ranges lead to cells: with each the levels in
// use multiply.
const maxRanges = 2

func (r rangeSpace) axes() int { return len(r) }

// box takes the ends in, whether the row does or not.
func (r rangeSpace) box(p *paramPage, row int) (b box, ok bool) {
	for i := range r {
		b.low[i], b.high[i] = p.numbers[r[i].low][row], p.numbers[r[i].high][row]
		if !(b.low[i] <= b.high[i]) {
			return b, false
		}
	}
	return b, true
}

func (r rangeSpace) point(f *frame) (at [maxAxes]float64, ok bool) {
	for i := range r {
		v, _ := r[i].load(f)
		if at[i], ok = toFloat(v); !ok || math.IsInf(at[i], 0) || math.IsNaN(at[i]) {
			return at, false
		}
	}
	return at, true
}

// A bound is event.f op sub.p.
type paramBound struct {
	source
	column int
	op     comparison
}

// paramBoundOf takes a comparison of a field with a param that is a number apart.
func paramBoundOf(b *builder, e celast.Expr) (found paramBound, ok bool) {
	if e.Kind() != celast.CallKind {
		return found, false
	}
	op, ok := relations[e.AsCall().FunctionName()]
	if !ok {
		return found, false
	}
	value, param, swapped, ok := fieldAndParam(b, e)
	if swapped {
		op = op.mirrored()
	}
	return paramBound{value, param.column, op}, ok && param.isNumber()
}

// rangeSpaceOf finds the fields that conjuncts bound on both sides. used are the
// conjuncts, by expression.
func rangeSpaceOf(b *builder, conjuncts []celast.Expr) (found rangeSpace, used map[int64]bool) {
	type sides struct{ lower, upper celast.Expr }
	var keys []string
	byField := map[string]*sides{}
	for _, conjunct := range conjuncts {
		one, ok := paramBoundOf(b, conjunct)
		if !ok {
			continue
		}
		key := one.key()
		s := byField[key]
		if s == nil {
			s = &sides{}
			byField[key], keys = s, append(keys, key)
		}
		end := &s.upper
		if one.op.isLowerBound() {
			end = &s.lower
		}
		if *end == nil {
			*end = conjunct
		}
	}
	used = map[int64]bool{}
	for _, key := range keys {
		s := byField[key]
		if s.lower == nil || s.upper == nil || len(found) == maxRanges {
			continue
		}
		lower, _ := paramBoundOf(b, s.lower)
		upper, _ := paramBoundOf(b, s.upper)
		found = append(found, fieldRange{field{b.path(lower.source)}, lower.column, upper.column})
		used[s.lower.ID()], used[s.upper.ID()] = true, true
	}
	return found, used
}
