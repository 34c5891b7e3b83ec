package expr

import (
	"slices"

	celast "cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/traits"

	"fanfare.dev/fanfare/internal/condition/lang"
)

// The predicates of x in list.
type (
	InConstants struct { // in a list of constants
		Operand
		texts  map[string]struct{}
		others []any
	}
	InListParam struct { // in a list that is a param
		Operand
		ListParam
	}
	InMixedList struct { // in a list with params and other values
		Operand
		values []Operand
	}
	InEventList struct { // in a list of the event, or among the names of an object
		element, list Operand
	}
)

func (t *InConstants) Eval(f *Frame) Truth {
	v, ok := t.Load(f)
	if !ok {
		return Error
	}
	if text, isText := v.(string); isText {
		_, found := t.texts[text]
		return TruthOf(found)
	}
	for _, one := range t.others {
		if equal(v, one) {
			return True
		}
	}
	return False
}

func (t *InListParam) Eval(f *Frame) Truth {
	v, ok := t.Operand.Load(f)
	if !ok {
		return Error
	}
	return TruthOf(f.listHas(t.column, v))
}

// listHas reports whether v is a text of a list param.
func (f *Frame) listHas(column int, v any) bool {
	text, isText := v.(string)
	return isText && slices.Contains(f.list(column), any(text))
}

// Eval is an error if one of the values is an error, because the list cannot be made then.
func (t *InMixedList) Eval(f *Frame) Truth {
	v, ok := t.Load(f)
	if !ok {
		return Error
	}
	result := False
	for _, one := range t.values {
		value, ok := one.Load(f)
		if !ok {
			return Error
		}
		if equal(v, value) {
			result = True
		}
	}
	return result
}

func (t *InEventList) Eval(f *Frame) Truth {
	v, ok1 := t.element.Load(f)
	in, ok2 := t.list.Load(f)
	if !ok1 || !ok2 {
		return Error
	}
	switch in := in.(type) {
	case []any:
		return TruthOf(slices.ContainsFunc(in, func(one any) bool { return equal(v, one) }))
	case map[string]any:
		name, isText := v.(string)
		_, found := in[name]
		return TruthOf(isText && found)
	case traits.Container: // a computed value
		if found, ok := in.Contains(types.DefaultTypeAdapter.NativeToValue(v)).(types.Bool); ok {
			return TruthOf(bool(found))
		}
	}
	return Error
}

// membership returns the predicate of element in list, or nil.
func (b *Builder) membership(element, list celast.Expr) Predicate {
	x := b.Operand(element)
	if x == nil {
		return nil
	}
	if p, ok := b.Param(list); ok && p.Kind == lang.KindList {
		return &InListParam{x, ListParam{p.Column}}
	}
	values, ok := lang.ListElements(list)
	if !ok {
		if in := b.Operand(list); in != nil {
			return &InEventList{x, in}
		}
		return nil
	}
	m := &InConstants{Operand: x, texts: map[string]struct{}{}}
	for _, one := range values {
		v, ok := lang.Literal(one)
		if _, isParam := b.Param(one); isParam {
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

// inMixedList returns the predicate of x in a list with params and other values.
func (b *Builder) inMixedList(x Operand, values []celast.Expr) Predicate {
	m := &InMixedList{Operand: x, values: make([]Operand, len(values))}
	for i, one := range values {
		if m.values[i] = b.Operand(one); m.values[i] == nil {
			return nil
		}
	}
	return m
}

// InList splits value in [a, b].
func (b *Builder) InList(e celast.Expr) (value Source, values []celast.Expr, ok bool) {
	if e.Kind() != celast.CallKind || e.AsCall().FunctionName() != operators.In {
		return Source{}, nil, false
	}
	args := e.AsCall().Args()
	values, ok1 := lang.ListElements(args[1])
	value, ok2 := b.Source(args[0])
	return value, values, ok1 && ok2 && !slices.ContainsFunc(values, func(one celast.Expr) bool { return one.Kind() != celast.LiteralKind })
}
