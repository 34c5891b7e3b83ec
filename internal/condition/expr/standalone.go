package expr

import (
	"fanfare.dev/fanfare/internal/condition/lang"
)

// A Standalone evaluates the parts of one condition for one event, without an index.
type StandaloneCondition struct {
	*lang.Scope
	Ast   lang.Expression
	paths PathTable
	Frame Frame
	Err   error // of planning a CEL program
}

// SetEvent makes x ready for an event with these data.
func (x *StandaloneCondition) SetEvent(event *Event, data any) {
	x.Frame.End()
	x.Frame.Begin(event, NewTextTable(), x.paths.Values.Size)
	x.Frame.Data = WholeDocument(data)
	x.Frame.Previous.Begin(event.Previous, x.Event, &indexAllocator{})
}

// Build hands a part to the builder and makes room for what it reads.
func (x *StandaloneCondition) Build(part func(*Builder)) {
	b := Builder{Scope: x.Scope, Ast: x.Ast}
	part(&b)
	x.paths.Link(b.Paths)
	for len(x.Frame.values) < x.paths.Values.Size {
		x.Frame.values = append(x.Frame.values, cachedValue{})
	}
	if b.Err != nil {
		x.Err = b.Err
	}
}
