package jmespath

import (
	"errors"
	"sync"
)

// MaxSteps is the budget of an evaluation. A step is an expression, an element of a list or an
// object, or 16 bytes of a text; it takes up to 50 ns.
const MaxSteps = 20_000

// ErrBudget is the error of an evaluation that exceeds its budget.
var ErrBudget = errors.New("the evaluation takes more than 20000 steps")

// An Expression is a compiled JMESPath expression.
type Expression struct{ root *node }

// Compile compiles an expression. The error is a *SyntaxError. An unknown function and a wrong
// number of arguments are errors of the evaluation only.
func Compile(text string) (*Expression, error) {
	root, err := parse(text)
	if err != nil {
		return nil, err
	}
	return &Expression{root}, nil
}

// Search evaluates the expression on decoded JSON: nil, bool, numbers, string, []any and
// map[string]any. It does not change data, and the result may share parts with it.
func (x *Expression) Search(data any) (any, error) {
	e := evaluators.Get().(*Evaluator)
	defer e.release()
	e.begin()
	found, ok := e.eval(x.root, data)
	if !ok {
		return nil, e.err
	}
	return found, nil
}

// A Filter is a compiled filter of a subscriber or a sender.
type Filter struct {
	condition *node // [?condition] of one value
	root      *node // of a text that is more than a condition, such as "a] | [?b"
	nanos     int64
}

// filterStart is the text before a filter; offsets in errors do not count it.
const filterStart = "[?"

// CompileFilter compiles the text between [? and ]. Every value matches the empty text. The error
// is a *SyntaxError.
func CompileFilter(text string) (*Filter, error) {
	if text == "" {
		return &Filter{condition: &node{kind: nodeLiteral, value: true}}, nil
	}
	root, err := parse(filterStart + text + "]")
	if err != nil {
		if e, ok := errors.AsType[*SyntaxError](err); ok {
			if e.Offset -= len(filterStart); e.Offset >= len(text) {
				e.Offset, e.Message = len(text), "the filter is incomplete"
			}
			e.Offset = max(e.Offset, 0)
		}
		return nil, err
	}
	f := &Filter{root: root, nanos: nanosOf(root)}
	if root.kind == nodeFiltered && root.left.kind == nodeCurrent && root.right.kind == nodeCurrent {
		f.condition, f.nanos = root.condition, nanosOf(root.condition)
	}
	return f, nil
}

// Match reports whether the filter is true of data. Without data (nil), every filter is true. An
// error, and an evaluation that exceeds its budget, is no match.
func (f *Filter) Match(data any) bool {
	e := evaluators.Get().(*Evaluator)
	defer e.release()
	return e.Match(f, data)
}

// Nanos estimates the time of Match, on one idle core of 2.5 GHz, for a document of ordinary size.
func (f *Filter) Nanos() int64 { return f.nanos }

// An Evaluator evaluates filters one after the other, and computes once what several of them need of
// the same texts. The zero value is ready. It is not safe for concurrent use.
type Evaluator struct {
	steps   int
	err     error // of the evaluation that failed
	stack   []any // arguments of the calls under evaluation
	lowered []loweredText
}

type loweredText struct{ text, lower string }

// maxLowered is the number of texts whose lower-case form an Evaluator remembers.
const maxLowered = 8

var evaluators = sync.Pool{New: func() any { return new(Evaluator) }}

// Match is Filter.Match.
func (e *Evaluator) Match(f *Filter, data any) bool {
	if data == nil {
		return true
	}
	e.begin()
	if f.condition != nil {
		found, ok := e.eval(f.condition, data)
		return ok && isTrue(found)
	}
	found, ok := e.eval(f.root, []any{data})
	return ok && isTrue(found)
}

// Reset releases all texts and values of earlier evaluations.
func (e *Evaluator) Reset() {
	clear(e.stack[:cap(e.stack)])
	clear(e.lowered)
	e.stack, e.lowered, e.err = e.stack[:0], e.lowered[:0], nil
}

func (e *Evaluator) begin() { e.steps, e.err, e.stack = 0, nil, e.stack[:0] }

func (e *Evaluator) release() {
	e.Reset()
	evaluators.Put(e)
}

// lower returns a text in lower case.
func (e *Evaluator) lower(text string) string {
	for i := range e.lowered {
		if e.lowered[i].text == text { // usually the same text at the same address
			return e.lowered[i].lower
		}
	}
	lower := lowerCase(text)
	if len(e.lowered) < maxLowered {
		e.lowered = append(e.lowered, loweredText{text, lower})
	}
	return lower
}

// Estimated nanoseconds of the parts of an expression.
const (
	nodeNanos    = 15
	callNanos    = 60
	elementCount = 8 // assumed length of a list in the data
)

// nanosOf estimates the time of an expression.
func nanosOf(n *node) int64 {
	if n == nil {
		return 0
	}
	each := nanosOf(n.right) + nanosOf(n.condition)
	switch n.kind {
	case nodeProjection, nodeValues, nodeFiltered:
		each *= elementCount
	}
	sum := nodeNanos + nanosOf(n.left) + each
	for _, arg := range n.args {
		one := nanosOf(arg)
		if arg.kind == nodeReference {
			one *= elementCount
		}
		sum += one
	}
	if n.kind == nodeCall {
		sum += callNanos
	}
	return min(sum, MaxSteps*50)
}
