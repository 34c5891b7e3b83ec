package lang

import (
	"fmt"
	"regexp/syntax"

	celast "cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/interpreter"
)

// MaxRegexSize is the largest number of nodes of a regular expression with its repetitions
// expanded. (a?){1000} is short, and takes longer than a whole match for every character of the text.
const MaxRegexSize = 1000

// RegexSize counts the nodes of a pattern with its repetitions expanded. It is an error if the
// pattern is invalid or too large.
func RegexSize(pattern string) (size int, err error) {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 0, err
	}
	if size = partsOfRegex(parsed); size > MaxRegexSize {
		return size, fmt.Errorf("the regular expression has more than %d parts after its repetitions are expanded", MaxRegexSize)
	}
	return size, nil
}

// partsOfRegex counts nodes; it may stop counting beyond MaxRegexSize.
func partsOfRegex(r *syntax.Regexp) int {
	size := 1
	for _, sub := range r.Sub {
		size = min(size+partsOfRegex(sub), MaxRegexSize+1)
	}
	if r.Op == syntax.OpRepeat {
		size *= max(r.Min, r.Max, 1)
	}
	return min(size, MaxRegexSize+1)
}

// regex refuses an invalid or too large pattern.
func (c *checker) regex(pattern celast.Expr) {
	v, _ := Literal(pattern)
	text, isText := v.(string)
	if !isText {
		return
	}
	if _, err := RegexSize(text); err != nil {
		c.refuse(pattern, "", "invalid matches argument: %v", err)
	}
}

// boundedRegex makes cel-go check the size of patterns that are known only with the event: those
// that a condition computes or takes from a param.
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
		if _, err := RegexSize(string(pattern)); err != nil {
			return types.NewErr("%v", err)
		}
		return text.Match(pattern)
	}), nil
}
