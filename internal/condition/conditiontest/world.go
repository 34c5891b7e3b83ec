package conditiontest

import (
	"encoding/json"
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/condition"
	"fanfare.dev/fanfare/internal/condition/evaluator"
)

// Counts are the numbers of comparisons.
type Counts struct {
	Pairs      int64 // of a condition and an event
	True       int64 // of these
	Undecided  int64 // further pairs that the evaluator left undecided
	Conditions int64 // accepted by the index
	Refused    int64 // that it refused
	Shapes     map[string]bool
}

// Add adds the counts of another comparison.
func (c *Counts) Add(o *Counts) {
	c.Pairs, c.True, c.Undecided, c.Conditions, c.Refused = c.Pairs+o.Pairs, c.True+o.True, c.Undecided+o.Undecided, c.Conditions+o.Conditions, c.Refused+o.Refused
	if c.Shapes == nil {
		c.Shapes = map[string]bool{}
	}
	for s := range o.Shapes {
		c.Shapes[s] = true
	}
}

// String returns them on one line.
func (c *Counts) String() string {
	return fmt.Sprintf("%d pairs compared, %.1f %% of them true, %d undecided; %d conditions, %d refused; %d distinct shapes",
		c.Pairs, 100*float64(c.True)/float64(max(1, c.Pairs)), c.Undecided, c.Conditions, c.Refused, len(c.Shapes))
}

// Size is the size of a World.
type Size struct {
	Subscriptions int // that exist at the same time
	Events        int // of each batch
	Batches       int // between which subscriptions are added, removed and changed
}

// A World is an index with one topic, and a list of the topic's subscriptions.
type World struct {
	Counts Counts

	g          *Generator
	size       Size
	key        condition.Key
	definition condition.Definition
	index      *condition.Index
	topic      *evaluator.Topic

	subscriptions []subscription // by place
	last          json.RawMessage
}

// A subscription is one of the world; without a parsed condition its place is free.
type subscription struct {
	entry  condition.Entry
	parsed *evaluator.Condition
	params *evaluator.Params
}

