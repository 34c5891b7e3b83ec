package expr

import (
	"time"

	"cel.dev/cel-go/cel"

	"fanfare.dev/fanfare/internal/condition/assert"
	"fanfare.dev/fanfare/internal/condition/lang"
	"fanfare.dev/fanfare/internal/jmespath"
)

// assertRead checks that a cached value is the value at the path, although other paths share it.
func (f *Frame) assertRead(p *Path, s *cachedValue) {
	v, state := p.find(f)
	assert.True((state == absent) == (s.state == absent), "%s is present for one condition and missing for another", p.Key())
	if state != absent {
		assert.True(equal(v, s.value) || !equal(v, v), "%s is %v for one condition and %v for another", p.Key(), s.value, v)
	}
}

// attributesRoot is the root of ce.name.
type attributesRoot struct{}

func (attributesRoot) Key() string               { return lang.AttributesName }
func (attributesRoot) Load(f *Frame) (any, bool) { return f.AttributeMap(), true }

// AttributeMap returns the attributes as CEL's ce, made at most once per event. It leaves out
// attributes that the event does not have.
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
		if delete(m, name); known { // an extension cannot replace it
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

// Truth is the value of a condition in CEL's three-valued logic: an error (a missing field, a
// comparison of different types) is neither true nor false. Only True is a match.
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

// A Frame is the working memory of an evaluation: the event, the values found in it so far, and the
// row whose params are evaluated. Frames are reused; evaluations share nothing in them.
type Frame struct {
	event    *Event
	Data     Document      // data of the event
	Previous previousEvent // the previous event with the same key
	values   []cachedValue // one for each path of the topic's conditions

	Texts         *TextTable // of the topic
	Page          *ParamPage // the page of the row under evaluation
	Row           int        // the row in Page
	DecodedParams DecodedParams
	EventHidden   bool // CEL programs fail to read the event: a result without it does not depend on the event

	attributes map[string]any // of the event, made on demand

	zones map[string]*time.Location // by name, kept between events

	jmespath jmespath.Evaluator
}

// DecodedParams are the params of the row that a program last read as sub. A program may read them
// for every element of a list.
type DecodedParams struct {
	page   *ParamPage
	row    int
	values map[string]any
}

// A cachedValue is the value at a path, found at most once per event.
type cachedValue struct {
	state  ValueState
	value  any
	isText bool
	folded string
}

type ValueState uint8

const (
	unread  ValueState = iota
	absent             // the path does not exist, which is an error in CEL
	present            // value is set
	ready              // folded is set as well
)

// Begin prepares f for an event and as many paths as slots. The caller then sets Data.
func (f *Frame) Begin(event *Event, t *TextTable, slots int) {
	f.event, f.Texts = event, t
	clear(f.values)
	if cap(f.values) < slots {
		f.values = make([]cachedValue, slots+slots/2)
	}
	f.values = f.values[:slots]
}

// End releases the event.
func (f *Frame) End() {
	clear(f.values)
	clear(f.Data.members)
	f.Data = Document{members: f.Data.members[:0]}
	f.Previous.end()
	f.jmespath.Reset()
	f.event, f.attributes, f.Texts, f.Page, f.DecodedParams = nil, nil, nil, nil, DecodedParams{}
}

// value returns the value at p.
func (f *Frame) value(p *Path) *cachedValue {
	s := &f.values[p.Index]
	if s.state == unread {
		s.value, s.state = p.find(f)
	} else if assert.Enabled {
		f.assertRead(p, s)
	}
	return s
}

// foldedText returns the folded text at p; false if the value is no text.
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
		if f.Page == nil { // an audience has sub in its data
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
