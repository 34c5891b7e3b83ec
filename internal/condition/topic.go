package condition

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/RoaringBitmap/roaring/v2"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/background"
)

// A topic is the index of one topic's subscriptions. Changes come one at a time
// (change) and do what takes long, above all compiling, before they shut
// matches out (mu) for the moment in which they show.
type topic struct {
	columns *columns
	change  sync.Mutex
	compile atomic.Pointer[compiledTopic] // replaced under change and mu
	load    int64                         // see Load; under change
	loaded  bool                          // load is that of now

	mu      sync.RWMutex
	places  *roaring.Bitmap // of all subscriptions
	filters *filters
	rules   []*rule // in the topic's order
	rows    *rows
	texts   *texts
	paths   paths
	memos   int // residuals that have a memo

	auditor auditor

	drafts  drafts
	placing placing   // used by changes
	frames  sync.Pool // of *frame
}

func newTopic(c *columns) *topic {
	t := &topic{columns: c, places: roaring.New(), filters: newFilters(), rows: &rows{}, texts: newTexts()}
	t.frames.New = func() any { return new(frame) }
	return t
}

// at puts rows of a rule, or of a form, where they belong.
func (t *topic) at(rows *rows) *placing {
	t.placing.rows, t.placing.texts = rows, t.texts
	return &t.placing
}

// checkFilter compiles text unless a subscription has it already.
func (t *topic) checkFilter(text string) error {
	t.mu.RLock()
	known := t.filters.byText[text] != nil
	t.mu.RUnlock()
	if known {
		return nil
	}
	_, err := t.draft(t.compile.Load(), text)
	return err
}

func (t *topic) checkParams(name string, raw []byte) error {
	_, _, err := t.compile.Load().readParams(name, raw)
	return err
}

// readParams checks the params of rule name and returns the rule's number too.
func (c *compiledTopic) readParams(name string, raw []byte) (int, values, error) {
	number := c.rule(name)
	if number < 0 {
		known := make([]string, len(c.source.Rules))
		for i, r := range c.source.Rules {
			known[i] = r.Name
		}
		return 0, values{}, unknownMember(invalid("/rule", ""), "rule", name, known)
	}
	v, err := readParams(raw, c.rules[number].params)
	return number, v, err
}

// An addition is an entry, understood.
type addition struct {
	draft  draft // of a filter that is not known
	rule   int   // or the rule's number
	values values
}

// shownAtOnce is for how many additions matches are shut out at a time: some
// microseconds, about what a match takes.
const shownAtOnce = 16

// add puts entries in, in place of what had their places before.
func (t *topic) add(entries []Entry) error {
	t.change.Lock()
	defer t.change.Unlock()
	t.loaded = false
	additions, err := t.understand(entries)
	if err != nil {
		return err
	}
	t.columns.reserve(entries)
	for from := 0; from < len(entries); from += shownAtOnce {
		to := min(from+shownAtOnce, len(entries))
		if err := t.show(entries[from:to], additions[from:to]); err != nil {
			return err
		}
		background.Yield(to - 1)
	}
	return nil
}

// show makes matches see additions.
func (t *topic) show(entries []Entry, additions []addition) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range entries {
		e, a := &entries[i], &additions[i]
		if t.places.Contains(uint32(e.Place)) {
			t.forget(e.Place)
		}
		t.places.Add(uint32(e.Place))
		pg, at := t.columns.page(e.Place), e.Place.Local()&pageMask
		pg.subscribers[at], pg.channels[at] = e.Subscriber, e.Channel
		if slots := t.columns.slots(e.Place); slots != nil {
			slots[at] = e.Slot
		}
		if e.Rule != "" {
			pg.conditions[at] = rowRef | conditionRef(t.rules[a.rule].add(e.Place, a.values, t.at(t.rows)))
			continue
		}
		fl := t.filters.byText[e.Filter]
		if fl == nil {
			if !a.draft.known() { // it went with the last place that had it
				var err error
				if a.draft, err = t.draft(t.compile.Load(), e.Filter); err != nil {
					return err
				}
			}
			fl = t.filters.install(e.Filter, a.draft, t)
		}
		fl.add(e.Place)
		pg.conditions[at] = conditionRef(fl.number)
	}
	return nil
}

// understand reads all entries, or refuses them all.
func (t *topic) understand(entries []Entry) ([]addition, error) {
	c := t.compile.Load()
	additions := make([]addition, len(entries))
	for i := range entries {
		background.Yield(i)
		e, a := &entries[i], &additions[i]
		var err error
		switch {
		case e.Rule == "":
			// Only changes write byText, and this is one: no lock is needed to read.
			if t.filters.byText[e.Filter] == nil {
				a.draft, err = t.draft(c, e.Filter)
			}
		case e.Filter != "":
			err = invalid("", "an entry has a filter or a rule, not both")
		default:
			a.rule, a.values, err = c.readParams(e.Rule, e.Params)
		}
		if err != nil {
			return nil, fmt.Errorf("place %d: %w", e.Place, err)
		}
	}
	return additions, nil
}

// remove takes a subscription out; one that is not there is no concern.
func (t *topic) remove(p fanfare.RowID) {
	t.change.Lock()
	defer t.change.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.places.Contains(uint32(p)) {
		t.loaded = false
		t.forget(p)
	}
}

// forget takes out a place that is in.
func (t *topic) forget(p fanfare.RowID) {
	switch ref := t.columns.page(p).conditions[p.Local()&pageMask]; {
	case ref&rowRef != 0:
		row := uint32(ref &^ rowRef)
		t.rows.page(row).rule.remove(row, t.at(t.rows))
	default:
		fl := t.filters.list[ref]
		if fl.remove(p); fl.count == 0 {
			t.filters.drop(fl, t)
		}
	}
	t.places.Remove(uint32(p))
	t.columns.release(p)
}

func (t *topic) size() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return int(t.places.GetCardinality())
}
