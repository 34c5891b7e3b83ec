package condition

import (
	"encoding/json"
	"slices"
	"strings"
)

// IndexedBy says by which values of an event the index finds a condition, in words; ""
// where every event is held against it, or there is no condition. Of several guards a
// row is on the one that it shares with the fewest others.
func (x *Index) IndexedBy(key Key, filter, rule string, params json.RawMessage) (string, error) {
	t, err := x.topic(key)
	if err != nil {
		return "", err
	}
	c := t.compiled.Load()
	if rule != "" {
		number, v, err := c.readParams(rule, params)
		if err != nil {
			return "", err
		}
		return c.rulePlans[number].describeIndex(detachedRow(c.ruleScopes[number].params, v)), nil
	}
	d, err := t.compileFilter(c, filter)
	if err != nil {
		return "", err
	}
	if d.shape != nil {
		return d.shape.plan.describeIndex(detachedRow(d.shape.params, d.values)), nil
	}
	var words []string
	for i := range d.conjuncts {
		part := &d.conjuncts[i]
		if by := part.shape.plan.describeIndex(detachedRow(part.shape.params, part.values)); by != "" {
			words = append(words, by)
		}
	}
	return strings.Join(words, ", or "), nil
}

// describeIndex names the guards that lead to the row for some events only.
func (p *plan) describeIndex(row *rowIndexer) string {
	var guards []string
	for _, ways := range p.guards {
		if slices.ContainsFunc(ways, row.matchesEveryEvent) {
			continue
		}
		var sides []string
		for _, w := range ways {
			if len(row.keysOf(w)) > 0 {
				sides = append(sides, w.describe())
			}
		}
		guards = append(guards, strings.Join(sides, " or "))
	}
	return strings.Join(guards, ", or ")
}

// describe names what w finds its rows by.
func (w *accessPath) describe() string {
	var list []string
	for i := range w.equalities {
		list = append(list, "the value of "+w.equalities[i].describe())
	}
	switch {
	case w.substring != nil:
		list = append(list, "the text in "+w.substring.describe())
	case w.sharedText != nil:
		list = append(list, "the values in "+w.sharedText.describe())
	case w.grid != nil:
		list = append(list, "the place or range that the event is in")
	}
	switch {
	case w.rangeKey == nil:
	case w.rangeKey.crossing != nil:
		list = append(list, "the levels that are crossed")
	default:
		list = append(list, "the range of "+w.rangeKey.describe())
	}
	return strings.Join(list, " and ")
}

// describe names a value of the event.
func (s source) describe() string {
	switch s.root.(type) {
	case nil:
		return dotted("event", s.steps)
	case attributesRoot:
		return dotted(attributesName, s.steps)
	}
	return "what is computed of the event"
}
