package expr

import (
	"regexp"
	"strings"

	celast "cel.dev/cel-go/common/ast"

	"fanfare.dev/fanfare/internal/condition/lang"
)

// Nanos is what it takes to find a value beyond looking it up: of one that is computed.
func (s Source) Nanos() int64 {
	switch r := s.Root.(type) {
	case *computedRoot:
		return nanosOfProgram(r.expr)
	case *timePartRoot:
		return TimePartNanos
	}
	return 0
}

// Nanoseconds of what every test is made of, on one core of 2.5 GHz that does
// nothing else, as one of ten thousand conditions that differ: what cel-go evaluates is some
// kilobytes of small objects each, which are no longer in the cache when the next event
// comes. A few hundred take a fifth of that. BenchmarkCost has the estimates beside what is
// measured; in November 2026, of ten thousand each, in nanoseconds a condition:
//
//	a comparison                          40 estimated     54 measured
//	two                                   80               92
//	one element of a list is             340              368
//	a regular expression
//	  of alternatives                   2840             3554
//	  in any case                       2180             1652
//	arithmetic of 4 expressions         1930             1421
//	of 22                               5380             4401
//	a time less a duration              2320             2844
//	a clock inside of arithmetic       10450            12700
//	a loop of a comparison              7140             6061
//	a loop in a loop                   29340            27854
//
// Most are within a factor of two. A regular expression that ends at the first letters of the
// text, or has hundreds of parts of which few are tried, takes a sixth of its estimate.
const (
	RowNanos       = 20   // to go to the next row
	TestNanos      = 20   // to load two values and compare them
	textNanos      = 35   // to seek a text in another
	elementNanos   = 40   // to look at an element of a list
	regexNanos     = 600  // to begin a regular expression,
	regexScanNanos = 1500 // to try it from each letter of a title, where no text is known to come first,
	regexPartNanos = 60   // and for each part of it
	placeNanos     = 300  // to tell how far two places are apart
	TimePartNanos  = 60   // to read a clock
	ProgramNanos   = 1500 // to begin one of cel-go
	NodeNanos      = 130  // for each of its expressions
	RepeatNanos    = 30   // and where it evaluates that again, in a loop
	listNanos      = 200  // to make a list or an object
	zoneNanos      = 8000 // to read the data of a time zone, as cel-go does each time
	loopElements   = 8    // that a list of an event is taken to have
)

// NanosOf is about what a test takes, where none of its sides spares another.
func NanosOf(t Predicate) (sum int64) {
	switch t := t.(type) {
	case ConstantPredicate:
		return 1
	case And:
		for _, one := range t {
			sum += NanosOf(one)
		}
		return sum
	case Or:
		for _, one := range t {
			sum += NanosOf(one)
		}
		return sum
	case Not:
		return NanosOf(t.Predicate)
	case Conditional:
		return NanosOf(t.when) + max(NanosOf(t.yes), NanosOf(t.no))
	case *InMixedList:
		return TestNanos * int64(len(t.values))
	case *InConstants:
		return TestNanos * int64(1+len(t.others))
	case *TextPredicate, *FoldedTextPredicate, *InListParam:
		return textNanos
	case *ExistsPredicate:
		return loopElements * elementNanos
	case *RegexPredicate:
		return nanosOfRegex(t.pattern, t.size)
	case *WithinPredicate:
		return placeNanos
	case *CrossingPredicate:
		return 2 * TestNanos
	case CELPredicate:
		return t.nanos
	}
	return TestNanos
}

// nanosOfRegex is about what it takes to hold a pattern of so many parts against a text.
func nanosOfRegex(pattern *regexp.Regexp, size int) int64 {
	nanos := regexNanos + int64(size)*regexPartNanos
	if first, _ := pattern.LiteralPrefix(); first == "" && !strings.HasPrefix(pattern.String(), "^") {
		nanos += regexScanNanos
	}
	return nanos
}

// nanosOfProgram is about what cel-go takes to evaluate e.
func nanosOfProgram(e celast.Expr) int64 {
	w := weigh(e)
	return ProgramNanos + w.expressions*NodeNanos + (w.evaluated-w.expressions)*RepeatNanos + w.calls
}

// A weight is what cel-go evaluates in an expression: how many expressions there are, how often
// one is evaluated, and the nanoseconds of calls that take longer than others. What a loop
// repeats is evaluated for each element, and at most as often as an evaluation may cost: loops
// inside of loops would be more than there are numbers.
type evalWeight struct{ expressions, evaluated, calls int64 }

func weigh(e celast.Expr) evalWeight {
	sum := evalWeight{expressions: 1, evaluated: 1, calls: nanosOfCall(e)}
	for i, part := range lang.Children(e) {
		w := weigh(part)
		if e.Kind() == celast.ComprehensionKind && (i == 2 || i == 3) { // its condition and its step
			w.evaluated, w.calls = w.evaluated*loopElements, w.calls*loopElements
		}
		sum.expressions, sum.evaluated, sum.calls = sum.expressions+w.expressions, sum.evaluated+w.evaluated, sum.calls+w.calls
	}
	sum.expressions = min(sum.expressions, lang.MaxCost)
	sum.evaluated = max(min(sum.evaluated, lang.MaxCost), sum.expressions)
	sum.calls = min(sum.calls, lang.MaxCost*RepeatNanos)
	return sum
}

// nanosOfCall is what an expression takes beyond others.
func nanosOfCall(e celast.Expr) int64 {
	switch e.Kind() {
	case celast.ListKind, celast.MapKind:
		return listNanos
	case celast.CallKind:
		if _, _, ok := lang.TimePart(e); ok {
			return zoneNanos
		}
		if call := e.AsCall(); call.FunctionName() == "matches" {
			v, _ := lang.Literal(lang.CallOperands(call)[1])
			text, _ := v.(string)
			if size, err := lang.RegexSize(text); err == nil {
				if pattern, err := regexp.Compile(text); err == nil {
					return nanosOfRegex(pattern, size)
				}
			}
		}
	}
	return 0
}
