package match

import (
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
	data  any    // the event's data, as decode gives it
	slots []slot // one for each path that some condition of the topic reads

	texts *texts // of the topic
	page  *page  // the row under evaluation: its page
	row   int    // and its place in it
	sub   subscriptionParams

	epoch uint32     // differs from event to event
	memos [][]uint32 // results of residuals by text: epoch and truth; see residual

	parts []uint64 // the event's parts of the key of the rule under evaluation
	found []uint64 // rule hits, packed by hitKey
	spare []uint64 // room for sorting them

	matched []*roaring.Bitmap // places of the filters that matched
	buffer  [1024]uint32      // places on their way out
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

// begin makes f ready for an event.
func (f *frame) begin(data any, t *texts, slots int) {
	f.data, f.texts = data, t
	clear(f.slots)
	if cap(f.slots) < slots {
		f.slots = make([]slot, slots+slots/2)
	}
	f.slots = f.slots[:slots]
	f.found = f.found[:0]
	if f.epoch++; f.epoch == maxEpoch {
		f.epoch = 1
		f.memos = nil
	}
}

// end drops what would keep the event in memory.
func (f *frame) end() {
	clear(f.slots)
	f.data, f.texts, f.page, f.sub = nil, nil, nil, subscriptionParams{}
}

// read returns the slot of p with its value found.
func (f *frame) read(p *path) *slot {
	s := &f.slots[p.slot]
	if s.state == unread {
		s.value, s.state = p.follow(f.data)
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
	switch name {
	case "event":
		return f.data, true
	case "sub":
		if f.page == nil {
			return nil, false
		}
		if f.sub.page != f.page || f.sub.row != f.row {
			f.sub = subscriptionParams{f.page, f.row, f.page.params(f.row, f.texts)}
		}
		return f.sub.values, true
	}
	m, _ := f.data.(map[string]any)
	v, ok := m[name]
	return v, ok
}

// Parent ends the chain of activations.
func (f *frame) Parent() cel.Activation { return nil }
