package condition

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/RoaringBitmap/roaring/v2"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/background"
	"fanfare.dev/fanfare/internal/condition/expr"
	"fanfare.dev/fanfare/internal/condition/lang"
)

// A topic is the index of one topic's subscriptions. Changes are made one at a time (changeMu).
// They do slow work, such as compiling, before they briefly block matches (mu) to become visible.
type topic struct {
	columns        *subscriptionColumns
	changeMu       sync.Mutex
	compiled       atomic.Pointer[compiledDefinition] // replaced under changeMu and mu
	unindexedNanos int64                              // see UnindexedCost; under changeMu
	costKnown      bool                               // unindexedNanos is up to date

	mu            sync.RWMutex
	subscriptions *roaring.Bitmap // all subscriptions
	filters       *filters
	rules         []*table // tables of the rules in the topic's order
	pages         *pageStore
	texts         *expr.TextTable
	paths         expr.PathTable
	memoCount     int // number of residuals with a memo

	checker matchChecker

	shapes  shapeCache
	indexer rowIndexer // used by changes
	frames  sync.Pool  // of *matchFrame
}

func newTopic(c *subscriptionColumns) *topic {
	t := &topic{columns: c, subscriptions: roaring.New(), filters: newFilters(), pages: &pageStore{}, texts: expr.NewTextTable()}
	t.frames.New = func() any { return new(matchFrame) }
	return t
}

// indexerFor returns the indexer for rows in a store.
func (t *topic) indexerFor(rows *pageStore) *rowIndexer {
	t.indexer.pages, t.indexer.texts = rows, t.texts
	return &t.indexer
}

// checkFilter compiles text unless a subscription has it already.
func (t *topic) checkFilter(text string) error {
	t.mu.RLock()
	known := t.filters.byText[text] != nil
	t.mu.RUnlock()
	if known {
		return nil
	}
	_, err := t.compileFilter(t.compiled.Load(), text)
	return err
}

func (t *topic) checkParams(name string, raw []byte) error {
	_, _, err := t.compiled.Load().readParams(name, raw)
	return err
}

// readParams checks the params of a rule and returns the rule's number.
func (c *compiledDefinition) readParams(name string, raw []byte) (int, lang.ParamValues, error) {
	number := c.ruleNumber(name)
	if number < 0 {
		known := make([]string, len(c.definition.Rules))
		for i, r := range c.definition.Rules {
			known[i] = r.Name
		}
		return 0, lang.ParamValues{}, lang.UnknownMember(lang.Invalid("/rule", ""), "rule", name, known)
	}
	v, err := lang.ReadParams(raw, c.ruleScopes[number].Params)
	return number, v, err
}

// A compiledEntry is a valid entry.
type compiledEntry struct {
	filter compiledFilter // of a filter that is not in use
	rule   int            // or the number of the rule
	values lang.ParamValues
}

// applyBatch is the number of entries that are added while matches are blocked: a few
// microseconds, about as long as a match.
const applyBatch = 16

// add adds entries and replaces subscriptions with the same ids.
func (t *topic) add(entries []Entry) error {
	t.changeMu.Lock()
	defer t.changeMu.Unlock()
	t.costKnown = false
	additions, err := t.compileEntries(entries)
	if err != nil {
		return err
	}
	t.columns.reserve(entries)
	for from := 0; from < len(entries); from += applyBatch {
		to := min(from+applyBatch, len(entries))
		if err := t.apply(entries[from:to], additions[from:to]); err != nil {
			return err
		}
		background.Yield(to - 1)
	}
	return nil
}

// apply makes entries visible to matches.
func (t *topic) apply(entries []Entry, additions []compiledEntry) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range entries {
		e, a := &entries[i], &additions[i]
		if t.subscriptions.Contains(uint32(e.Place)) {
			t.removeLocked(e.Place)
		}
		t.subscriptions.Add(uint32(e.Place))
		pg, at := t.columns.page(e.Place), e.Place.Local()&pageMask
		pg.subscribers[at], pg.channels[at] = e.Subscriber, e.Channel
		if slots := t.columns.slots(e.Place); slots != nil {
			slots[at] = e.Slot
		}
		if e.Rule != "" {
			pg.conditions[at] = rowRefFlag | conditionRef(t.rules[a.rule].add(e.Place, a.values, t.indexerFor(t.pages)))
			continue
		}
		fl := t.filters.byText[e.Filter]
		if fl == nil {
			if !a.filter.isCompiled() { // its last subscription was replaced in this batch
				var err error
				if a.filter, err = t.compileFilter(t.compiled.Load(), e.Filter); err != nil {
					return err
				}
			}
			fl = t.filters.add(e.Filter, a.filter, t)
		}
		fl.add(e.Place)
		pg.conditions[at] = conditionRef(fl.number)
	}
	return nil
}

// compileEntries compiles all entries, or none.
func (t *topic) compileEntries(entries []Entry) ([]compiledEntry, error) {
	c := t.compiled.Load()
	additions := make([]compiledEntry, len(entries))
	for i := range entries {
		background.Yield(i)
		e, a := &entries[i], &additions[i]
		var err error
		switch {
		case e.Rule == "":
			// Only changes write byText, and this is a change, so it can read without a lock.
			if t.filters.byText[e.Filter] == nil {
				a.filter, err = t.compileFilter(c, e.Filter)
			}
		case e.Filter != "":
			err = lang.Invalid("", "a subscription cannot have both a filter and a rule")
		default:
			a.rule, a.values, err = c.readParams(e.Rule, e.Params)
		}
		if err != nil {
			return nil, fmt.Errorf("subscription %d: %w", e.Place, err)
		}
	}
	return additions, nil
}

// remove removes a subscription if it exists.
func (t *topic) remove(p fanfare.RowID) {
	t.changeMu.Lock()
	defer t.changeMu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.subscriptions.Contains(uint32(p)) {
		t.costKnown = false
		t.removeLocked(p)
	}
}

// removeLocked removes a subscription that exists. The caller holds mu.
func (t *topic) removeLocked(p fanfare.RowID) {
	switch ref := t.columns.page(p).conditions[p.Local()&pageMask]; {
	case ref&rowRefFlag != 0:
		row := uint32(ref &^ rowRefFlag)
		t.pages.page(row).table.remove(row, t.indexerFor(t.pages))
	default:
		fl := t.filters.list[ref]
		if fl.remove(p); fl.count == 0 {
			t.filters.drop(fl, t)
		}
	}
	t.subscriptions.Remove(uint32(p))
	t.columns.release(p)
}

func (t *topic) size() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return int(t.subscriptions.GetCardinality())
}
