package conditiontest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// An expr is a part of a condition.
type expr struct {
	text  string
	shape string // its syntax, without names and literals
	level level
}

// A level is how tightly the operator of an expression binds: an operand that binds more
// loosely is put in parentheses.
type level uint8

const (
	levelPrimary level = iota
	levelUnary
	levelMultiply
	levelAdd
	levelRelation
	levelAnd
	levelOr
	levelTernary
)

// typ is what an expression gives.
type typ uint8

const (
	typBool typ = iota
	typNumber
	typString
	typList
	typTime
	typDuration
	types
)

// A Generator draws conditions and events.
type Generator struct {
	choices Choices
	profile *Profile

	bare   bool              // fields may be written without event
	keyed  bool              // the topic has a key
	params map[string]string // of the rule that is being drawn; nil in a filter
	vars   []string          // of the macros around
	pools  [types][]expr
	reused []string // shapes of the pool parts in the current condition

	Shapes map[string]bool // pairs of the shape of a condition and that of a part that it shares
}

// NewGenerator returns a Generator for the events of a profile.
func NewGenerator(choices Choices, p *Profile) *Generator {
	return &Generator{choices: choices, profile: p, Shapes: map[string]bool{}}
}

func (g *Generator) intn(n int) int { return g.choices.Intn(n) }

// oneIn is true once in n times.
func (g *Generator) oneIn(n int) bool { return g.intn(n) == n-1 }

func pick[T any](g *Generator, from []T) T { return from[g.intn(len(from))] }

// maxPool is the number of parts of each type that are kept for reuse.
const maxPool = 60

// Filter draws the text of a filter.
func (g *Generator) Filter() string {
	g.params = nil
	return g.condition()
}

// Rule draws the text of a rule and the types of its params.
func (g *Generator) Rule() (when string, params map[string]string) {
	g.params = map[string]string{"n": "number", "m": "number", "s": "string", "p": "string", "b": "boolean", "l": "strings"}
	pools := g.pools
	g.pools = [types][]expr{} // parts with params are only for this rule
	when = g.condition()
	g.pools, params, g.params = pools, g.params, nil
	return when, params
}

// Params draws the params of a subscription to a rule.
func (g *Generator) Params() json.RawMessage {
	number := func() string {
		for {
			text := g.numberText()
			if f, err := strconv.ParseFloat(text, 64); err == nil && f == f { // JSON params are finite
				return text
			}
		}
	}
	list := make([]string, g.intn(3))
	for i := range list {
		list[i] = g.jsonText()
	}
	return json.RawMessage(fmt.Sprintf(`{"n":%s,"m":%s,"s":%s,"p":%s,"b":%t,"l":[%s]}`, number(), number(), g.jsonText(), g.jsonText(), g.oneIn(2), strings.Join(list, ",")))
}

func (g *Generator) condition() string {
	g.vars, g.reused = nil, nil
	e := g.bool(pick(g, []int{1, 2, 2, 2, 3, 4}))
	for _, part := range g.reused {
		g.Shapes[e.shape+" | "+part] = true
	}
	return g.spaced(e.text)
}

// spaced adds white space and comments where the grammar allows them.
func (g *Generator) spaced(text string) string {
	switch g.intn(30) {
	case 27:
		return " " + text + "\n"
	case 28:
		return "(" + text + ")"
	case 29:
		return text + " // a comment"
	}
	return text
}

// shape joins the shapes of parts; deep parts are omitted.
func shape(name string, parts ...expr) string {
	inner := make([]string, len(parts))
	for i, p := range parts {
		inner[i] = cutShape(p.shape, 2)
	}
	return name + "(" + strings.Join(inner, ",") + ")"
}

// cutShape cuts a shape off below a depth.
func cutShape(s string, depth int) string {
	var b strings.Builder
	at := 0
	for _, c := range s {
		if c == ')' {
			at--
		}
		if at < depth {
			b.WriteRune(c)
		}
		if c == '(' {
			at++
		}
	}
	return b.String()
}

