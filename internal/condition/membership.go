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
	membership struct { // in a list of constants
		operand
		texts  map[string]struct{}
		others []any
	}
	listMembership struct { // in a list that is a param
		operand
		listParam
	}
	mixedMembership struct { // in a list of values some of which are params
		operand
		values []operand
	}
	containment struct { // in a list of the event, or among the names of an object
		element, list operand
	}
)

func (t *membership) eval(f *frame) truth {
	v, ok := t.load(f)
	if !ok {
		return fault
	}
	if text, isText := v.(string); isText {
		_, found := t.texts[text]
		return truthOf(found)
	}
	for _, one := range t.others {
		if equal(v, one) {
			return yes
		}
	}
	return no
}

func (t *listMembership) eval(f *frame) truth {
	v, ok := t.operand.load(f)
	if !ok {
		return fault
	}
	return truthOf(f.listHas(t.column, v))
}

// listHas reports whether v is one of the texts of a list that is a param.
func (f *frame) listHas(column int, v any) bool {
	text, isText := v.(string)
	return isText && slices.Contains(f.list(column), any(text))
}

// eval is an error where one of the values is: there is no such list, whatever is in it else.
func (t *mixedMembership) eval(f *frame) truth {
	v, ok := t.load(f)
	if !ok {
		return fault
	}
	result := no
	for _, one := range t.values {
		value, ok := one.load(f)
		if !ok {
			return fault
		}
		if equal(v, value) {
			result = yes
		}
	}
	return result
}

func (t *containment) eval(f *frame) truth {
	v, ok1 := t.element.load(f)
	in, ok2 := t.list.load(f)
	if !ok1 || !ok2 {
		return fault
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
	return fault
}

// membership returns the test of element in list, or nil.
func (b *builder) membership(element, list celast.Expr) test {
	x := b.operand(element)
	if x == nil {
		return nil
	}
	if p, ok := b.param(list); ok && p.kind == kindList {
		return &listMembership{x, listParam{p.column}}
	}
	values, ok := listed(list)
	if !ok {
		if in := b.operand(list); in != nil {
			return &containment{x, in}
		}
		return nil
	}
	m := &membership{operand: x, texts: map[string]struct{}{}}
	for _, one := range values {
		v, ok := literal(one)
		if _, isParam := b.param(one); isParam {
			return b.oneOf(x, values)
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

// oneOf is the test of x in a list in which there are params, and other values.
func (b *builder) oneOf(x operand, values []celast.Expr) test {
	m := &mixedMembership{operand: x, values: make([]operand, len(values))}
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

// waysOfMember returns a way for each value of a list in which there are params, or
// none.
func waysOfMember(b *builder, e celast.Expr) []*way {
	value, values, ok := b.memberOf(e)
	if _, sub := readsOf(b, e); !ok || !sub || len(values) > maxSides {
		return nil
	}
	if _, whole := b.param(e.AsCall().Args()[1]); whole {
		return nil
	}
	ways := make([]*way, len(values))
	for i, one := range values {
		ways[i] = newWay()
		if p, isParam := b.param(one); isParam {
			ways[i].equalities = []equalityKey{{field{b.path(value)}, p}}
		} else {
			ways[i].gates = allOf{&equality{a: field{b.path(value)}, b: b.operand(one)}}
		}
	}
	return ways
}
