package condition

// Met tells how many of some events meet a filter of the topic. It compiles the
// filter anew: it is for reports, not for the way of an event. What cannot be
// evaluated is met by none.
func (x *Index) Met(key Key, filter string, events []Event) (n int) {
	t, err := x.topic(key)
	if err != nil {
		return 0
	}
	c := t.compile.Load()
	if filter == "" {
		return len(events)
	}
	a, err := c.filters.compile("/filter", filter)
	if err != nil {
		return 0
	}
	e := &explainer{scope: c.filters, ast: a}
	var condition test
	e.build(func(b *builder) { condition = b.build(a.Expr()) })
	for i := range events {
		data, err := decode(events[i].Data, c.filters.event)
		if err != nil || e.err != nil {
			continue
		}
		e.meet(&events[i], data)
		if condition.eval(&e.frame) == yes {
			n++
		}
	}
	return n
}