// as puts an expression in parentheses if it binds more loosely than allowed, and occasionally
// if they are not necessary.
func (g *Generator) as(e expr, most level) string {
	if e.level > most || g.oneIn(12) {
		return "(" + e.text + ")"
	}
	return e.text
}

// nested draws an expression again, or takes one from the pool.
func (g *Generator) nested(t typ, draw func() expr) expr {
	if pool := g.pools[t]; len(pool) > 0 && len(g.vars) == 0 && g.intn(5) >= 3 {
		e := pick(g, pool)
		g.reused = append(g.reused, e.shape)
		if g.oneIn(2) {
			e.text = g.otherLiteral(e.text)
		}
		return e
	}
	e := draw()
	if len(g.vars) == 0 {
		if len(g.pools[t]) < maxPool {
			g.pools[t] = append(g.pools[t], e)
		} else {
			g.pools[t][g.intn(maxPool)] = e
		}
	}
	return e
}

var (
	numberLiteral = regexp.MustCompile(`(^|[ (,<>=])(-?[0-9]+(\.[0-9]+)?)($|[ ),])`)
	textLiteral   = regexp.MustCompile(`(==|!=|, |in \[) ?'([^'\\]*)'`)
)

// otherLiteral replaces a literal with another one.
func (g *Generator) otherLiteral(text string) string {
	if at := numberLiteral.FindAllStringSubmatchIndex(text, -1); len(at) > 0 && !g.oneIn(3) {
		m := pick(g, at)
		return text[:m[4]] + g.numberText() + text[m[5]:]
	}
	if at := textLiteral.FindAllStringSubmatchIndex(text, -1); len(at) > 0 {
		m := pick(g, at)
		return text[:m[4]-1] + g.stringLiteral() + text[m[5]+1:]
	}
	return text
}

// bool draws an expression that is true or false.
func (g *Generator) bool(depth int) expr {
	return g.nested(typBool, func() expr {
		if depth <= 0 {
			if g.oneIn(3) {
				return g.bareTest()
			}
			return g.test()
		}
		switch g.intn(14) {
		case 0, 1, 2, 3, 4:
			return g.joined("&&", levelAnd, depth)
		case 5, 6, 7:
			return g.joined("||", levelOr, depth)
		case 8, 9:
			inner := g.bool(depth - 1)
			text, nots := g.as(inner, levelUnary), strings.Repeat("!", 1+g.intn(2))
			return expr{nots + text, shape("not", inner), levelUnary}
		case 10:
			when, then, otherwise := g.bool(depth-1), g.bool(depth-1), g.bool(depth-1)
			return expr{g.as(when, levelOr) + " ? " + g.as(then, levelOr) + " : " + g.as(otherwise, levelTernary), shape("choice", when, then, otherwise), levelTernary}
		case 11:
			a, b := g.bool(depth-1), g.bool(depth-1)
			return expr{g.as(a, levelAdd) + pick(g, []string{" == ", " != "}) + g.as(b, levelAdd), shape("equal", a, b), levelRelation}
		case 12:
			return g.macro(depth)
		}
		return g.test()
	})
}

// joined is a chain of two to four operands.
func (g *Generator) joined(operator string, l level, depth int) expr {
	parts := make([]expr, 2+g.intn(3)%2+g.intn(2))
	texts := make([]string, len(parts))
	for i := range parts {
		parts[i] = g.bool(depth - 1)
		texts[i] = g.as(parts[i], l)
		if parts[i].level == l && g.oneIn(2) { // an operand of the same operator, with parentheses of its own
			texts[i] = "(" + parts[i].text + ")"
		}
	}
	return expr{strings.Join(texts, " "+operator+" "), shape(operator, parts...), l}
}

// bareTest draws a condition in which there is no literal.
func (g *Generator) bareTest() expr {
	f := g.field()
	switch g.intn(6) {
	case 0, 1:
		return expr{"has(" + g.path(f) + ")", "has", levelPrimary}
	case 2:
		return expr{g.path(g.fieldOf(f.kind)) + pick(g, []string{" == ", " != ", " > ", " <= "}) + g.path(f), "fields", levelRelation}
	case 3:
		return expr{g.path(f) + pick(g, []string{" == null", " != null"}), "null", levelRelation}
	case 4:
		return expr{g.path(g.fieldOf(kindBool)), "bool", levelPrimary}
	}
	return expr{pick(g, []string{"true", "false"}), "literal", levelPrimary}
}

