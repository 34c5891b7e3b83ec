package match

import (
	"math"

	"cel.dev/cel-go/cel"
	celast "cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/debug"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// computed is a value that an expression makes of the event alone, such as
// size(event.list) or timestamp(event.at). It is found once per event, however many
// conditions ask for it, and leads to rows as a field does.
type computed struct {
	text    string // the expression's tree, written out
	expr    celast.Expr
	program cel.Program // planned when a path is made of it
}

func (c *computed) key() string { return c.text }

func (c *computed) load(f *frame) (any, bool) {
	if c.program == nil { // an error that is reported
		return nil, false
	}
	v, _, err := c.program.Eval(f)
	if err != nil {
		return nil, false
	}
	return plain(v), true
}

// source reports whether e is a value of the event: a name, or computed.
func (b *builder) source(e celast.Expr) (source, bool) {
	if s, ok := b.steps(e); ok {
		return s, true
	}
	if _, sub := readsOf(b, e); sub || !readsEvent(b, e) {
		return source{}, false
	}
	if c, ok := b.clock(e); ok {
		return source{root: c}, true
	}
	return source{root: &computed{text: debug.ToAdornedDebugString(e, kindOfLiteral{}), expr: e}}, true
}

// A kindOfLiteral writes the type of each literal behind it: the number alone does not
// tell 1 from 1.0, which are not the same in arithmetic.
type kindOfLiteral struct{}

// GetMetadata is what the writer of trees asks of each part.
func (kindOfLiteral) GetMetadata(part any) string {
	if e, ok := part.(celast.Expr); ok && e.Kind() == celast.LiteralKind {
		return " " + e.AsLiteral().Type().TypeName()
	}
	return ""
}

// constant returns what an expression that names nothing comes to, such as
// duration('1h').
func (b *builder) constant(e celast.Expr) (*constant, bool) {
	v, ok := literal(e)
	if !ok {
		if _, sub := readsOf(b, e); sub || readsEvent(b, e) {
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
		v = plain(found)
	}
	text, _ := v.(string)
	return &constant{v, fold(text)}, true
}

// plain turns a value of cel-go into one as decode gives it, a time or a duration.
// What has no such counterpart stays as it is: lists, objects, bytes.
func plain(v ref.Val) any {
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
