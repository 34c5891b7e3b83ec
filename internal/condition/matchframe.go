package condition

import (
	"github.com/RoaringBitmap/roaring/v2"
)

// A matchFrame is the frame of one match with the hits found so far. Frames are
// reused; matches share nothing in them.
type matchFrame struct {
	frame

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

// begin makes f ready for an event, whose data are set next.
func (f *matchFrame) begin(event *Event, t *textTable, values int) {
	f.frame.begin(event, t, values)
	f.singleHits, f.matchedFilters = f.singleHits[:0], f.matchedFilters[:0]
	if f.epoch++; f.epoch == maxEpoch {
		f.epoch = 1
		f.memos = nil
	}
}

// end drops what would keep the event in memory.
func (f *matchFrame) end() {
	clear(f.filterHits)
	f.filterHits = f.filterHits[:0]
	f.visit = nil
	f.frame.end()
}

// startTextMarks forgets which texts were met.
func (f *matchFrame) startTextMarks() {
	if f.textRound++; f.textRound == 0 {
		clear(f.textMarks)
		f.textRound = 1
	}
	if n := f.texts.size(); len(f.textMarks) < n {
		f.textMarks = append(f.textMarks, make([]uint32, n+n/4-len(f.textMarks))...)
	}
}

// markText reports whether a text is met for the first time since mark.
func (f *matchFrame) markText(number uint32) bool {
	if f.textMarks[number] == f.textRound {
		return false
	}
	f.textMarks[number] = f.textRound
	return true
}