// test draws a condition without && and ||.
func (g *Generator) test() expr {
	switch g.intn(20) {
	case 0, 1:
		a, b := g.number(1), g.numberOperand()
		return expr{g.as(a, levelAdd) + pick(g, []string{" > ", " >= ", " < ", " <= "}) + g.as(b, levelAdd), shape("order", a, b), levelRelation}
	case 2:
		a, b := g.number(1), g.numberOperand()
		return g.sided(expr{g.as(a, levelAdd) + pick(g, []string{" == ", " == ", " != "}) + g.as(b, levelAdd), shape("equal", a, b), levelRelation})
	case 3, 4, 5:
		a, b := g.string(1), g.stringOperand()
		return expr{g.as(a, levelAdd) + pick(g, []string{" == ", " == ", " == ", " != ", " > ", " <= "}) + g.as(b, levelAdd), shape("equal", a, b), levelRelation}
	case 6:
		return expr{"has(" + g.path(g.field()) + ")", "has", levelPrimary}
	case 7, 8:
		a, b := g.string(1), g.stringOperand()
		return expr{pick(g, []string{"contains_ci(", "contains_ci(", "starts_with_ci("}) + a.text + ", " + b.text + ")", shape("fold", a, b), levelPrimary}
	case 9:
		a, b := g.string(0), g.stringOperand()
		return expr{g.as(a, levelPrimary) + "." + pick(g, []string{"contains", "startsWith", "endsWith"}) + "(" + b.text + ")", shape("text", a, b), levelPrimary}
	case 10:
		a := g.string(0)
		return expr{g.as(a, levelPrimary) + ".matches(" + pick(g, []string{"'^web'", "'^d.*[0-9]$'", "'(?i)VAN'", "''", "'a|b'", "r'\\w+'"}) + ")", shape("matches", a), levelPrimary}
	case 11:
		f := g.path(g.field())
		return expr{f + pick(g, []string{" == null", " != null"}), "null", levelRelation}
	case 12, 13:
		return g.membership()
	case 14:
		return g.within()
	case 15:
		if g.keyed {
			return g.crossing()
		}
		return expr{pick(g, []string{"false", "true"}), "literal", levelPrimary}
	case 16:
		return expr{g.path(g.fieldOf(kindBool)), "bool", levelPrimary}
	case 17:
		return g.clock()
	case 18:
		a, b := g.path(g.field()), g.path(g.field())
		return expr{a + pick(g, []string{" == ", " != ", " > ", " <= "}) + b, "fields", levelRelation}
	}
	if g.params != nil {
		return expr{pick(g, []string{"sub.b", "size(sub.l) == 0", "sub.n > sub.m", "sub.s != ''", "event.b == sub.b"}), "param", levelRelation}
	}
	return g.macro(0)
}

// sided occasionally swaps the sides of a comparison.
func (g *Generator) sided(e expr) expr {
	if a, b, ok := strings.Cut(e.text, " == "); ok && g.oneIn(4) && !strings.ContainsAny(e.text, "()") {
		e.text = b + " == " + a
	}
	return e
}

