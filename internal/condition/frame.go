package condition

import (
	"time"

	"cel.dev/cel-go/cel"

	"fanfare.dev/fanfare/internal/condition/assert"
)

// Truth is the value of a condition: CEL's three-valued logic, in which an
// error (a missing field, a comparison of unlike things) is neither true nor
// false. Only yes matches.
type Truth uint8

const (
	False Truth = iota
	True
	Error
)

func truthOf(b bool) Truth {
	if b {
		return True
	}
	return False
}

// A frame is the working space of one match: the event, what was found out
// about it so far, and the row whose params are under evaluation. Frames are
// reused; nothing in them is shared between matches.
type frame struct {
	event    *Event        // to be asked about
	data     document      // its data
	previous previousEvent // the last event of its key
	values   []cachedValue // one for each path that some condition of the topic reads

	texts         *textTable // of the topic
	page          *paramPage // the row under evaluation: its page
	row           int        // and its place in it
	decodedParams decodedParams
	eventHidden   bool // programs see no event: what they come to all the same does not hang on it

	attributes map[string]any // of the event, once they were asked for

	zones map[string]*time.Location // by name, from event to event
}

// decodedParams are the params of the row that was last asked for as sub: a
// program may ask for them at every element of a list.
type decodedParams struct {
	page   *paramPage
	row    int
	values map[string]any
}

// A slot is what one path leads to in the event, found at most once per event.
type cachedValue struct {
	state  valueState
	value  any
	isText bool
	folded string
}

type valueState uint8

const (
	unread  valueState = iota
	absent             // the path leads nowhere: an error in CEL
	present            // value is set
	ready              // folded is set too
)

// begin makes f ready for an event, whose data are to be set.
func (f *frame) begin(event *Event, t *textTable, slots int) {
	f.event, f.texts = event, t
	clear(f.values)
	if cap(f.values) < slots {
		f.values = make([]cachedValue, slots+slots/2)
	}
	f.values = f.values[:slots]
}

// end drops what would keep the event in memory.
func (f *frame) end() {
	clear(f.values)
	clear(f.data.members)
	f.data = document{members: f.data.members[:0]}
	f.previous.end()
	f.event, f.attributes, f.texts, f.page, f.decodedParams = nil, nil, nil, nil, decodedParams{}
}

// value returns the slot of p with its value found.
func (f *frame) value(p *path) *cachedValue {
	s := &f.values[p.index]
	if s.state == unread {
		s.value, s.state = p.find(f)
	} else if assert.Enabled {
		f.assertRead(p, s)
	}
	return s
}

// foldedText returns the folded text of p; false where it is no text.
func (f *frame) foldedText(p *path) (string, bool) {
	s := f.value(p)
	if s.state == present {
		var text string
		if text, s.isText = s.value.(string); s.isText {
			s.folded = fold(text)
		}
		s.state = ready
	}
	return s.folded, s.state == ready && s.isText
}

// ResolveName makes the frame the activation of a CEL program.
func (f *frame) ResolveName(name string) (any, bool) {
	if f.eventHidden && name != "sub" {
		return nil, false
	}
	switch name {
	case "event":
		return f.data.all(), true
	case previousName:
		return f.previous.decoded()
	case attributesName:
		return f.attributeMap(), true
	case "sub":
		if f.page == nil { // an audience has it among its data
			break
		}
		if f.decodedParams.page != f.page || f.decodedParams.row != f.row {
			f.decodedParams = decodedParams{f.page, f.row, f.page.sub(f.row, f.texts)}
		}
		return f.decodedParams.values, true
	}
	m, _ := f.data.all().(map[string]any)
	v, ok := m[name]
	return v, ok
}

// Parent ends the chain of activations.
func (f *frame) Parent() cel.Activation { return nil }
