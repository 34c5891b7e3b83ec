package jmespath

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// charge takes steps from the budget; it returns false if the budget is exceeded.
func (e *Evaluator) charge(steps int) bool {
	if e.steps += steps; e.steps > MaxSteps {
		e.err = ErrBudget
		return false
	}
	return true
}

// chargeText takes the steps for a text from the budget.
func (e *Evaluator) chargeText(text string) bool { return e.charge(len(text) / 16) }

// fail ends the evaluation with an error.
func (e *Evaluator) fail(err error) (any, bool) {
	e.err = err
	return nil, false
}

// eval returns the value of n for the current value; false if the evaluation has failed.
func (e *Evaluator) eval(n *node, v any) (any, bool) {
	if e.steps++; e.steps > MaxSteps {
		return e.fail(ErrBudget)
	}
	switch n.kind {
	case nodeCurrent:
		return v, true
	case nodeField:
		if object, ok := v.(map[string]any); ok {
			return object[n.name], true
		}
		return nil, true
	case nodeLiteral:
		return n.value, true
	case nodeIndex:
		if list, ok := v.([]any); ok {
			at := n.index
			if at < 0 {
				at += len(list)
			}
			if at >= 0 && at < len(list) {
				return list[at], true
			}
		}
		return nil, true
	case nodeSlice:
		return e.slice(n, v)
	case nodeSubexpression:
		left, ok := e.eval(n.left, v)
		if !ok || left == nil && n.optional {
			return nil, ok
		}
		return e.eval(n.right, left)
	case nodeProjection, nodeValues, nodeFiltered:
		return e.project(n, v)
	case nodeFlatten:
		return e.flatten(n, v)
	case nodeList, nodeObject:
		return e.multiselect(n, v)
	case nodeOr, nodeAnd:
		left, ok := e.eval(n.left, v)
		if !ok || isTrue(left) == (n.kind == nodeOr) {
			return left, ok
		}
		return e.eval(n.right, v)
	case nodeNot:
		left, ok := e.eval(n.left, v)
		return !isTrue(left), ok
	case nodeComparison:
		return e.compare(n, v)
	case nodeReference:
		return reference{n.left}, true
	default:
		return e.call(n, v)
	}
}

// A reference is an expression as the argument of a function.
type reference struct{ *node }

func (e *Evaluator) slice(n *node, v any) (any, bool) {
	list, ok := v.([]any)
	if !ok {
		return nil, true
	}
	step := 1
	if n.slice[2] != nil {
		step = *n.slice[2]
	}
	if step == 0 {
		return e.fail(errors.New("the step of a slice must not be 0"))
	}
	lowest, highest := 0, len(list) // of a slice's bounds
	from, to := 0, len(list)
	if step < 0 {
		lowest, highest = -1, len(list)-1
		from, to = len(list)-1, -1
	}
	bound := func(at *int, absent int) int {
		switch {
		case at == nil:
			return absent
		case *at < 0:
			return max(*at+len(list), lowest)
		}
		return min(*at, highest)
	}
	from, to = bound(n.slice[0], from), bound(n.slice[1], to)
	if !e.charge(len(list)) {
		return nil, false
	}
	part := []any{}
	for i := from; step > 0 && i < to || step < 0 && i > to; i += step {
		part = append(part, list[i])
	}
	return part, true
}

// project evaluates the right side of a projection for each element of the left side, and leaves out
// null.
func (e *Evaluator) project(n *node, v any) (any, bool) {
	left, ok := e.eval(n.left, v)
	if !ok {
		return nil, false
	}
	var list []any
	if object, isObject := left.(map[string]any); n.kind == nodeValues && isObject {
		if !e.charge(len(object)) {
			return nil, false
		}
		list = valuesOf(object)
	} else if elements, isList := left.([]any); n.kind != nodeValues && isList {
		list = elements
	} else {
		return nil, true
	}
	if n.kind == nodeFiltered { // all elements are tested before the first one is projected
		var inside []any
		for _, one := range list {
			matched, ok := e.eval(n.condition, one)
			if !ok {
				return nil, false
			}
			if isTrue(matched) {
				inside = append(inside, one)
			}
		}
		list = inside
	}
	found := []any{}
	for _, one := range list {
		one, ok := e.eval(n.right, one)
		if !ok {
			return nil, false
		}
		if one != nil {
			found = append(found, one)
		}
	}
	return found, true
}

