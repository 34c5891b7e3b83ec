package verify

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/condition"
	"fanfare.dev/fanfare/internal/condition/evaluator"
)

// Index is the part of the matching index that is checked. Package condition documents the methods.
type Index interface {
	MatchReported(key condition.Key, event condition.Event, hits []condition.Hit, r *condition.Report) ([]condition.Hit, error)
	DefinitionOf(key condition.Key) *condition.Definition
	FilterAt(key condition.Key, number uint32) (condition.Condition, bool)
	ConditionAt(key condition.Key, place fanfare.RowID) (condition.Condition, bool)
	FilterHits(key condition.Key, filter string, hits []condition.Hit) []condition.Hit
	Conditions(key condition.Key, at *condition.Cursor, n int, visit func(condition.Condition)) int
}

// Store contains subscriptions and the quarantine.
type Store interface {
	// ConditionEntries visits the stored active subscriptions of some subscribers to a topic. The
	// visitor may keep only the strings of an entry.
	ConditionEntries(ctx context.Context, topic uint32, subscribers []fanfare.RowID, visit func(*condition.Entry) error) error
	// Quarantine stores conditions durably before it returns.
	Quarantine(ctx context.Context, list []condition.Quarantined) error
	// Release removes conditions from the quarantine.
	Release(ctx context.Context, list []condition.Quarantined) error
	// Quarantined lists the quarantine.
	Quarantined() []condition.Quarantined
}

// Options are the dependencies of a Verifier.
type Options struct {
	Index  Index
	Store  Store
	Share  Share
	Meter  Meter
	Now    func() time.Time
	Logger *slog.Logger
}

// A Verifier matches events and checks the answers of the index. It is safe for concurrent use.
type Verifier struct {
	opt    Options
	budget *budget

	mu     sync.Mutex
	topics map[condition.Key]*topic

	reports sync.Pool // of *condition.Report
	counts  counts
}

type counts struct {
	events, reported, unreported, undecided, extra, missing atomic.Int64
	time                                                    atomic.Int64 // nanoseconds
}

// A Topic identifies a topic in the index and in the store.
type Topic struct {
	condition.Key
	Number uint32
}

// A topic contains the progress of the checks of a topic.
type topic struct {
	Topic

	mu         sync.Mutex
	language   *language
	nextFilter uint32        // the next reported filters to check begin at this number
	nextPlace  fanfare.RowID // the next reported subscriptions to rules begin here
	others     condition.Cursor
	quarantine []condition.Quarantined // replaced as a whole
}

// New returns a Verifier. The stored quarantine remains active.
func New(opt Options) *Verifier {
	v := &Verifier{opt: opt, budget: newBudget(opt.Share, opt.Meter), topics: map[condition.Key]*topic{}}
	v.reports.New = func() any { return new(condition.Report) }
	return v
}

// Match returns the hits of an event. They come from the index; where the evaluator contradicts it,
// the evaluator decides. name identifies the event in the log. Match reuses the memory of hits.
func (v *Verifier) Match(ctx context.Context, of Topic, name string, event condition.Event, hits []condition.Hit) ([]condition.Hit, error) {
	r := v.reports.Get().(*condition.Report)
	defer v.reports.Put(r)
	hits, err := v.opt.Index.MatchReported(of.Key, event, hits[:0], r)
	if err != nil {
		return hits, err
	}
	v.counts.events.Add(1)
	t := v.topic(of)
	t.mu.Lock()
	quarantine := t.quarantine
	t.mu.Unlock()
	slice := v.budget.take()
	all := v.opt.Share == Unlimited || len(quarantine) >= maxQuarantined
	if slice == 0 && !all && len(quarantine) == 0 {
		return hits, nil
	}
	x := examination{v: v, t: t, name: name, event: event, report: r, hits: hits, quarantine: quarantine, begun: v.opt.Meter.Elapsed()}
	err = x.run(ctx, slice, all)
	return x.hits, err
}

// ChecksEachEvent reports whether each event of a topic needs a call of Match, because all reported conditions are checked or
// because conditions of the topic are in quarantine. The hits of another index must not be used then.
func (v *Verifier) ChecksEachEvent(of Topic) bool {
	if v.opt.Share == Unlimited {
		return true
	}
	t := v.topic(of)
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.quarantine) > 0
}

// topic returns the progress of a topic, which begins with its stored quarantine.
func (v *Verifier) topic(of Topic) *topic {
	v.mu.Lock()
	defer v.mu.Unlock()
	t := v.topics[of.Key]
	if t == nil || t.Number != of.Number { // a topic of the same name may be another one
		t = &topic{Topic: of}
		for _, q := range v.opt.Store.Quarantined() {
			if q.Topic == of.Number {
				t.quarantine = append(t.quarantine, q)
			}
		}
		v.topics[of.Key] = t
	}
	return t
}

// of returns the language of a definition of the topic.
func (t *topic) of(def *condition.Definition) (*language, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.language == nil || t.language.definition != def {
		l, err := newLanguage(def)
		if err != nil {
			return nil, err
		}
		t.language = l
	}
	return t.language, nil
}

// Evaluate evaluates the condition of a subscription for an event, independently of the index. It
// uses only the condition of the entry.
func (v *Verifier) Evaluate(of Topic, entry *condition.Entry, event condition.Event) (evaluator.Verdict, error) {
	def := v.opt.Index.DefinitionOf(of.Key)
	if def == nil {
		return evaluator.Verdict{}, &fanfare.Error{Code: fanfare.NotFound, Message: fmt.Sprintf("the service %s has no topic %s", of.Service, of.Topic)}
	}
	l, err := v.topic(of).of(def)
	if err != nil {
		return evaluator.Verdict{}, err
	}
	in, err := l.input(&event)
	if err != nil {
		return evaluator.Verdict{}, err
	}
	return l.evaluate(&condition.Condition{Filter: entry.Filter, Rule: entry.Rule, Params: entry.Params}, in), nil
}

// InQuarantine returns the entry of the quarantine for the condition of a subscription.
func (v *Verifier) InQuarantine(of Topic, entry *condition.Entry) (q condition.Quarantined, is bool) {
	t := v.topic(of)
	t.mu.Lock()
	defer t.mu.Unlock()
	c := condition.Condition{Filter: entry.Filter, Rule: entry.Rule, Params: entry.Params, Place: entry.Place}
	for _, q := range t.quarantine {
		if isEntryOf(&q, &c) {
			return q, true
		}
	}
	return condition.Quarantined{}, false
}

// Status has the counts since the start, and the quarantine.
type Status struct {
	Share      Share
	Events     int64         // that were matched
	Reported   int64         // checks of reported conditions
	Unreported int64         // checks of other conditions
	Undecided  int64         // checks in which the evaluator could not decide
	Time       time.Duration // of all checks

	Extra       int64 // conditions that the index reported and the evaluator denies
	Missing     int64 // conditions that are true and that the index did not report
	Quarantined []condition.Quarantined
}

// Status returns the counts and the quarantine.
func (v *Verifier) Status() Status {
	c := &v.counts
	return Status{Share: v.opt.Share, Events: c.events.Load(), Reported: c.reported.Load(), Unreported: c.unreported.Load(), Undecided: c.undecided.Load(),
		Time: time.Duration(c.time.Load()), Extra: c.extra.Load(), Missing: c.missing.Load(), Quarantined: v.opt.Store.Quarantined()}
}
