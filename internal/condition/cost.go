package condition

import (
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	celast "cel.dev/cel-go/common/ast"

	"fanfare.dev/fanfare"
)

// FilterCost checks a filter as CheckFilter does, and tells what it costs.
//
// A cost is an estimate out of the condition's tests (nanosOf) and not a
// measurement: a condition costs the same on every machine and at every moment,
// so that a budget that took it yesterday takes it today. A filter of a kind that is one
// too many is TooLarge.
func (x *Index) FilterCost(key Key, filter string) (fanfare.Cost, error) {
	t, err := x.topic(key)
	if err != nil {
		return fanfare.Cost{}, err
	}
	d, err := t.compileFilter(t.compiled.Load(), filter)
	if err != nil {
		return fanfare.Cost{}, err
	}
	cost := d.cost()
	t.mu.RLock()
	defer t.mu.RUnlock()
	if !t.filters.hasRoomFor(filter, &d) {
		return fanfare.Cost{}, tooManyShapes()
	}
	if fresh := d.newComputationCost(&t.paths, map[string]bool{}); fresh > 0 {
		cost.Nanos += fresh
		cost.Why = cmp.Or(cost.Why, "what it computes of the event, and no other condition does, is computed for every event")
	}
	return cost, nil
}

// cost is what a filter costs: nothing where an index leads to one of its conjuncts.
func (d *compiledFilter) cost() (sum fanfare.Cost) {
	if d.shape != nil {
		return d.shape.plan.cost(detachedRow(d.shape.params, d.values))
	}
	for i := range d.conjuncts {
		one := d.conjuncts[i].cost()
		if one.Indexed() {
			return one
		}
		sum = fanfare.Cost{Nanos: sum.Nanos + one.Nanos, Why: cmp.Or(sum.Why, one.Why)}
	}
	return sum
}

// newComputationCost is what it takes to compute for d what is not computed yet; seen is what
// was counted.
func (d *compiledFilter) newComputationCost(known *pathTable, seen map[string]bool) (nanos int64) {
	for i := range d.conjuncts {
		nanos += d.conjuncts[i].newComputationCost(known, seen)
	}
	if d.shape == nil {
		return nanos
	}
	for _, p := range d.shape.plan.paths {
		if key := p.key(); p.nanos() > 0 && known.values.used[key] == nil && !seen[key] {
			seen[key] = true
			nanos += p.nanos()
		}
	}
	return nanos
}

// nanos is what it takes to find a value beyond looking it up: of one that is computed.
func (s source) nanos() int64 {
	switch r := s.root.(type) {
	case *computedRoot:
		return nanosOfProgram(r.expr)
	case *timePartRoot:
		return timePartNanos
	}
	return 0
}

// ParamsCost checks the params of a rule as CheckParams does, and tells what a
// subscription with them costs.
func (x *Index) ParamsCost(key Key, rule string, params json.RawMessage) (fanfare.Cost, error) {
	t, err := x.topic(key)
	if err != nil {
		return fanfare.Cost{}, err
	}
	c := t.compiled.Load()
	number, v, err := c.readParams(rule, params)
	if err != nil {
		return fanfare.Cost{}, err
	}
	p := c.rulePlans[number]
	if p.alwaysIndexed() {
		return fanfare.Cost{}, nil
	}
	return p.cost(detachedRow(c.ruleScopes[number].params, v)), nil
}

// alwaysIndexed reports whether an index leads to every row, whatever its params are:
// then none has to be made to know its price.
func (p *plan) alwaysIndexed() bool {
	return slices.ContainsFunc(p.guards, func(ways []*accessPath) bool {
		return !slices.ContainsFunc(ways, func(w *accessPath) bool { return !w.hasKey() })
	})
}

// detachedRow is a row with these params, which is in no index.
func detachedRow(params []param, v paramValues) *rowIndexer {
	texts := newTextTable()
	return &rowIndexer{texts: texts, frame: frame{texts: texts, page: detachedPage(params, v, texts)}}
}

// cost is what a row costs: nothing where an index leads to it by one of the guards.
func (p *plan) cost(row *rowIndexer) fanfare.Cost {
	for _, ways := range p.guards {
		if !slices.ContainsFunc(ways, row.matchesEveryEvent) {
			return fanfare.Cost{}
		}
	}
	return p.unindexedCost(row)
}

// unindexedCost is what a row costs that every event meets. Where there is no condition,
// nothing is evaluated.
func (p *plan) unindexedCost(row *rowIndexer) fanfare.Cost {
	if p.predicates() == nil {
		return fanfare.Cost{}
	}
	return fanfare.Cost{Nanos: p.nanos(row), Why: p.unindexedReason()}
}

// matchesEveryEvent reports whether w leads to the row with every event.
func (p *rowIndexer) matchesEveryEvent(w *accessPath) bool {
	return !w.hasKey() && slices.Contains(p.keysOf(w), everyEvent)
}

// hasKey reports whether w finds its rows in an order, or by a key that says
// something of every row.
func (w *accessPath) hasKey() bool {
	return len(w.equalities) > 0 || w.rangeKey != nil || w.grid != nil
}

