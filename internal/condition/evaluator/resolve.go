package evaluator

import (
	"fmt"
	"slices"
	"strings"
)

// ownWords are names, in addition to the reserved ones, that do not denote a field of the event without
// "event.".
var ownWords = []string{"event", "sub", "ce", "bool", "bytes", "double", "duration", "dyn", "int", "list", "map",
	"null_type", "string", "timestamp", "type", "uint"}

// typeWords are the names of types that are values.
var typeWords = []string{"bool", "bytes", "double", "int", "list", "map", "null_type", "string", "type", "uint"}

// A resolver converts a syntax tree to nodes: it finds the meaning of each name.
type resolver struct {
	source    string
	topic     *Topic
	params    map[string]string // nil for a filter
	variables []string          // of the macros around, the outermost first
}

// condition returns the node of a text.
func (t *Topic) condition(text string, params map[string]string) (*node, error) {
	if text == "" {
		return constant(trueValue), nil
	}
	tree, err := parse(text)
	if err != nil {
		return nil, err
	}
	r := &resolver{source: text, topic: t, params: params}
	return r.resolve(tree)
}

func (r *resolver) problem(e *expr, format string, args ...any) error {
	return errorAt(r.source, e.at, format, args...)
}

func (r *resolver) resolve(e *expr) (*node, error) {
	switch e.kind {
	case exprLiteral:
		return constant(e.literal), nil
	case exprName:
		return r.name(e)
	case exprSelect:
		return r.selection(e)
	case exprList, exprMap:
		args, err := r.all(e.args)
		return compose(e.kind, args), err
	default:
		return r.call(e)
	}
}

// compose returns the node of a list or a map; it is a literal if all its elements are.
func compose(kind exprKind, args []*node) *node {
	n := &node{op: opList, args: args}
	if kind == exprMap {
		n.op = opMap
	}
	values := make([]value, len(args))
	for i, arg := range args {
		if arg == nil || arg.op != opLiteral {
			return n
		}
		values[i] = arg.literal
	}
	if v := build(n, values); v.decided() {
		return constant(v)
	}
	return n
}

func (r *resolver) all(list []*expr) ([]*node, error) {
	nodes := make([]*node, len(list))
	for i, e := range list {
		var err error
		if nodes[i], err = r.resolve(e); err != nil {
			return nil, err
		}
	}
	return nodes, nil
}

// name resolves a word: the innermost variable with that name, a root, a type, or a field of the
// event. A leading point excludes variables.
func (r *resolver) name(e *expr) (*node, error) {
	if !e.rooted {
		for level := len(r.variables) - 1; level >= 0; level-- {
			if r.variables[level] == e.name {
				return &node{op: opVariable, level: level}, nil
			}
		}
	}
	switch {
	case e.name == "event":
		return &node{op: opEvent}, nil
	case e.name == "ce":
		return &node{op: opAttributes}, nil
	case e.name == "sub" && r.params != nil:
		return &node{op: opParams}, nil
	case slices.Contains(typeWords, e.name):
		return constant(value{kind: kindType, str: e.name}), nil
	case r.topic.bare(e.name):
		return field(&node{op: opEvent}, e.name), nil
	}
	return nil, r.problem(e, "unknown name %q", e.name)
}

func field(of *node, name string) *node {
	return &node{op: opSelect, args: []*node{of}, name: name, why: "no such field " + name}
}

func (r *resolver) selection(e *expr) (*node, error) {
	if full := qualified(e); full == typeNames[kindTime] || full == typeNames[kindDuration] {
		return constant(value{kind: kindType, str: full}), nil
	}
	operand, err := r.resolve(e.args[0])
	if err != nil {
		return nil, err
	}
	n := field(operand, e.name)
	return n, r.checkParam(e, n)
}

// checkParam refuses a param that the rule does not declare, and records one that it does.
func (r *resolver) checkParam(e *expr, n *node) error {
	if n.args[0].op != opParams {
		return nil
	}
	if _, known := r.params[n.name]; !known {
		return r.problem(e, "the rule has no param %q", n.name)
	}
	return nil
}

// qualified returns the names of a chain of selections, joined by points.
func qualified(e *expr) string {
	switch e.kind {
	case exprName:
		return e.name
	case exprSelect:
		if before := qualified(e.args[0]); before != "" {
			return before + "." + e.name
		}
	}
	return ""
}

