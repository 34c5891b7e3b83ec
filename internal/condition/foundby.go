package condition

import (
	"encoding/json"
	"slices"
	"strings"
)

// FoundBy says by which values of an event the index finds a condition, in words; ""
// where every event is held against it, or there is no condition. Of several guards a
// row is on the one that it shares with the fewest others.
func (x *Index) FoundBy(key Key, filter, rule string, params json.RawMessage) (string, error) {
	t, err := x.topic(key)
	if err != nil {
		return "", err
	}
	c := t.compile.Load()
	if rule != "" {
		number, v, err := c.readParams(rule, params)
		if err != nil {
			return "", err
		}
		return c.plans[number].foundBy(rowOf(c.rules[number].params, v)), nil
	}
	d, err := t.draft(c, filter)
	if err != nil {
		return "", err
	}
	if d.form != nil {
		return d.form.plan.foundBy(rowOf(d.form.params, d.values)), nil
	}
	var words []string
	for i := range d.parts {
		part := &d.parts[i]
		if by := part.form.plan.foundBy(rowOf(part.form.params, part.values)); by != "" {
			words = append(words, by)
		}
	}
	return strings.Join(words, ", or "), nil
}

// foundBy names the guards that lead to the row for some events only.
func (p *plan) foundBy(row *placing) string {
	var guards []string
	for _, ways := range p.guards {
		if slices.ContainsFunc(ways, row.everywhere) {
			continue
		}
		var sides []string
		for _, w := range ways {
			if len(row.keysOf(w)) > 0 {
				sides = append(sides, w.words())
			}
		}
		guards = append(guards, strings.Join(sides, " or "))
	}
	return strings.Join(guards, ", or ")
}

// words names what w finds its rows by.
func (w *way) words() string {
	var list []string
	for i := range w.equalities {
		list = append(list, "the value of "+w.equalities[i].words())
	}
	switch {
	case w.needle != nil:
		list = append(list, "the text in "+w.needle.words())
	case w.probe != nil:
		list = append(list, "the values in "+w.probe.words())
	case w.cells != nil:
		list = append(list, "the place or range that the event is in")
	}
	switch {
	case w.span == nil:
	case w.span.crossed != nil:
		list = append(list, "the levels that are crossed")
	default:
		list = append(list, "the range of "+w.span.words())
	}
	return strings.Join(list, " and ")
}

// words names a value of the event.
func (s source) words() string {
	switch s.root.(type) {
	case nil:
		return dotted("event", s.steps)
	case attributes:
		return dotted(attributesName, s.steps)
	}
	return "what is computed of the event"
}
