package expr

import (
	"regexp"
	"strings"

	celast "cel.dev/cel-go/common/ast"

	"fanfare.dev/fanfare/internal/condition/lang"
)

// Nanos estimates the time to compute the value, without looking it up.
func (s Source) Nanos() int64 {
	switch r := s.Root.(type) {
	case *computedRoot:
		return nanosOfProgram(r.expr)
	case *timePartRoot:
		return TimePartNanos
	}
	return 0
}

// Estimated nanoseconds of what predicates consist of, on one idle core of 2.5 GHz, as one of ten
// thousand different conditions. A CEL program consists of a few kilobytes of small objects, which
// are no longer in the cache when the next event arrives; with a few hundred conditions it takes a
// fifth of
// that time. BenchmarkCost prints the estimates next to measurements. In November 2026, with ten
// thousand conditions each, in nanoseconds per condition:
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
// Most are within a factor of two. A regular expression that ends at the first characters of the text,
// or has hundreds of parts of which few are tried, takes a sixth of its estimate.
const (
	RowNanos       = 20   // go to the next row
	TestNanos      = 20   // load two values and compare them
	textNanos      = 35   // search a text in another
	elementNanos   = 40   // visit an element of a list
	regexNanos     = 600  // start a regular expression
	regexScanNanos = 1500 // try it from each character of a title, if it has no literal prefix
	regexPartNanos = 60   // each node of a regular expression
	placeNanos     = 300  // compute the distance of two places
	TimePartNanos  = 60   // read a part of a time
	ProgramNanos   = 1500 // start a CEL program
	NodeNanos      = 130  // each expression in it
	RepeatNanos    = 30   // evaluate an expression again in a loop
	listNanos      = 200  // make a list or an object
	zoneNanos      = 8000 // read the data of a time zone, as cel-go does each time
	loopElements   = 8    // assumed length of a list in an event
)

// NanosOf estimates the time of a predicate, assuming that no operand makes another one
// unnecessary.
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
	case *JMESPathPredicate:
		return TestNanos + t.filter.Nanos()
	case CELPredicate:
		return t.nanos
	}
	return TestNanos
}

// nanosOfRegex estimates the time to match a pattern with size nodes against a text.
func nanosOfRegex(pattern *regexp.Regexp, size int) int64 {
	nanos := regexNanos + int64(size)*regexPartNanos
	if first, _ := pattern.LiteralPrefix(); first == "" && !strings.HasPrefix(pattern.String(), "^") {
		nanos += regexScanNanos
	}
	return nanos
}

// nanosOfProgram estimates the time of cel-go for e.
func nanosOfProgram(e celast.Expr) int64 {
	w := weigh(e)
	return ProgramNanos + w.expressions*NodeNanos + (w.evaluated-w.expressions)*RepeatNanos + w.calls
}

// An evalWeight counts what cel-go evaluates in an expression: its expressions, their evaluations,
// and the nanoseconds of calls that take longer than others. A loop evaluates its body for each
// element. All counts are limited, because nested loops would overflow them.
type evalWeight struct{ expressions, evaluated, calls int64 }

func weigh(e celast.Expr) evalWeight {
	sum := evalWeight{expressions: 1, evaluated: 1, calls: nanosOfCall(e)}
	for i, part := range lang.Children(e) {
		w := weigh(part)
		if e.Kind() == celast.ComprehensionKind && (i == 2 || i == 3) { // the condition and the step of a loop
			w.evaluated, w.calls = w.evaluated*loopElements, w.calls*loopElements
		}
		sum.expressions, sum.evaluated, sum.calls = sum.expressions+w.expressions, sum.evaluated+w.evaluated, sum.calls+w.calls
	}
	sum.expressions = min(sum.expressions, lang.MaxCost)
	sum.evaluated = max(min(sum.evaluated, lang.MaxCost), sum.expressions)
	sum.calls = min(sum.calls, lang.MaxCost*RepeatNanos)
	return sum
}

// nanosOfCall returns the extra time of expressions that take longer than others.
func nanosOfCall(e celast.Expr) int64 {
	switch e.Kind() {
	case celast.ListKind, celast.MapKind:
		return listNanos
	case celast.CallKind:
		if _, _, ok := lang.TimePart(e); ok {
			return zoneNanos
		}
		switch call := e.AsCall(); call.FunctionName() {
		case lang.JMESPath:
			if filter, ok := lang.JMESPathFilter(call); ok {
				return filter.Nanos()
			}
		case "matches":
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
