package evaluator

import (
	"slices"
	"strconv"
)

// Limits of a text. The limits of the index are lower: 4096 bytes and 64 levels.
const (
	maxTextBytes = 64 << 10
	maxLevels    = 250
)

type exprKind uint8

const (
	exprLiteral exprKind = iota
	exprName             // name; rooted where a point stands before it
	exprSelect           // args[0].name
	exprCall             // name(args...), or args[0].name(args[1:]...) where member
	exprList             // args
	exprMap              // args: key, value, key, value
)

// An expr is a node of the syntax tree. Operators are calls of functions with the names that CEL
// gives them: _==_, _&&_, !_, _?_:_, _[_].
type expr struct {
	kind    exprKind
	name    string
	args    []*expr
	literal value
	rooted  bool
	member  bool
	at      int
}

// inBrackets returns operand[index]. A literal text as the index selects a field, like .field.
func inBrackets(at int, operand, index *expr) *expr {
	if index.kind == exprLiteral && index.literal.kind == kindString {
		return &expr{kind: exprSelect, name: index.literal.str, args: []*expr{operand}, at: at}
	}
	return operator("_[_]", at, operand, index)
}

// reserved are the words that cannot be the name of a variable. Of these, neverFields cannot be
// the name of a field either, except in backticks.
var reserved = []string{"as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in",
	"let", "loop", "namespace", "null", "package", "return", "true", "var", "void", "while"}

var neverFields = []string{"in", "true", "false", "null"}

type parser struct {
	source string
	tokens []token
	next   int
	levels int
}

// parse returns the syntax tree of a text.
func parse(source string) (*expr, error) {
	if len(source) > maxTextBytes {
		return nil, &syntaxError{1, 1, "the text has more than " + strconv.Itoa(maxTextBytes) + " bytes"}
	}
	tokens, err := lex(source)
	if err != nil {
		return nil, err
	}
	p := &parser{source: source, tokens: tokens}
	e, err := p.expression()
	if err != nil {
		return nil, err
	}
	if p.peek().kind != tokenEnd {
		return nil, p.unexpected()
	}
	return e, nil
}

func (p *parser) peek() token { return p.tokens[p.next] }

func (p *parser) take() token {
	t := p.tokens[p.next]
	if t.kind != tokenEnd {
		p.next++
	}
	return t
}

// is reports whether the next token is the symbol.
func (p *parser) is(symbol string) bool {
	t := p.peek()
	return t.kind == tokenSymbol && t.text == symbol
}

// accept consumes the symbol if it is next.
func (p *parser) accept(symbol string) bool {
	if p.is(symbol) {
		p.next++
		return true
	}
	return false
}

func (p *parser) expect(symbol string) error {
	if !p.accept(symbol) {
		return errorAt(p.source, p.peek().at, "expected %s, found %s", symbol, p.peek().text)
	}
	return nil
}

func (p *parser) unexpected() error {
	return errorAt(p.source, p.peek().at, "unexpected %s", p.peek().text)
}

func (p *parser) message() error {
	return errorAt(p.source, p.peek().at, "messages are not part of the language")
}

// enter counts a level of nesting; the caller ends it with leave.
func (p *parser) enter() error {
	if p.levels++; p.levels > maxLevels {
		return errorAt(p.source, p.peek().at, "the nesting exceeds %d levels", maxLevels)
	}
	return nil
}

func (p *parser) leave() { p.levels-- }

func operator(name string, at int, args ...*expr) *expr {
	return &expr{kind: exprCall, name: name, args: args, at: at}
}

// expression parses a conditional. The operand between ? and : cannot be a conditional itself.
func (p *parser) expression() (*expr, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	condition, err := p.disjunction()
	if err != nil || !p.is("?") {
		return condition, err
	}
	at := p.take().at
	yes, err := p.disjunction()
	if err != nil {
		return nil, err
	}
	if err := p.expect(":"); err != nil {
		return nil, err
	}
	no, err := p.expression()
	if err != nil {
		return nil, err
	}
	return operator("_?_:_", at, condition, yes, no), nil
}

