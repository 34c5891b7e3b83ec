package expr

import (
	"time"

	"cel.dev/cel-go/cel"

	"fanfare.dev/fanfare/internal/condition/assert"
	"fanfare.dev/fanfare/internal/condition/lang"
)

// assertRead: what a slot holds is where the path leads, whoever else shares the slot.
func (f *Frame) assertRead(p *Path, s *cachedValue) {
	v, state := p.find(f)
	assert.That((state == absent) == (s.state == absent), "%s is there for one condition and not for another", p.Key())
	if state != absent {
		assert.That(equal(v, s.value) || !equal(v, v), "%s is %v for one condition and %v for another", p.Key(), s.value, v)
	}
}

// attributesRoot is where ce.name begins.
type attributesRoot struct{}

func (attributesRoot) Key() string               { return lang.AttributesName }
func (attributesRoot) Load(f *Frame) (any, bool) { return f.AttributeMap(), true }

// AttributeMap returns the attributes as CEL's ce, made at most once per event. What the
// event does not have is missing.
func (f *Frame) AttributeMap() map[string]any {
	if f.attributes != nil {
		return f.attributes
	}
	a := &f.event.Attributes
	m := make(map[string]any, 5+len(a.Extensions))
	for name, raw := range a.Extensions {
		if v, err := DecodeData(raw, nil); err == nil {
			m[name] = v
		}
	}
	set := func(name string, v any, known bool) {
		if delete(m, name); known { // an extension cannot stand in for it
			m[name] = v
		}
	}
	set("id", a.ID, a.ID != "")
	set("source", a.Source, a.Source != "")
	set("type", a.Type, a.Type != "")
	set("subject", a.Subject, a.Subject != "")
	set("time", a.Time, !a.Time.IsZero())
	f.attributes = m
	return m
}

// Truth is the value of a condition: CEL's three-valued logic, in which an
// error (a missing field, a comparison of unlike things) is neither true nor
// false. Only yes matches.
type Truth uint8

const (
	False Truth = iota
	True
	Error
)

func TruthOf(b bool) Truth {
	if b {
		return True
	}
	return False
}

// A Frame is the working space of one match: the event, what was found out
// about it so far, and the row whose params are under evaluation. Frames are
// reused; nothing in them is shared between matches.
type Frame struct {
	event    *Event        // to be asked about
	Data     Document      // its data
	Previous previousEvent // the last event of its key
	values   []cachedValue // one for each path that some condition of the topic reads

	Texts         *TextTable // of the topic
	Page          *ParamPage // the row under evaluation: its page
	Row           int        // and its place in it
	DecodedParams DecodedParams
	EventHidden   bool // programs see no event: what they come to all the same does not hang on it

	attributes map[string]any // of the event, once they were asked for

	zones map[string]*time.Location // by name, from event to event
}

// DecodedParams are the params of the row that was last asked for as sub: a
// program may ask for them at every element of a list.
type DecodedParams struct {
	page   *ParamPage
	row    int
	values map[string]any
}

// A slot is what one path leads to in the event, found at most once per event.
type cachedValue struct {
	state  ValueState
	value  any
	isText bool
	folded string
}

type ValueState uint8

const (
	unread  ValueState = iota
	absent             // the path leads nowhere: an error in CEL
	present            // value is set
	ready              // folded is set too
)

// Begin makes f ready for an event, whose data are to be set.
func (f *Frame) Begin(event *Event, t *TextTable, slots int) {
	f.event, f.Texts = event, t
	clear(f.values)
	if cap(f.values) < slots {
		f.values = make([]cachedValue, slots+slots/2)
	}
	f.values = f.values[:slots]
}

// End drops what would keep the event in memory.
func (f *Frame) End() {
	clear(f.values)
	clear(f.Data.members)
	f.Data = Document{members: f.Data.members[:0]}
	f.Previous.end()
	f.event, f.attributes, f.Texts, f.Page, f.DecodedParams = nil, nil, nil, nil, DecodedParams{}
}

// value returns the slot of p with its value found.
func (f *Frame) value(p *Path) *cachedValue {
	s := &f.values[p.Index]
	if s.state == unread {
		s.value, s.state = p.find(f)
	} else if assert.Enabled {
		f.assertRead(p, s)
	}
	return s
}

// foldedText returns the folded text of p; false where it is no text.
func (f *Frame) foldedText(p *Path) (string, bool) {
	s := f.value(p)
	if s.state == present {
		var text string
		if text, s.isText = s.value.(string); s.isText {
			s.folded = lang.Fold(text)
		}
		s.state = ready
	}
	return s.folded, s.state == ready && s.isText
}

// ResolveName makes the frame the activation of a CEL program.
func (f *Frame) ResolveName(name string) (any, bool) {
	if f.EventHidden && name != "sub" {
		return nil, false
	}
	switch name {
	case "event":
		return f.Data.All(), true
	case lang.PreviousName:
		return f.Previous.Decoded()
	case lang.AttributesName:
		return f.AttributeMap(), true
	case "sub":
		if f.Page == nil { // an audience has it among its data
			break
		}
		if f.DecodedParams.page != f.Page || f.DecodedParams.row != f.Row {
			f.DecodedParams = DecodedParams{f.Page, f.Row, f.Page.Sub(f.Row, f.Texts)}
		}
		return f.DecodedParams.values, true
	}
	m, _ := f.Data.All().(map[string]any)
	v, ok := m[name]
	return v, ok
}

// Parent ends the chain of activations.
func (f *Frame) Parent() cel.Activation { return nil }
