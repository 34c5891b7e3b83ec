package condition

import (
	"slices"

	celast "cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/traits"
)

// The tests of x in list.
type (
	InConstants struct { // in a list of constants
		operand
		texts  map[string]struct{}
		others []any
	}
	InListParam struct { // in a list that is a param
		operand
		listParam
	}
	InMixedList struct { // in a list of values some of which are params
		operand
		values []operand
	}
	InEventList struct { // in a list of the event, or among the names of an object
		element, list operand
	}
)

func (t *InConstants) eval(f *frame) Truth {
	v, ok := t.load(f)
	if !ok {
		return Error
	}
	if text, isText := v.(string); isText {
		_, found := t.texts[text]
		return truthOf(found)
	}
	for _, one := range t.others {
		if equal(v, one) {
			return True
		}
	}
	return False
}

func (t *InListParam) eval(f *frame) Truth {
	v, ok := t.operand.load(f)
	if !ok {
		return Error
	}
	return truthOf(f.listHas(t.column, v))
}

// listHas reports whether v is one of the texts of a list that is a param.
func (f *frame) listHas(column int, v any) bool {
	text, isText := v.(string)
	return isText && slices.Contains(f.list(column), any(text))
}

// eval is an error where one of the values is: there is no such list, whatever is in it else.
func (t *InMixedList) eval(f *frame) Truth {
	v, ok := t.load(f)
	if !ok {
		return Error
	}
	result := False
	for _, one := range t.values {
		value, ok := one.load(f)
		if !ok {
			return Error
		}
		if equal(v, value) {
			result = True
		}
	}
	return result
}

func (t *InEventList) eval(f *frame) Truth {
	v, ok1 := t.element.load(f)
	in, ok2 := t.list.load(f)
	if !ok1 || !ok2 {
		return Error
	}
	switch in := in.(type) {
	case []any:
		return truthOf(slices.ContainsFunc(in, func(one any) bool { return equal(v, one) }))
	case map[string]any:
		name, isText := v.(string)
		_, found := in[name]
		return truthOf(isText && found)
	case traits.Container: // what was computed
		if found, ok := in.Contains(types.DefaultTypeAdapter.NativeToValue(v)).(types.Bool); ok {
			return truthOf(bool(found))
		}
	}
	return Error
}

// membership returns the test of element in list, or nil.
func (b *builder) membership(element, list celast.Expr) Predicate {
	x := b.operand(element)
	if x == nil {
		return nil
	}
	if p, ok := b.param(list); ok && p.kind == kindList {
		return &InListParam{x, listParam{p.column}}
	}
	values, ok := listed(list)
	if !ok {
		if in := b.operand(list); in != nil {
			return &InEventList{x, in}
		}
		return nil
	}
	m := &InConstants{operand: x, texts: map[string]struct{}{}}
	for _, one := range values {
		v, ok := literal(one)
		if _, isParam := b.param(one); isParam {
			return b.inMixedList(x, values)
		}
		if !ok {
			return nil
		}
		if text, isText := v.(string); isText {
			m.texts[text] = struct{}{}
		} else {
			m.others = append(m.others, v)
		}
	}
	return m
}

// inMixedList is the test of x in a list in which there are params, and other values.
func (b *builder) inMixedList(x operand, values []celast.Expr) Predicate {
	m := &InMixedList{operand: x, values: make([]operand, len(values))}
	for i, one := range values {
		if m.values[i] = b.operand(one); m.values[i] == nil {
			return nil
		}
	}
	return m
}

// listed returns the elements of a list that is written out.
func listed(e celast.Expr) ([]celast.Expr, bool) {
	if e.Kind() != celast.ListKind || len(e.AsList().OptionalIndices()) > 0 {
		return nil, false
	}
	return e.AsList().Elements(), true
}

// memberOf takes value in [a, b] apart.
func (b *builder) memberOf(e celast.Expr) (value source, values []celast.Expr, ok bool) {
	if e.Kind() != celast.CallKind || e.AsCall().FunctionName() != operators.In {
		return source{}, nil, false
	}
	args := e.AsCall().Args()
	values, ok1 := listed(args[1])
	value, ok2 := b.source(args[0])
	return value, values, ok1 && ok2 && !slices.ContainsFunc(values, func(one celast.Expr) bool { return one.Kind() != celast.LiteralKind })
}

// accessPathsOfIn returns a way for each value of a list in which there are params, or
// none.
func accessPathsOfIn(b *builder, e celast.Expr) []*accessPath {
	value, values, ok := b.memberOf(e)
	if _, sub := paramsIn(b, e); !ok || !sub || len(values) > maxAlternatives {
		return nil
	}
	if _, whole := b.param(e.AsCall().Args()[1]); whole {
		return nil
	}
	ways := make([]*accessPath, len(values))
	for i, one := range values {
		ways[i] = newAccessPath()
		if p, isParam := b.param(one); isParam {
			ways[i].equalities = []equalityKey{{field{b.path(value)}, p}}
		} else {
			ways[i].eventPredicates = And{&Equality{a: field{b.path(value)}, b: b.operand(one)}}
		}
	}
	return ways
}