func (p *parser) disjunction() (*expr, error) {
	return p.chain("||", "_||_", func() (*expr, error) {
		return p.chain("&&", "_&&_", p.relation)
	})
}

// chain parses operands that are joined by one symbol; one node holds all of them.
func (p *parser) chain(symbol, name string, operand func() (*expr, error)) (*expr, error) {
	first, err := operand()
	if err != nil || !p.is(symbol) {
		return first, err
	}
	joined := operator(name, p.peek().at, first)
	for p.accept(symbol) {
		e, err := operand()
		if err != nil {
			return nil, err
		}
		joined.args = append(joined.args, e)
	}
	return joined, nil
}

// binary parses operands that are joined by symbols of one precedence, from the left.
func (p *parser) binary(symbols []string, operand func() (*expr, error)) (*expr, error) {
	left, err := operand()
	for err == nil {
		t := p.peek()
		joins := t.kind == tokenSymbol || t.kind == tokenName && t.text == "in"
		if !joins || !slices.Contains(symbols, t.text) {
			break
		}
		p.next++
		var right *expr
		if right, err = operand(); err == nil {
			name := "_" + t.text + "_"
			if t.text == "in" {
				name = "@in"
			}
			left = operator(name, t.at, left, right)
		}
	}
	return left, err
}

var (
	relations       = []string{"==", "!=", "<", "<=", ">", ">=", "in"}
	additions       = []string{"+", "-"}
	multiplications = []string{"*", "/", "%"}
)

func (p *parser) relation() (*expr, error) { return p.binary(relations, p.sum) }

func (p *parser) sum() (*expr, error) { return p.binary(additions, p.product) }

func (p *parser) product() (*expr, error) { return p.binary(multiplications, p.unary) }

// unary parses a run of ! or a run of -; an even number of them cancels out. One - before a number
// belongs to the number, so that the lowest integer can be written.
func (p *parser) unary() (*expr, error) {
	at, runs := p.peek().at, 0
	switch {
	case p.is("!"):
		for p.accept("!") {
			runs++
		}
		e, err := p.member()
		if err != nil || runs%2 == 0 {
			return e, err
		}
		return operator("!_", at, e), nil
	case p.is("-"):
		if after := p.tokens[p.next+1].kind; after == tokenInt || after == tokenDouble {
			return p.member()
		}
		for p.accept("-") {
			runs++
		}
		e, err := p.member()
		if err != nil || runs%2 == 0 {
			return e, err
		}
		return operator("-_", at, e), nil
	}
	return p.member()
}

// member parses an operand and the selections, calls and indexes that follow it.
func (p *parser) member() (*expr, error) {
	e, err := p.primary()
	for err == nil {
		switch {
		case p.is("."):
			e, err = p.selection(e)
		case p.is("["):
			at := p.take().at
			var index *expr
			if index, err = p.expression(); err == nil {
				if err = p.expect("]"); err == nil {
					e = inBrackets(at, e, index)
				}
			}
		default:
			return e, nil
		}
	}
	return nil, err
}

func (p *parser) selection(operand *expr) (*expr, error) {
	at := p.take().at
	name := p.take()
	switch {
	case name.kind == tokenQuoted:
		return &expr{kind: exprSelect, name: name.text, args: []*expr{operand}, at: at}, nil
	case name.kind != tokenName || slices.Contains(neverFields, name.text):
		return nil, errorAt(p.source, name.at, "expected a field name, found %s", name.text)
	case p.is("{"):
		return nil, p.message()
	case !p.is("("):
		return &expr{kind: exprSelect, name: name.text, args: []*expr{operand}, at: at}, nil
	}
	args, err := p.arguments()
	if err != nil {
		return nil, err
	}
	return &expr{kind: exprCall, name: name.text, args: append([]*expr{operand}, args...), member: true, at: name.at}, nil
}

// arguments parses the arguments of a call with their brackets.
func (p *parser) arguments() ([]*expr, error) {
	if err := p.expect("("); err != nil {
		return nil, err
	}
	if p.accept(")") {
		return nil, nil
	}
	var args []*expr
	for {
		e, err := p.expression()
		if err != nil {
			return nil, err
		}
		args = append(args, e)
		if p.accept(")") {
			return args, nil
		}
		if err := p.expect(","); err != nil {
			return nil, err
		}
	}
}

