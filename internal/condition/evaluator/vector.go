package evaluator

import "strings"

// A vector is the value of a node for each event. If each is nil, all events have the value same.
type vector struct {
	each []value
	same value
}

func (x *vector) at(i int) value {
	if x.each == nil {
		return x.same
	}
	return x.each[i]
}

// sizeBytes estimates the memory of the values, without texts and lists that belong to the events.
func (x *vector) sizeBytes(made bool) int {
	const valueBytes = 40
	total := valueBytes * len(x.each)
	if made {
		for i := range x.each {
			total += len(x.each[i].str)
			if ref := x.each[i].ref; ref != nil {
				total += valueBytes * (len(ref.items) + len(ref.keys))
			}
		}
	}
	return total
}

// vector evaluates a node for all events. The value is undefined for an event that is too large
// for the size class of the node.
func (b *Batch) vector(n *node, p *Params) *vector {
	switch n.op {
	case opLiteral:
		return &vector{same: n.literal}
	case opParams:
		return &vector{same: p.values}
	case opSelect:
		if of := n.args[0].op; of == opParams {
			return &vector{same: selectField(p.values, n.name, n.why)}
		}
	}
	made := n.op != opSelect && n.op != opEvent && n.op != opAttributes
	return b.memoized("", n, p, made, func() *vector { return b.compute(n, p) })
}

// memoized returns the vector of a node, and computes it if it is not kept. made reports that the
// values are new and do not belong to the events.
func (b *Batch) memoized(prefix string, n *node, p *Params, made bool, compute func() *vector) *vector {
	if known, ok := b.vectors[string(b.name(prefix, n, p))]; ok {
		return known
	}
	x := compute()
	key := string(b.name(prefix, n, p))
	b.keep(x.sizeBytes(made))
	b.vectors[key] = x
	return x
}

func (b *Batch) compute(n *node, p *Params) *vector {
	if n.truth {
		r := b.decide(n, p)
		x := b.values()
		for i := range x.each {
			x.each[i] = r.at(i)
		}
		return x
	}
	switch n.op {
	case opEvent, opAttributes:
		x := b.values()
		for i, in := range b.inputs {
			if n.op == opEvent {
				x.each[i] = in.event
			} else {
				x.each[i] = in.attributes
			}
		}
		return x
	case opSelect:
		return b.apply(n, b.vector(n.args[0], p))
	case opChoose:
		return b.choose(n, p)
	case opCollect:
		over := b.vector(n.args[0], p)
		return b.each(n, p, func(e *evaluation, i int) value { return e.macroOver(n, over.at(i)) })
	case opCall:
		switch len(n.args) {
		case 1:
			return b.apply(n, b.vector(n.args[0], p))
		case 2:
			return b.applyPair(n, b.vector(n.args[0], p), b.vector(n.args[1], p))
		}
	}
	return b.each(n, p, func(e *evaluation, _ int) value { return e.eval(n) })
}

func (b *Batch) values() *vector { return &vector{each: make([]value, len(b.inputs))} }

// applyOne applies a node with one operand.
func applyOne(n *node, a value) value {
	switch {
	case !a.decided():
		return a
	case n.op == opSelect:
		return selectField(a, n.name, n.why)
	case n.op == opHas:
		return hasField(a, n.name)
	default:
		return n.fn.one(n, a)
	}
}

func (b *Batch) apply(n *node, x *vector) *vector {
	if x.each == nil {
		return &vector{same: applyOne(n, x.same)}
	}
	result, skip := b.values(), b.oversized[n.sizeClass]
	for i := range x.each {
		if !skip.has(i) {
			result.each[i] = applyOne(n, x.each[i])
		}
	}
	return result
}

func applyTwo(n *node, a, b value) value {
	if !a.decided() || !b.decided() {
		return either(a, b)
	}
	return n.fn.two(n, a, b)
}

func (b *Batch) applyPair(n *node, x, y *vector) *vector {
	if x.each == nil && y.each == nil {
		return &vector{same: applyTwo(n, x.same, y.same)}
	}
	result, skip := b.values(), b.oversized[n.sizeClass]
	for i := range result.each {
		if !skip.has(i) {
			result.each[i] = applyTwo(n, x.at(i), y.at(i))
		}
	}
	return result
}

func (b *Batch) choose(n *node, p *Params) *vector {
	condition, yes, no := b.vector(n.args[0], p), b.vector(n.args[1], p), b.vector(n.args[2], p)
	result := b.values()
	for i := range result.each {
		switch c := predicate(condition.at(i)); {
		case !c.decided():
			result.each[i] = c
		case c.isTrue():
			result.each[i] = yes.at(i)
		default:
			result.each[i] = no.at(i)
		}
	}
	return result
}