func (g *Generator) membership() expr {
	switch g.intn(8) {
	case 0, 1:
		a := g.string(0)
		list := make([]string, g.intn(4))
		for i := range list {
			list[i] = g.stringLiteral()
		}
		return expr{g.as(a, levelAdd) + " in [" + strings.Join(list, ", ") + "]", shape("in", a), levelRelation}
	case 2:
		a := g.number(0)
		list := make([]string, 1+g.intn(3))
		for i := range list {
			list[i] = g.numberText()
		}
		return expr{g.as(a, levelAdd) + " in [" + strings.Join(list, ", ") + "]", shape("in", a), levelRelation}
	case 3:
		return expr{g.stringOperand().text + " in " + g.path(g.fieldOf(kindStrings)), "inField", levelRelation}
	case 4:
		return expr{g.numberText() + " in " + g.path(g.fieldOf(kindNumbers)), "inField", levelRelation}
	case 5:
		return expr{g.stringLiteral() + " in " + g.path(g.fieldOf(kindObject)), "inMap", levelRelation}
	case 6:
		a, b := g.stringOperand(), g.stringOperand()
		return expr{g.path(g.fieldOf(kindString)) + " in [" + a.text + ", " + b.text + "]", "in", levelRelation}
	}
	if g.params != nil {
		return expr{g.path(g.fieldOf(kindString)) + " in sub.l", "inParam", levelRelation}
	}
	return expr{"size(" + g.path(g.fieldOf(kindStrings)) + ") >= " + strconv.Itoa(g.intn(4)), "size", levelRelation}
}

// macro draws a comprehension, whose variable may have the name of a field.
func (g *Generator) macro(depth int) expr {
	variable := pick(g, []string{"x", "t", "s", "event", "y"})
	over := g.path(g.fieldOf(pick(g, []kind{kindStrings, kindStrings, kindNumbers, kindObjects, kindObject, kindString})))
	if g.params != nil && g.oneIn(4) {
		over = "sub.l"
	}
	g.vars = append(g.vars, variable)
	defer func() { g.vars = g.vars[:len(g.vars)-1] }()
	var inner expr
	switch g.intn(8) {
	case 0, 1:
		inner = expr{variable + " == " + g.stringOperand().text, "equal", levelRelation}
	case 2:
		inner = expr{variable + " in [" + g.stringLiteral() + ", " + g.stringLiteral() + "]", "in", levelRelation}
	case 3:
		inner = expr{variable + pick(g, []string{" > ", " == ", " <= "}) + g.numberOperand().text, "order", levelRelation}
	case 4:
		inner = expr{variable + ".id" + pick(g, []string{" == ", " != "}) + g.stringLiteral(), "member", levelRelation}
	case 5:
		inner = expr{variable + " in " + g.path(g.fieldOf(kindStrings)), "inField", levelRelation}
	case 6:
		inner = expr{"has(" + variable + ".n) && " + variable + ".n > " + g.numberText(), "hasMember", levelAnd}
	default:
		if g.params != nil {
			inner = expr{variable + " in sub.l", "inParam", levelRelation}
		} else if depth > 0 {
			inner = g.bool(depth - 1)
		} else {
			inner = expr{variable + " != null", "null", levelRelation}
		}
	}
	switch name := pick(g, []string{"exists", "exists", "all", "exists_one", "filter", "map"}); name {
	case "filter":
		return expr{"size(" + over + ".filter(" + variable + ", " + inner.text + ")) " + pick(g, []string{"> 0", "== 1", "== 2.0"}), shape(name, inner), levelRelation}
	case "map":
		return expr{over + ".map(" + variable + ", " + inner.text + ").exists(z, z)", shape(name, inner), levelPrimary}
	default:
		return expr{over + "." + name + "(" + variable + ", " + inner.text + ")", shape(name, inner), levelPrimary}
	}
}

func (g *Generator) within() expr {
	args := []string{"event.lat", "event.lon", pick(g, []string{"48.43", "49.28", "-17.5", "0", "90", "95"}), pick(g, []string{"-123.12", "-179.8", "0", "180"}), pick(g, []string{"100", "0", "60", "20000", "-1"})}
	if g.params != nil && g.oneIn(2) {
		args[4] = "sub.n"
	}
	if g.oneIn(5) {
		args[0], args[1], args[2], args[3] = args[2], args[3], args[0], args[1]
	}
	return expr{"geo.within(" + strings.Join(args, ", ") + ")", "geo", levelPrimary}
}

