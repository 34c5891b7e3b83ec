package jmespath

import (
	"errors"
	"math"
	"slices"
	"strings"
)

// kinds is a set of types that a parameter accepts.
type kinds uint8

const (
	acceptNumber kinds = 1 << iota
	acceptText
	acceptList
	acceptObject
	acceptReference
	acceptNumbers // a list of numbers
	acceptTexts   // a list of texts
	acceptAny
)

func (k kinds) accept(v any) bool {
	if k&acceptAny != 0 {
		return true
	}
	switch x := v.(type) {
	case nil, bool:
		return false
	case string:
		return k&acceptText != 0
	case map[string]any:
		return k&acceptObject != 0
	case reference:
		return k&acceptReference != 0
	case []any:
		return k&acceptList != 0 || k&acceptNumbers != 0 && all(x, isNumber) || k&acceptTexts != 0 && all(x, isText)
	}
	return k&acceptNumber != 0
}

func all(list []any, is func(any) bool) bool {
	return !slices.ContainsFunc(list, func(one any) bool { return !is(one) })
}

func isNumber(v any) bool { _, ok := toNumber(v); return ok }
func isText(v any) bool   { _, ok := v.(string); return ok }

// A function is one of JMESPath's functions. The last parameter of a variadic one accepts any number
// of further arguments.
type function struct {
	params   []kinds
	variadic bool
	call     func(e *Evaluator, args []any) (any, bool)
}

// containsFolded is a function that NotifyBC's installations add.
const containsFolded = "contains_ci"

// functions are all functions by name. The table never changes.
var functions = map[string]*function{
	"abs":          {params: []kinds{acceptNumber}, call: ofNumber(math.Abs)},
	"avg":          {params: []kinds{acceptNumbers}, call: average},
	"ceil":         {params: []kinds{acceptNumber}, call: ofNumber(math.Ceil)},
	"contains":     {params: []kinds{acceptText | acceptList, acceptAny}, call: contains},
	containsFolded: {params: []kinds{acceptText, acceptText}},
	"ends_with":    {params: []kinds{acceptText, acceptText}, call: ofTexts(strings.HasSuffix)},
	"floor":        {params: []kinds{acceptNumber}, call: ofNumber(math.Floor)},
	"join":         {params: []kinds{acceptText, acceptTexts}, call: join},
	"keys":         {params: []kinds{acceptObject}, call: keys},
	"length":       {params: []kinds{acceptText | acceptList | acceptObject}, call: length},
	"map":          {params: []kinds{acceptReference, acceptList}, call: mapped},
	"max":          {params: []kinds{acceptNumbers | acceptTexts}, call: extreme(1)},
	"max_by":       {params: []kinds{acceptList, acceptReference}, call: extremeBy(1)},
	"merge":        {params: []kinds{acceptObject}, variadic: true, call: merge},
	"min":          {params: []kinds{acceptNumbers | acceptTexts}, call: extreme(-1)},
	"min_by":       {params: []kinds{acceptList, acceptReference}, call: extremeBy(-1)},
	"not_null":     {params: []kinds{acceptAny}, variadic: true, call: notNull},
	"reverse":      {params: []kinds{acceptText | acceptList}, call: reverse},
	"sort":         {params: []kinds{acceptNumbers | acceptTexts}, call: sorted},
	"sort_by":      {params: []kinds{acceptList, acceptReference}, call: sortedBy},
	"starts_with":  {params: []kinds{acceptText, acceptText}, call: ofTexts(strings.HasPrefix)},
	"sum":          {params: []kinds{acceptNumbers}, call: sum},
	"to_array":     {params: []kinds{acceptAny}, call: toArray},
	"to_number":    {params: []kinds{acceptAny}, call: convertToNumber},
	"to_string":    {params: []kinds{acceptAny}, call: toString},
	"type":         {params: []kinds{acceptAny}, call: func(_ *Evaluator, args []any) (any, bool) { return typeName(args[0]), true }},
	"values":       {params: []kinds{acceptObject}, call: values},
}

