package expr

import (
	"fanfare.dev/fanfare/internal/condition/lang"
)

// A StandaloneCondition evaluates the parts of one condition for one event, without an index.
type StandaloneCondition struct {
	*lang.Scope
	Ast   lang.Expression
	paths PathTable
	Frame Frame
	Err   error // the first error of planning a CEL program
}

// SetEvent prepares x for an event with decoded data.
func (x *StandaloneCondition) SetEvent(event *Event, data any) {
	x.Frame.End()
	x.Frame.Begin(event, NewTextTable(), x.paths.Values.Size)
	x.Frame.Data = WholeDocument(data)
	x.Frame.Previous.Begin(event.Previous, x.Event, &indexAllocator{})
}

// Build calls part with a builder and links the paths that it creates.
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