// evaluation returns an evaluation for work that is done event by event.
func (b *Batch) evaluation(p *Params) *evaluation {
	e := &evaluation{}
	if p != nil {
		e.params = p.values
	}
	return e
}

// each evaluates a node event by event.
func (b *Batch) each(n *node, p *Params, eval func(e *evaluation, i int) value) *vector {
	result, skip := b.values(), b.oversized[n.sizeClass]
	e := b.evaluation(p)
	for i, in := range b.inputs {
		if !skip.has(i) {
			e.in = in
			result.each[i] = eval(e, i)
		}
	}
	return result
}

// before evaluates a node for the previous event of each key.
func (b *Batch) before(n *node, p *Params) *vector {
	return b.memoized("before ", n, p, true, func() *vector {
		return b.each(n, p, func(e *evaluation, _ int) value {
			if !e.in.hasWas {
				return value{}
			}
			e.past = true
			return e.eval(n)
		})
	})
}

// folded returns a vector with its texts folded, for contains_ci and starts_with_ci.
func (b *Batch) folded(n *node, x *vector, p *Params) *vector {
	if x.each == nil {
		return &vector{same: foldValue(x.same)}
	}
	return b.memoized("fold ", n, p, true, func() *vector {
		result := b.values()
		for i := range x.each {
			result.each[i] = foldValue(x.each[i])
		}
		return result
	})
}

func foldValue(v value) value {
	if v.kind == kindString {
		v.str = fold(v.str)
	}
	return v
}

// decidePair evaluates a function of two values that returns a boolean. The most common functions
// need no call for each event.
func (b *Batch) decidePair(n *node, x, y *vector, p *Params) *verdicts {
	if x.each == nil && y.each == nil {
		return b.constant(applyTwo(n, x.same, y.same))
	}
	w := newVerdicts(b.words)
	switch n.fn.name {
	case "contains_ci", "starts_with_ci":
		x, y = b.folded(n.args[0], x, p), b.folded(n.args[1], y, p)
		is := strings.Contains
		if n.fn.name == "starts_with_ci" {
			is = strings.HasPrefix
		}
		return b.decideEach(n, func(i int) value { return decideFolded(is, x.at(i), y.at(i)) })
	case "_==_", "_!=_":
		if y.each == nil && y.same.kind == kindString {
			w.equalText(x.each, y.same.str, n.fn.name == "_==_")
			return &w.verdicts
		}
	}
	if compares, known := comparisons[n.fn.name]; known && y.each == nil && y.same.isNumber() && !isNaN(y.same) {
		w.compareNumber(n, x.each, y.same, compares)
		return &w.verdicts
	}
	return b.decideEach(n, func(i int) value { return applyTwo(n, x.at(i), y.at(i)) })
}

// decideFolded is contains_ci or starts_with_ci on folded texts.
func decideFolded(is func(text, part string) bool, a, b value) value {
	switch {
	case !a.decided() || !b.decided():
		return either(a, b)
	case a.kind != kindString || b.kind != kindString:
		return errorValue(noOverload)
	default:
		return boolValue(a.str != "" && b.str != "" && is(a.str, b.str))
	}
}

// equalText decides values == text, or != if equal is false.
func (w *verdictWriter) equalText(values []value, text string, equal bool) {
	for i := range values {
		v := &values[i]
		switch {
		case v.kind == kindString:
			if (v.str == text) == equal {
				w.true_[i>>6] |= 1 << (i & 63)
			}
		case v.kind == kindError:
			w.setError(i)
		case v.kind == kindUndecided:
			w.setUndecided(i)
		case !equal:
			w.true_[i>>6] |= 1 << (i & 63)
		}
	}
}

// comparisons holds the operators that compare numbers, each with the orders for which it is true,
// as bits: 1 for less, 2 for equal, 4 for greater.
var comparisons = map[string]uint8{"_<_": 1, "_==_": 2, "_<=_": 3, "_>_": 4, "_!=_": 5, "_>=_": 6}

// compareNumber compares values with a number, which is not NaN.
func (w *verdictWriter) compareNumber(n *node, values []value, with value, holds uint8) {
	number := with.asDouble()
	for i := range values {
		v := &values[i]
		order := uint8(0)
		switch {
		case v.kind == kindDouble:
			d := v.double()
			switch {
			case d < number:
				order = 1
			case d == number:
				order = 2
			case d > number:
				order = 4
			case holds == 5: // NaN differs, and has no order
				order = 1
			}
		case v.kind == kindInt && with.kind == kindInt:
			switch a, b := v.int(), with.int(); {
			case a < b:
				order = 1
			case a == b:
				order = 2
			default:
				order = 4
			}
		default:
			result := applyTwo(n, *v, with)
			w.set(i, &result)
			continue
		}
		if order&holds != 0 {
			w.true_[i>>6] |= 1 << (i & 63)
		}
	}
}