func ofNumber(of func(float64) float64) func(*Evaluator, []any) (any, bool) {
	return func(_ *Evaluator, args []any) (any, bool) {
		x, _ := toNumber(args[0])
		return of(x), true
	}
}

func ofTexts(is func(text, part string) bool) func(*Evaluator, []any) (any, bool) {
	return func(e *Evaluator, args []any) (any, bool) {
		return is(args[0].(string), args[1].(string)), e.chargeText(args[1].(string))
	}
}

func average(e *Evaluator, args []any) (any, bool) {
	total, ok := sum(e, args)
	if !ok {
		return nil, false
	}
	return total.(float64) / float64(len(args[0].([]any))), true // NaN for an empty list, as in JavaScript
}

func sum(e *Evaluator, args []any) (any, bool) {
	list := args[0].([]any)
	var total float64
	for _, one := range list {
		x, _ := toNumber(one)
		total += x
	}
	return total, e.charge(len(list))
}

// contains is JavaScript's indexOf: in a text, the part is converted to a text.
func contains(e *Evaluator, args []any) (any, bool) {
	if text, ok := args[0].(string); ok {
		return strings.Contains(text, textOf(args[1])), e.chargeText(text)
	}
	list := args[0].([]any)
	found := slices.ContainsFunc(list, func(one any) bool { return isSame(one, args[1]) })
	return found, e.charge(len(list))
}

func join(e *Evaluator, args []any) (any, bool) {
	glue, list := args[0].(string), args[1].([]any)
	texts := make([]string, len(list))
	for i, one := range list {
		texts[i] = one.(string)
		if !e.charge(1) || !e.chargeText(texts[i]) || !e.chargeText(glue) {
			return nil, false
		}
	}
	return strings.Join(texts, glue), true
}

func keys(e *Evaluator, args []any) (any, bool) {
	object := args[0].(map[string]any)
	if !e.charge(len(object)) {
		return nil, false
	}
	list := make([]any, 0, len(object))
	for _, key := range keysOf(object) {
		list = append(list, key)
	}
	return list, true
}

func values(e *Evaluator, args []any) (any, bool) {
	object := args[0].(map[string]any)
	if !e.charge(len(object)) {
		return nil, false
	}
	return valuesOf(object), true
}

func length(e *Evaluator, args []any) (any, bool) {
	switch x := args[0].(type) {
	case string:
		return float64(lengthInUnits(x)), e.chargeText(x)
	case []any:
		return float64(len(x)), true
	default:
		return float64(len(x.(map[string]any))), true
	}
}

func mapped(e *Evaluator, args []any) (any, bool) {
	of, list := args[0].(reference), args[1].([]any)
	found := make([]any, 0, min(len(list), MaxSteps))
	for _, one := range list {
		one, ok := e.eval(of.node, one)
		if !ok {
			return nil, false
		}
		found = append(found, one)
	}
	return found, true
}

