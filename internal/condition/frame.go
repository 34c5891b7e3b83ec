package condition

import (
	"time"

	"cel.dev/cel-go/cel"
	"github.com/RoaringBitmap/roaring/v2"
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
	page          *page      // the row under evaluation: its page
	row           int        // and its place in it
	decodedParams decodedParams
	eventHidden   bool // programs see no event: what they come to all the same does not hang on it

	attributes map[string]any // of the event, once they were asked for

	zones map[string]*time.Location // by name, from event to event

	epoch uint32     // differs from event to event
	memos [][]uint32 // results of residuals by text: epoch and truth; see residual

	textRound uint32   // of marks
	textMarks []uint32 // by text: the round in which it was met

	single        [1]uint32
	candidateRows []uint32 // candidates of a rule with several ways
	keyParts      []uint64 // the event's parts of the key of the rule under evaluation
	singleHits    []uint64 // hits of rules, and of filters with one subscription, packed by hitKey
	sortBuffer    []uint64 // room for sorting them

	scratch *conjunctionScratch // for compounds, once there were any

	visit          func([]uint32)    // takes whole runs of places of rules, where order is not asked for
	filterHits     []*roaring.Bitmap // places of the filters that matched
	matchedFilters []uint32          // numbers of these filters, and of those with one subscription
	buffer         []uint32          // places on their way out
	visited        []uint32          // those that visit took, for assertions
}

// decodedParams are the params of the row that was last asked for as sub: a
// program may ask for them at every element of a list.
type decodedParams struct {
	page   *page
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
	f.singleHits, f.matchedFilters = f.singleHits[:0], f.matchedFilters[:0]
	if f.epoch++; f.epoch == maxEpoch {
		f.epoch = 1
		f.memos = nil
	}
}

// startTextMarks forgets which texts were met.
func (f *frame) startTextMarks() {
	if f.textRound++; f.textRound == 0 {
		clear(f.textMarks)
		f.textRound = 1
	}
	if n := len(f.texts.list); len(f.textMarks) < n {
		f.textMarks = append(f.textMarks, make([]uint32, n+n/4-len(f.textMarks))...)
	}
}

// markText reports whether a text is met for the first time since mark.
func (f *frame) markText(number uint32) bool {
	if f.textMarks[number] == f.textRound {
		return false
	}
	f.textMarks[number] = f.textRound
	return true
}

// end drops what would keep the event in memory.
func (f *frame) end() {
	clear(f.values)
	clear(f.filterHits)
	f.filterHits = f.filterHits[:0]
	clear(f.data.members)
	f.data = document{members: f.data.members[:0]}
	f.visit = nil
	f.previous.end()
	f.event, f.attributes, f.texts, f.page, f.decodedParams = nil, nil, nil, nil, decodedParams{}
}

// value returns the slot of p with its value found.
func (f *frame) value(p *path) *cachedValue {
	s := &f.values[p.index]
	if s.state == unread {
		s.value, s.state = p.find(f)
	} else if assertions {
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
			f.decodedParams = decodedParams{f.page, f.row, f.page.params(f.row, f.texts)}
		}
		return f.decodedParams.values, true
	}
	m, _ := f.data.all().(map[string]any)
	v, ok := m[name]
	return v, ok
}

// Parent ends the chain of activations.
func (f *frame) Parent() cel.Activation { return nil }
