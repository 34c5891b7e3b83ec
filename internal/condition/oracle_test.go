package condition

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"fanfare.dev/fanfare"
)

// A world is an index with one topic, and a plain list of its subscriptions as the reference. Both
// go through the same changes.
type world struct {
	x       *Index
	shards  []*Index // each with a part of the partitions; none where only the whole is looked at
	key     Key
	def     Definition
	entries map[fanfare.RowID]Entry

	filters, rules *judge                    // of the schema
	subs           map[string]map[string]any // by params
	filterTexts    []string
	asked          int // pairs, of judges that went
}

// newWorld defines a random topic.
func newWorld(t *rapid.T) *world {
	w := &world{x: New(), key: Key{"svc", "topic"}, entries: map[fanfare.RowID]Entry{}, subs: map[string]map[string]any{}}
	if oneIn(t, 3) {
		w.shards = []*Index{New(), New(), New()}
	}
	def := drawAccepted(t, w.x.Check, Definition{}, func() Definition { return drawTopic(t) })
	for i := range rapid.IntRange(1, 3).Draw(t, "rules") {
		def.Rules = append(def.Rules, w.drawRule(t, def, fmt.Sprint("r", i)))
	}
	if err := w.define(def); err != nil {
		t.Fatalf("define %+v: %v", def, err)
	}
	return w
}

// bare reports whether fields may be named without "event.".
func (w *world) bare() bool { return len(w.def.Schema) > 0 }

// drawRule draws a rule that is valid in def.
func (w *world) drawRule(t *rapid.T, def Definition, name string) Rule {
	good := func(r Rule) error {
		def.Rules = []Rule{r}
		return w.x.Check(def)
	}
	return drawAccepted(t, good, Rule{Name: name, When: "event == null", Params: ruleParams()}, func() Rule { return drawRule(t, name, len(def.Schema) > 0) })
}

func (w *world) shard(p fanfare.RowID) *Index { return w.shards[p.Partition()%len(w.shards)] }

// define redefines the topic, or is refused. All indexes must agree, except shards without the
// subscription that conflicts.
func (w *world) define(def Definition) error {
	fits := w.x.CheckDefine(w.key, def)
	err := w.x.Define(w.key, def)
	if (fits == nil) != (err == nil) {
		return errors.Join(errors.New("Fits and Define differ"), fits, err)
	}
	if err != nil {
		return err
	}
	w.x.topics[w.key].filters.conjunctShapes.guards.listLimitPerKey = 2 // pairs of guards among few compounds; the shards have none
	for _, shard := range w.shards {
		if err := shard.Define(w.key, def); err != nil {
			return fmt.Errorf("a shard: %w", err)
		}
	}
	if w.filters == nil || !bytes.Equal(w.def.Schema, def.Schema) {
		w.asked = w.pairs()
		c := w.x.topics[w.key].compiled.Load()
		w.filters, w.rules = newJudge(c.filterScope.Env), newJudge(c.ruleScopes[0].Env)
	}
	w.def = def
	return nil
}

// pairs returns the number of evaluated pairs of a condition and an event.
func (w *world) pairs() int {
	if w.filters == nil {
		return 0
	}
	return w.asked + w.filters.asked + w.rules.asked
}

func (w *world) add(t *rapid.T, entries []Entry) {
	if err := w.x.Add(w.key, entries); err != nil {
		t.Fatalf("add %+v: %v", entries, err)
	}
	for _, e := range entries {
		w.entries[e.Place] = e
		if w.shards != nil {
			if err := w.shard(e.Place).Add(w.key, []Entry{e}); err != nil {
				t.Fatalf("add to a shard %+v: %v", e, err)
			}
		}
	}
}

func (w *world) remove(p fanfare.RowID) {
	w.x.Remove(w.key, p)
	if w.shards != nil {
		w.shard(p).Remove(w.key, p)
	}
	delete(w.entries, p)
}

// restart fills a new index with the same subscriptions, in any order.
func (w *world) restart(t *rapid.T) {
	places := slices.Sorted(maps.Keys(w.entries))
	if rapid.Bool().Draw(t, "another order") {
		places = rapid.Permutation(places).Draw(t, "order")
	}
	w.x = New()
	for i := range w.shards {
		w.shards[i] = New()
	}
	if err := w.define(w.def); err != nil {
		t.Fatalf("define again: %v", err)
	}
	for chunk := range slices.Chunk(places, 50) {
		var entries []Entry
		for _, p := range chunk {
			entries = append(entries, w.entries[p])
		}
		w.add(t, entries)
	}
}