func (p *parser) primary() (*expr, error) {
	t := p.take()
	switch t.kind {
	case tokenInt, tokenUint, tokenDouble, tokenString, tokenBytes:
		return p.literal(t, "")
	case tokenName:
		return p.name(t, false)
	case tokenSymbol:
		switch t.text {
		case "-":
			return p.literal(p.take(), "-")
		case ".":
			if name := p.take(); name.kind == tokenName {
				return p.name(name, true)
			}
		case "(":
			e, err := p.expression()
			if err == nil {
				err = p.expect(")")
			}
			return e, err
		case "[":
			return p.list(t)
		case "{":
			return p.mapping(t)
		}
	}
	return nil, errorAt(p.source, t.at, "unexpected %s", t.text)
}

// name parses a word: a literal, a variable or a call.
func (p *parser) name(t token, rooted bool) (*expr, error) {
	if !rooted {
		switch t.text {
		case "true", "false":
			return &expr{kind: exprLiteral, literal: boolValue(t.text == "true"), at: t.at}, nil
		case "null":
			return &expr{kind: exprLiteral, literal: value{kind: kindNull}, at: t.at}, nil
		}
	}
	if p.is("{") {
		return nil, p.message()
	}
	if slices.Contains(reserved, t.text) {
		return nil, errorAt(p.source, t.at, "%s is a reserved word", t.text)
	}
	if !p.is("(") {
		return &expr{kind: exprName, name: t.text, rooted: rooted, at: t.at}, nil
	}
	args, err := p.arguments()
	if err != nil {
		return nil, err
	}
	return &expr{kind: exprCall, name: t.text, args: args, rooted: rooted, at: t.at}, nil
}

func (p *parser) list(open token) (*expr, error) {
	e := &expr{kind: exprList, at: open.at}
	if p.accept(",") {
		return e, p.expect("]")
	}
	for !p.accept("]") {
		item, err := p.expression()
		if err != nil {
			return nil, err
		}
		e.args = append(e.args, item)
		if !p.is("]") {
			if err := p.expect(","); err != nil {
				return nil, err
			}
		}
	}
	return e, nil
}

func (p *parser) mapping(open token) (*expr, error) {
	e := &expr{kind: exprMap, at: open.at}
	if p.accept(",") {
		return e, p.expect("}")
	}
	for !p.accept("}") {
		key, err := p.expression()
		if err != nil {
			return nil, err
		}
		if err := p.expect(":"); err != nil {
			return nil, err
		}
		item, err := p.expression()
		if err != nil {
			return nil, err
		}
		e.args = append(e.args, key, item)
		if !p.is("}") {
			if err := p.expect(","); err != nil {
				return nil, err
			}
		}
	}
	return e, nil
}

func (p *parser) literal(t token, sign string) (*expr, error) {
	e := &expr{kind: exprLiteral, at: t.at}
	base, digits := 10, t.text
	if len(digits) > 2 && digits[:2] == "0x" {
		base, digits = 16, digits[2:]
	}
	switch t.kind {
	case tokenInt:
		n, err := strconv.ParseInt(sign+digits, base, 64)
		if err != nil {
			return nil, errorAt(p.source, t.at, "%s does not fit into a 64-bit integer", t.text)
		}
		e.literal = intValue(n)
	case tokenUint:
		n, err := strconv.ParseUint(digits[:len(digits)-1], base, 64)
		if err != nil {
			return nil, errorAt(p.source, t.at, "%s does not fit into an unsigned 64-bit integer", t.text)
		}
		e.literal = uintValue(n)
	case tokenDouble:
		d, err := strconv.ParseFloat(sign+t.text, 64)
		if err != nil {
			return nil, errorAt(p.source, t.at, "%s is outside the range of a double", t.text)
		}
		e.literal = doubleValue(d)
	case tokenString:
		e.literal = stringValue(t.text)
	case tokenBytes:
		e.literal = value{kind: kindBytes, str: t.text}
	default:
		return nil, errorAt(p.source, t.at, "unexpected %s", t.text)
	}
	return e, nil
}