func (r *resolver) call(e *expr) (*node, error) {
	switch e.name {
	case "_&&_", "_||_":
		return r.junction(e)
	case "_?_:_":
		args, err := r.all(e.args)
		if err != nil {
			return nil, err
		}
		return &node{op: opChoose, args: args, truth: args[1].truth && args[2].truth}, nil
	}
	if n, err := r.macro(e); n != nil || err != nil {
		return n, err
	}
	args, name := e.args, e.name
	if e.member && qualified(e.args[0]) == "geo" && name == "within" {
		args, name = args[1:], "geo.within"
	}
	if kind, ok := crossings[name]; ok && !e.member {
		return r.cross(e, kind)
	}
	fn := functions[name]
	if fn == nil {
		fn = operators[name]
	}
	if fn == nil {
		return nil, r.problem(e, "unknown function %q", name)
	}
	counts := fn.global
	if e.member && name == e.name {
		counts = fn.member
	}
	if !slices.Contains(counts, len(args)) {
		return nil, r.problem(e, "%s does not accept these arguments", name)
	}
	nodes, err := r.all(args)
	if err != nil {
		return nil, err
	}
	n := &node{op: opCall, fn: fn, args: nodes, truth: fn.truth, topic: r.topic}
	n.prepare()
	return n, nil
}

// junction joins the operands of && or ||, and those of nested calls of the same operator, because
// the result of such a chain does not depend on its brackets.
func (r *resolver) junction(e *expr) (*node, error) {
	n := &node{op: opAnd, truth: true}
	if e.name == "_||_" {
		n.op = opOr
	}
	for _, operand := range e.args {
		arg, err := r.resolve(operand)
		if err != nil {
			return nil, err
		}
		if arg.op == n.op {
			n.args = append(n.args, arg.args...)
		} else {
			n.args = append(n.args, arg)
		}
	}
	return n, nil
}

// macro resolves a macro, or returns nil if e is not a macro.
func (r *resolver) macro(e *expr) (*node, error) {
	if !e.member {
		if e.name == "has" && len(e.args) == 1 {
			return r.has(e)
		}
		return nil, nil
	}
	n := &node{level: len(r.variables)}
	switch {
	case e.name == "all" && len(e.args) == 3:
		n.op, n.truth = opAll, true
	case e.name == "exists" && len(e.args) == 3:
		n.op, n.truth = opExists, true
	case e.name == "exists_one" && len(e.args) == 3:
		n.op, n.truth = opExistsOne, true
	case e.name == "map" && (len(e.args) == 3 || len(e.args) == 4), e.name == "filter" && len(e.args) == 3:
		n.op = opCollect
	default:
		return nil, nil
	}
	variable := e.args[1]
	if variable.kind != exprName || variable.rooted {
		return nil, r.problem(variable, "the variable of %s must be a simple name", e.name)
	}
	over, err := r.resolve(e.args[0])
	if err != nil {
		return nil, err
	}
	r.variables = append(r.variables, variable.name)
	defer func() { r.variables = r.variables[:n.level] }()
	n.args = []*node{over}
	bodies := e.args[2:]
	switch {
	case e.name == "filter":
		n.args = append(n.args, &node{op: opVariable, level: n.level})
	case len(bodies) == 2:
		bodies = []*expr{bodies[1], bodies[0]} // the result before the predicate
	}
	for _, body := range bodies {
		arg, err := r.resolve(body)
		if err != nil {
			return nil, err
		}
		n.args = append(n.args, arg)
	}
	return n, nil
}

func (r *resolver) has(e *expr) (*node, error) {
	arg, err := r.resolve(e.args[0])
	if err != nil {
		return nil, err
	}
	if arg.op != opSelect {
		return nil, r.problem(e, "has() requires a field, as in has(event.a)")
	}
	return &node{op: opHas, args: arg.args, name: arg.name, truth: true}, nil
}

// cross resolves crosses(), crosses_above() and crosses_below(). The value is also evaluated for
// the previous event, so it can neither contain a macro nor be in one.
func (r *resolver) cross(e *expr, kind crossing) (*node, error) {
	if len(e.args) != 2 {
		return nil, r.problem(e, "%s requires a value and a level", e.name)
	}
	args, err := r.all(e.args)
	if err != nil {
		return nil, err
	}
	if !repeatable(args[0]) {
		return nil, r.problem(e.args[0], "%s requires a field of the event, or arithmetic with fields", e.name)
	}
	return &node{op: opCross, cross: kind, args: args, truth: true}, nil
}

// repeatable reports whether a node can be evaluated for another event.
func repeatable(n *node) bool {
	if n.op == opVariable || n.op == opCross || n.op >= opAll && n.op <= opCollect {
		return false
	}
	return !slices.ContainsFunc(n.args, func(arg *node) bool { return !repeatable(arg) })
}

// paramTypes are the types of params.
var paramTypes = []string{"number", "string", "boolean", "strings"}

func checkParams(params map[string]string) error {
	for name, kind := range params {
		if !slices.Contains(paramTypes, kind) {
			return fmt.Errorf("param %q has the unknown type %q; use one of %s", name, kind, strings.Join(paramTypes, ", "))
		}
	}
	return nil
}
