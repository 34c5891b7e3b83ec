package evaluator

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

type op uint8

const (
	opLiteral    op = iota
	opVariable      // of a macro; level says which
	opEvent         // the data
	opAttributes    // ce
	opParams        // sub
	opSelect        // args[0].name
	opHas           // has(args[0].name)
	opAnd
	opOr
	opChoose // args[0] ? args[1] : args[2]
	opList
	opMap // args: key, value, key, value
	opCall
	opAll       // args: range, predicate
	opExists    // args: range, predicate
	opExistsOne // args: range, predicate
	opCollect   // args: range, result, and a predicate where some are left out
	opCross     // args: value, level
)

// A node is an expression whose names are resolved.
type node struct {
	op        op
	cross     crossing
	truth     bool // the result is a boolean, an error or undecided
	sizeClass uint8
	level     int // of a variable: the number of macros around the one that has it
	args      []*node
	name      string
	why       string // the error where the field is missing
	literal   value
	steps     float64 // of a literal: what making it takes
	fn        *function
	topic     *Topic
	text      string   // the canonical text: nodes of one topic with equal texts are equal
	params    []string // the params that it uses, sorted
	regex     *regexp.Regexp
	where     *time.Location
}

// constant returns the node of a literal.
func constant(v value) *node {
	return &node{op: opLiteral, literal: v, truth: v.kind == kindBool, steps: literalSteps(v)}
}

// prepare compiles the literal argument of a call once, such as a pattern or a time zone. An error in it is
// reported when the call is evaluated.
func (n *node) prepare() {
	if n.op != opCall || len(n.args) != 2 || n.args[1].op != opLiteral || n.args[1].literal.kind != kindString {
		return
	}
	text := n.args[1].literal.str
	switch {
	case n.fn.name == "matches":
		n.regex, _ = compilePattern(text)
	case getters[n.fn.name] != nil:
		n.where, _ = zone(text)
	}
}

// pattern returns the regular expression of a text.
func (n *node) pattern(text string) (*regexp.Regexp, error) {
	if n.regex != nil {
		return n.regex, nil
	}
	return n.topic.patterns.get(text, compilePattern)
}

// zone returns the time zone of a name.
func (n *node) zone(name string) (*time.Location, error) {
	if n.where != nil {
		return n.where, nil
	}
	return n.topic.zones.get(name, zone)
}

// setText sets the canonical texts of a node and of all nodes below it, as parts of one string.
func (n *node) setText() {
	var out strings.Builder
	type piece struct {
		n        *node
		from, to int
	}
	var pieces []piece
	var write func(n *node)
	write = func(n *node) {
		from := out.Len()
		n.writeHead(&out)
		if len(n.args) > 0 {
			out.WriteByte('(')
			for i, arg := range n.args {
				if i > 0 {
					out.WriteByte(',')
				}
				write(arg)
			}
			out.WriteByte(')')
		}
		pieces = append(pieces, piece{n, from, out.Len()})
	}
	write(n)
	text := out.String()
	for _, p := range pieces {
		p.n.text = text[p.from:p.to]
	}
}

// writeHead writes the part of the text that distinguishes a node from others with the same
// operands.
func (n *node) writeHead(out *strings.Builder) {
	switch n.op {
	case opLiteral:
		writeLiteral(out, n.literal)
	case opVariable:
		out.WriteByte('$')
		out.WriteString(strconv.Itoa(n.level))
	case opEvent:
		out.WriteString("event")
	case opAttributes:
		out.WriteString("ce")
	case opParams:
		out.WriteString("sub")
	case opSelect:
		out.WriteByte('.')
		out.WriteString(strconv.Quote(n.name))
	case opHas:
		out.WriteString("has.")
		out.WriteString(strconv.Quote(n.name))
	case opCall:
		out.WriteString(n.fn.name)
	case opCross:
		out.WriteString(n.cross.String())
	default:
		out.WriteString([...]string{opAnd: "&&", opOr: "||", opChoose: "?", opList: "[]", opMap: "{}",
			opAll: "all", opExists: "exists", opExistsOne: "exists_one", opCollect: "map"}[n.op])
		if len(n.args) == 0 {
			out.WriteString("()")
		}
	}
}

func writeLiteral(out *strings.Builder, v value) {
	switch v.kind {
	case kindNull:
		out.WriteString("null")
	case kindBool:
		out.WriteString(strconv.FormatBool(v.isTrue()))
	case kindString:
		out.WriteString(strconv.Quote(v.str))
	case kindBytes, kindType:
		fmt.Fprintf(out, "%s:%q", typeNames[v.kind], v.str)
	case kindList:
		out.WriteByte('[')
		for i, item := range v.ref.items {
			if i > 0 {
				out.WriteByte(',')
			}
			writeLiteral(out, item)
		}
		out.WriteByte(']')
	case kindMap:
		out.WriteByte('{')
		for i, key := range v.ref.keys {
			if i > 0 {
				out.WriteByte(',')
			}
			writeLiteral(out, key)
			out.WriteByte(':')
			writeLiteral(out, v.ref.items[i])
		}
		out.WriteByte('}')
	default:
		fmt.Fprintf(out, "%s:%x", typeNames[v.kind], v.num)
	}
}

// wholeParams represents all params of a rule, for a condition that uses sub as one value.
const wholeParams = "*"

// collectParams sets the params that a node and all nodes below it read.
func (n *node) collectParams() {
	if n.op == opParams {
		n.params = []string{wholeParams}
	}
	for _, arg := range n.args {
		arg.collectParams()
		for _, name := range arg.params {
			if !slices.Contains(n.params, name) {
				n.params = append(n.params, name)
			}
		}
	}
	if n.op == opSelect && n.args[0].op == opParams {
		n.params = []string{n.name}
	}
	slices.Sort(n.params)
}
