package verify

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/condition"
	"fanfare.dev/fanfare/internal/condition/evaluator"
)

// An examination checks the answers of the index for one event.
type examination struct {
	v     *Verifier
	t     *topic
	name  string
	event condition.Event

	report     *condition.Report
	hits       []condition.Hit
	quarantine []condition.Quarantined
	language   *language
	input      *evaluator.Input

	begun          time.Duration
	contradictions []contradiction
}

// A contradiction is a condition for which the index and the evaluator have different answers.
type contradiction struct {
	condition condition.Condition
	missing   bool // the index did not report it; false: it did
	verdict   evaluator.Verdict
}

// run checks as many conditions as fit into a slice of time, and with all every reported one.
func (x *examination) run(ctx context.Context, slice time.Duration, all bool) (err error) {
	defer func() { x.account(slice) }()
	if err := x.prepare(); err != nil {
		x.v.counts.undecided.Add(1)
		if len(x.quarantine) > 0 {
			return fmt.Errorf("%w: %w", ErrUndecided, err)
		}
		return nil
	}
	if err := x.applyQuarantine(ctx); err != nil {
		return err
	}
	slices.Sort(x.report.Filters)
	half := x.elapsed() + slice/2
	x.checkReported(func() bool { return all || x.elapsed() < half })
	end := half + slice/2
	x.checkUnreported(func() bool { return x.elapsed() < end })
	if len(x.contradictions) == 0 {
		return nil
	}
	return x.resolve(ctx)
}

func (x *examination) prepare() (err error) {
	if x.language, err = x.t.of(x.report.Definition); err != nil {
		return err
	}
	x.input, err = x.language.input(&x.event)
	return err
}

// elapsed returns how long the examination has run.
func (x *examination) elapsed() time.Duration { return x.v.opt.Meter.Elapsed() - x.begun }

func (x *examination) account(slice time.Duration) {
	used := x.elapsed()
	x.v.counts.time.Add(int64(used))
	x.v.budget.spend(slice, used)
}

// evaluate returns the verdict of the evaluator. A panic makes the condition undecided.
func (x *examination) evaluate(c *condition.Condition) (verdict evaluator.Verdict) {
	defer func() {
		if reason := recover(); reason != nil {
			verdict = evaluator.Verdict{Result: evaluator.Undecided, Reason: fmt.Sprint("the evaluator panicked: ", reason)}
		}
		if verdict.Result == evaluator.Undecided {
			x.v.counts.undecided.Add(1)
		}
	}()
	return x.language.evaluate(c, x.input)
}

// checkReported checks reported conditions while there is time. It continues where the last event
// ended, and takes filters and rules alternately.
func (x *examination) checkReported(hasTime func() bool) {
	x.t.mu.Lock()
	nextFilter, nextPlace := x.t.nextFilter, x.t.nextPlace
	x.t.mu.Unlock()

	filters := x.report.Filters
	atFilter, _ := slices.BinarySearch(filters, nextFilter)
	atHit, _ := slices.BinarySearchFunc(x.hits, nextPlace, func(h condition.Hit, p fanfare.RowID) int { return cmp.Compare(h.Place, p) })
	leftFilters, leftHits := len(filters), len(x.hits)
	if len(x.report.Definition.Rules) == 0 {
		leftHits = 0
	}
	for (leftFilters > 0 || leftHits > 0) && hasTime() {
		if leftFilters > 0 {
			atFilter %= len(filters)
			number := filters[atFilter]
			if c, ok := x.v.opt.Index.FilterAt(x.t.Key, number); ok {
				x.checkOne(&c)
			}
			leftFilters, atFilter, nextFilter = leftFilters-1, atFilter+1, number+1
		}
		for leftHits > 0 {
			atHit %= len(x.hits)
			h := &x.hits[atHit]
			leftHits, atHit = leftHits-1, atHit+1
			if h.Rule < 0 {
				continue
			}
			if c, ok := x.v.opt.Index.ConditionAt(x.t.Key, h.Place); ok && c.Rule != "" {
				x.checkOne(&c)
			}
			nextPlace = h.Place + 1
			break
		}
	}

	x.t.mu.Lock()
	x.t.nextFilter, x.t.nextPlace = nextFilter, nextPlace
	x.t.mu.Unlock()
}

// checkOne checks a condition that the index reported.
func (x *examination) checkOne(c *condition.Condition) {
	if x.isQuarantined(c) {
		return
	}
	x.v.counts.reported.Add(1)
	if verdict := x.evaluate(c); verdict.Result == evaluator.False || verdict.Result == evaluator.Error {
		x.contradictions = append(x.contradictions, contradiction{condition: *c, verdict: verdict})
	}
}

// conditionBatch is the number of conditions that are read from the index together.
const conditionBatch = 16

// checkUnreported checks conditions that the index did not report, while there is time. It continues
// where the last event ended.
func (x *examination) checkUnreported(hasTime func() bool) {
	x.t.mu.Lock()
	at := x.t.others
	x.t.mu.Unlock()
	var some []condition.Condition
	for whole := false; !whole && hasTime(); {
		before := at
		some = some[:0]
		whole = x.v.opt.Index.Conditions(x.t.Key, &at, conditionBatch, func(c condition.Condition) { some = append(some, c) }) < conditionBatch
		for i := range some {
			if c := &some[i]; !x.isReported(c) && !x.isQuarantined(c) {
				x.v.counts.unreported.Add(1)
				if verdict := x.evaluate(c); verdict.Result == evaluator.True {
					x.contradictions = append(x.contradictions, contradiction{condition: *c, missing: true, verdict: verdict})
				}
			}
		}
		if at == before {
			break
		}
	}
	x.t.mu.Lock()
	x.t.others = at
	x.t.mu.Unlock()
}

// isReported reports whether the index reported a condition.
func (x *examination) isReported(c *condition.Condition) bool { return reports(x.report, x.hits, c) }

// reports returns whether a match reported a condition. The numbers of filters and the hits are sorted.
func reports(r *condition.Report, hits []condition.Hit, c *condition.Condition) bool {
	if c.Rule == "" {
		_, found := slices.BinarySearch(r.Filters, c.Number)
		return found
	}
	at, found := slices.BinarySearchFunc(hits, c.Place, func(h condition.Hit, p fanfare.RowID) int { return cmp.Compare(h.Place, p) })
	return found && hits[at].Rule >= 0
}

func (x *examination) isQuarantined(c *condition.Condition) bool {
	return slices.ContainsFunc(x.quarantine, func(q condition.Quarantined) bool { return isEntryOf(&q, c) })
}
