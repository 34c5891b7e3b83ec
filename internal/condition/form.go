package condition

import (
	"fmt"
	"unicode/utf8"

	celast "cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"

	"fanfare.dev/fanfare/internal/condition/assert"
)

// A form is what filters have in common that differ in literals alone: compiled
// once, with these literals as its params, it answers them all as a rule does.
// A filter that has no skeleton, or no literal to take out, is a form of its own.
type filterShape struct {
	key       string
	text      string // of one of its filters
	params    []param
	isParam   []bool // which literals are params
	plan      *plan
	predicate Predicate // of a term: the whole of it
}

// A draft is a filter that was found good: the form, and its own literals, or a
// draft of each conjunct of a compound.
type compiledFilter struct {
	shape     *filterShape
	values    paramValues
	conjuncts []compiledFilter
}

// isCompiled reports whether d is one.
func (d *compiledFilter) isCompiled() bool { return d.shape != nil || d.conjuncts != nil }

// compileFilter compiles a filter. The empty text is the condition that every event meets.
func (t *topic) compileFilter(c *compiledDefinition, text string) (compiledFilter, error) {
	if len(text) > MaxTextBytes || !utf8.ValidString(text) {
		_, err := c.filterScope.compile("/filter", text)
		return compiledFilter{}, err
	}
	words, _ := t.shapes.tokenPool.Get().(*[]token)
	if words == nil {
		words = new([]token)
	}
	s, regular := tokenize(text, *words)
	if regular {
		*words = s.tokens
	}
	defer t.shapes.tokenPool.Put(words)
	t.shapes.Lock()
	defer t.shapes.Unlock()
	if t.shapes.definition != c || t.shapes.isFull() {
		t.shapes.reset(c)
	}
	if regular && text != "" {
		if d, ok := t.shapes.conjunction(text, &s); ok {
			return d, nil
		}
	} else {
		s = tokenizedFilter{}
	}
	return t.shapes.compile(t.shapes.filterShapes, compileFilterShape, text, &s)
}

// findParamLiterals tells which literals of a skeleton can be params: those that are
// compared with a field of the event, or sought in one.
func findParamLiterals(sc *scope, text string, s *tokenizedFilter) ([]bool, error) {
	a, err := sc.compile("/filter", text)
	if err != nil {
		return nil, err
	}
	taken := make([]bool, s.literals)
	for _, n := range literalPositions(s, &builder{scope: sc, ast: a}) {
		taken[n] = true
	}
	return taken, nil
}

// literalPositions maps the expressions of literals that can be params to the numbers
// of their literals.
func literalPositions(s *tokenizedFilter, b *builder) map[int64]int {
	at := map[int]int{} // rune to literal
	literals := make([]*token, 0, s.literals)
	for i := range s.tokens {
		if w := &s.tokens[i]; w.kind != kindAny {
			at[w.runeOffset] = len(literals)
			literals = append(literals, w)
		}
	}
	found := map[int64]int{}
	b.visitComparedLiterals(b.ast.Expr(), func(e celast.Expr) {
		v, _ := literal(e)
		where, known := b.ast.SourceInfo().GetOffsetRange(e.ID())
		n, isWord := at[int(where.Start)]
		if !known || !isWord {
			return
		}
		same := false
		switch w := literals[n]; w.kind {
		case kindString:
			same = v == any(w.value)
		case kindInt:
			same = v == any(int64(w.number))
		case kindDouble:
			same = v == any(w.number)
		case kindList:
			texts, isList := literalTexts(e)
			same = isList && textOfList(texts) == w.value
		}
		if same {
			if assert.Enabled {
				assertExact(literals[n])
			}
			found[e.ID()] = n
		}
	})
	return found
}

// literalTexts returns the texts of a list of literals.
func literalTexts(e celast.Expr) (texts []string, ok bool) {
	values, ok := listed(e)
	if !ok {
		return nil, false
	}
	for _, one := range values {
		v, _ := literal(one)
		text, isText := v.(string)
		if !isText {
			return nil, false
		}
		texts = append(texts, text)
	}
	return texts, true
}

