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

// PriceFilter checks a filter as CheckFilter does, and tells what it costs.
//
// A cost is an estimate out of the condition's tests (nanosOf) and not a
// measurement: a condition costs the same on every machine and at every moment,
// so that a budget that took it yesterday takes it today. A filter of a kind that is one
// too many is TooLarge.
func (x *Index) PriceFilter(key Key, filter string) (fanfare.Cost, error) {
	t, err := x.topic(key)
	if err != nil {
		return fanfare.Cost{}, err
	}
	d, err := t.draft(t.compile.Load(), filter)
	if err != nil {
		return fanfare.Cost{}, err
	}
	cost := d.price()
	t.mu.RLock()
	defer t.mu.RUnlock()
	if !t.filters.takes(filter, &d) {
		return fanfare.Cost{}, tooManyKinds()
	}
	if fresh := d.computes(&t.paths, map[string]bool{}); fresh > 0 {
		cost.Nanos += fresh
		cost.Why = cmp.Or(cost.Why, "what it computes of the event, and no other condition does, is computed for every event")
	}
	return cost, nil
}

// price is what a filter costs: nothing where an index leads to one of its conjuncts.
func (d *draft) price() (sum fanfare.Cost) {
	if d.form != nil {
		return d.form.plan.price(rowOf(d.form.params, d.values))
	}
	for i := range d.parts {
		one := d.parts[i].price()
		if one.Indexed() {
			return one
		}
		sum = fanfare.Cost{Nanos: sum.Nanos + one.Nanos, Why: cmp.Or(sum.Why, one.Why)}
	}
	return sum
}

// computes is what it takes to compute for d what is not computed yet; seen is what
// was counted.
func (d *draft) computes(known *paths, seen map[string]bool) (nanos int64) {
	for i := range d.parts {
		nanos += d.parts[i].computes(known, seen)
	}
	if d.form == nil {
		return nanos
	}
	for _, p := range d.form.plan.paths {
		if key := p.key(); p.nanos() > 0 && known.slots.used[key] == nil && !seen[key] {
			seen[key] = true
			nanos += p.nanos()
		}
	}
	return nanos
}

// nanos is what it takes to find a value beyond looking it up: of one that is computed.
func (s source) nanos() int64 {
	switch r := s.root.(type) {
	case *computed:
		return nanosOfProgram(r.expr)
	case *clock:
		return clockNanos
	}
	return 0
}

// PriceParams checks the params of a rule as CheckParams does, and tells what a
// subscription with them costs.
func (x *Index) PriceParams(key Key, rule string, params json.RawMessage) (fanfare.Cost, error) {
	t, err := x.topic(key)
	if err != nil {
		return fanfare.Cost{}, err
	}
	c := t.compile.Load()
	number, v, err := c.readParams(rule, params)
	if err != nil {
		return fanfare.Cost{}, err
	}
	p := c.plans[number]
	if p.alwaysIndexed() {
		return fanfare.Cost{}, nil
	}
	return p.price(rowOf(c.rules[number].params, v)), nil
}

// alwaysIndexed reports whether an index leads to every row, whatever its params are:
// then none has to be made to know its price.
func (p *plan) alwaysIndexed() bool {
	return slices.ContainsFunc(p.guards, func(ways []*way) bool {
		return !slices.ContainsFunc(ways, func(w *way) bool { return !w.ordered() })
	})
}

// rowOf is a row with these params, which is in no index.
func rowOf(params []param, v values) *placing {
	texts := newTexts()
	return &placing{texts: texts, frame: frame{texts: texts, page: pageOf(params, v, texts)}}
}

// price is what a row costs: nothing where an index leads to it by one of the guards.
func (p *plan) price(row *placing) fanfare.Cost {
	for _, ways := range p.guards {
		if !slices.ContainsFunc(ways, row.everywhere) {
			return fanfare.Cost{}
		}
	}
	return p.dear(row)
}

// dear is what a row costs that every event meets. Where there is no condition,
// nothing is evaluated.
func (p *plan) dear(row *placing) fanfare.Cost {
	if p.tests() == nil {
		return fanfare.Cost{}
	}
	return fanfare.Cost{Nanos: p.nanos(row), Why: p.whyEverywhere()}
}

