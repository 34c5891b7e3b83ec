package lang

import (
	"errors"
	"time"

	"cel.dev/cel-go/cel"
	celast "cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/interpreter"

	"fanfare.dev/fanfare/internal/jmespath"
)

// JMESPath is the function jmespath(value, 'filter'): whether a value satisfies a filter in the
// language of NotifyBC. The filter is a literal.
const JMESPath = "jmespath"

func jmespathFunction() cel.EnvOption {
	return cel.Function(JMESPath, cel.Overload("jmespath_dyn_string", []*cel.Type{cel.DynType, cel.StringType}, cel.BoolType,
		cel.BinaryBinding(func(value, text ref.Val) ref.Val {
			filter, err := compileJMESPath(text)
			if err != nil {
				return types.NewErr("%v", err)
			}
			return types.Bool(filter.Match(JSONValue(value)))
		})))
}

func compileJMESPath(text ref.Val) (*jmespath.Filter, error) {
	s, ok := text.(types.String)
	if !ok {
		return nil, errors.New("no such overload")
	}
	return jmespath.CompileFilter(string(s))
}

// precompiledJMESPath makes cel-go compile the filters of a program once.
func precompiledJMESPath(i interpreter.Interpretable) (interpreter.Interpretable, error) {
	call, ok := i.(interpreter.InterpretableCall)
	if !ok || call.Function() != JMESPath || len(call.Args()) != 2 {
		return i, nil
	}
	text, ok := call.Args()[1].(interpreter.InterpretableConst)
	if !ok {
		return i, nil
	}
	filter, err := compileJMESPath(text.Value())
	if err != nil {
		return nil, err
	}
	return interpreter.NewCall(call.ID(), call.Function(), call.OverloadID(), call.Args(), func(values ...ref.Val) ref.Val {
		return types.Bool(filter.Match(JSONValue(values[0])))
	}), nil
}

// JMESPathFilter returns the filter of a call of jmespath; false if it is not a valid literal.
func JMESPathFilter(call celast.CallExpr) (*jmespath.Filter, bool) {
	if len(call.Args()) != 2 {
		return nil, false
	}
	v, _ := Literal(call.Args()[1])
	text, ok := v.(string)
	if !ok {
		return nil, false
	}
	filter, err := jmespath.CompileFilter(text)
	return filter, err == nil
}

// jmespath refuses a filter that is not a literal, or does not parse.
func (c *checker) jmespath(filter celast.Expr) {
	v, _ := Literal(filter)
	text, isText := v.(string)
	if !isText {
		c.refuse(filter, "write jmespath(event, 'filter')", "the filter of jmespath must be a literal string")
		return
	}
	if _, err := jmespath.CompileFilter(text); err != nil {
		offset := 0
		if e, ok := errors.AsType[*jmespath.SyntaxError](err); ok {
			offset = e.Offset
		}
		c.refuse(filter, "", "invalid JMESPath filter: at byte %d: %v", offset, err)
	}
}

// JSONValue converts a value of cel-go to decoded JSON. A time and a duration become texts, as in
// JSON; a value without a form in JSON becomes null.
func JSONValue(v ref.Val) any {
	switch x := v.(type) {
	case types.Null:
		return nil
	case types.Bool:
		return bool(x)
	case types.Int:
		return float64(x)
	case types.Uint:
		return float64(x)
	case types.Double:
		return float64(x)
	case types.String:
		return string(x)
	case types.Timestamp:
		return x.UTC().Format(time.RFC3339Nano)
	case types.Duration:
		return x.String()
	case traits.Mapper:
		if object, ok := x.Value().(map[string]any); ok {
			return object
		}
		object := map[string]any{}
		for i := x.Iterator(); i.HasNext() == types.True; {
			key := i.Next()
			if name, isText := key.(types.String); isText {
				object[string(name)] = JSONValue(x.Get(key))
			}
		}
		return object
	case traits.Lister:
		if list, ok := x.Value().([]any); ok {
			return list
		}
		var list []any
		for i := x.Iterator(); i.HasNext() == types.True; {
			list = append(list, JSONValue(i.Next()))
		}
		return list
	}
	return nil
}
