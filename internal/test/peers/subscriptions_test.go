//go:build peers

package peers

import (
	"encoding/json"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"

	"fanfare.dev/fanfare/internal/condition/conditiontest"
	"fanfare.dev/fanfare/internal/condition/evaluator"
)

// A wanted is a subscription, and which events it must be told of.
type wanted struct {
	id, to       string
	filter, rule string
	params       json.RawMessage
	matches      []uint64 // bit i is event i
	byGrammar    bool     // the filter was drawn by conditiontest, which asks no server whether it takes it
}

func (w *wanted) wants(event int) bool { return w.matches[event/64]>>(event%64)&1 == 1 }

// How subscriptions are drawn.
const (
	seed         = 1
	lotSize      = 250
	ruleEvery    = 6 // one condition of so many is a rule's
	grammarEvery = 3 // one filter of so many is drawn from the whole grammar of the language
	matchSome    = 3 // more about that at lot.draw
	keepNone     = 3 // of conditions that match no event one of so many is kept
	percentTwo   = 10
	percentThree = 2 // so many people of a hundred have two or three subscriptions
)

// draw draws n subscriptions, and has the evaluator alone decide of which events
// each must be told. In a round the same are drawn each time, however many
// goroutines there are: each lot has a source of its own.
func (o *oracle) draw(t *testing.T, round, n int) []*wanted {
	t.Helper()
	d := o.d
	lots := make([][]*wanted, (n+lotSize-1)/lotSize)
	var drawn, undecided, next atomic.Int64
	profile := conditiontest.ProfileOf(d.raw)
	var wg errgroup.Group
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() error {
			batch := evaluator.NewBatch(o.topic, o.inputs)
			for i := int(next.Add(1)) - 1; i < len(lots); i = int(next.Add(1)) - 1 {
				source := uint64(round)<<32 + uint64(i)
				lot := lot{o, batch, rand.New(rand.NewPCG(seed, source)), conditiontest.NewGenerator(conditiontest.Seeded(seed+source), profile), &drawn, &undecided}
				var err error
				if lots[i], err = lot.draw(min(lotSize, n-i*lotSize)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := wg.Wait(); err != nil {
		t.Fatal(err)
	}
	all := slices.Concat(lots...)
	address(d.name, round, all)
	t.Logf("%s: of %d conditions that were drawn, %d are kept, %d are undecided", d.name, drawn.Load(), len(all), undecided.Load())
	return all
}

// address gives each subscription an id and a subscriber. Most have one each.
func address(set string, round int, all []*wanted) {
	r := rand.New(rand.NewPCG(seed, uint64(round)))
	person, left := 0, 0
	for i, w := range all {
		if left == 0 {
			person++
			switch k := r.IntN(100); {
			case k < percentThree:
				left = 3
			case k < percentThree+percentTwo:
				left = 2
			default:
				left = 1
			}
		}
		left--
		w.id, w.to = fmt.Sprintf("%s-%d-%05d", set, round, i), fmt.Sprintf("p%d-%05d@example.org", round, person)
	}
}

// count is how many events it must be told of.
func (w *wanted) count() (n int) {
	for _, word := range w.matches {
		n += bits.OnesCount64(word)
	}
	return n
}

// An oracle knows the events of a set as the evaluator reads them.
type oracle struct {
	d      *dataset
	topic  *evaluator.Topic
	inputs []*evaluator.Input
	rules  []*evaluator.Condition // of d.rules
}

func newOracle(t *testing.T, d *dataset) *oracle {
	t.Helper()
	o := &oracle{d: d}
	var err error
	if o.topic, err = evaluator.NewTopic(d.schema); err != nil {
		t.Fatal(err)
	}
	was := map[any][]byte{} // by key
	for i, e := range d.events {
		given := evaluator.Event{Data: e.Data, Attributes: evaluator.Attributes{ID: e.ID, Source: e.Source, Type: e.Type, Time: e.Time}}
		if d.key != "" {
			key := d.data[i][d.key]
			given.Was, was[key] = was[key], e.Data
		}
		in, err := o.topic.Event(given)
		if err != nil {
			t.Fatalf("%s: %v", e.ID, err)
		}
		o.inputs = append(o.inputs, in)
	}
	for _, rule := range d.rules {
		kinds := map[string]string{}
		for name, p := range rule.params {
			kinds[name] = p.kind
		}
		c, err := o.topic.Condition(rule.when, kinds)
		if err != nil {
			t.Fatalf("rule %s: %v", rule.name, err)
		}
		o.rules = append(o.rules, c)
	}
	return o
}

// A lot is a part of the subscriptions, which are drawn by one goroutine.
type lot struct {
	*oracle
	batch            *evaluator.Batch
	r                *rand.Rand
	grammar          *conditiontest.Generator
	drawn, undecided *atomic.Int64
}

// draw draws n subscriptions. A condition that matches k events is kept with a
// chance of matchSome / k, so that each draw brings some mails, and each kind of
// condition stays among them. One that the evaluator leaves undecided for an
// event is drawn anew.
func (l *lot) draw(n int) ([]*wanted, error) {
	var all []*wanted
	for len(all) < n {
		l.drawn.Add(1)
		w := &wanted{}
		decide := l.filter
		if l.r.IntN(ruleEvery) == 0 {
			decide = l.rule
		}
		decided, err := decide(w)
		if err != nil && w.byGrammar {
			continue // some of its texts are no CEL
		}
		if err != nil {
			return nil, fmt.Errorf("the evaluator refuses %s%s %s: %w", w.filter, w.rule, w.params, err)
		}
		if !decided {
			l.undecided.Add(1)
			continue
		}
		k := w.count()
		if k == 0 && l.r.IntN(keepNone) == 0 || k > 0 && k <= matchSome || k > matchSome && l.r.IntN(k) < matchSome {
			all = append(all, w)
		}
	}
	return all, nil
}

// filter makes w a subscription with a filter of its own.
func (l *lot) filter(w *wanted) (decided bool, err error) {
	if w.byGrammar = l.r.IntN(grammarEvery) == 0; w.byGrammar {
		w.filter = l.grammar.Filter()
	} else {
		w.filter = l.d.drawFilter(l.r)
	}
	c, err := l.topic.Condition(w.filter, nil)
	if err != nil {
		return false, err
	}
	return l.decide(w, c, nil), nil
}

// rule makes w a subscription to a rule of the topic.
func (l *lot) rule(w *wanted) (decided bool, err error) {
	i := l.r.IntN(len(l.rules))
	rule := l.d.rules[i]
	values := map[string]any{}
	for _, name := range sortedNames(rule.params) {
		values[name] = rule.params[name].draw(l.r, l.d)
	}
	w.rule = rule.name
	if w.params, err = json.Marshal(values); err != nil {
		return false, err
	}
	p, err := l.rules[i].Params(w.params)
	if err != nil {
		return false, err
	}
	return l.decide(w, l.rules[i], p), nil
}

// decide notes which events a condition matches, and reports whether that is
// decided of all.
func (l *lot) decide(w *wanted, c *evaluator.Condition, p *evaluator.Params) bool {
	matched, _, undecided := l.batch.Evaluate(c, p)
	w.matches = slices.Clone(matched)
	return !slices.ContainsFunc(undecided, func(word uint64) bool { return word != 0 })
}
