package lang

import (
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common"
	celast "cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// A Direction is the direction in which a value crosses a level.
type Direction uint8

const (
	Upwards Direction = 1 << iota
	Downwards
	eitherWay = Upwards | Downwards
)

// Crossed reports whether a level is crossed, given how the value compared with it before and
// after.
func (d Direction) Crossed(before, after int) bool {
	return d&Upwards != 0 && before < 0 && after >= 0 || d&Downwards != 0 && before > 0 && after <= 0
}

// crossings are the crossing functions by name. In CEL they are macros: crosses(event.price, level)
// becomes @crosses(event.price, @was.price, level), where @was is the data of the previous event
// with the same key. Neither name can be written in a condition.
var crossings = map[string]Direction{"crosses": eitherWay, "crosses_above": Upwards, "crosses_below": Downwards}

const PreviousName = "@was"

// A Crossing is a call of a crossing function, split into its parts.
type Crossing struct {
	Direction
	Name                 string
	Now, Previous, Level celast.Expr
}

func CrossingOf(e celast.Expr) (c Crossing, ok bool) {
	if e.Kind() != celast.CallKind {
		return c, false
	}
	if c.Name, ok = strings.CutPrefix(e.AsCall().FunctionName(), "@"); !ok {
		return c, false
	}
	if c.Direction, ok = crossings[c.Name]; ok {
		args := e.AsCall().Args()
		c.Now, c.Previous, c.Level = args[0], args[1], args[2]
	}
	return c, ok
}

// crossingOptions declares the macros and the functions that they expand to.
func crossingOptions() []cel.EnvOption {
	options := []cel.EnvOption{cel.Variable(PreviousName, cel.DynType)}
	for name, d := range crossings {
		options = append(options,
			cel.Macros(cel.GlobalMacro(name, 2, func(h cel.MacroExprFactory, _ celast.Expr, args []celast.Expr) (celast.Expr, *common.Error) {
				return expandCrossing(h, name, args)
			})),
			cel.Function("@"+name, cel.Overload("@"+name+"_dyn", []*cel.Type{cel.DynType, cel.DynType, cel.DynType}, cel.BoolType,
				cel.OverloadIsNonStrict(), cel.FunctionBinding(d.evaluate))))
	}
	return options
}

func expandCrossing(h cel.MacroExprFactory, name string, args []celast.Expr) (celast.Expr, *common.Error) {
	was, ok := onPreviousEvent(h, args[0])
	if !ok {
		return nil, h.NewError(args[0].ID(), name+" requires a field of the event, or arithmetic with fields")
	}
	return h.NewCall("@"+name, args[0], was, args[1]), nil
}

// onPreviousEvent copies an expression over the event as the same expression over the previous
// event with the same key.
func onPreviousEvent(h cel.MacroExprFactory, e celast.Expr) (copied celast.Expr, ok bool) {
	switch e.Kind() {
	case celast.LiteralKind:
		return h.Copy(e), true
	case celast.IdentKind:
		switch name := BareIdent(e); name {
		case "event":
			return h.NewIdent(PreviousName), true
		case "sub":
			return h.Copy(e), true
		default:
			return h.NewSelect(h.NewIdent(PreviousName), name), true
		}
	case celast.SelectKind:
		s := e.AsSelect()
		operand, ok := onPreviousEvent(h, s.Operand())
		if !ok || s.IsTestOnly() {
			return nil, false
		}
		return h.NewSelect(operand, s.FieldName()), true
	case celast.CallKind:
		call := e.AsCall()
		args := make([]celast.Expr, len(call.Args()))
		for i, arg := range call.Args() {
			if args[i], ok = onPreviousEvent(h, arg); !ok {
				return nil, false
			}
		}
		return h.NewCall(call.FunctionName(), args...), !call.IsMemberFunction()
	}
	return nil, false
}

// evaluate is the implementation that cel-go calls with now, was and level. It is an error if now
// or level is not a number, or one of them is NaN. If was is an error or NaN, nothing is crossed.
func (d Direction) evaluate(args ...ref.Val) ref.Val {
	now, was, level := args[0], args[1], args[2]
	for _, v := range [...]ref.Val{now, level} {
		switch {
		case types.IsUnknownOrError(v):
			return v
		case !IsNumber(v):
			return types.NewErr("no such overload")
		}
	}
	after, ok := now.(traits.Comparer).Compare(level).(types.Int)
	if !ok {
		return types.NewErr("%s", crossingOfNaN)
	}
	if !IsNumber(was) {
		return types.False
	}
	before, ok := was.(traits.Comparer).Compare(level).(types.Int)
	return types.Bool(ok && d.Crossed(int(before), int(after)))
}

const crossingOfNaN = "NaN is neither above nor below a level"

// crossing refuses crossings that can never happen. vars are the variables of the macros around e.
func (c *checker) crossing(e celast.Expr, known []inferred, vars map[string]inferred) {
	x, ok := CrossingOf(e)
	if !ok {
		return
	}
	if !c.hasKey {
		c.refuse(e, "set the key of the topic to the field that identifies an object, for example key: symbol",
			"%s compares an event with the previous event of the same key, but the topic has no key", x.Name)
	}
	for i, one := range []celast.Expr{x.Now, x.Previous, x.Level} {
		if k := known[i].kind; k != KindAny && !k.numeric() {
			c.refuse(one, "", "%s requires numbers, not %s", x.Name, k)
		}
	}
	if other := c.findNonEvent(x.Now, vars); other != nil {
		c.refuse(other, "write event. before the field name", "%s compares fields of the event, but %s is not a field of the event", x.Name, BareIdent(other))
	}
}

// findNonEvent returns a name in e that is neither the event nor the params.
func (c *checker) findNonEvent(e celast.Expr, vars map[string]inferred) celast.Expr {
	if e.Kind() == celast.IdentKind {
		name := BareIdent(e)
		if _, isVariable := vars[name]; isVariable || name != "event" && name != "sub" {
			return e
		}
	}
	for _, part := range Children(e) {
		if other := c.findNonEvent(part, vars); other != nil {
			return other
		}
	}
	return nil
}

func IsNumber(v ref.Val) bool {
	return v.Type() == types.IntType || v.Type() == types.UintType || v.Type() == types.DoubleType
}
