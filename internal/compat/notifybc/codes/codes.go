// Package codes generates the codes with which people confirm and end subscriptions: random texts that match a regular
// expression, such as \d{5}.
package codes

import (
	"crypto/rand"
	"errors"
	"fmt"
	"math/big"
	"regexp/syntax"
	"strings"
)

// Hint helps with an expression that Parse refuses.
const Hint = `write a regular expression such as \d{5} or [A-Z0-9]{8}`

const (
	maxPatternBytes = 200
	maxCodeBytes    = 100
	// maxRepeats replaces an upper bound that the expression does not set.
	maxRepeats = 10
)

// A Pattern generates codes.
type Pattern struct{ expression *syntax.Regexp }

// Parse parses an expression.
func Parse(pattern string) (*Pattern, error) {
	if pattern == "" || len(pattern) > maxPatternBytes {
		return nil, fmt.Errorf("a code must have a regular expression of up to %d bytes", maxPatternBytes)
	}
	expression, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, err
	}
	p := &Pattern{expression}
	code, err := p.New()
	if err == nil && code == "" {
		err = errors.New("the expression matches the empty text only")
	}
	return p, err
}

// New returns a random code.
func (p *Pattern) New() (string, error) {
	var out strings.Builder
	if err := write(&out, p.expression); err != nil {
		return "", err
	}
	return out.String(), nil
}

// write appends a random text that matches an expression.
func write(out *strings.Builder, e *syntax.Regexp) error {
	if out.Len() > maxCodeBytes {
		return fmt.Errorf("the expression matches texts longer than %d bytes", maxCodeBytes)
	}
	switch e.Op {
	case syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText:
		return nil
	case syntax.OpLiteral:
		for _, c := range e.Rune {
			if c < '!' || c > '~' {
				return errors.New("the expression has a character that is not printable ASCII")
			}
		}
		out.WriteString(string(e.Rune))
		return nil
	case syntax.OpCharClass:
		return writeClass(out, e.Rune)
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return writeClass(out, []rune{'0', '9', 'A', 'Z', 'a', 'z'})
	case syntax.OpCapture:
		return write(out, e.Sub[0])
	case syntax.OpConcat:
		for _, sub := range e.Sub {
			if err := write(out, sub); err != nil {
				return err
			}
		}
		return nil
	case syntax.OpAlternate:
		return write(out, e.Sub[random(len(e.Sub))])
	case syntax.OpStar:
		return repeat(out, e.Sub[0], 0, maxRepeats)
	case syntax.OpPlus:
		return repeat(out, e.Sub[0], 1, maxRepeats)
	case syntax.OpQuest:
		return repeat(out, e.Sub[0], 0, 1)
	case syntax.OpRepeat:
		most := e.Max
		if most < 0 {
			most = e.Min + maxRepeats
		}
		return repeat(out, e.Sub[0], e.Min, most)
	}
	return fmt.Errorf("a code cannot be generated for %s", e)
}

func repeat(out *strings.Builder, e *syntax.Regexp, least, most int) error {
	for range least + random(most-least+1) {
		if err := write(out, e); err != nil {
			return err
		}
	}
	return nil
}

// writeClass appends a printable ASCII character of a class, which is a list of pairs of the first and the last character.
func writeClass(out *strings.Builder, pairs []rune) error {
	var all []byte
	for i := 0; i < len(pairs); i += 2 {
		for c := max(pairs[i], '!'); c <= min(pairs[i+1], '~'); c++ { //nolint:gosec // pairs
			all = append(all, byte(c))
		}
	}
	if len(all) == 0 {
		return errors.New("the expression has a class without printable ASCII characters")
	}
	out.WriteByte(all[random(len(all))])
	return nil
}

// random returns a number below n.
func random(n int) int {
	v, err := rand.Int(rand.Reader, big.NewInt(int64(n)))
	if err != nil {
		panic(err) // crypto/rand does not fail
	}
	return int(v.Int64())
}
