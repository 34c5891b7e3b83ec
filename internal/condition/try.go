package condition

// CountMatches tells how many of some events meet a filter of the topic. It compiles the
// filter anew: it is for reports, not for the way of an event. What cannot be
// evaluated is met by none.
func (x *Index) CountMatches(key Key, filter string, events []Event) (n int) {
	t, err := x.topic(key)
	if err != nil {
		return 0
	}
	c := t.compiled.Load()
	if filter == "" {
		return len(events)
	}
	a, err := c.filterScope.compile("/filter", filter)
	if err != nil {
		return 0
	}
	e := &standalone{scope: c.filterScope, ast: a}
	var condition Predicate
	e.build(func(b *builder) { condition = b.build(a.Expr()) })
	for i := range events {
		data, err := decodeData(events[i].Data, c.filterScope.event)
		if err != nil || e.err != nil {
			continue
		}
		e.setEvent(&events[i], data)
		if condition.eval(&e.frame) == True {
			n++
		}
	}
	return n
}
