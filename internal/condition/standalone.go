package condition

// A standalone evaluates the parts of one condition for one event, without an index.
type standalone struct {
	*scope
	ast   expression
	paths pathTable
	frame frame
	err   error // of planning a CEL program
}

// setEvent makes x ready for an event with these data.
func (x *standalone) setEvent(event *Event, data any) {
	x.frame.end()
	x.frame.begin(event, newTextTable(), x.paths.values.size)
	x.frame.data = wholeDocument(data)
	x.frame.previous.begin(event.Previous, x.event, &indexAllocator{})
}

// build hands a part to the builder and makes room for what it reads.
func (x *standalone) build(part func(*builder)) {
	b := builder{scope: x.scope, ast: x.ast}
	part(&b)
	x.paths.link(b.paths)
	for len(x.frame.values) < x.paths.values.size {
		x.frame.values = append(x.frame.values, cachedValue{})
	}
	if b.err != nil {
		x.err = b.err
	}
}
