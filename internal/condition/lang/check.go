package lang

import (
	"maps"
	"strings"

	celast "cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"

	"fanfare.dev/fanfare"
)

// A checker walks an expression that CEL has accepted, in which all event data is dynamic, and
// refuses mistakes that the topic's schema reveals: unknown fields, and operations that can only
// fail and so would never match.
type checker struct {
	*Scope
	where string
	ast   Expression
	fault *fanfare.Error // the first one
}

// inferred is the type of an expression as far as it is known before there is an event.
type inferred struct {
	kind   Kind
	schema *SchemaType // nil if it is not a part of the event
	isSub  bool
}

// check returns the kind of the whole expression, or the first mistake in it.
func (sc *Scope) check(where string, a Expression) (Kind, *fanfare.Error) {
	c := checker{Scope: sc, where: where, ast: a}
	result := c.visit(a.Expr(), nil)
	return result.kind, c.fault
}

// refuse records the first mistake, with the position of e.
func (c *checker) refuse(e celast.Expr, hint, format string, args ...any) {
	if c.fault != nil {
		return
	}
	isSelect := e.Kind() == celast.SelectKind
	if isSelect && e.AsSelect().IsTestOnly() {
		e = e.AsSelect().Operand() // CEL gives has() the position of its parenthesis
	}
	c.fault = setPosition(Invalid(c.where, format, args...), c.ast.SourceInfo().GetStartLocation(e.ID()))
	c.fault.Hint = hint
	if isSelect && e.Kind() == celast.SelectKind && !c.ast.brackets[e.ID()] && !c.ast.bareNames[e.ID()] {
		c.fault.Column++ // CEL gives the position of the dot
	}
}

// refuseMember refuses a name that is not in known.
func (c *checker) refuseMember(e celast.Expr, what, name string, known []string) {
	if c.fault == nil {
		c.refuse(e, "", "")
		c.fault = UnknownMember(c.fault, what, name, known)
	}
}

func inferredFrom(s *SchemaType) inferred { return inferred{kind: s.Kind, schema: s} }

// visit checks e; vars are the variables of the surrounding macros.
func (c *checker) visit(e celast.Expr, vars map[string]inferred) inferred {
	switch e.Kind() {
	case celast.IdentKind:
		return c.ident(e, vars)
	case celast.SelectKind:
		s := e.AsSelect()
		member := c.member(e, c.visit(s.Operand(), vars), s.FieldName())
		if s.IsTestOnly() {
			return inferred{kind: KindBool}
		}
		return member
	case celast.CallKind:
		return c.call(e, vars)
	case celast.ListKind:
		for _, element := range e.AsList().Elements() {
			c.visit(element, vars)
		}
		return inferred{kind: KindList}
	case celast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			c.visit(entry.AsMapEntry().Key(), vars)
			c.visit(entry.AsMapEntry().Value(), vars)
		}
		return inferred{kind: KindMap}
	case celast.ComprehensionKind:
		return c.comprehension(e, vars)
	}
	return inferred{kind: kindOfType(c.ast.GetType(e.ID()))}
}

func (c *checker) ident(e celast.Expr, vars map[string]inferred) inferred {
	name := strings.TrimPrefix(e.AsIdent(), ".")
	if v, ok := vars[name]; ok {
		return v
	}
	switch {
	case name == "event":
		return inferredFrom(c.Event)
	case name == AttributesName:
		return inferredFrom(attributeShape)
	case name == "sub" && c.InRule:
		return inferred{kind: KindMap, isSub: true}
	}
	if field := c.Event.Fields[name]; c.NoEvent && field != nil {
		return inferredFrom(field)
	}
	return inferred{kind: kindOfType(c.ast.GetType(e.ID()))}
}