func (g *Generator) crossing() expr {
	value := g.path(g.fieldOf(kindDouble))
	if g.oneIn(4) {
		value += pick(g, []string{" - ", " + ", " * ", " / "}) + g.path(g.fieldOf(kindDouble))
	}
	text := pick(g, []string{"crosses", "crosses_above", "crosses_below"}) + "(" + value + ", " + g.numberOperand().text + ")"
	if g.oneIn(8) {
		return expr{text + " == false", "crosses", levelRelation}
	}
	return expr{text, "crosses", levelPrimary}
}

// clock draws a condition about a time.
func (g *Generator) clock() expr {
	at := pick(g, []string{"ce.time", "timestamp(" + g.path(g.fieldOf(kindTime)) + ")"})
	part := pick(g, []string{"getHours", "getDayOfWeek", "getFullYear", "getMonth", "getDate", "getMinutes", "getDayOfYear", "getSeconds", "getMilliseconds", "getDayOfMonth"})
	zone := pick(g, []string{"", "'Europe/Berlin'", "'+02:00'", "'-03:30'", "'America/Vancouver'", "'UTC'"})
	switch g.intn(5) {
	case 0:
		return expr{at + pick(g, []string{" > ", " <= ", " == "}) + "timestamp('2026-03-27T17:30:00Z')", "time", levelRelation}
	case 1:
		return expr{at + " - timestamp('2026-03-27T00:00:00Z') " + pick(g, []string{">", "<"}) + " duration(" + pick(g, []string{"'24h'", "'1.5s'", "'-3h'"}) + ")", "duration", levelRelation}
	case 2:
		return expr{at + "." + part + "(" + zone + ") in [" + strconv.Itoa(g.intn(24)) + ", 2, 27]", "clock", levelRelation}
	}
	return expr{at + "." + part + "(" + zone + ") " + pick(g, []string{"==", ">=", "<", "!="}) + " " + pick(g, []string{"17", "18", "5", "2026", "2", "30", "27", "0"}), "clock", levelRelation}
}

// number draws an expression that mostly is a number.
func (g *Generator) number(depth int) expr {
	return g.nested(typNumber, func() expr {
		switch g.intn(12) {
		case 8:
			if depth > 0 {
				a, b := g.number(depth-1), g.number(0)
				operator, l := pick(g, []string{" + ", " - ", " * ", " / ", " % "}), levelAdd
				if strings.ContainsAny(operator, "*/%") {
					l = levelMultiply
				}
				return expr{g.as(a, l) + operator + g.as(b, l-1), shape("arithmetic", a, b), l}
			}
		case 9:
			return expr{pick(g, []string{"double(", "int(", "dyn("}) + g.path(g.field()) + ")", "convert", levelPrimary}
		case 10:
			f := g.fieldOf(pick(g, []kind{kindString, kindStrings, kindObject}))
			return expr{"size(" + g.path(f) + ")", "size", levelPrimary}
		case 11:
			return expr{"-" + g.path(g.fieldOf(kindDouble)), "negative", levelUnary}
		}
		return expr{g.path(g.fieldOf(pick(g, []kind{kindDouble, kindDouble, kindInt, kindMixed}))), "number", levelPrimary}
	})
}

// numberOperand draws a value to compare with a number: a literal, a param or another field.
func (g *Generator) numberOperand() expr {
	if g.params != nil && g.intn(3) > 0 {
		return expr{pick(g, []string{"sub.n", "sub.m", "sub['n']"}), "param", levelPrimary}
	}
	if g.oneIn(10) {
		return g.number(0)
	}
	return expr{g.numberText(), "literal", levelPrimary}
}

// string draws an expression that mostly is a text.
func (g *Generator) string(depth int) expr {
	return g.nested(typString, func() expr {
		switch g.intn(12) {
		case 8:
			return expr{pick(g, []string{"ce.source", "ce.type", "ce.subject", "ce.tenant", "ce.id", "ce['type']"}), "attribute", levelPrimary}
		case 9:
			if depth > 0 {
				a, b := g.string(0), g.stringOperand()
				return expr{g.as(a, levelAdd) + " + " + g.as(b, levelMultiply), shape("concatenation", a, b), levelAdd}
			}
		case 10:
			return expr{"string(" + g.path(g.field()) + ")", "convert", levelPrimary}
		case 11:
			return expr{g.path(g.fieldOf(kindStrings)) + "[" + strconv.Itoa(g.intn(2)) + "]", "element", levelPrimary}
		}
		return expr{g.path(g.fieldOf(pick(g, []kind{kindString, kindString, kindString, kindMixed}))), "string", levelPrimary}
	})
}