// isAlwaysTrue reports whether a test is true of the row, whatever the event is.
func (p *rowIndexer) isAlwaysTrue(t Predicate) bool {
	switch t := t.(type) {
	case Or:
		return slices.ContainsFunc(t, p.isAlwaysTrue)
	case And:
		return !slices.ContainsFunc(t, func(one Predicate) bool { return !p.isAlwaysTrue(one) })
	case CELPredicate:
		p.frame.eventHidden = true
		defer func() { p.frame.eventHidden = false }()
		return t.eval(&p.frame) == True
	case *Equality:
		return isOfRow(t.a) && isOfRow(t.b) && t.eval(&p.frame) == True
	}
	return false
}

func isOfRow(x operand) bool {
	switch x.(type) {
	case *constant, numberParam, textParam, boolParam, listParam:
		return true
	}
	return false
}

// nanos is what a row costs that every event meets: all that is tested for it.
func (p *plan) nanos(row *rowIndexer) int64 {
	sum := int64(rowNanos)
	for _, one := range p.predicates() {
		if row.isAlwaysTrue(one) {
			sum += testNanos
		} else {
			sum += nanosOf(one)
		}
	}
	return sum
}

// predicates are what an event that meets a row evaluates: what is once per event for
// all rows is among it, for the form of one filter has nothing else.
func (p *plan) predicates() (list []Predicate) {
	list = append(list, p.eventPredicates...)
	for _, ways := range p.guards {
		for _, w := range ways {
			list = append(list, w.eventPredicates...)
		}
	}
	for i := range p.residuals {
		list = append(list, p.residuals[i].Predicate)
	}
	return list
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
	rowNanos       = 20   // to go to the next row
	testNanos      = 20   // to load two values and compare them
	textNanos      = 35   // to seek a text in another
	elementNanos   = 40   // to look at an element of a list
	regexNanos     = 600  // to begin a regular expression,
	regexScanNanos = 1500 // to try it from each letter of a title, where no text is known to come first,
	regexPartNanos = 60   // and for each part of it
	placeNanos     = 300  // to tell how far two places are apart
	timePartNanos  = 60   // to read a clock
	programNanos   = 1500 // to begin one of cel-go
	nodeNanos      = 130  // for each of its expressions
	repeatNanos    = 30   // and where it evaluates that again, in a loop
	listNanos      = 200  // to make a list or an object
	zoneNanos      = 8000 // to read the data of a time zone, as cel-go does each time
	loopElements   = 8    // that a list of an event is taken to have
)

// nanosOf is about what a test takes, where none of its sides spares another.
func nanosOf(t Predicate) (sum int64) {
	switch t := t.(type) {
	case ConstantPredicate:
		return 1
	case And:
		for _, one := range t {
			sum += nanosOf(one)
		}
		return sum
	case Or:
		for _, one := range t {
			sum += nanosOf(one)
		}
		return sum
	case Not:
		return nanosOf(t.Predicate)
	case Conditional:
		return nanosOf(t.when) + max(nanosOf(t.yes), nanosOf(t.no))
	case *InMixedList:
		return testNanos * int64(len(t.values))
	case *InConstants:
		return testNanos * int64(1+len(t.others))
	case *TextPredicate, *FoldedTextPredicate, *InListParam:
		return textNanos
	case *existsPredicate:
		return loopElements * elementNanos
	case *RegexPredicate:
		return nanosOfRegex(t.pattern, t.size)
	case *WithinPredicate:
		return placeNanos
	case *CrossingPredicate:
		return 2 * testNanos
	case CELPredicate:
		return t.nanos
	}
	return testNanos
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
	return programNanos + w.expressions*nodeNanos + (w.evaluated-w.expressions)*repeatNanos + w.calls
}

// A weight is what cel-go evaluates in an expression: how many expressions there are, how often
// one is evaluated, and the nanoseconds of calls that take longer than others. What a loop
// repeats is evaluated for each element, and at most as often as an evaluation may cost: loops
// inside of loops would be more than there are numbers.
type evalWeight struct{ expressions, evaluated, calls int64 }

func weigh(e celast.Expr) evalWeight {
	sum := evalWeight{expressions: 1, evaluated: 1, calls: nanosOfCall(e)}
	for i, part := range children(e) {
		w := weigh(part)
		if e.Kind() == celast.ComprehensionKind && (i == 2 || i == 3) { // its condition and its step
			w.evaluated, w.calls = w.evaluated*loopElements, w.calls*loopElements
		}
		sum.expressions, sum.evaluated, sum.calls = sum.expressions+w.expressions, sum.evaluated+w.evaluated, sum.calls+w.calls
	}
	sum.expressions = min(sum.expressions, maxCost)
	sum.evaluated = max(min(sum.evaluated, maxCost), sum.expressions)
	sum.calls = min(sum.calls, maxCost*repeatNanos)
	return sum
}

// nanosOfCall is what an expression takes beyond others.
func nanosOfCall(e celast.Expr) int64 {
	switch e.Kind() {
	case celast.ListKind, celast.MapKind:
		return listNanos
	case celast.CallKind:
		if _, _, ok := timePart(e); ok {
			return zoneNanos
		}
		if call := e.AsCall(); call.FunctionName() == "matches" {
			v, _ := literal(operandsOf(call)[1])
			text, _ := v.(string)
			if size, err := regexSize(text); err == nil {
				if pattern, err := regexp.Compile(text); err == nil {
					return nanosOfRegex(pattern, size)
				}
			}
		}
	}
	return 0
}