// member checks operand.name or operand["name"].
func (c *checker) member(e celast.Expr, operand inferred, name string) inferred {
	switch {
	case operand.isSub:
		p, ok := c.Param(name)
		if !ok {
			c.refuseMember(e, "param", name, c.paramNames())
		}
		if p.Kind == KindList {
			return inferredFrom(&SchemaType{Kind: KindList, Items: &SchemaType{Kind: KindString}})
		}
		return inferred{kind: p.Kind}
	case operand.schema == attributeShape && !isAttribute(name):
		c.refuseMember(e, "attribute", name, attributeShape.names())
	case operand.kind != KindAny && operand.kind != KindMap:
		c.refuse(e, "", "%s has no field %q", operand.kind, name)
	case operand.schema != nil:
		field, known := operand.schema.Field(name)
		if !known {
			c.refuseMember(e, "field", name, operand.schema.names())
		}
		return inferredFrom(field)
	}
	return inferred{}
}

func (c *checker) comprehension(e celast.Expr, vars map[string]inferred) inferred {
	f := e.AsComprehension()
	over := c.visit(f.IterRange(), vars)
	inner := maps.Clone(vars)
	if inner == nil {
		inner = map[string]inferred{}
	}
	var item inferred
	if over.kind == KindList && over.schema != nil && over.schema.Items != nil {
		item = inferredFrom(over.schema.Items)
	}
	inner[f.IterVar()] = item
	if f.HasIterVar2() {
		inner[f.IterVar()], inner[f.IterVar2()] = inferred{}, item
	}
	c.visit(f.AccuInit(), vars)
	inner[f.AccuVar()] = inferred{}
	c.visit(f.LoopCondition(), inner)
	c.visit(f.LoopStep(), inner)
	c.visit(f.Result(), inner)
	return inferred{kind: kindOfType(c.ast.GetType(e.ID()))}
}

func (c *checker) call(e celast.Expr, vars map[string]inferred) inferred {
	call := e.AsCall()
	args := call.Args()
	if call.IsMemberFunction() {
		args = append([]celast.Expr{call.Target()}, args...)
	}
	known := make([]inferred, len(args))
	for i, arg := range args {
		known[i] = c.visit(arg, vars)
	}
	c.timeZone(e)
	switch name := call.FunctionName(); name {
	case operators.Index:
		return c.element(e, known[0], known[1])
	case operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot:
		for i, arg := range known {
			if arg.kind != KindAny && arg.kind != KindBool {
				c.refuse(args[i], "write a comparison, for example event.price > 10", "an operand of &&, || or ! must be a boolean, not %s", arg.kind)
			}
		}
		return inferred{kind: KindBool}
	case operators.Equals, operators.NotEquals, operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals:
		c.comparison(e, name, known[0].kind, known[1].kind)
		c.comparableTypes(e, args[0], args[1])
		return inferred{kind: KindBool}
	case operators.In:
		c.inOperator(e, known[1].kind)
		return inferred{kind: KindBool}
	case operators.Add, operators.Subtract, operators.Multiply, operators.Divide, operators.Modulo:
		return c.arithmetic(e, known[0].kind, known[1].kind)
	case GeoWithin:
		for i, arg := range known {
			if arg.kind != KindAny && !arg.kind.numeric() {
				c.refuse(args[i], "", "%s requires numbers, not %s", name, arg.kind)
			}
		}
	case JMESPath:
		c.jmespath(args[1])
	case "@crosses", "@crosses_above", "@crosses_below":
		c.crossing(e, known, vars)
	case "contains", "startsWith", "endsWith", "matches", "contains_ci", "starts_with_ci":
		for i, arg := range known {
			if arg.kind != KindAny && arg.kind != KindString {
				c.refuse(args[i], "", "%s requires strings, not %s", name, arg.kind)
			}
		}
		if name == "matches" {
			c.regex(args[1])
		}
	}
	return inferred{kind: kindOfType(c.ast.GetType(e.ID()))}
}

// comparison refuses comparisons that always fail or always have the same result.
func (c *checker) comparison(e celast.Expr, op string, a, b Kind) {
	switch {
	case a == KindAny || b == KindAny || a == b || a.numeric() && b.numeric():
		return
	case (a == KindNull || b == KindNull) && (op == operators.Equals || op == operators.NotEquals):
		return
	}
	hint := ""
	if (a == kindTime || b == kindTime) && (a == KindString || b == KindString) {
		hint = "convert the string with timestamp(...)"
	}
	c.refuse(e, hint, "%s cannot be compared with %s", a, b)
}

