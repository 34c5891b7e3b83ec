package server

import (
	"context"
	"log/slog"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/mail/bounce"
	"fanfare.dev/fanfare/internal/mail/signedlink"
	"fanfare.dev/fanfare/internal/pipeline/record"
	"fanfare.dev/fanfare/internal/registry"
	"fanfare.dev/fanfare/internal/store/control"
	"fanfare.dev/fanfare/internal/store/deliveries"
	"fanfare.dev/fanfare/internal/store/retry"
)

const (
	// maxReturns is how many arrivals may wait for the taker; more block, and with
	// them the connections that bring them.
	maxReturns = 1024
	// maxReturnsGroup is how many are applied together.
	maxReturnsGroup = 256
	// earlyWait and earlyPause are how long an arrival waits for the outcome of the
	// delivery that it is about, and how often that is looked at: a next hop on the
	// same machine is faster than a commit.
	earlyWait  = 5 * time.Second
	earlyPause = 50 * time.Millisecond
)

// A returnTaker keeps what follows from what comes back: an entry in the record, a
// count for its address, and where the counts of the service say so a suppression.
// It is in this order: counted, suppressed, recorded. Each step can be done again,
// and the entry is the mark that all was done; so whoever brings something again
// that was not acknowledged, after a kill, brings about the same as once.
//
// One loop applies everything, in groups, so that no delivery is in two hands.
type returnTaker struct {
	store     *deliveries.Store
	control   *control.Store
	registry  *registry.Registry
	recorder  *record.Recorder
	signer    *signedlink.Signer // nil where nothing is signed
	clock     clock.Clock
	logger    *slog.Logger
	tally     *returnTally
	arrived   chan *arrived
	events    map[fanfare.EventRef]string // the services of the last events
	stopped   chan struct{}
	lastTrims time.Time
}

// arrived is an arrival on its way, and who waits for it.
type arrived struct {
	bounce.Arrival
	report bounce.Report
	since  time.Time
	done   chan error
}

// ready makes what a taker has beside its parts.
func (t *returnTaker) ready() *returnTaker {
	t.arrived, t.stopped, t.events, t.tally = make(chan *arrived, maxReturns), make(chan struct{}), map[fanfare.EventRef]string{}, new(returnTally)
	return t
}

// errNotNow asks whoever brings something to bring it again.
var errNotNow = &fanfare.Error{Code: fanfare.Unavailable, Message: "what came back cannot be kept now", Hint: "bring it again later"}

// Take keeps what follows from an arrival, and returns when that is durable. An
// error asks for it to be brought again later. One that says nothing of use, or
// that is about a message which nobody knows, is counted and dropped.
func (t *returnTaker) Take(ctx context.Context, a bounce.Arrival) error {
	reports := a.Reports
	if reports == nil {
		reports = bounce.Parse(a.Raw)
	}
	a.Raw = nil // no more than that is needed
	if a.Delivery == (fanfare.DeliveryRef{}) {
		t.find(&a, reports)
	}
	var waiting []*arrived
	for i := range reports {
		r := &reports[i]
		t.tally.add(r.Outcome, r.Class)
		if matters(r) && a.Delivery != (fanfare.DeliveryRef{}) && (a.Shared || i == theOne(reports)) {
			waiting = append(waiting, &arrived{Arrival: a, report: *r, since: t.clock.Now(), done: make(chan error, 1)})
		}
	}
	for _, w := range waiting {
		select {
		case t.arrived <- w:
		case <-ctx.Done():
			return errNotNow
		case <-t.stopped:
			return errNotNow
		}
	}
	for _, w := range waiting {
		select {
		case err := <-w.done:
			if err != nil {
				return err
			}
		case <-ctx.Done():
			return errNotNow
		case <-t.stopped:
			return errNotNow
		}
	}
	return nil
}

// matters reports whether something follows from a report.
func matters(r *bounce.Report) bool {
	return r.Outcome == bounce.Failed || r.Outcome == bounce.Delivered || r.Outcome == bounce.Complained
}

// theOne is which of the reports is about the message, which had one recipient. Who
// forwards to several reports each of them; what reached one of them has arrived.
func theOne(reports []bounce.Report) int {
	one := 0
	for i := range reports {
		if reports[i].Outcome == bounce.Delivered || reports[i].Outcome == bounce.Relayed || reports[i].Outcome == bounce.Delayed {
			return i
		}
		if reports[one].Outcome != bounce.Failed && reports[i].Outcome == bounce.Failed {
			one = i
		}
	}
	return one
}

// find seeks in the message that came back with a report whose it is. Only what
// was signed here is believed.
func (t *returnTaker) find(a *bounce.Arrival, reports []bounce.Report) {
	if t.signer == nil {
		return
	}
	signer := t.signer.Clone()
	for i := range reports {
		if ref, shared, ok := signedIn(signer, &reports[i]); ok {
			a.Delivery, a.Shared = ref, shared
			return
		}
	}
}

// run applies what arrives until the end.
func (t *returnTaker) run(ctx context.Context) {
	defer close(t.stopped)
	var early []*arrived
	for ctx.Err() == nil {
		group := t.gather(ctx, early)
		early = early[:0]
		if len(group) == 0 {
			continue
		}
		if err := retry.WhileAway(ctx, func() error { return t.apply(ctx, group, &early) }); err != nil {
			for _, w := range group {
				w.answer(errNotNow)
			}
		}
		t.trim(ctx)
	}
}

// answer tells who waits, once.
func (w *arrived) answer(err error) {
	select {
	case w.done <- err:
	default:
	}
}

// gather waits for arrivals, and takes what is there beside those that were early.
func (t *returnTaker) gather(ctx context.Context, early []*arrived) []*arrived {
	var pause <-chan time.Time
	if len(early) > 0 {
		timer := time.NewTimer(earlyPause)
		defer timer.Stop()
		pause = timer.C
	}
	group := append([]*arrived(nil), early...)
	select {
	case w := <-t.arrived:
		group = append(group, w)
	case <-pause:
	case <-ctx.Done():
		return nil
	}
	for len(group) < maxReturnsGroup+len(early) {
		select {
		case w := <-t.arrived:
			group = append(group, w)
		default:
			return group
		}
	}
	return group
}

// trim forgets, once a day, what is too old to count.
func (t *returnTaker) trim(ctx context.Context) {
	now := t.clock.Now()
	if now.Sub(t.lastTrims) < 24*time.Hour {
		return
	}
	t.lastTrims = now
	if err := t.control.DropBounces(ctx, now.AddDate(0, 0, -registry.MaxBounceDays)); err != nil && ctx.Err() == nil {
		t.logger.Warn("old bounces could not be forgotten, it is tried again tomorrow", "error", err)
	}
}

// Take keeps what follows from something that came back, as whatever brings it in
// hands it on; see returnTaker.Take.
func (a *App) Take(ctx context.Context, arrival bounce.Arrival) error {
	return a.returns.Take(ctx, arrival)
}