func (g *Generator) stringOperand() expr {
	if g.params != nil && g.intn(3) > 0 {
		return expr{pick(g, []string{"sub.s", "sub.p"}), "param", levelPrimary}
	}
	if g.oneIn(10) {
		return g.string(0)
	}
	return expr{g.stringLiteral(), "literal", levelPrimary}
}

func (g *Generator) field() *field { return &g.profile.fields[g.intn(len(g.profile.fields))] }

// fieldOf draws a field that mostly contains values of a kind, or any field if there is none.
func (g *Generator) fieldOf(k kind) *field {
	if g.oneIn(25) {
		return g.field()
	}
	var of []*field
	for i := range g.profile.fields {
		if g.profile.fields[i].kind == k {
			of = append(of, &g.profile.fields[i])
		}
	}
	if len(of) == 0 {
		return g.field()
	}
	return pick(g, of)
}

var identifier = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)

// path writes a field in one of the ways that the grammar has.
func (g *Generator) path(f *field) string {
	text := "event"
	first := f.path[0]
	if g.bare && identifier.MatchString(first) && !slices.Contains(g.vars, first) && g.oneIn(4) {
		text = first
		first = ""
	}
	for i, step := range f.path {
		if i == 0 && first == "" {
			continue
		}
		switch {
		case !identifier.MatchString(step) && g.oneIn(3):
			text += ".`" + step + "`"
		case !identifier.MatchString(step) || g.oneIn(10):
			text += "[" + quoted(step, pick(g, []string{"'", `"`})) + "]"
		default:
			text += "." + step
		}
	}
	return text
}

// numberText draws a number as a literal.
func (g *Generator) numberText() string {
	f := g.fieldOf(pick(g, []kind{kindDouble, kindDouble, kindInt}))
	if g.oneIn(20) {
		return pick(g, []string{"1.5e1", "0x10", "9007199254740993", "9007199254740992.0", "-0.0", "1e308", "9223372036854775807", "-9223372036854775808", "0.1"})
	}
	text := pick(g, f.values)
	if v, err := strconv.ParseFloat(text, 64); err != nil || v != v || v > 1e308 || v < -1e308 {
		return strconv.Itoa(g.intn(100))
	}
	return text
}

// jsonText draws a text as JSON.
func (g *Generator) jsonText() string {
	text := pick(g, g.fieldOf(kindString).values)
	if !strings.HasPrefix(text, `"`) {
		return `"a"`
	}
	return text
}

// stringLiteral draws a text as a literal of the language, in one of its forms.
func (g *Generator) stringLiteral() string {
	var text string
	if json.Unmarshal([]byte(g.jsonText()), &text) != nil {
		text = "a"
	}
	if runes := []rune(text); len(runes) > 1 && g.oneIn(6) {
		text = string(runes[:1+g.intn(len(runes)-1)])
	}
	switch g.intn(12) {
	case 9:
		return quoted(text, `"`)
	case 10:
		var b strings.Builder
		for _, r := range text {
			fmt.Fprintf(&b, `\U%08x`, r)
		}
		return "'" + b.String() + "'"
	case 11:
		if !strings.ContainsAny(text, "'\n\r\\") {
			return pick(g, []string{"r'" + text + "'", "'''" + text + "'''"})
		}
	}
	return quoted(text, "'")
}

// quoted writes a text between quotes.
func quoted(text, quote string) string {
	text = strings.ReplaceAll(text, `\`, `\\`)
	text = strings.NewReplacer(quote, `\`+quote, "\n", `\n`, "\t", `\t`, "\r", `\r`).Replace(text)
	return quote + text + quote
}