// comparableTypes refuses comparisons of two types that CEL knows are never equal.
func (c *checker) comparableTypes(e, a, b celast.Expr) {
	t1, t2 := unequalTypes(c.ast.GetType(a.ID()), c.ast.GetType(b.ID()))
	if t1 == nil {
		return
	}
	hint := ""
	for _, one := range [...]celast.Expr{a, b} { // CEL read a bare name as one of its own, such as a type
		if one.Kind() == celast.IdentKind && c.Event.Fields[BareIdent(one)] != nil {
			hint = "write the field as event." + BareIdent(one)
		}
	}
	c.refuse(e, hint, "%s cannot be compared with %s", nameOfType(t1), nameOfType(t2))
}

// unequalTypes returns two types, or the types of their elements, if values of them are never
// equal; otherwise nil. Numbers of all types compare by value.
func unequalTypes(a, b *types.Type) (*types.Type, *types.Type) {
	switch {
	case isOpen(a) || isOpen(b) || isNumeric(a) && isNumeric(b):
		return nil, nil
	case a.Kind() != b.Kind():
		return a, b
	case a.Kind() == types.ListKind || a.Kind() == types.MapKind:
		for i, one := range a.Parameters() {
			if x, y := unequalTypes(one, b.Parameters()[i]); x != nil {
				return x, y
			}
		}
	}
	return nil, nil
}

// isOpen reports whether a type is unknown before there is an event.
func isOpen(t *types.Type) bool {
	switch t.Kind() {
	case types.DynKind, types.AnyKind, types.TypeParamKind, types.ErrorKind, types.UnspecifiedKind:
		return true
	}
	return false
}

func isNumeric(t *types.Type) bool {
	return t.Kind() == types.IntKind || t.Kind() == types.UintKind || t.Kind() == types.DoubleKind
}

// nameOfType returns the name of a type for error messages.
func nameOfType(t *types.Type) string {
	switch t.Kind() {
	case types.UintKind:
		return KindInt.String()
	case types.TypeKind:
		return "a type"
	case types.BytesKind:
		return "a list of bytes"
	}
	return kindOfType(t).String()
}

// inOperator refuses a search in something that is neither a list nor an object, or in a list of
// another type.
func (c *checker) inOperator(e celast.Expr, in Kind) {
	args := e.AsCall().Args()
	if in != KindAny && in != KindList && in != KindMap {
		c.refuse(e, "use contains() to search in a string", "in requires a list or an object, not %s", in)
		return
	}
	x, t := c.ast.GetType(args[0].ID()), c.ast.GetType(args[1].ID())
	if t.Kind() != types.ListKind && t.Kind() != types.MapKind {
		return
	}
	if t1, t2 := unequalTypes(x, t.Parameters()[0]); t1 != nil {
		c.refuse(e, "", "%s cannot be compared with %s", nameOfType(t1), nameOfType(t2))
	}
}

// element checks list[number], or object[name] with a name that the event provides.
func (c *checker) element(e celast.Expr, of, index inferred) inferred {
	switch {
	case of.kind != KindAny && of.kind != KindList && of.kind != KindMap:
		c.refuse(e, "", "%s has no elements", of.kind)
	case of.kind == KindList && index.kind != KindAny && !index.kind.numeric():
		c.refuse(e, "", "the index of a list must be a number, not %s", index.kind)
	case of.kind == KindList && of.schema != nil && of.schema.Items != nil:
		return inferredFrom(of.schema.Items)
	}
	if t := c.ast.GetType(e.AsCall().Args()[0].ID()); t.Kind() == types.ListKind {
		return inferred{kind: kindOfType(t.Parameters()[0])}
	}
	return inferred{}
}

// arithmetic refuses to mix integers and doubles, as CEL does.
func (c *checker) arithmetic(e celast.Expr, a, b Kind) inferred {
	switch {
	case a == KindInt && b == KindDouble || a == KindDouble && b == KindInt:
		c.refuse(e, "write 2.0 instead of 2, or convert with double() or int()", "arithmetic cannot mix integers and other numbers")
	case a == b && a != kindTime: // the difference of times is a duration
		return inferred{kind: a}
	}
	return inferred{kind: kindOfType(c.ast.GetType(e.ID()))}
}
