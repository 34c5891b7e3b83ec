package condition

import (
	"math"

	celast "cel.dev/cel-go/common/ast"
)

// ranges are the extents of rows that say of one or two fields, each: at least
// this, and at most that.
type ranges []numberRange

type numberRange struct {
	field
	low, high int // columns
}

// maxRanges is how many of a rule's ranges lead to cells: with each the levels in
// use multiply.
const maxRanges = 2

func (r ranges) axes() int { return len(r) }

// box takes the ends in, whether the row does or not.
func (r ranges) box(p *page, row int) (b box, ok bool) {
	for i := range r {
		b.low[i], b.high[i] = p.numbers[r[i].low][row], p.numbers[r[i].high][row]
		if !(b.low[i] <= b.high[i]) {
			return b, false
		}
	}
	return b, true
}

func (r ranges) point(f *frame) (at [maxAxes]float64, ok bool) {
	for i := range r {
		v, _ := r[i].load(f)
		if at[i], ok = toFloat(v); !ok || math.IsInf(at[i], 0) || math.IsNaN(at[i]) {
			return at, false
		}
	}
	return at, true
}

// A bound is event.f op sub.p.
type bound struct {
	source
	column int
	op     relation
}

// boundOf takes a comparison of a field with a param that is a number apart.
func boundOf(b *builder, e celast.Expr) (found bound, ok bool) {
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
	return bound{value, param.column, op}, ok && param.isNumber()
}

// rangesOf finds the fields that conjuncts bound on both sides. used are the
// conjuncts, by expression.
func rangesOf(b *builder, conjuncts []celast.Expr) (found ranges, used map[int64]bool) {
	type sides struct{ lower, upper celast.Expr }
	var keys []string
	byField := map[string]*sides{}
	for _, conjunct := range conjuncts {
		one, ok := boundOf(b, conjunct)
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
		if one.op.isLower() {
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
		lower, _ := boundOf(b, s.lower)
		upper, _ := boundOf(b, s.upper)
		found = append(found, numberRange{field{b.path(lower.source)}, lower.column, upper.column})
		used[s.lower.ID()], used[s.upper.ID()] = true, true
	}
	return found, used
}
