package evaluator

import (
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// A function is an operator or a function of the language. It is strict: an error among its
// arguments is its result, and it is not called.
type function struct {
	name   string
	global []int // the numbers of arguments that it takes
	member []int // the same, called on a receiver, which counts
	one    func(n *node, a value) value
	two    func(n *node, a, b value) value
	many   func(args []value) value
	truth  bool // the result is a boolean
	effort effort
}

// operators and functions, by name. Neither table is changed after initialization.
var (
	operators = table([]*function{
		{name: "!_", global: []int{1}, one: notFunction, truth: true},
		{name: "-_", global: []int{1}, one: negate},
		{name: "_+_", global: []int{2}, two: add, effort: effortJoin},
		{name: "_-_", global: []int{2}, two: subtract},
		{name: "_*_", global: []int{2}, two: sameKind(multiply)},
		{name: "_/_", global: []int{2}, two: sameKind(divide)},
		{name: "_%_", global: []int{2}, two: sameKind(remainder)},
		{name: "_==_", global: []int{2}, two: equals, truth: true, effort: effortCompare},
		{name: "_!=_", global: []int{2}, two: differs, truth: true, effort: effortCompare},
		{name: "_<_", global: []int{2}, two: ordering(func(o int) bool { return o < 0 }), truth: true, effort: effortCompare},
		{name: "_<=_", global: []int{2}, two: ordering(func(o int) bool { return o <= 0 }), truth: true, effort: effortCompare},
		{name: "_>_", global: []int{2}, two: ordering(func(o int) bool { return o > 0 }), truth: true, effort: effortCompare},
		{name: "_>=_", global: []int{2}, two: ordering(func(o int) bool { return o >= 0 }), truth: true, effort: effortCompare},
		{name: "@in", global: []int{2}, two: isIn, truth: true, effort: effortIn},
		{name: "_[_]", global: []int{2}, two: index},
	})
	functions = table(append(timeFunctions(), []*function{
		{name: "size", global: []int{1}, member: []int{1}, one: size},
		{name: "contains", member: []int{2}, two: onText(strings.Contains), truth: true, effort: effortContains},
		{name: "startsWith", member: []int{2}, two: onText(strings.HasPrefix), truth: true, effort: effortPart},
		{name: "endsWith", member: []int{2}, two: onText(strings.HasSuffix), truth: true, effort: effortPart},
		{name: "matches", global: []int{2}, member: []int{2}, two: matches, truth: true, effort: effortMatches},
		{name: "contains_ci", global: []int{2}, two: onFolded(strings.Contains), truth: true, effort: effortContains},
		{name: "starts_with_ci", global: []int{2}, two: onFolded(strings.HasPrefix), truth: true, effort: effortContains},
		{name: "geo.within", global: []int{5}, many: within, truth: true},
		{name: "jmespath", global: []int{2}, two: jmespath, truth: true},
		{name: "int", global: []int{1}, one: toInt, effort: effortConvert},
		{name: "uint", global: []int{1}, one: toUint, effort: effortConvert},
		{name: "double", global: []int{1}, one: toDouble, effort: effortConvert},
		{name: "string", global: []int{1}, one: toString, effort: effortConvert},
		{name: "bytes", global: []int{1}, one: toBytes, effort: effortConvert},
		{name: "bool", global: []int{1}, one: toBool, effort: effortConvert},
		{name: "timestamp", global: []int{1}, one: toTime, effort: effortConvert},
		{name: "duration", global: []int{1}, one: toDuration, effort: effortConvert},
		{name: "dyn", global: []int{1}, one: func(_ *node, a value) value { return a }},
		{name: "type", global: []int{1}, one: typeOf},
	}...))
)

func table(list []*function) map[string]*function {
	byName := make(map[string]*function, len(list))
	for _, f := range list {
		byName[f.name] = f
	}
	return byName
}

// timeFunctions returns the functions that read a part of a time, with and without a time zone.
func timeFunctions() []*function {
	var list []*function
	for name, get := range getters {
		ofDuration := durationGetters[name]
		list = append(list, &function{name: name, member: []int{1, 2}, effort: effortConvert,
			one: func(_ *node, a value) value {
				switch {
				case a.kind == kindTime:
					return intValue(int64(get(a.goTime().UTC())))
				case a.kind == kindDuration && ofDuration != nil:
					return intValue(ofDuration(a.duration()))
				}
				return errorValue(noOverload)
			},
			two: func(n *node, a, b value) value {
				if a.kind != kindTime || b.kind != kindString {
					return errorValue(noOverload)
				}
				where, err := n.zone(b.str)
				if err != nil {
					return errorValue(err.Error())
				}
				return intValue(int64(get(a.goTime().In(where))))
			}})
	}
	return list
}

func size(_ *node, a value) value {
	switch a.kind {
	case kindString:
		return intValue(int64(utf8.RuneCountInString(a.str)))
	case kindBytes:
		return intValue(int64(len(a.str)))
	case kindList, kindMap:
		return intValue(int64(len(a.ref.items)))
	}
	return errorValue(noOverload)
}

// onText returns a function of two texts.
func onText(is func(text, part string) bool) func(*node, value, value) value {
	return func(_ *node, a, b value) value {
		if a.kind != kindString || b.kind != kindString {
			return errorValue(noOverload)
		}
		return boolValue(is(a.str, b.str))
	}
}

// onFolded is onText without regard to upper and lower case; the result is false if either text is
// empty.
func onFolded(is func(text, part string) bool) func(*node, value, value) value {
	return onText(func(text, part string) bool {
		return text != "" && part != "" && is(fold(text), fold(part))
	})
}

// jmespath is undecided: a filter in that language has its own tests, and a second implementation of it
// would be a second language.
func jmespath(_ *node, _, b value) value {
	if b.kind != kindString {
		return errorValue(noOverload)
	}
	return undecided("the filter is in JMESPath")
}

func matches(n *node, a, b value) value {
	if a.kind != kindString || b.kind != kindString {
		return errorValue(noOverload)
	}
	pattern, err := n.pattern(b.str)
	if err != nil {
		return errorValue(err.Error())
	}
	return boolValue(pattern.MatchString(a.str))
}

func badText(to string) value { return errorValue("the text is not a valid " + to) }

func toInt(_ *node, a value) value {
	switch a.kind {
	case kindInt:
		return a
	case kindUint:
		return intOr(int64(a.num), a.num <= math.MaxInt64)
	case kindDouble:
		// Both limits are refused, because doubles near them are rounded.
		if d := a.double(); d > math.MinInt64 && d < math.MaxInt64 {
			return intValue(int64(d))
		}
		return errorValue(intOverflow)
	case kindString:
		n, err := strconv.ParseInt(a.str, 10, 64)
		if err != nil {
			return badText("integer")
		}
		return intValue(n)
	case kindTime, kindDuration:
		return intValue(a.int())
	}
	return errorValue(noOverload)
}

func toUint(_ *node, a value) value {
	switch a.kind {
	case kindUint:
		return a
	case kindInt:
		if a.int() < 0 {
			return errorValue(uintOverflow)
		}
		return uintValue(a.num)
	case kindDouble:
		if d := a.double(); d >= 0 && d < math.MaxUint64 {
			return uintValue(uint64(d))
		}
		return errorValue(uintOverflow)
	case kindString:
		n, err := strconv.ParseUint(a.str, 10, 64)
		if err != nil {
			return badText("unsigned integer")
		}
		return uintValue(n)
	}
	return errorValue(noOverload)
}

func toDouble(_ *node, a value) value {
	switch a.kind {
	case kindInt, kindUint, kindDouble:
		return doubleValue(a.asDouble())
	case kindString:
		d, err := strconv.ParseFloat(a.str, 64)
		if err != nil {
			return badText("number")
		}
		return doubleValue(d)
	}
	return errorValue(noOverload)
}

func toString(_ *node, a value) value {
	switch a.kind {
	case kindString:
		return a
	case kindInt:
		return stringValue(strconv.FormatInt(a.int(), 10))
	case kindUint:
		return stringValue(strconv.FormatUint(a.num, 10))
	case kindDouble:
		return stringValue(strconv.FormatFloat(a.double(), 'g', -1, 64))
	case kindBool:
		return stringValue(strconv.FormatBool(a.isTrue()))
	case kindBytes:
		if !utf8.ValidString(a.str) {
			return errorValue("the bytes are not valid UTF-8")
		}
		return stringValue(a.str)
	case kindTime:
		return stringValue(a.goTime().Format(time.RFC3339Nano))
	case kindDuration:
		return stringValue(formatDuration(a.duration()))
	}
	return errorValue(noOverload)
}

func toBytes(_ *node, a value) value {
	if a.kind != kindString && a.kind != kindBytes {
		return errorValue(noOverload)
	}
	return value{kind: kindBytes, str: a.str}
}

func toBool(_ *node, a value) value {
	switch a.kind {
	case kindBool:
		return a
	case kindString:
		b, err := strconv.ParseBool(a.str)
		if err != nil {
			return badText("boolean")
		}
		return boolValue(b)
	}
	return errorValue(noOverload)
}

func toTime(_ *node, a value) value {
	switch a.kind {
	case kindTime:
		return a
	case kindInt:
		return timeOf(a.int(), 0, 0)
	case kindString:
		return parseTime(a.str)
	}
	return errorValue(noOverload)
}

func toDuration(_ *node, a value) value {
	switch a.kind {
	case kindDuration:
		return a
	case kindString:
		d, err := time.ParseDuration(a.str)
		if err != nil {
			return badText("duration")
		}
		return durationValue(d)
	}
	return errorValue(noOverload)
}

func typeOf(_ *node, a value) value { return value{kind: kindType, str: typeNames[a.kind]} }