// hits returns the hits of an index, ordered by id.
func (w *world) hits(t fataler, x *Index, event Event) []Hit {
	hits, err := x.Match(w.key, event, []Hit{})
	if err != nil {
		t.Fatalf("match %s: %v", event.Data, err)
	}
	return hits
}

// naive returns the expected hits: a judge evaluates each condition.
func (w *world) naive(t fataler, event Event) []Hit {
	vars := variables(t, event, w.x.topics[w.key].compiled.Load().filterScope.Event)
	w.filters.vars, w.rules.vars = vars, vars
	type condition struct{ rule, text string }
	known := map[condition]bool{{}: true} // without a condition: every event
	hits := []Hit{}
	for place, e := range w.entries {
		c, number := condition{e.Rule, e.Filter}, -1
		if e.Rule != "" {
			c.text = string(e.Params)
			number = slices.IndexFunc(w.def.Rules, func(r Rule) bool { return r.Name == e.Rule })
		}
		ok, evaluated := known[c]
		switch {
		case evaluated:
		case e.Rule != "":
			ok = w.rules.holds(t, w.def.Rules[number].When, w.sub(t, c.text))
		default:
			ok = w.filters.holds(t, e.Filter, nil)
		}
		if known[c] = ok; ok {
			hits = append(hits, Hit{Place: place, Subscriber: e.Subscriber, Channel: e.Channel, Slot: e.Slot, Rule: int16(number)})
		}
	}
	sortHits(hits)
	return hits
}

// sub returns the value of sub for params of a rule.
func (w *world) sub(t fataler, params string) map[string]any {
	known := w.subs[params]
	if known == nil {
		known = readSub(t, json.RawMessage(params))
		w.subs[params] = known
	}
	return known
}

func sortHits(hits []Hit) {
	slices.SortFunc(hits, func(a, b Hit) int { return int(int64(a.Place) - int64(b.Place)) })
}

// check compares the complete hits of an event.
func (w *world) check(t fataler, event Event) {
	want, got := w.naive(t, event), w.hits(t, w.x, event)
	if !slices.Equal(got, want) {
		t.Fatalf("event %s after %s, schema %s\n%s", event.Data, event.Previous, w.def.Schema, w.difference(got, want))
	}
	var places []uint32
	if err := w.x.Places(w.key, event, func(run []uint32) { places = append(places, run...) }); err != nil {
		t.Fatalf("places of %s: %v", event.Data, err)
	}
	slices.Sort(places)
	if !slices.EqualFunc(places, want, func(p uint32, h Hit) bool { return p == uint32(h.Place) }) {
		t.Fatalf("event %s after %s, schema %s: places %v, want those of %v", event.Data, event.Previous, w.def.Schema, places, want)
	}
	if w.shards == nil {
		return
	}
	var sum []Hit
	for _, shard := range w.shards {
		sum = append(sum, w.hits(t, shard, event)...)
	}
	sortHits(sum)
	if !slices.Equal(sum, want) {
		t.Fatalf("event %s after %s, schema %s: the sum over the shards\n%s", event.Data, event.Previous, w.def.Schema, w.difference(sum, want))
	}
}

// difference describes the hits that are missing or extra.
func (w *world) difference(got, want []Hit) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d hits, want %d, among %d subscriptions", len(got), len(want), len(w.entries))
	tell := func(what string, hits, others []Hit) {
		for _, h := range hits {
			if slices.Contains(others, h) {
				continue
			}
			e := w.entries[h.Place]
			text := e.Filter
			for _, r := range w.def.Rules {
				if r.Name == e.Rule {
					text = r.When
				}
			}
			fmt.Fprintf(&b, "\n%s: %+v of %s %s %s", what, h, e.Rule, text, e.Params)
		}
	}
	tell("missing", want, got)
	tell("too much", got, want)
	if slices.Equal(got, slices.Compact(slices.Clone(got))) && !slices.IsSortedFunc(got, func(a, b Hit) int { return int(int64(a.Place) - int64(b.Place)) }) {
		b.WriteString("\nand they are out of order")
	}
	return b.String()
}
