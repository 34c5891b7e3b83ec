package condition

import (
	"unicode/utf8"

	celast "cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"

	"fanfare.dev/fanfare/internal/condition/assert"
	"fanfare.dev/fanfare/internal/condition/expr"
	"fanfare.dev/fanfare/internal/condition/lang"
)

// A filterShape is the common structure of filters that differ only in literals. It is compiled once,
// with these literals as params, and then used like a rule. A filter that cannot be tokenized, or
// has no literal that can be a param, has its own shape.
type filterShape struct {
	key       string
	text      string // of one of its filters
	params    []lang.Param
	isParam   []bool // by literal
	plan      *plan
	predicate expr.Predicate // of a conjunct
}

// A compiledFilter is a valid filter: its shape and its own literals, or the same for each conjunct
// of a conjunction.
type compiledFilter struct {
	shape     *filterShape
	values    lang.ParamValues
	conjuncts []compiledFilter
}

// isCompiled reports whether d is set.
func (d *compiledFilter) isCompiled() bool { return d.shape != nil || d.conjuncts != nil }

// compileFilter compiles a filter. Every event matches the empty text.
func (t *topic) compileFilter(c *compiledDefinition, text string) (compiledFilter, error) {
	if len(text) > lang.MaxTextBytes || !utf8.ValidString(text) {
		_, err := c.filterScope.Compile("/filter", text)
		return compiledFilter{}, err
	}
	words, _ := t.shapes.tokenPool.Get().(*[]lang.Token)
	if words == nil {
		words = new([]lang.Token)
	}
	tf, regular := lang.Tokenize(text, *words)
	if regular {
		*words = tf.Tokens
	}
	defer t.shapes.tokenPool.Put(words)
	t.shapes.Lock()
	defer t.shapes.Unlock()
	if t.shapes.definition != c || t.shapes.isFull() {
		t.shapes.reset(c)
	}
	if regular && text != "" {
		if d, ok := t.shapes.conjunction(text, &tf); ok {
			return d, nil
		}
	} else {
		tf = lang.TokenizedFilter{}
	}
	return t.shapes.compile(t.shapes.filterShapes, compileFilterShape, text, &tf)
}

// findParamLiterals reports which literals of a filter can be params: those that are compared with
// a field of the event, or searched in one.
func findParamLiterals(sc *lang.Scope, text string, tf *lang.TokenizedFilter) ([]bool, error) {
	a, err := sc.Compile("/filter", text)
	if err != nil {
		return nil, err
	}
	taken := make([]bool, tf.Literals)
	for _, n := range literalPositions(tf, &expr.Builder{Scope: sc, Ast: a}) {
		taken[n] = true
	}
	return taken, nil
}

// literalPositions maps the expressions of literals that can be params to the numbers of the
// literals.
func literalPositions(tf *lang.TokenizedFilter, b *expr.Builder) map[int64]int {
	at := map[int]int{} // rune offset to literal
	literals := make([]*lang.Token, 0, tf.Literals)
	for i := range tf.Tokens {
		if tok := &tf.Tokens[i]; tok.Kind != lang.KindAny {
			at[tok.RuneOffset] = len(literals)
			literals = append(literals, tok)
		}
	}
	found := map[int64]int{}
	b.VisitComparedLiterals(b.Ast.Expr(), func(e celast.Expr) {
		v, _ := lang.Literal(e)
		where, known := b.Ast.SourceInfo().GetOffsetRange(e.ID())
		n, isWord := at[int(where.Start)]
		if !known || !isWord {
			return
		}
		same := false
		switch tok := literals[n]; tok.Kind {
		case lang.KindString:
			same = v == any(tok.Value)
		case lang.KindInt:
			same = v == any(int64(tok.Number))
		case lang.KindDouble:
			same = v == any(tok.Number)
		case lang.KindList:
			texts, isList := lang.StringLiterals(e)
			same = isList && lang.TextOfList(texts) == tok.Value
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

// A shapeCompiler compiles the shape of a text. The literals in taken become its params in their
// order.
type shapeCompiler func(sc *lang.Scope, key, text string, tf *lang.TokenizedFilter, taken []bool) (*filterShape, error)

// compileFilterShape compiles the shape of a filter.
func compileFilterShape(sc *lang.Scope, key, text string, tf *lang.TokenizedFilter, taken []bool) (*filterShape, error) {
	if text == "" {
		return &filterShape{plan: &plan{guards: [][]*accessPath{{newAccessPath()}}, singlePath: true}}, nil
	}
	shape, b, err := parseShape(sc, key, text, tf, taken)
	if err != nil {
		return nil, err
	}
	return shape, shape.makePlan(b)
}

// compileConjunctShape compiles the shape of a conjunct.
func compileConjunctShape(sc *lang.Scope, key, text string, tf *lang.TokenizedFilter, taken []bool) (*filterShape, error) {
	shape, b, err := parseShape(sc, key, text, tf, taken)
	if err != nil {
		return nil, err
	}
	// As an operand of &&, CEL refuses a number that it accepts by itself.
	if kind := b.Ast.GetType(b.Ast.Expr().ID()).Kind(); kind != types.BoolKind && kind != types.DynKind {
		return nil, lang.Invalid("/filter", "a part of the filter is neither true nor false")
	}
	shape.predicate = b.Build(b.Ast.Expr())
	return shape, shape.makePlan(b)
}

func parseShape(sc *lang.Scope, key, text string, tf *lang.TokenizedFilter, taken []bool) (*filterShape, *expr.Builder, error) {
	shape := &filterShape{key: key, text: text, isParam: taken}
	a, err := sc.Compile("/filter", text)
	if err != nil {
		return nil, nil, err
	}
	b := expr.Builder{Scope: sc, Ast: a, Taken: map[int64]lang.Param{}}
	columns, count := tf.ParamColumns(taken)
	for id, n := range literalPositions(tf, &b) {
		if taken[n] {
			b.Taken[id] = columns[n]
			shape.params = append(shape.params, columns[n])
		}
	}
	if len(shape.params) != count { // a literal would be the same for all filters
		return nil, nil, lang.Invalid("/filter", "the meaning of the filter changed when its literals were replaced by params; report this as a bug")
	}
	return shape, &b, nil
}

// makePlan sets the plan.
func (shape *filterShape) makePlan(b *expr.Builder) (err error) {
	if shape.plan, err = newPlan(b); err != nil {
		return lang.Invalid("/filter", "%v", err)
	}
	for i := range shape.plan.residuals { // most texts of filters differ, so a memo is not useful
		shape.plan.residuals[i].column = -1
	}
	return nil
}
