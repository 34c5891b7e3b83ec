package evaluator

import (
	"errors"
	"regexp"
	"regexp/syntax"
)

// maxParts is the maximum number of parts of a regular expression with expanded repetitions.
const maxParts = 1000

var errParts = errors.New("the regular expression has more than 1000 parts")

// compilePattern compiles a regular expression of RE2.
func compilePattern(text string) (*regexp.Regexp, error) {
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, err
	}
	if parts(tree) > maxParts {
		return nil, errParts
	}
	return regexp.Compile(text)
}

// parts counts the nodes of a regular expression; a repeated part counts as often as it may
// occur.
func parts(tree *syntax.Regexp) int {
	count := 1
	for _, sub := range tree.Sub {
		count += parts(sub)
	}
	if tree.Op == syntax.OpRepeat {
		count *= max(tree.Min, tree.Max, 1)
	}
	return min(count, maxParts+1)
}
