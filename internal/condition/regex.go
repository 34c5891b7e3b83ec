package condition

import (
	"fmt"
	"regexp"
	"regexp/syntax"

	celast "cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/interpreter"
)

// maxRegexSize is how many parts a regular expression may have, with what is repeated
// written out: (a?){1000} is short, and takes longer than all of a match, for every
// letter of the text.
const maxRegexSize = 1000

// regexSize is how many parts a pattern has; an error where it is none, or too large.
// It writes nothing out.
func regexSize(pattern string) (size int, err error) {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 0, err
	}
	if size = partsOfRegex(parsed); size > maxRegexSize {
		return size, fmt.Errorf("the regular expression has more than %d parts, with what is repeated written out", maxRegexSize)
	}
	return size, nil
}

// partsOfRegex counts to a little beyond maxRegexSize at least.
func partsOfRegex(r *syntax.Regexp) int {
	size := 1
	for _, sub := range r.Sub {
		size = min(size+partsOfRegex(sub), maxRegexSize+1)
	}
	if r.Op == syntax.OpRepeat {
		size *= max(r.Min, r.Max, 1)
	}
	return min(size, maxRegexSize+1)
}

// regex is text.matches(pattern) and matches(text, pattern) with a constant pattern.
func (b *builder) regex(call celast.CallExpr) Predicate {
	args := operandsOf(call)
	pattern, ok := literal(args[1])
	text, isText := pattern.(string)
	if !ok || !isText {
		return nil
	}
	size, err := regexSize(text)
	if err != nil {
		return nil
	}
	compiled, err := regexp.Compile(text)
	if err != nil {
		return nil
	}
	x := b.operand(args[0])
	if x == nil {
		return nil
	}
	return &RegexPredicate{x, compiled, size}
}

// operandsOf are the arguments of a call, what it is a member of first.
func operandsOf(call celast.CallExpr) []celast.Expr {
	if call.IsMemberFunction() {
		return append([]celast.Expr{call.Target()}, call.Args()...)
	}
	return call.Args()
}

// regex refuses a pattern that is none, or too large.
func (c *checker) regex(pattern celast.Expr) {
	v, _ := literal(pattern)
	text, isText := v.(string)
	if !isText {
		return
	}
	if _, err := regexSize(text); err != nil {
		c.refuse(pattern, "", "invalid matches argument: %v", err)
	}
}

// boundedRegex keeps cel-go from patterns that are too large: those that a condition
// computes, or has from a param, are known with the event only.
func boundedRegex(i interpreter.Interpretable) (interpreter.Interpretable, error) {
	call, ok := i.(interpreter.InterpretableCall)
	if !ok || call.Function() != "matches" || len(call.Args()) != 2 {
		return i, nil
	}
	return interpreter.NewCall(call.ID(), call.Function(), call.OverloadID(), call.Args(), func(values ...ref.Val) ref.Val {
		text, ok1 := values[0].(types.String)
		pattern, ok2 := values[1].(types.String)
		if !ok1 || !ok2 {
			return types.NewErr("no such overload")
		}
		if _, err := regexSize(string(pattern)); err != nil {
			return types.NewErr("%v", err)
		}
		return text.Match(pattern)
	}), nil
}
