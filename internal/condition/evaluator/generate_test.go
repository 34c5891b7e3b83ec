package evaluator

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// A generator generates random conditions and events. Most parts have the requested type, so that
// most conditions are true or false; some do not.
type generator struct {
	*rand.Rand
	variables []variable // of the macros around
	own       bool       // Fanfare's functions are used too
	params    bool       // sub is used
}

type variable struct{ name, kind string }

func newGenerator(seed uint64) *generator {
	return &generator{Rand: rand.New(rand.NewPCG(seed, 7))}
}

func (g *generator) one(of ...string) string { return of[g.IntN(len(of))] }

// chance returns true once in n calls.
func (g *generator) chance(n int) bool { return g.IntN(n) == 0 }

// The fields of an event by their kinds.
var fieldsOf = map[string][]string{
	"int": {"n", "u", "big"}, "double": {"m", "d"}, "string": {"s", "t"}, "bool": {"b"},
	"ints": {"l"}, "strings": {"ls"}, "map": {"o"}, "maps": {"os"}, "time": {"at"}, "duration": {"span"}, "any": {"x", "nul"},
}

var kinds = []string{"int", "double", "string", "bool", "ints", "strings", "map", "maps", "time", "duration", "any", "bytes", "uint", "type"}

var (
	texts = []string{"", "a", "b", "ab", "Ab", "abc", "é", "ß", "\u212a", "k", "1", "42", "-7", "1.5", "true", "1h", "-90s",
		"2026-03-29T08:30:00+01:00", "2024-02-29T23:59:59.999Z", "Europe/Berlin", "+02:00", "UTC", "nowhere", "😀", "\x00", "a\nb"}
	patterns  = []string{"a", "^a", "b$", "[a-c]+", ".", "(", "a|é", "(?i)AB", "\\d+", "", "a{2,3}", "\\pL"}
	zones     = []string{"Europe/Berlin", "America/New_York", "+02:00", "-03:30", "UTC", "", "nowhere", "2:5", "+24:00"}
	integers_ = []string{"0", "1", "2", "3", "-1", "-7", "10", "1000", "9007199254740993", "9223372036854775807", "-9223372036854775808", "0x1F"}
	doubles   = []string{"0.0", "1.0", "2.0", "-1.5", "0.1", "1e3", "5e-324", "1.7976931348623157e308", "9007199254740992.0", ".5", "-0.0"}
	times     = []string{"2026-03-29T08:30:00+01:00", "2024-02-29T23:59:59.999Z", "1969-12-31T23:59:59.5Z", "0001-01-01T00:00:00Z",
		"9999-12-31T23:59:59.999999999Z", "2026-02-29T00:00:00Z", "2026-06-30T23:59:60Z", "2262-04-11T23:47:16Z", "1677-09-21T00:12:44Z"}
	durations = []string{"1h", "-90s", "1.5h", "0", "1ns", "2562047h47m16.854775807s", "1d", "10m1ms"}
)

