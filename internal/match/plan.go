package match

import (
	"math"

	celast "cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
)

// A plan answers a rule: which of its rows match an event. The rule is a chain
// of conjuncts, each of which must be true, and each is answered where it is
// cheapest:
//
//	gates       name no param: once per event
//	equalities  event.f == sub.p: the key of a bucket
//	span        event.f >= sub.p, or one of the other three: the order in the bucket
//	residuals   whatever else: for each row that is left
//
// A rule that has neither equality nor span keeps all rows in one bucket and is
// evaluated for each.
type plan struct {
	paths      []*path
	gates      allOf
	equalities []equalityKey
	span       *spanKey // at most one
	residuals  []residual
	buckets    map[uint64]*bucket
}

type equalityKey struct {
	field
	param param
}

type spanKey struct {
	field
	column int
	op     relation
}

// A residual is a conjunct that is evaluated for each row. Where it hangs on
// one text alone, each distinct text is evaluated once per event.
type residual struct {
	test
	column int // of the only param it reads, a text; -1 if there is none such
	memo   int // its number among the topic's memos
}

// newPlan compiles a rule. The plan's paths are yet to be linked.
func newPlan(sc *scope, a *celast.AST) (*plan, error) {
	b := builder{scope: sc, ast: a}
	p := &plan{buckets: map[uint64]*bucket{}}
	for _, conjunct := range chain(a.Expr(), operators.LogicalAnd, nil) {
		switch {
		case p.takeEquality(&b, conjunct) || p.takeSpan(&b, conjunct):
		default:
			reads, sub := readsOf(&b, conjunct)
			if !sub {
				p.gates = append(p.gates, b.build(conjunct))
				break
			}
			r := residual{test: b.build(conjunct), column: -1}
			if len(reads) == 1 && !reads[0].isNumber() {
				r.column = reads[0].column
			}
			p.residuals = append(p.residuals, r)
		}
	}
	p.paths = b.paths
	return p, b.err
}

// fieldAndParam takes a call of two operands apart into the event's field and
// the param that it compares; swapped tells that the param stands first.
func fieldAndParam(b *builder, e celast.Expr) (steps []string, p param, swapped, ok bool) {
	args := e.AsCall().Args()
	if steps, ok = b.steps(args[0]); ok {
		p, ok = b.subParam(args[1])
		return steps, p, false, ok
	}
	if p, ok = b.subParam(args[0]); ok {
		steps, ok = b.steps(args[1])
	}
	return steps, p, true, ok
}

func (p *plan) takeEquality(b *builder, e celast.Expr) bool {
	if e.Kind() != celast.CallKind || e.AsCall().FunctionName() != operators.Equals {
		return false
	}
	steps, param, _, ok := fieldAndParam(b, e)
	if ok = ok && param.kind != kindList; ok {
		p.equalities = append(p.equalities, equalityKey{field{b.path(steps)}, param})
	}
	return ok
}

func (p *plan) takeSpan(b *builder, e celast.Expr) bool {
	if e.Kind() != celast.CallKind || p.span != nil {
		return false
	}
	op, ok := relations[e.AsCall().FunctionName()]
	if !ok {
		return false
	}
	steps, param, swapped, ok := fieldAndParam(b, e)
	if !ok || !param.isNumber() {
		return false
	}
	if swapped {
		op = op.mirrored()
	}
	p.span = &spanKey{field{b.path(steps)}, param.column, op}
	return true
}

// readsOf lists the params that e reads, if it can be told, and whether it
// reads sub at all.
func readsOf(b *builder, e celast.Expr) (reads []param, sub bool) {
	whole := false
	var visit func(celast.Expr)
	visit = func(e celast.Expr) {
		if p, ok := b.subParam(e); ok {
			sub = true
			for _, known := range reads {
				if known == p {
					return
				}
			}
			reads = append(reads, p)
			return
		}
		if e.Kind() == celast.IdentKind && bareIdent(e) == "sub" {
			sub, whole = true, true
		}
		for _, part := range parts(e) {
			visit(part)
		}
	}
	visit(e)
	if whole {
		reads = nil
	}
	return reads, sub
}

// parts lists the expressions directly inside e.
func parts(e celast.Expr) []celast.Expr {
	switch e.Kind() {
	case celast.SelectKind:
		return []celast.Expr{e.AsSelect().Operand()}
	case celast.CallKind:
		call := e.AsCall()
		if call.IsMemberFunction() {
			return append([]celast.Expr{call.Target()}, call.Args()...)
		}
		return call.Args()
	case celast.ListKind:
		return e.AsList().Elements()
	case celast.MapKind:
		var list []celast.Expr
		for _, entry := range e.AsMap().Entries() {
			list = append(list, entry.AsMapEntry().Key(), entry.AsMapEntry().Value())
		}
		return list
	case celast.ComprehensionKind:
		f := e.AsComprehension()
		return []celast.Expr{f.IterRange(), f.AccuInit(), f.LoopCondition(), f.LoopStep(), f.Result()}
	case celast.StructKind:
		var list []celast.Expr
		for _, entry := range e.AsStruct().Fields() {
			list = append(list, entry.AsStructField().Value())
		}
		return list
	}
	return nil
}

// mix folds one more part of a key into h.
func mix(h, part uint64) uint64 {
	h = (h ^ part) * 0x9e3779b97f4a7c15
	return h ^ h>>29
}

// part is a row's part of the key: for one equality the key is exact, for
// several it is a hash, and the rows are checked.
func (k *equalityKey) part(p *page, row int) uint64 {
	if k.param.isNumber() {
		return math.Float64bits(p.numbers[k.param.column][row])
	}
	return uint64(p.texts[k.param.column][row])
}

// partOf is the event's part of the key; false where no row can be equal.
func (k *equalityKey) partOf(f *frame) (uint64, bool) {
	v, ok := k.load(f)
	if !ok {
		return 0, false
	}
	var text string
	switch k.param.kind {
	case kindDouble:
		number, ok := toFloat(v)
		return math.Float64bits(number + 0), ok // -0 becomes 0
	case kindString:
		if text, ok = v.(string); !ok {
			return 0, false
		}
	default:
		truth, ok := v.(bool)
		if !ok {
			return 0, false
		}
		text = "false"
		if truth {
			text = "true"
		}
	}
	n := f.texts.number(text)
	return uint64(n), n != 0
}

func (p *plan) keyOf(pg *page, row int) (key uint64, order float64) {
	switch len(p.equalities) {
	case 0:
	case 1:
		key = p.equalities[0].part(pg, row)
	default:
		for i := range p.equalities {
			key = mix(key, p.equalities[i].part(pg, row))
		}
	}
	if p.span != nil {
		order = pg.numbers[p.span.column][row]
	}
	return key, order
}

func (p *plan) insert(pg *page, row uint32) {
	key, order := p.keyOf(pg, int(row&pageMask))
	b := p.buckets[key]
	if b == nil {
		b = &bucket{ranged: p.span != nil}
		p.buckets[key] = b
	}
	b.insert(order, row)
}

func (p *plan) remove(pg *page, row uint32) {
	key, order := p.keyOf(pg, int(row&pageMask))
	if p.buckets[key].remove(order, row) {
		delete(p.buckets, key)
	}
}
