package explain

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	celast "cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/condition/expr"
	"fanfare.dev/fanfare/internal/condition/lang"
)

// describeError explains why a predicate is an error: an error inside it, or values that cannot
// be used together.
func (x *explainer) describeError(e celast.Expr, inside []fanfare.Part) string {
	for _, one := range inside {
		if one.Error != "" {
			return one.Error
		}
	}
	if x.isReference(e) {
		v, ok := x.load(e)
		if !ok {
			return x.describeMissing(e)
		}
		return fmt.Sprintf("%s is %s, neither true nor false", x.text(e), kindOfValue(v))
	}
	if e.Kind() == celast.SelectKind && e.AsSelect().IsTestOnly() {
		return x.text(e) + " tests for a field of a value that has no fields"
	}
	if c, ok := lang.CrossingOf(e); ok {
		for _, one := range []celast.Expr{c.Now, c.Level} {
			if v, err := x.evaluate(one); err == nil && !lang.IsNumber(v) {
				return fmt.Sprintf("%s requires numbers, but %s is %s", c.Name, x.text(one), kindOfCEL(v))
			}
		}
	}
	if e.Kind() == celast.CallKind {
		call := e.AsCall()
		switch name := call.FunctionName(); name {
		case operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals:
			a, errA := x.evaluate(call.Args()[0])
			b, errB := x.evaluate(call.Args()[1])
			if errA == nil && errB == nil {
				return fmt.Sprintf("%s cannot be compared with %s", kindOfCEL(a), kindOfCEL(b))
			}
		case lang.GeoWithin:
			for _, one := range call.Args() {
				if v, err := x.evaluate(one); err == nil && !lang.IsNumber(v) {
					return fmt.Sprintf("%s requires numbers, but %s is %s", name, x.text(one), kindOfCEL(v))
				}
			}
		case "contains", "startsWith", "endsWith", "matches", "contains_ci", "starts_with_ci":
			for _, one := range lang.Children(e) {
				if v, err := x.evaluate(one); err == nil && v.Type() != types.StringType {
					return fmt.Sprintf("%s requires strings, but %s is %s", name, x.text(one), kindOfCEL(v))
				}
			}
		}
	}
	v, err := x.evaluate(e)
	if err != nil {
		return x.describeCELError(err, inside)
	}
	return fmt.Sprintf("the result is %s, neither true nor false", kindOfCEL(v))
}

// describeMissing reports which step of a field of the event is missing.
func (x *explainer) describeMissing(e celast.Expr) string {
	b := expr.Builder{Scope: x.Scope, Ast: x.Ast}
	s, _ := b.Steps(e)
	at, v := "event", x.Frame.Data.All()
	if s.Root != nil {
		at, v = s.Root.Key(), any(x.Frame.AttributeMap())
	}
	for _, step := range s.Steps {
		m, isObject := v.(map[string]any)
		if !isObject {
			return fmt.Sprintf("%s is %s and has no field %q", at, kindOfValue(v), step)
		}
		at += "." + lang.QuoteField(step)
		if v, isObject = m[step]; !isObject {
			return at + " is missing"
		}
	}
	return at + " is missing"
}

// describeCELError translates an error of cel-go, unless an inner part explains it.
func (x *explainer) describeCELError(err error, inside []fanfare.Part) string {
	for _, one := range inside {
		if one.Error != "" {
			return one.Error
		}
	}
	message := err.Error()
	if name, ok := strings.CutPrefix(message, "no such key: "); ok {
		return fmt.Sprintf("the field %q is missing", name)
	}
	if strings.HasSuffix(message, "expected iterable type") {
		return "exists(), all() and similar macros require a list or an object"
	}
	if strings.HasPrefix(message, "no such overload") {
		return "the operation does not support values of these types"
	}
	return message
}

// evaluate runs e as a CEL program.
func (x *explainer) evaluate(e celast.Expr) (ref.Val, error) {
	part := celast.NewCheckedAST(celast.NewAST(e, x.Ast.SourceInfo()), x.Ast.TypeMap(), x.Ast.ReferenceMap())
	p, err := x.Env.PlanProgram(part, lang.ProgramOptions()...)
	if err != nil {
		return nil, errors.New("this part cannot be evaluated on its own")
	}
	v, _, err := p.Eval(&x.Frame)
	return v, err
}

// maxShown is the maximum number of bytes of a value in an explanation.
const maxShown = 400

// show writes a value of the event as JSON.
func show(v any) json.RawMessage {
	if f, ok := v.(float64); ok && (math.IsInf(f, 0) || math.IsNaN(f)) {
		v = fmt.Sprint(f)
	}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil { // it contains an infinity
		return show(fmt.Sprint(v))
	}
	out := bytes.TrimSuffix(text.Bytes(), []byte("\n"))
	if len(out) <= maxShown {
		return out
	}
	cut := out[:maxShown]
	for !utf8.Valid(cut) {
		cut = cut[:len(cut)-1]
	}
	return showText(string(cut) + "…")
}

func showText(s string) json.RawMessage {
	text, _ := json.Marshal(s) // a string cannot fail
	return text
}

func showCEL(v ref.Val) json.RawMessage {
	if v == nil {
		return nil
	}
	return show(jsonValue(v))
}

// jsonValue converts a value of cel-go into one that JSON can write.
func jsonValue(v ref.Val) any {
	switch x := v.(type) {
	case types.Null:
		return nil
	case types.Bool:
		return bool(x)
	case types.Int:
		return int64(x)
	case types.Uint:
		return uint64(x)
	case types.Double:
		return float64(x)
	case types.String:
		return string(x)
	case traits.Mapper:
		object := map[string]any{}
		for it := x.Iterator(); it.HasNext() == types.True; {
			key := it.Next()
			object[fmt.Sprint(key.Value())] = jsonValue(x.Get(key))
		}
		return object
	case traits.Lister:
		list := []any{}
		for it := x.Iterator(); it.HasNext() == types.True; {
			list = append(list, jsonValue(it.Next()))
		}
		return list
	}
	if text, ok := v.ConvertToType(types.StringType).(types.String); ok { // a time, a duration
		return string(text)
	}
	return v.Type().TypeName()
}

func kindOfValue(v any) lang.Kind {
	switch v.(type) {
	case nil:
		return lang.KindNull
	case bool:
		return lang.KindBool
	case int64, float64:
		return lang.KindDouble // "a number": the difference does not matter here
	case string:
		return lang.KindString
	case []any:
		return lang.KindList
	case map[string]any:
		return lang.KindMap
	}
	return lang.KindAny
}

func kindOfCEL(v ref.Val) string {
	if lang.IsNumber(v) {
		return lang.KindDouble.String()
	}
	switch v.Type() {
	case types.BoolType:
		return lang.KindBool.String()
	case types.StringType:
		return lang.KindString.String()
	case types.NullType:
		return lang.KindNull.String()
	case types.ListType:
		return lang.KindList.String()
	case types.MapType:
		return lang.KindMap.String()
	}
	return "a " + v.Type().TypeName()
}