// order compares two numbers or two texts. NaN is equal to everything, so that it never replaces
// another value.
func order(a, b any) int {
	if s, ok := a.(string); ok {
		return compareUnits(s, b.(string))
	}
	x, _ := toNumber(a)
	y, _ := toNumber(b)
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

// extreme returns max (sign 1) or min (sign -1).
func extreme(sign int) func(*Evaluator, []any) (any, bool) {
	return func(e *Evaluator, args []any) (any, bool) {
		list := args[0].([]any)
		if len(list) == 0 || !e.charge(len(list)) {
			return nil, e.err == nil
		}
		best := list[0]
		for _, one := range list[1:] {
			if order(one, best)*sign > 0 {
				best = one
			}
		}
		return best, true
	}
}

// sortKeys evaluates an expression for each element; all results must be numbers, or all texts.
func (e *Evaluator) sortKeys(list []any, of reference) ([]any, bool) {
	keys := make([]any, 0, min(len(list), MaxSteps))
	for _, one := range list {
		key, ok := e.eval(of.node, one)
		if !ok {
			return nil, false
		}
		keys = append(keys, key)
	}
	if !all(keys, isNumber) && !all(keys, isText) {
		e.err = errors.New("the elements must be sorted by numbers or by texts")
		return nil, false
	}
	return keys, true
}

// extremeBy returns max_by (sign 1) or min_by (sign -1).
func extremeBy(sign int) func(*Evaluator, []any) (any, bool) {
	return func(e *Evaluator, args []any) (any, bool) {
		list := args[0].([]any)
		keys, ok := e.sortKeys(list, args[1].(reference))
		if !ok || len(list) == 0 {
			return nil, ok
		}
		best := 0
		for i := range keys {
			if order(keys[i], keys[best])*sign > 0 {
				best = i
			}
		}
		return list[best], true
	}
}

func merge(e *Evaluator, args []any) (any, bool) {
	merged := map[string]any{}
	for i, arg := range args {
		object, isObject := arg.(map[string]any)
		if _, isList := arg.([]any); !isObject && (isList || isText(arg)) {
			return e.fail(errors.New("merge() accepts only objects"))
		}
		if !e.charge(i + len(object)) {
			return nil, false
		}
		for key, value := range object {
			merged[key] = value
		}
	}
	return merged, true
}

func notNull(_ *Evaluator, args []any) (any, bool) {
	for _, arg := range args {
		if arg != nil {
			return arg, true
		}
	}
	return nil, true
}

func reverse(e *Evaluator, args []any) (any, bool) {
	if text, ok := args[0].(string); ok {
		runes := []rune(text)
		slices.Reverse(runes)
		return string(runes), e.chargeText(text)
	}
	list := args[0].([]any)
	if !e.charge(len(list)) {
		return nil, false
	}
	list = slices.Clone(list)
	slices.Reverse(list)
	return list, true
}

// sorted is JavaScript's sort, which compares numbers by their texts as well.
func sorted(e *Evaluator, args []any) (any, bool) {
	list := args[0].([]any)
	if !e.charge(8 * len(list)) {
		return nil, false
	}
	type keyed struct {
		text  string
		value any
	}
	pairs := make([]keyed, len(list))
	for i, one := range list {
		if pairs[i] = (keyed{textOf(one), one}); !e.chargeText(pairs[i].text) {
			return nil, false
		}
	}
	slices.SortStableFunc(pairs, func(a, b keyed) int { return compareUnits(a.text, b.text) })
	found := make([]any, len(list))
	for i := range pairs {
		found[i] = pairs[i].value
	}
	return found, true
}

func sortedBy(e *Evaluator, args []any) (any, bool) {
	list := args[0].([]any)
	keys, ok := e.sortKeys(list, args[1].(reference))
	if !ok || !e.charge(8*len(list)) {
		return nil, false
	}
	places := make([]int, len(list))
	for i := range places {
		places[i] = i
	}
	slices.SortStableFunc(places, func(a, b int) int { return order(keys[a], keys[b]) })
	found := make([]any, len(list))
	for i, place := range places {
		found[i] = list[place]
	}
	return found, true
}

func toArray(_ *Evaluator, args []any) (any, bool) {
	if list, ok := args[0].([]any); ok {
		return list, true
	}
	return []any{args[0]}, true
}

func convertToNumber(e *Evaluator, args []any) (any, bool) {
	if isNumber(args[0]) {
		return args[0], true
	}
	text, ok := args[0].(string)
	if !ok {
		return nil, true
	}
	if number := parseNumber(text); !math.IsNaN(number) {
		return number, e.chargeText(text)
	}
	return nil, e.chargeText(text)
}

func toString(e *Evaluator, args []any) (any, bool) {
	if text, ok := args[0].(string); ok {
		return text, true
	}
	text, ok := e.appendJSON(nil, args[0])
	return string(text), ok
}
