package condition

import (
	"time"

	"cel.dev/cel-go/cel"
	"github.com/RoaringBitmap/roaring/v2"
)

// truth is the value of a condition: CEL's three-valued logic, in which an
// error (a missing field, a comparison of unlike things) is neither true nor
// false. Only yes matches.
type truth uint8

const (
	no truth = iota
	yes
	fault
)

func truthOf(b bool) truth {
	if b {
		return yes
	}
	return no
}

// A frame is the working space of one match: the event, what was found out
// about it so far, and the row whose params are under evaluation. Frames are
// reused; nothing in them is shared between matches.
type frame struct {
	event *Event   // to be asked about
	data  document // its data
	was   past     // the last event of its key
	slots []slot   // one for each path that some condition of the topic reads

	texts *texts // of the topic
	page  *page  // the row under evaluation: its page
	row   int    // and its place in it
	sub   subscriptionParams
	blind bool // programs see no event: what they come to all the same does not hang on it

	attributes map[string]any // of the event, once they were asked for

	zones map[string]*time.Location // by name, from event to event

	epoch uint32     // differs from event to event
	memos [][]uint32 // results of residuals by text: epoch and truth; see residual

	round uint32   // of marks
	marks []uint32 // by text: the round in which it was met

	one   [1]uint32
	rows  []uint32 // candidates of a rule with several ways
	parts []uint64 // the event's parts of the key of the rule under evaluation
	found []uint64 // hits of rules, and of filters with one subscription, packed by hitKey
	spare []uint64 // room for sorting them

	lookout *lookout // for compounds, once there were any

	visit   func([]uint32)    // takes whole runs of places of rules, where order is not asked for
	matched []*roaring.Bitmap // places of the filters that matched
	filters []uint32          // numbers of these filters, and of those with one subscription
	buffer  []uint32          // places on their way out
	visited []uint32          // those that visit took, for assertions
}

// subscriptionParams are the params of the row that was last asked for as sub: a
// program may ask for them at every element of a list.
type subscriptionParams struct {
	page   *page
	row    int
	values map[string]any
}

// A slot is what one path leads to in the event, found at most once per event.
type slot struct {
	state  slotState
	value  any
	isText bool
	folded string
}

type slotState uint8

const (
	unread  slotState = iota
	absent            // the path leads nowhere: an error in CEL
	present           // value is set
	ready             // folded is set too
)

// begin makes f ready for an event, whose data are to be set.
func (f *frame) begin(event *Event, t *texts, slots int) {
	f.event, f.texts = event, t
	clear(f.slots)
	if cap(f.slots) < slots {
		f.slots = make([]slot, slots+slots/2)
	}
	f.slots = f.slots[:slots]
	f.found, f.filters = f.found[:0], f.filters[:0]
	if f.epoch++; f.epoch == maxEpoch {
		f.epoch = 1
		f.memos = nil
	}
}

// mark forgets which texts were met.
func (f *frame) mark() {
	if f.round++; f.round == 0 {
		clear(f.marks)
		f.round = 1
	}
	if n := len(f.texts.list); len(f.marks) < n {
		f.marks = append(f.marks, make([]uint32, n+n/4-len(f.marks))...)
	}
}

// first reports whether a text is met for the first time since mark.
func (f *frame) first(number uint32) bool {
	if f.marks[number] == f.round {
		return false
	}
	f.marks[number] = f.round
	return true
}

// end drops what would keep the event in memory.
func (f *frame) end() {
	clear(f.slots)
	clear(f.matched)
	f.matched = f.matched[:0]
	clear(f.data.members)
	f.data = document{members: f.data.members[:0]}
	f.visit = nil
	f.was.end()
	f.event, f.attributes, f.texts, f.page, f.sub = nil, nil, nil, nil, subscriptionParams{}
}

// read returns the slot of p with its value found.
func (f *frame) read(p *path) *slot {
	s := &f.slots[p.slot]
	if s.state == unread {
		s.value, s.state = p.find(f)
	} else if assertions {
		f.assertRead(p, s)
	}
	return s
}

// fold returns the folded text of p; false where it is no text.
func (f *frame) fold(p *path) (string, bool) {
	s := f.read(p)
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
	if f.blind && name != "sub" {
		return nil, false
	}
	switch name {
	case "event":
		return f.data.all(), true
	case wasName:
		return f.was.read()
	case attributesName:
		return f.context(), true
	case "sub":
		if f.page == nil { // an audience has it among its data
			break
		}
		if f.sub.page != f.page || f.sub.row != f.row {
			f.sub = subscriptionParams{f.page, f.row, f.page.params(f.row, f.texts)}
		}
		return f.sub.values, true
	}
	m, _ := f.data.all().(map[string]any)
	v, ok := m[name]
	return v, ok
}

// Parent ends the chain of activations.
func (f *frame) Parent() cel.Activation { return nil }
