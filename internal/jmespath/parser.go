package jmespath

// Limits of a text. A longer or deeper one is refused when it is compiled.
const (
	MaxTextBytes = 4 << 10
	maxNesting   = 64
)

type nodeKind uint8

const (
	nodeCurrent nodeKind = iota // @, and an operand that is not written
	nodeField
	nodeIndex
	nodeSlice
	nodeSubexpression // left.right, left[i], left | right
	nodeProjection    // left[*].right
	nodeValues        // left.*.right
	nodeFiltered      // left[?condition].right
	nodeFlatten       // left[]
	nodeList          // [a, b]
	nodeObject        // {a: b}
	nodeOr
	nodeAnd
	nodeNot
	nodeComparison
	nodeLiteral
	nodeReference // &left
	nodeCall
)

// A node is a node of a syntax tree.
type node struct {
	kind        nodeKind
	comparison  tokenKind
	optional    bool // of a subexpression: it ends with null if its left side is null
	left, right *node
	condition   *node
	args        []*node
	keys        []string // of an object, one for each of args
	name        string   // of a field or a function
	value       any      // of a literal
	lower       string   // of a literal text: in lower case
	index       int
	slice       [3]*int
	function    *function // nil if it is unknown
}

// bindingPower is the precedence of the operators; a token without one ends an expression.
var bindingPower = [...]int{
	tokenPipe: 1, tokenOr: 2, tokenAnd: 3,
	tokenEqual: 5, tokenNotEqual: 5, tokenLess: 5, tokenLessEqual: 5, tokenGreater: 5, tokenGreaterEqual: 5,
	tokenFlatten: 9, tokenStar: 20, tokenFilter: 21, tokenDot: 40, tokenNot: 45,
	tokenLeftBrace: 50, tokenLeftBracket: 55, tokenLeftParen: 60,
}

// projectionEnd is the lowest power of a token that continues a projection.
const projectionEnd = 10

// A parser reads an expression by operator precedence.
type parser struct {
	tokens []token
	at     int
	depth  int
}

// parse returns the syntax tree of a text.
func parse(text string) (*node, error) {
	if len(text) > MaxTextBytes {
		return nil, syntaxError(MaxTextBytes, "the expression has %d bytes; at most %d are allowed", len(text), MaxTextBytes)
	}
	tokens, err := tokenize(text)
	if err != nil {
		return nil, err
	}
	p := parser{tokens: tokens}
	root, err := p.expression(0)
	if err != nil {
		return nil, err
	}
	if next := p.next(); next.kind != tokenEnd {
		return nil, p.unexpected(next)
	}
	return root, nil
}

func (p *parser) next() *token { return &p.tokens[p.at] }

// take returns the next token and goes beyond it; it never goes beyond the end.
func (p *parser) take() *token {
	t := p.next()
	if t.kind != tokenEnd {
		p.at++
	}
	return t
}

// skip goes beyond the next token if it is of that kind.
func (p *parser) skip(kind tokenKind) bool {
	if p.next().kind != kind {
		return false
	}
	p.take()
	return true
}

func (p *parser) expect(kind tokenKind) error {
	if !p.skip(kind) {
		return p.unexpected(p.next())
	}
	return nil
}

func (p *parser) unexpected(t *token) error {
	if t.kind == tokenEnd {
		return syntaxError(t.offset, "the expression is incomplete")
	}
	return syntaxError(t.offset, "unexpected %s", t)
}

// expression reads an expression up to an operator that binds no stronger than power.
func (p *parser) expression(power int) (*node, error) {
	if p.depth++; p.depth > maxNesting {
		return nil, syntaxError(p.next().offset, "the expression is nested deeper than %d levels", maxNesting)
	}
	defer func() { p.depth-- }()
	left, err := p.operand(p.take())
	for err == nil && power < bindingPower[p.next().kind] {
		left, err = p.continuation(p.take(), left)
	}
	return left, err
}

// operand reads the expression that begins with t.
func (p *parser) operand(t *token) (n *node, err error) {
	switch t.kind {
	case tokenLiteral:
		n = &node{kind: nodeLiteral, value: t.value}
		if text, ok := t.value.(string); ok {
			n.lower = lowerCase(text)
		}
		return n, nil
	case tokenName:
		return &node{kind: nodeField, name: t.name}, nil
	case tokenQuotedName:
		if next := p.next(); next.kind == tokenLeftParen {
			return nil, syntaxError(t.offset, "the name of a function must not be quoted")
		}
		return &node{kind: nodeField, name: t.name}, nil
	case tokenCurrent:
		return &node{}, nil
	case tokenNot:
		n = &node{kind: nodeNot}
		n.left, err = p.expression(bindingPower[tokenNot])
		return n, err
	case tokenReference:
		n = &node{kind: nodeReference}
		n.left, err = p.expression(0)
		return n, err
	case tokenStar:
		return p.values(&node{})
	case tokenFilter, tokenFlatten:
		return p.continuation(t, &node{})
	case tokenLeftBrace:
		return p.object()
	case tokenLeftBracket:
		switch next := p.next().kind; {
		case next == tokenNumber || next == tokenColon:
			return p.continuation(t, &node{})
		case next == tokenStar && p.tokens[p.at+1].kind == tokenRightBracket:
			return p.continuation(t, &node{})
		}
		return p.list()
	case tokenLeftParen:
		if n, err = p.expression(0); err != nil {
			return nil, err
		}
		return n, p.expect(tokenRightParen)
	}
	return nil, p.unexpected(t)
}