// everywhere reports whether w leads to the row with every event.
func (p *placing) everywhere(w *way) bool {
	return !w.ordered() && slices.Contains(p.keysOf(w), everyEvent)
}

// ordered reports whether w finds its rows in an order, or by a key that says
// something of every row.
func (w *way) ordered() bool { return len(w.equalities) > 0 || w.span != nil || w.cells != nil }

// decided reports whether a test is true of the row, whatever the event is.
func (p *placing) decided(t test) bool {
	switch t := t.(type) {
	case anyOf:
		return slices.ContainsFunc(t, p.decided)
	case allOf:
		return !slices.ContainsFunc(t, func(one test) bool { return !p.decided(one) })
	case program:
		p.frame.blind = true
		defer func() { p.frame.blind = false }()
		return t.eval(&p.frame) == yes
	case *equality:
		return isOfRow(t.a) && isOfRow(t.b) && t.eval(&p.frame) == yes
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
func (p *plan) nanos(row *placing) int64 {
	sum := int64(rowNanos)
	for _, one := range p.tests() {
		if row.decided(one) {
			sum += testNanos
		} else {
			sum += nanosOf(one)
		}
	}
	return sum
}

// tests are what an event that meets a row evaluates: what is once per event for
// all rows is among it, for the form of one filter has nothing else.
func (p *plan) tests() (list []test) {
	list = append(list, p.gates...)
	for _, ways := range p.guards {
		for _, w := range ways {
			list = append(list, w.gates...)
		}
	}
	for i := range p.residuals {
		list = append(list, p.residuals[i].test)
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
	clockNanos     = 60   // to read a clock
	programNanos   = 1500 // to begin one of cel-go
	nodeNanos      = 130  // for each of its expressions
	againNanos     = 30   // and where it evaluates that again, in a loop
	listNanos      = 200  // to make a list or an object
	zoneNanos      = 8000 // to read the data of a time zone, as cel-go does each time
	loopElements   = 8    // that a list of an event is taken to have
)

// nanosOf is about what a test takes, where none of its sides spares another.
func nanosOf(t test) (sum int64) {
	switch t := t.(type) {
	case literalTest:
		return 1
	case allOf:
		for _, one := range t {
			sum += nanosOf(one)
		}
		return sum
	case anyOf:
		for _, one := range t {
			sum += nanosOf(one)
		}
		return sum
	case negation:
		return nanosOf(t.test)
	case choice:
		return nanosOf(t.when) + max(nanosOf(t.then), nanosOf(t.otherwise))
	case *mixedMembership:
		return testNanos * int64(len(t.values))
	case *membership:
		return testNanos * int64(1+len(t.others))
	case *textTest, *foldedTest, *listMembership:
		return textNanos
	case *sharing:
		return loopElements * elementNanos
	case *regexTest:
		return nanosOfRegex(t.pattern, t.size)
	case *withinTest:
		return placeNanos
	case *crossingTest:
		return 2 * testNanos
	case program:
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
	return programNanos + w.expressions*nodeNanos + (w.evaluated-w.expressions)*againNanos + w.calls
}

// A weight is what cel-go evaluates in an expression: how many expressions there are, how often
// one is evaluated, and the nanoseconds of calls that take longer than others. What a loop
// repeats is evaluated for each element, and at most as often as an evaluation may cost: loops
// inside of loops would be more than there are numbers.
type weight struct{ expressions, evaluated, calls int64 }

func weigh(e celast.Expr) weight {
	sum := weight{expressions: 1, evaluated: 1, calls: nanosOfCall(e)}
	for i, part := range parts(e) {
		w := weigh(part)
		if e.Kind() == celast.ComprehensionKind && (i == 2 || i == 3) { // its condition and its step
			w.evaluated, w.calls = w.evaluated*loopElements, w.calls*loopElements
		}
		sum.expressions, sum.evaluated, sum.calls = sum.expressions+w.expressions, sum.evaluated+w.evaluated, sum.calls+w.calls
	}
	sum.expressions = min(sum.expressions, maxCost)
	sum.evaluated = max(min(sum.evaluated, maxCost), sum.expressions)
	sum.calls = min(sum.calls, maxCost*againNanos)
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
