package condition

import (
	"fmt"
	"math"
	"strconv"

	"cel.dev/cel-go/cel"
	celast "cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// computedRoot is a value that an expression makes of the event alone, such as
// size(event.list) or timestamp(event.at). It is found once per event, however many
// conditions ask for it, and leads to rows as a field does.
type computedRoot struct {
	text    string // the expression's tree, written out
	expr    celast.Expr
	program cel.Program // planned when a path is made of it
}

func (c *computedRoot) key() string { return c.text }

func (c *computedRoot) load(f *frame) (any, bool) {
	if c.program == nil { // an error that is reported
		return nil, false
	}
	v, _, err := c.program.Eval(f)
	if err != nil {
		return nil, false
	}
	return nativeValue(v), true
}

// source reports whether e is a value of the event: a name, or computed.
func (b *builder) source(e celast.Expr) (source, bool) {
	if s, ok := b.steps(e); ok {
		return s, true
	}
	if _, sub := paramsIn(b, e); sub || !readsEvent(b, e) {
		return source{}, false
	}
	if c, ok := b.timePartRoot(e); ok {
		return source{root: c}, true
	}
	return source{root: &computedRoot{text: string(writeCanonical(nil, e)), expr: e}}, true
}

// writeCanonical writes an expression out so that no other is written alike: names and texts are
// quoted, each part stands in brackets, and a literal tells its type, since 1 and 1.0 are not the
// same in arithmetic.
func writeCanonical(b []byte, e celast.Expr) []byte {
	b = append(b, '(')
	switch e.Kind() {
	case celast.LiteralKind:
		b = append(append(b, e.AsLiteral().Type().TypeName()...), ' ')
		if v, isDouble := e.AsLiteral().(types.Double); isDouble {
			b = strconv.AppendUint(b, math.Float64bits(float64(v)), 16)
		} else {
			b = strconv.AppendQuote(b, fmt.Sprint(e.AsLiteral().Value()))
		}
	case celast.IdentKind:
		b = strconv.AppendQuote(append(b, "name "...), e.AsIdent())
	case celast.SelectKind:
		word := "field "
		if e.AsSelect().IsTestOnly() {
			word = "has "
		}
		b = strconv.AppendQuote(append(b, word...), e.AsSelect().FieldName())
	case celast.CallKind:
		word := "call "
		if e.AsCall().IsMemberFunction() {
			word = "method "
		}
		b = strconv.AppendQuote(append(b, word...), e.AsCall().FunctionName())
	case celast.ComprehensionKind:
		loop := e.AsComprehension()
		b = append(b, "loop "...)
		for _, name := range [...]string{loop.IterVar(), loop.IterVar2(), loop.AccuVar()} {
			b = strconv.AppendQuote(b, name)
		}
	case celast.StructKind:
		b = strconv.AppendQuote(append(b, "struct "...), e.AsStruct().TypeName())
		for _, entry := range e.AsStruct().Fields() {
			b = strconv.AppendQuote(b, entry.AsStructField().Name())
		}
	case celast.ListKind:
		b = append(b, "list"...)
	case celast.MapKind:
		b = append(b, "map"...)
	}
	for _, part := range children(e) {
		b = writeCanonical(b, part)
	}
	return append(b, ')')
}

// constant returns what an expression that names nothing comes to, such as
// duration('1h').
func (b *builder) constant(e celast.Expr) (*constant, bool) {
	v, ok := literal(e)
	if !ok {
		if _, sub := paramsIn(b, e); sub || readsEvent(b, e) {
			return nil, false
		}
		program := b.plan(e)
		if program == nil {
			return nil, false
		}
		found, _, err := program.Eval(cel.NoVars())
		if err != nil {
			return nil, false
		}
		v = nativeValue(found)
	}
	text, _ := v.(string)
	return &constant{v, fold(text)}, true
}

// nativeValue turns a value of cel-go into one as decode gives it, a time or a duration.
// What has no such counterpart stays as it is: lists, objects, bytes.
func nativeValue(v ref.Val) any {
	switch x := v.(type) {
	case types.Null:
		return nil
	case types.Bool:
		return bool(x)
	case types.Int:
		return int64(x)
	case types.Uint:
		if x <= math.MaxInt64 {
			return int64(x)
		}
	case types.Double:
		return float64(x)
	case types.String:
		return string(x)
	case types.Timestamp:
		return x.Time
	case types.Duration:
		return x.Duration
	}
	return v
}

// equalInCEL is equal for what has no counterpart.
func equalInCEL(a, b any) bool {
	adapt := types.DefaultTypeAdapter
	return types.Equal(adapt.NativeToValue(a), adapt.NativeToValue(b)) == types.True
}

// compareInCEL is compare for what has no counterpart.
func compareInCEL(a, b any) (order int, ok bool) {
	adapt := types.DefaultTypeAdapter
	x, ok := adapt.NativeToValue(a).(traits.Comparer)
	if !ok {
		return 0, false
	}
	found, ok := x.Compare(adapt.NativeToValue(b)).(types.Int)
	return int(found), ok
}