// continuation reads the operator t after left.
func (p *parser) continuation(t *token, left *node) (n *node, err error) {
	power := bindingPower[t.kind]
	switch t.kind {
	case tokenDot:
		if p.skip(tokenStar) {
			return p.values(left)
		}
		n = &node{kind: nodeSubexpression, left: left, optional: true}
		n.right, err = p.afterDot(power)
		return n, err
	case tokenPipe, tokenOr, tokenAnd:
		n = &node{kind: map[tokenKind]nodeKind{tokenPipe: nodeSubexpression, tokenOr: nodeOr, tokenAnd: nodeAnd}[t.kind], left: left}
		n.right, err = p.expression(power)
		return n, err
	case tokenEqual, tokenNotEqual, tokenLess, tokenLessEqual, tokenGreater, tokenGreaterEqual:
		n = &node{kind: nodeComparison, comparison: t.kind, left: left}
		n.right, err = p.expression(power)
		return n, err
	case tokenLeftParen:
		if left.kind != nodeField {
			return nil, p.unexpected(t)
		}
		return p.call(left.name)
	case tokenFilter:
		n = &node{kind: nodeFiltered, left: left}
		if n.condition, err = p.expression(0); err != nil {
			return nil, err
		}
		if err = p.expect(tokenRightBracket); err != nil {
			return nil, err
		}
		n.right, err = p.projected(power)
		return n, err
	case tokenFlatten:
		n = &node{kind: nodeProjection, left: &node{kind: nodeFlatten, left: left}}
		n.right, err = p.projected(power)
		return n, err
	case tokenLeftBracket:
		return p.bracket(left)
	}
	return nil, p.unexpected(t)
}

// values reads what follows left.*.
func (p *parser) values(left *node) (n *node, err error) {
	n = &node{kind: nodeValues, left: left}
	n.right, err = p.projected(bindingPower[tokenStar])
	return n, err
}

// bracket reads an index, a slice or a star between brackets after left.
func (p *parser) bracket(left *node) (n *node, err error) {
	t := p.next()
	switch {
	case t.kind == tokenStar:
		p.take()
		if err = p.expect(tokenRightBracket); err != nil {
			return nil, err
		}
		n = &node{kind: nodeProjection, left: left}
	case t.kind == tokenColon || t.kind == tokenNumber && p.tokens[p.at+1].kind == tokenColon:
		slice, err := p.slice()
		if err != nil {
			return nil, err
		}
		n = &node{kind: nodeProjection, left: &node{kind: nodeSubexpression, left: left, right: slice}}
	case t.kind == tokenNumber:
		p.take()
		index := &node{kind: nodeIndex, index: t.number}
		return &node{kind: nodeSubexpression, left: left, right: index}, p.expect(tokenRightBracket)
	default:
		return nil, p.unexpected(t)
	}
	n.right, err = p.projected(bindingPower[tokenStar])
	return n, err
}

// slice reads a slice up to its right bracket.
func (p *parser) slice() (*node, error) {
	n := &node{kind: nodeSlice}
	for part := 0; ; {
		switch t := p.take(); {
		case t.kind == tokenRightBracket:
			return n, nil
		case t.kind == tokenColon && part < 2:
			part++
		case t.kind == tokenNumber && n.slice[part] == nil:
			n.slice[part] = &t.number
		default:
			return nil, p.unexpected(t)
		}
	}
}

// projected reads the right side of a projection: the expression that is evaluated for each element.
func (p *parser) projected(power int) (*node, error) {
	t := p.next()
	switch {
	case bindingPower[t.kind] < projectionEnd && t.kind != tokenLiteral:
		return &node{}, nil
	case t.kind == tokenLeftBracket || t.kind == tokenFilter:
		return p.expression(power)
	case t.kind == tokenDot:
		p.take()
		return p.afterDot(power)
	}
	return nil, p.unexpected(t)
}

// afterDot reads the right side of a dot.
func (p *parser) afterDot(power int) (*node, error) {
	switch t := p.next(); t.kind {
	case tokenName, tokenQuotedName, tokenStar:
		return p.expression(power)
	case tokenLeftBracket:
		p.take()
		return p.list()
	case tokenLeftBrace:
		p.take()
		return p.object()
	default:
		return nil, p.unexpected(t)
	}
}

// list reads the expressions of a list up to its right bracket. As in the reference, commas between
// expressions may be left out; the same is true of objects and arguments.
func (p *parser) list() (*node, error) {
	n := &node{kind: nodeList}
	for {
		one, err := p.expression(0)
		if err != nil {
			return nil, err
		}
		n.args = append(n.args, one)
		if !p.skip(tokenComma) && p.skip(tokenRightBracket) {
			return n, nil
		}
	}
}

// object reads the members of an object up to its right brace.
func (p *parser) object() (*node, error) {
	n := &node{kind: nodeObject}
	for {
		name := p.take()
		if name.kind != tokenName && name.kind != tokenQuotedName {
			return nil, p.unexpected(name)
		}
		if err := p.expect(tokenColon); err != nil {
			return nil, err
		}
		one, err := p.expression(0)
		if err != nil {
			return nil, err
		}
		n.keys, n.args = append(n.keys, name.name), append(n.args, one)
		if !p.skip(tokenComma) && p.skip(tokenRightBrace) {
			return n, nil
		}
	}
}

// call reads the arguments of a function up to its right parenthesis.
func (p *parser) call(name string) (*node, error) {
	n := &node{kind: nodeCall, name: name, function: functions[name]}
	for !p.skip(tokenRightParen) {
		one, err := p.expression(0)
		if err != nil {
			return nil, err
		}
		n.args = append(n.args, one)
		p.skip(tokenComma)
	}
	return n, nil
}