// NewWorld defines a topic and fills it.
func NewWorld(choices Choices, p *Profile, size Size) (*World, error) {
	w := &World{g: NewGenerator(choices, p), size: size, key: condition.Key{Service: "s", Topic: "t"}, index: condition.New()}
	w.Counts.Shapes = w.g.Shapes
	w.definition.Key = pick(w.g, p.keys)
	w.definition.Schema = json.RawMessage(pick(w.g, p.schemas))
	w.g.keyed = w.definition.Key != ""
	if err := w.index.Check(w.definition); err != nil {
		w.definition.Key, w.g.keyed = "", false // the schema lacks the field
	}
	if len(w.definition.Schema) == 0 {
		w.definition.Schema = nil
	}
	w.g.bare = w.definition.Schema != nil
	var err error
	if w.topic, err = evaluator.NewTopic(w.definition.Schema); err != nil {
		return nil, err
	}
	for i := range 1 + w.g.intn(8) {
		w.addRule(fmt.Sprint("rule", i))
	}
	if err := w.index.Define(w.key, w.definition); err != nil {
		return nil, fmt.Errorf("define: %w", err)
	}
	w.subscriptions = make([]subscription, size.Subscriptions)
	for place := range w.subscriptions {
		if err := w.subscribe(place); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// tries is how often a condition is drawn again if the index refuses it.
const tries = 20

// addRule adds a rule to the definition.
func (w *World) addRule(name string) {
	for range tries {
		when, params := w.g.Rule()
		rule := condition.Rule{Name: name, When: when, Params: params}
		def := condition.Definition{Key: w.definition.Key, Schema: w.definition.Schema, Rules: []condition.Rule{rule}}
		if w.index.Check(def) == nil {
			w.definition.Rules = append(w.definition.Rules, rule)
			return
		}
		w.Counts.Refused++
	}
}

// subscribe draws a condition for a place and replaces the current one.
func (w *World) subscribe(place int) error {
	for range tries {
		e := condition.Entry{Place: fanfare.RowID(place), Subscriber: fanfare.RowID(place)}
		switch n := w.g.intn(10); {
		case n < 3 && len(w.definition.Rules) > 0:
			e.Rule, e.Params = pick(w.g, w.definition.Rules).Name, w.g.Params()
		case n == 9 && place > 0 && w.subscriptions[place-1].parsed != nil:
			e.Filter, e.Rule, e.Params = w.subscriptions[place-1].entry.Filter, w.subscriptions[place-1].entry.Rule, w.subscriptions[place-1].entry.Params
		default:
			e.Filter = w.g.Filter()
		}
		if err := w.index.Add(w.key, []condition.Entry{e}); err != nil {
			w.Counts.Refused++
			continue
		}
		s, err := w.parse(e)
		if err != nil {
			return fmt.Errorf("the index accepts %s, but the evaluator refuses it: %w", w.text(&e), err)
		}
		w.subscriptions[place] = s
		w.Counts.Conditions++
		return nil
	}
	return nil // the place keeps what it had
}

func (w *World) parse(e condition.Entry) (s subscription, err error) {
	s.entry = e
	if e.Rule == "" {
		s.parsed, err = w.topic.Condition(e.Filter, nil)
		return s, err
	}
	rule := w.rule(e.Rule)
	if s.parsed, err = w.topic.Condition(rule.When, rule.Params); err == nil {
		s.params, err = s.parsed.Params(e.Params)
	}
	return s, err
}

func (w *World) rule(name string) *condition.Rule {
	at := slices.IndexFunc(w.definition.Rules, func(r condition.Rule) bool { return r.Name == name })
	return &w.definition.Rules[at]
}

// Run compares all batches.
func (w *World) Run() error {
	for batch := range w.size.Batches {
		if batch > 0 {
			if err := w.change(); err != nil {
				return err
			}
		}
		if err := w.compare(); err != nil {
			return err
		}
	}
	return nil
}

// change adds, removes and replaces some subscriptions, and occasionally redefines the topic or
// rebuilds the index.
func (w *World) change() error {
	for range 1 + w.size.Subscriptions/10 {
		place := w.g.intn(len(w.subscriptions))
		if w.g.oneIn(3) {
			w.index.Remove(w.key, fanfare.RowID(place))
			w.subscriptions[place] = subscription{}
			continue
		}
		if err := w.subscribe(place); err != nil {
			return err
		}
	}
	switch w.g.intn(4) {
	case 0: // redefine: another rule comes first
		w.addRule(fmt.Sprint("more", w.g.intn(1_000_000)))
		last := len(w.definition.Rules) - 1
		w.definition.Rules = append([]condition.Rule{w.definition.Rules[last]}, w.definition.Rules[:last]...)
		return w.index.Define(w.key, w.definition)
	case 1: // restart: the same subscriptions in another order
		return w.fill(w.subscriptions, w.g.oneIn(2))
	}
	return nil
}

// fill builds a new index of some subscriptions.
func (w *World) fill(some []subscription, backwards bool) error {
	x := condition.New()
	if err := x.Define(w.key, w.definition); err != nil {
		return fmt.Errorf("define again: %w", err)
	}
	var entries []condition.Entry
	for _, s := range some {
		if s.parsed != nil {
			entries = append(entries, s.entry)
		}
	}
	if backwards {
		slices.Reverse(entries)
	}
	if err := x.Add(w.key, entries); err != nil {
		return fmt.Errorf("add again: %w", err)
	}
	w.index = x
	return nil
}

// A Difference is a condition about which index and evaluator do not agree.
type Difference struct {
	World         *World
	Event         condition.Event
	Entry         condition.Entry
	Index         bool // result of the index
	Evaluator     evaluator.Verdict
	Subscriptions []condition.Entry // the smallest set found that shows the difference, including the entry
}

// compare draws a batch of events and compares all conditions.
func (w *World) compare() error {
	events, inputs := make([]condition.Event, w.size.Events), make([]*evaluator.Input, w.size.Events)
	for i := range events {
		events[i] = w.g.Event()
		if w.g.keyed && w.g.intn(4) > 0 {
			events[i].Previous = w.last
		}
		w.last = events[i].Data
		var err error
		if inputs[i], err = w.topic.Event(evaluatorEvent(&events[i])); err != nil {
			return fmt.Errorf("the evaluator refuses the event %s: %w", events[i].Data, err)
		}
	}
	words := (len(events) + 63) / 64
	found := make([]uint64, len(w.subscriptions)*words)
	var hits []condition.Hit
	for i := range events {
		var err error
		if hits, err = w.index.Match(w.key, events[i], hits[:0]); err != nil {
			return fmt.Errorf("the index refuses the event %s: %w", events[i].Data, err)
		}
		for n, h := range hits {
			if n > 0 && hits[n-1].Place >= h.Place {
				return fmt.Errorf("the hits of %s are out of order, or place %d occurs twice", events[i].Data, h.Place)
			}
			found[int(h.Place)*words+i/64] |= 1 << (i % 64)
		}
	}
	batch := evaluator.NewBatch(w.topic, inputs)
	for place := range w.subscriptions {
		s := &w.subscriptions[place]
		got := found[place*words : (place+1)*words]
		if s.parsed == nil {
			if slices.ContainsFunc(got, func(word uint64) bool { return word != 0 }) {
				return fmt.Errorf("slot %d is free, but an event matches it", place)
			}
			continue
		}
		want, _, undecided := batch.Evaluate(s.parsed, s.params)
		for i := range got {
			mask := ^undecided[i]
			if i == words-1 && len(events)%64 != 0 {
				mask &= 1<<(len(events)%64) - 1
			}
			w.Counts.Pairs += int64(bits.OnesCount64(mask))
			w.Counts.True += int64(bits.OnesCount64(want[i] & mask))
			w.Counts.Undecided += int64(bits.OnesCount64(undecided[i]))
			if wrong := (got[i] ^ want[i]) & mask; wrong != 0 {
				at := i*64 + bits.TrailingZeros64(wrong)
				return w.difference(s, events[at], got[i]>>(at%64)&1 == 1)
			}
		}
	}
	return nil
}

func evaluatorEvent(e *condition.Event) evaluator.Event {
	a := &e.Attributes
	extensions := map[string][]byte{}
	for name, raw := range a.Extensions {
		extensions[name] = raw
	}
	return evaluator.Event{Data: e.Data, Was: e.Previous, Attributes: evaluator.Attributes{ID: a.ID, Source: a.Source, Type: a.Type, Subject: a.Subject, Time: a.Time, Extensions: extensions}}
}

// difference reduces the subscriptions to the fewest that were found to show it.
func (w *World) difference(s *subscription, event condition.Event, index bool) error {
	d := &Difference{World: w, Event: event, Entry: s.entry, Index: index}
	if in, err := w.topic.Event(evaluatorEvent(&event)); err == nil {
		d.Evaluator = s.parsed.Evaluate(in, s.params)
	}
	var others []subscription
	for i := range w.subscriptions {
		if o := w.subscriptions[i]; o.parsed != nil && o.entry.Place != s.entry.Place {
			others = append(others, o)
		}
	}
	shows := func(some []subscription) bool {
		small := *w
		if err := small.fill(append(slices.Clone(some), *s), false); err != nil {
			return false
		}
		hits, err := small.index.Match(w.key, event, nil)
		return err == nil && slices.ContainsFunc(hits, func(h condition.Hit) bool { return h.Place == s.entry.Place }) == index
	}
	if !shows(others) {
		d.Subscriptions = nil // only in the order in which they came
		return d
	}
	for step := max(1, len(others)/2); ; step = max(1, step/2) {
		for from := 0; from < len(others); {
			less := slices.Delete(slices.Clone(others), from, min(from+step, len(others)))
			if shows(less) {
				others = less
			} else {
				from += step
			}
		}
		if step == 1 {
			break
		}
	}
	for _, o := range others {
		d.Subscriptions = append(d.Subscriptions, o.entry)
	}
	d.Subscriptions = append(d.Subscriptions, s.entry)
	return d
}

// Error contains all information that is required to reproduce the difference.
func (d *Difference) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "index: %t, evaluator: %s (%s)\ncondition %s\nevent     %s\nbefore    %s\nattributes %+v\nschema    %s\nkey       %q\nwith %d subscriptions:\n",
		d.Index, d.Evaluator.Result, d.Evaluator.Reason, d.World.text(&d.Entry), d.Event.Data, d.Event.Previous, d.Event.Attributes, d.World.definition.Schema, d.World.definition.Key, len(d.Subscriptions))
	for i := range d.Subscriptions {
		fmt.Fprintf(&b, "  %d %s\n", d.Subscriptions[i].Place, d.World.text(&d.Subscriptions[i]))
	}
	fmt.Fprintf(&b, "row of a table test: {%q, %q, `%s`, %t},", "name", d.World.text(&d.Entry), d.Event.Data, d.Evaluator.Result == evaluator.True)
	return b.String()
}

// text is the condition of an entry in readable form.
func (w *World) text(e *condition.Entry) string {
	if e.Rule == "" {
		return e.Filter
	}
	return w.rule(e.Rule).When + " with " + string(e.Params)
}