// visitComparedLiterals visits the literals that tests compare with fields.
func (b *builder) visitComparedLiterals(e celast.Expr, visit func(celast.Expr)) {
	if s, ok := b.existsOf(e); ok {
		visit(s.other)
	}
	if e.Kind() != celast.CallKind {
		return
	}
	call := e.AsCall()
	args := call.Args()
	if c, ok := crossingOf(e); ok {
		if _, sub := paramsIn(b, c.now); !sub {
			visit(c.level)
		}
		return
	}
	switch name := call.FunctionName(); name {
	case operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot, operators.Conditional:
		for _, arg := range args {
			b.visitComparedLiterals(arg, visit)
		}
		return
	case operators.Equals, operators.NotEquals, operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals:
	case operators.In:
		if _, values, ok := b.memberOf(e); ok {
			visit(args[1]) // a list of texts is one literal
			for _, one := range values {
				visit(one)
			}
		} else if _, ok := b.source(args[1]); ok {
			visit(args[0])
		}
		return
	case geoWithin:
		for _, arg := range args {
			visit(arg)
		}
		return
	default:
		if call.IsMemberFunction() && textTests[name] != nil {
			args = append([]celast.Expr{call.Target()}, args...)
		} else if foldedTests[name] == nil {
			return
		}
	}
	if len(args) != 2 {
		return
	}
	for i, arg := range args {
		if _, ok := b.source(args[1-i]); ok {
			visit(arg)
		}
	}
}

// A compiler compiles the form of a text, whose literals that taken names become
// params in their order.
type shapeCompiler func(sc *scope, key, text string, s *tokenizedFilter, taken []bool) (*filterShape, error)

// compileFilterShape compiles the form of a filter.
func compileFilterShape(sc *scope, key, text string, s *tokenizedFilter, taken []bool) (*filterShape, error) {
	if text == "" {
		return &filterShape{plan: &plan{guards: [][]*accessPath{{newAccessPath()}}, singlePath: true}}, nil
	}
	fm, b, err := parseShape(sc, key, text, s, taken)
	if err != nil {
		return nil, err
	}
	return fm, fm.makePlan(b)
}

// compileConjunctShape compiles a term.
func compileConjunctShape(sc *scope, key, text string, s *tokenizedFilter, taken []bool) (*filterShape, error) {
	fm, b, err := parseShape(sc, key, text, s, taken)
	if err != nil {
		return nil, err
	}
	// As an operand of && CEL refuses a number that it only finds untrue by itself.
	if kind := b.ast.GetType(b.ast.Expr().ID()).Kind(); kind != types.BoolKind && kind != types.DynKind {
		return nil, invalid("/filter", "a part of it is not true or false")
	}
	fm.predicate = b.build(b.ast.Expr())
	return fm, fm.makePlan(b)
}

func parseShape(sc *scope, key, text string, s *tokenizedFilter, taken []bool) (*filterShape, *builder, error) {
	fm := &filterShape{key: key, text: text, isParam: taken}
	a, err := sc.compile("/filter", text)
	if err != nil {
		return nil, nil, err
	}
	b := builder{scope: sc, ast: a, taken: map[int64]param{}}
	columns, count := s.paramColumns(taken)
	for id, n := range literalPositions(s, &b) {
		if taken[n] {
			b.taken[id] = columns[n]
			fm.params = append(fm.params, columns[n])
		}
	}
	if len(fm.params) != count { // another literal would stand for all filters
		return nil, nil, invalid("/filter", "its form means something else than before")
	}
	return fm, &b, nil
}

// makePlan gives fm its plan.
func (fm *filterShape) makePlan(b *builder) (err error) {
	if fm.plan, err = newPlan(b); err != nil {
		return invalid("/filter", "%v", err)
	}
	for i := range fm.plan.residuals { // texts of filters are mostly all different
		fm.plan.residuals[i].column = -1
	}
	return nil
}

// paramColumns are the params for the literals that are taken, and how many those are.
func (s *tokenizedFilter) paramColumns(taken []bool) (params []param, count int) {
	params = make([]param, s.literals)
	n, numbers, texts := 0, 0, 0
	for i := range s.tokens {
		w := &s.tokens[i]
		if w.kind == kindAny {
			continue
		}
		if p := &params[n]; taken[n] {
			p.name = fmt.Sprint("literal ", n)
			if w.isText() {
				p.kind, p.column = w.kind, texts
				texts++
			} else {
				p.kind, p.column = kindDouble, numbers
				numbers++
			}
		}
		n++
	}
	return params, numbers + texts
}

// literalValues are the literals that are taken, as params.
func (s *tokenizedFilter) literalValues(taken []bool) (v paramValues) {
	n := 0
	for i := range s.tokens {
		w := &s.tokens[i]
		if w.kind == kindAny {
			continue
		}
		if n++; taken == nil || !taken[n-1] {
			continue
		}
		if w.isText() {
			v.texts = append(v.texts, w.value)
		} else {
			v.numbers = append(v.numbers, w.number)
		}
	}
	return v
}
