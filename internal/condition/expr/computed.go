package expr

import (
	"fmt"
	"math"
	"strconv"

	"cel.dev/cel-go/cel"
	celast "cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"

	"fanfare.dev/fanfare/internal/condition/lang"
)

// computedRoot is a value that an expression computes from the event alone, such as
// size(event.list) or timestamp(event.at). It is computed once per event for all conditions, and an
// index can look it up like a field.
type computedRoot struct {
	text    string // the expression in canonical form
	expr    celast.Expr
	program cel.Program // planned when a path is created for it
}

func (c *computedRoot) Key() string { return c.text }

func (c *computedRoot) Load(f *Frame) (any, bool) {
	if c.program == nil { // the builder reports the error
		return nil, false
	}
	v, _, err := c.program.Eval(f)
	if err != nil {
		return nil, false
	}
	return nativeValue(v), true
}

// Source reports whether e is a value of the event: a field or a computed value.
func (b *Builder) Source(e celast.Expr) (Source, bool) {
	if s, ok := b.Steps(e); ok {
		return s, true
	}
	if _, sub := ParamsIn(b, e); sub || !ReadsEvent(b, e) {
		return Source{}, false
	}
	if c, ok := b.timePartRoot(e); ok {
		return Source{Root: c}, true
	}
	return Source{Root: &computedRoot{text: string(writeCanonical(nil, e)), expr: e}}, true
}

// writeCanonical writes an expression so that different expressions have different texts: names and
// strings are quoted, each part is in brackets, and a literal has its type, since 1 and 1.0 differ
// in arithmetic.
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
	for _, part := range lang.Children(e) {
		b = writeCanonical(b, part)
	}
	return append(b, ')')
}

// constant returns the value of an expression without names, such as duration('1h').
func (b *Builder) constant(e celast.Expr) (*Constant, bool) {
	v, ok := lang.Literal(e)
	if !ok {
		if _, sub := ParamsIn(b, e); sub || ReadsEvent(b, e) {
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
	return &Constant{v, lang.Fold(text)}, true
}