// quoted returns a text as a literal.
func quoted(text string) string {
	text = strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`, "\x00", `\x00`).Replace(text)
	return "'" + text + "'"
}

// condition generates a condition.
func (g *generator) condition() string { return g.boolean(g.IntN(4)) }

// of generates an expression of a kind.
func (g *generator) of(kind string, depth int) string {
	if g.chance(40) {
		kind = g.one(kinds...)
	}
	for _, v := range g.variables {
		if v.kind == kind && g.chance(2) || g.chance(60) {
			return v.name
		}
	}
	if depth <= 0 || g.chance(4) {
		return g.leaf(kind)
	}
	depth--
	switch g.IntN(16) {
	case 0:
		return fmt.Sprintf("(%s ? %s : %s)", g.boolean(depth), g.of(kind, depth), g.of(kind, depth))
	case 1:
		return "(" + g.of(kind, depth) + ")"
	case 2:
		return "dyn(" + g.of(kind, depth) + ")"
	case 3:
		return fmt.Sprintf("[%s, %s][%s]", g.of(kind, depth), g.of(kind, depth), g.one("0", "1", "1.0", "2", "0u", g.of("int", depth)))
	case 4:
		return fmt.Sprintf("{'p': %s, 'q': %s}%s", g.of(kind, depth), g.of(kind, depth), g.one(".p", ".q", "['p']", ".r", "["+g.of("string", depth)+"]"))
	}
	switch kind {
	case "bool":
		return g.boolean(depth)
	case "int":
		return g.integer(depth)
	case "uint":
		if g.chance(3) {
			return "uint(" + g.of(g.one("int", "double", "string"), depth) + ")"
		}
		return fmt.Sprintf("(%s %s %s)", g.of(kind, depth), g.one("+", "-", "*", "/", "%"), g.of(kind, depth))
	case "double":
		if g.chance(3) {
			return "double(" + g.of(g.one("int", "string", "uint"), depth) + ")"
		}
		return g.arithmetic(kind, depth)
	case "string":
		if g.chance(2) {
			return "string(" + g.of(g.one("int", "double", "bool", "time", "duration", "bytes", "uint"), depth) + ")"
		}
		return fmt.Sprintf("(%s + %s)", g.of(kind, depth), g.of(kind, depth))
	case "bytes":
		if g.chance(2) {
			return "bytes(" + g.of("string", depth) + ")"
		}
		return fmt.Sprintf("(%s + %s)", g.of(kind, depth), g.of(kind, depth))
	case "ints", "strings", "maps":
		return g.list(kind, depth)
	case "map":
		return fmt.Sprintf("{%s: %s, %s: %s}", g.key(depth), g.of("any", depth), g.key(depth), g.of("any", depth))
	case "time":
		switch g.IntN(3) {
		case 0:
			return "timestamp(" + g.of(g.one("time", "int"), depth) + ")"
		case 1:
			return fmt.Sprintf("(%s %s %s)", g.of("time", depth), g.one("+", "-"), g.of("duration", depth))
		default:
			return fmt.Sprintf("(%s + %s)", g.of("duration", depth), g.of("time", depth))
		}
	case "duration":
		if g.chance(2) {
			return fmt.Sprintf("(%s - %s)", g.of("time", depth), g.of("time", depth))
		}
		return fmt.Sprintf("(%s %s %s)", g.of(kind, depth), g.one("+", "-"), g.of(kind, depth))
	case "type":
		return "type(" + g.of("any", depth) + ")"
	default:
		return g.of(g.one(kinds...), depth)
	}
}

func (g *generator) key(depth int) string {
	return g.of(g.one("string", "string", "int", "bool", "uint"), min(depth, 1))
}

func (g *generator) arithmetic(kind string, depth int) string {
	switch g.IntN(6) {
	case 0:
		return g.one("-", "--") + "(" + g.of(kind, depth) + ")"
	default:
		return fmt.Sprintf("(%s %s %s)", g.of(kind, depth), g.one("+", "-", "*", "/", "%"), g.of(kind, depth))
	}
}

func (g *generator) integer(depth int) string {
	switch g.IntN(6) {
	case 0:
		return "size(" + g.of(g.one("string", "ints", "map", "strings", "bytes"), depth) + ")"
	case 1:
		return g.of(g.one("string", "ints", "map"), depth) + ".size()"
	case 2:
		getter := g.one("getFullYear", "getMonth", "getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear", "getHours",
			"getMinutes", "getSeconds", "getMilliseconds")
		zone := ""
		if g.chance(2) {
			zone = quoted(g.one(zones...))
		}
		return fmt.Sprintf("%s.%s(%s)", g.of(g.one("time", "time", "time", "duration"), depth), getter, zone)
	case 3:
		return "int(" + g.of(g.one("double", "string", "time", "uint"), depth) + ")"
	default:
		return g.arithmetic("int", depth)
	}
}

func elementOf(kind string) string {
	switch kind {
	case "ints":
		return "int"
	case "strings":
		return "string"
	case "maps":
		return "map"
	default:
		return "any"
	}
}

// within generates the body of a macro in which a variable of a kind is defined.
func (g *generator) within(kind string, body func(name string) string) string {
	name := g.one("x", "y", "z", "x", "event", "n")
	g.variables = append([]variable{{name, kind}}, g.variables...)
	defer func() { g.variables = g.variables[1:] }()
	return body(name)
}

func (g *generator) list(kind string, depth int) string {
	element := elementOf(kind)
	switch g.IntN(4) {
	case 0:
		var items []string
		for range g.IntN(4) {
			items = append(items, g.of(element, depth))
		}
		return "[" + strings.Join(items, ", ") + "]"
	case 1:
		return fmt.Sprintf("(%s + %s)", g.of(kind, depth), g.of(kind, depth))
	case 2:
		over := g.of(kind, depth)
		return g.within(element, func(name string) string {
			return fmt.Sprintf("%s.filter(%s, %s)", over, name, g.boolean(depth))
		})
	default:
		from := g.one("ints", "strings", "maps")
		over := g.of(from, depth)
		return g.within(elementOf(from), func(name string) string {
			if g.chance(3) {
				return fmt.Sprintf("%s.map(%s, %s, %s)", over, name, g.boolean(depth), g.of(element, depth))
			}
			return fmt.Sprintf("%s.map(%s, %s)", over, name, g.of(element, depth))
		})
	}
}

func (g *generator) boolean(depth int) string {
	if depth <= 0 {
		return g.comparison(0)
	}
	depth--
	switch g.IntN(13) {
	case 0, 1:
		return "(" + g.junction(" && ", depth) + ")"
	case 2, 3:
		return "(" + g.junction(" || ", depth) + ")"
	case 4:
		return g.one("!", "!", "!!") + "(" + g.boolean(depth) + ")"
	case 5:
		return fmt.Sprintf("(%s ? %s : %s)", g.boolean(depth), g.boolean(depth), g.boolean(depth))
	case 6, 7:
		kind := g.one("ints", "strings", "maps", "map", "any")
		over := g.of(kind, depth)
		element := elementOf(kind)
		if kind == "map" {
			element = "string"
		}
		return g.within(element, func(name string) string {
			return fmt.Sprintf("%s.%s(%s, %s)", over, g.one("all", "exists", "exists", "exists_one"), name, g.boolean(depth))
		})
	case 8:
		return "has(" + g.path() + "." + g.one("n", "s", "o", "a", "gone", "`x-y`") + ")"
	case 9:
		if g.own {
			return g.fanfare(depth)
		}
		return g.of("bool", 0)
	default:
		return g.comparison(depth)
	}
}

func (g *generator) junction(operator string, depth int) string {
	operands := []string{g.boolean(depth), g.boolean(depth)}
	for g.chance(3) {
		operands = append(operands, g.boolean(depth))
	}
	return strings.Join(operands, operator)
}

func (g *generator) comparison(depth int) string {
	kind := g.one(kinds...)
	switch g.IntN(9) {
	case 0:
		list := g.one("ints", "strings")
		return fmt.Sprintf("%s in %s", g.of(elementOf(list), depth), g.of(list, depth))
	case 1:
		return fmt.Sprintf("%s in %s", g.key(depth), g.of("map", depth))
	case 2:
		return fmt.Sprintf("%s.%s(%s)", g.of("string", depth), g.one("contains", "startsWith", "endsWith"), g.of("string", depth))
	case 3:
		return fmt.Sprintf("%s.matches(%s)", g.of("string", depth), quoted(g.one(patterns...)))
	case 4, 5:
		return fmt.Sprintf("%s %s %s", g.of(kind, depth), g.one("==", "!="), g.of(kind, depth))
	case 6:
		left, right := g.one("int", "double", "uint"), g.one("int", "double", "uint")
		return fmt.Sprintf("%s %s %s", g.of(left, depth), g.one("<", "<=", ">", ">=", "==", "!="), g.of(right, depth))
	default:
		kind = g.one("int", "double", "string", "time", "duration", "bool", "bytes")
		return fmt.Sprintf("%s %s %s", g.of(kind, depth), g.one("<", "<=", ">", ">="), g.of(kind, depth))
	}
}

// fanfare generates a call of one of Fanfare's own functions.
func (g *generator) fanfare(depth int) string {
	hidden := slices.ContainsFunc(g.variables, func(v variable) bool { return v.name == "event" })
	switch choice := g.IntN(3); {
	case choice == 0 || hidden:
		return fmt.Sprintf("%s(%s, %s)", g.one("contains_ci", "starts_with_ci"), g.of("string", depth), g.of("string", depth))
	case choice == 1:
		place := func() string {
			return g.one("1.0", "48.4", "90", "-90", "179.9", "-180", "event.m", "event.n", "event.d")
		}
		return fmt.Sprintf("geo.within(%s, %s, %s, %s, %s)", place(), place(), place(), place(), g.one("0", "100", "20000", "event.m"))
	default:
		from := g.one("event.n", "event.m", "event.d", "event.big", "event.n * 2", "event.m + event.d", "event.s", "event.o.a")
		return fmt.Sprintf("%s(%s, %s)", g.one("crosses", "crosses_above", "crosses_below"), from, g.of(g.one("int", "double"), depth))
	}
}

// path generates a field of the event, or a field of such a field.
func (g *generator) path() string {
	return g.one("event", "event", "event.o", "event.nul", "event.s", "event.gone", "event.os[0]", "event.l", "event.n", "event['o']")
}

func (g *generator) leaf(kind string) string {
	if names := fieldsOf[kind]; names != nil && !g.chance(3) {
		return "event." + g.one(names...)
	}
	if g.params && g.chance(3) {
		switch kind {
		case "double":
			return "sub.level"
		case "string":
			return "sub.word"
		case "strings":
			return "sub.words"
		case "bool":
			return "sub.flag"
		}
	}
	switch kind {
	case "int":
		if g.chance(5) {
			return "event.o.a"
		}
		return g.one(integers_...)
	case "uint":
		return g.one("0u", "1u", "2u", "7u", "18446744073709551615u")
	case "double":
		return g.one(doubles...)
	case "string":
		if g.chance(5) {
			return g.one("event.o.k", "event.os[0].k", "event.ls[0]", "ce.id")
		}
		return quoted(g.one(texts...))
	case "bytes":
		return g.one("b''", "b'a'", "b'ab'", `b'\xff'`, "b'é'")
	case "bool":
		return g.one("true", "false")
	case "ints":
		return g.one("[]", "[1, 2, 3]", "[1]", "[2, 2]", "[0, -1]")
	case "strings":
		return g.one("[]", "['a', 'b']", "['ab']", "['', 'é']")
	case "map":
		return g.one("{}", "{'a': 1}", "{'k': 'a', 'a': 2}", "{1: 'a'}", "{true: 1, 2u: 3}", "event.os[0]")
	case "maps":
		return g.one("[]", "[{'a': 1}]", "[{'k': 'a'}, {}]")
	case "time":
		if g.chance(3) {
			return "ce.time"
		}
		return "timestamp(" + quoted(g.one(times...)) + ")"
	case "duration":
		return "duration(" + quoted(g.one(durations...)) + ")"
	case "type":
		return g.one("int", "double", "string", "list", "map", "bool", "null_type", "type", "bytes", "uint", "google.protobuf.Timestamp")
	default:
		return g.one("null", "event.x", "event.gone", "1", "'a'", "2.5", "true", "[1]", "event", "ce.id", "event.o.gone")
	}
}

// object is a JSON object whose members keep their order.
type object []string

func (o *object) add(name, text string) { *o = append(*o, strconv.Quote(name)+":"+text) }

func (o object) String() string { return "{" + strings.Join(o, ",") + "}" }

// event generates the data of an event.
func (g *generator) event() string {
	var o object
	for _, kind := range []string{"int", "double", "string", "bool", "ints", "strings", "map", "maps", "time", "duration", "any"} {
		for _, name := range fieldsOf[kind] {
			switch {
			case g.chance(8):
			case g.chance(12):
				o.add(name, g.json("any", 2))
			default:
				o.add(name, g.json(kind, 2))
			}
		}
	}
	return o.String()
}

func jsonText(text string) string {
	out, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(out)
}

func (g *generator) json(kind string, depth int) string {
	list := func(kind string) string {
		var items []string
		for range g.IntN(4) {
			items = append(items, g.json(kind, depth-1))
		}
		return "[" + strings.Join(items, ",") + "]"
	}
	switch kind {
	case "int":
		return g.one("0", "1", "2", "3", "-1", "5", "10", "-0", "9007199254740993", "9223372036854775807", "-9223372036854775808", strconv.Itoa(g.IntN(20)))
	case "double":
		return g.one("0.0", "1.0", "-0.0", "1.5", "2.5e3", "0.1", "1e999", "-1e999", "9223372036854775808", "48.43", "-123.4", "1e-400")
	case "string":
		return jsonText(g.one(texts...))
	case "bool":
		return g.one("true", "false")
	case "ints":
		return list("int")
	case "strings":
		return list("string")
	case "maps":
		return list("map")
	case "map":
		var o object
		for _, name := range []string{"a", "k", "x-y", "b"} {
			if g.chance(2) {
				o.add(name, g.json(g.one("int", "string", "any"), depth-1))
			}
		}
		return o.String()
	case "time":
		return jsonText(g.one(times...))
	case "duration":
		return jsonText(g.one(durations...))
	default:
		if depth <= 0 {
			return g.one("null", "1", "true")
		}
		return g.one("null", "null", "{}", "[]", g.json("int", depth), g.json("double", depth), g.json("string", depth), g.json("bool", depth),
			g.json("map", depth-1), list("any"))
	}
}