func (e *Evaluator) flatten(n *node, v any) (any, bool) {
	left, ok := e.eval(n.left, v)
	list, isList := left.([]any)
	if !ok || !isList {
		return nil, ok
	}
	flat := []any{}
	for _, one := range list {
		inner, isList := one.([]any)
		if !e.charge(1 + len(inner)) {
			return nil, false
		}
		if isList {
			flat = append(flat, inner...)
		} else {
			flat = append(flat, one)
		}
	}
	return flat, true
}

func (e *Evaluator) multiselect(n *node, v any) (any, bool) {
	if v == nil {
		return nil, true
	}
	values := make([]any, len(n.args))
	for i, arg := range n.args {
		var ok bool
		if values[i], ok = e.eval(arg, v); !ok {
			return nil, false
		}
	}
	if n.kind == nodeList {
		return values, true
	}
	object := make(map[string]any, len(values))
	for i, key := range n.keys {
		object[key] = values[i]
	}
	return object, true
}

func (e *Evaluator) compare(n *node, v any) (any, bool) {
	left, ok := e.eval(n.left, v)
	if !ok {
		return nil, false
	}
	right, ok := e.eval(n.right, v)
	if !ok {
		return nil, false
	}
	switch n.comparison {
	case tokenEqual:
		return e.equal(left, right)
	case tokenNotEqual:
		same, ok := e.equal(left, right)
		return same == false, ok
	}
	return e.ordered(n.comparison, left, right)
}

func (e *Evaluator) call(n *node, v any) (any, bool) {
	f := n.function
	if f == nil {
		return e.fail(fmt.Errorf("unknown function %s()", n.name))
	}
	if len(n.args) != len(f.params) && (!f.variadic || len(n.args) < len(f.params)) {
		return e.fail(fmt.Errorf("%s() takes %d arguments, not %d", n.name, len(f.params), len(n.args)))
	}
	if n.name == containsFolded {
		return e.containsFolded(n, v)
	}
	from := len(e.stack)
	for _, arg := range n.args {
		one, ok := e.eval(arg, v)
		if !ok {
			return nil, false
		}
		e.stack = append(e.stack, one)
	}
	args := e.stack[from:]
	for i, kinds := range f.params {
		if !kinds.accept(args[i]) {
			return e.fail(fmt.Errorf("%s() does not accept %s as argument %d", n.name, typeName(args[i]), i+1))
		}
	}
	found, ok := f.call(e, args)
	e.stack = e.stack[:from]
	return found, ok
}

// containsFolded is contains_ci(text, part): whether text contains part without regard to upper and
// lower case; false if either is empty.
func (e *Evaluator) containsFolded(n *node, v any) (any, bool) {
	var texts [2]string
	for i, arg := range n.args {
		one, ok := e.eval(arg, v)
		if !ok {
			return nil, false
		}
		text, isText := one.(string)
		if !isText {
			return e.fail(fmt.Errorf("%s() does not accept %s as argument %d", n.name, typeName(one), i+1))
		}
		if arg.kind == nodeLiteral {
			texts[i] = arg.lower
		} else if texts[i] = e.lower(text); !e.chargeText(text) {
			return nil, false
		}
	}
	return texts[0] != "" && texts[1] != "" && containsText(texts[0], texts[1]), true
}

// valuesOf returns the values of an object in the order of its keys.
func valuesOf(object map[string]any) []any {
	list := make([]any, 0, len(object))
	for _, key := range keysOf(object) {
		list = append(list, object[key])
	}
	return list
}

func keysOf(object map[string]any) []string { return slices.Sorted(maps.Keys(object)) }
