package feedback

import (
	"context"
	"log/slog"
	"time"

	"fanfare.dev/fanfare/internal/mail/signedlink"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/mail/bounce"
	"fanfare.dev/fanfare/internal/people/registry"
	"fanfare.dev/fanfare/internal/store/control"
	"fanfare.dev/fanfare/internal/store/deliveries"
	"fanfare.dev/fanfare/internal/store/retry"
)

const (
	// maxWaiting is the maximum number of reports that wait to be processed. Further reports block, and so do
	// the connections that deliver them.
	maxWaiting = 1024
	// maxGroup is the maximum number of reports that are processed together.
	maxGroup = 256
	// outcomeWait and outcomePoll are how long a report waits for the outcome of its delivery, and how often the
	// outcome is looked up: a next hop on the same machine can be faster than a commit.
	outcomeWait = 5 * time.Second
	outcomePoll = 50 * time.Millisecond
)

// A Handler processes an arrival, and returns when the consequences are durable.
type Handler interface {
	Take(ctx context.Context, a bounce.Arrival) error
}

// Recorder appends outcomes of deliveries, and returns when they are durable.
type Recorder interface {
	RecordAll(entries []fanfare.Entry) error
}

// Options are the parts that a Processor works with.
type Options struct {
	Store    *deliveries.Store
	Control  *control.Store
	Registry *registry.Registry
	Recorder Recorder
	Signer   *signedlink.Signer // nil if nothing is signed
	// Bounced is called for each permanent bounce that counts; nil: nobody else counts them. It may be called again for the same delivery.
	Bounced func(ctx context.Context, b *Returned) error
	Clock   clock.Clock
	Logger  *slog.Logger
}

// A Returned is a delivery that came back because its address does not exist.
type Returned struct {
	Service, Address string
	Text             string // of the mail server
	Delivery         fanfare.DeliveryRef
	At               time.Time
}

// A Processor applies reports: it counts the bounce of the address, suppresses the address if the settings of the
// service require it, and then records the new state of the delivery. The entry in the record marks the report as
// processed, so a report that is delivered again after a kill has no further effect.
//
// One loop processes all reports, in groups, so that no delivery is processed twice at the same time.
type Processor struct {
	options  Options
	counters Counters
	queue    chan *pending
	services map[fanfare.EventRef]string // of the last events
	stopped  chan struct{}
	trimmed  time.Time
}

// pending is a report that waits to be processed, and the channel that its sender waits on.
type pending struct {
	bounce.Arrival
	report bounce.Report
	since  time.Time
	done   chan error
}

// New returns a Processor; Run starts it.
func New(o Options) *Processor {
	return &Processor{options: o, queue: make(chan *pending, maxWaiting), services: map[fanfare.EventRef]string{}, stopped: make(chan struct{})}
}

// Metrics counts the reports since the start.
func (p *Processor) Metrics() *Counters { return &p.counters }

// errTryAgain asks the sender to deliver the report again.
var errTryAgain = &fanfare.Error{Code: fanfare.Unavailable, Message: "the report cannot be processed now", Hint: "send it again later"}

// Take processes an arrival, and returns when the consequences are durable. An error asks for the arrival to be
// delivered again later. An arrival without useful content, or about an unknown message, is counted and dropped.
func (p *Processor) Take(ctx context.Context, a bounce.Arrival) error {
	reports := a.Reports
	if reports == nil {
		reports = bounce.Parse(a.Raw)
	}
	a.Raw = nil // release the memory
	if a.Delivery == (fanfare.DeliveryRef{}) {
		p.findDelivery(&a, reports)
	}
	var waiting []*pending
	for i := range reports {
		r := &reports[i]
		p.counters.add(r.Outcome, r.Class)
		if hasConsequence(r) && a.Delivery != (fanfare.DeliveryRef{}) && (a.Shared || i == relevantReport(reports)) {
			waiting = append(waiting, &pending{Arrival: a, report: *r, since: p.options.Clock.Now(), done: make(chan error, 1)})
		}
	}
	for _, w := range waiting {
		select {
		case p.queue <- w:
		case <-ctx.Done():
			return errTryAgain
		case <-p.stopped:
			return errTryAgain
		}
	}
	for _, w := range waiting {
		select {
		case err := <-w.done:
			if err != nil {
				return err
			}
		case <-ctx.Done():
			return errTryAgain
		case <-p.stopped:
			return errTryAgain
		}
	}
	return nil
}

// hasConsequence reports whether a report changes anything.
func hasConsequence(r *bounce.Report) bool {
	return r.Outcome == bounce.Failed || r.Outcome == bounce.Delivered || r.Outcome == bounce.Complained
}

// relevantReport returns the index of the report that decides about a message with one recipient. A server that
// forwards to several mailboxes reports each of them; the message was delivered if it reached one.
func relevantReport(reports []bounce.Report) int {
	relevant := 0
	for i := range reports {
		if reports[i].Outcome == bounce.Delivered || reports[i].Outcome == bounce.Relayed || reports[i].Outcome == bounce.Delayed {
			return i
		}
		if reports[relevant].Outcome != bounce.Failed && reports[i].Outcome == bounce.Failed {
			relevant = i
		}
	}
	return relevant
}

// findDelivery finds the delivery in the original message that the reports quote. It trusts only signed addresses
// and links.
func (p *Processor) findDelivery(a *bounce.Arrival, reports []bounce.Report) {
	if p.options.Signer == nil {
		return
	}
	signer := p.options.Signer.Clone()
	for i := range reports {
		if ref, shared, ok := signedDelivery(signer, &reports[i]); ok {
			a.Delivery, a.Shared = ref, shared
			return
		}
	}
}

// Run processes reports until ctx ends.
func (p *Processor) Run(ctx context.Context) {
	defer close(p.stopped)
	var early []*pending
	for ctx.Err() == nil {
		group := p.nextGroup(ctx, early)
		early = early[:0]
		if len(group) == 0 {
			continue
		}
		if err := retry.WhileAway(ctx, func() error { return p.apply(ctx, group, &early) }); err != nil {
			for _, w := range group {
				w.reply(errTryAgain)
			}
		}
		p.trim(ctx)
	}
}

// reply sends the result to the sender, once.
func (w *pending) reply(err error) {
	select {
	case w.done <- err:
	default:
	}
}

// nextGroup waits for reports, and adds them to those that were too early.
func (p *Processor) nextGroup(ctx context.Context, early []*pending) []*pending {
	var poll <-chan time.Time
	if len(early) > 0 {
		timer := time.NewTimer(outcomePoll)
		defer timer.Stop()
		poll = timer.C
	}
	group := append([]*pending(nil), early...)
	select {
	case w := <-p.queue:
		group = append(group, w)
	case <-poll:
	case <-ctx.Done():
		return nil
	}
	for len(group) < maxGroup+len(early) {
		select {
		case w := <-p.queue:
			group = append(group, w)
		default:
			return group
		}
	}
	return group
}

// trim deletes, once a day, the bounces that are too old to count.
func (p *Processor) trim(ctx context.Context) {
	now := p.options.Clock.Now()
	if now.Sub(p.trimmed) < 24*time.Hour {
		return
	}
	p.trimmed = now
	if err := p.options.Control.DeleteBounces(ctx, now.AddDate(0, 0, -catalog.MaxBounceDays)); err != nil && ctx.Err() == nil {
		p.options.Logger.Warn("cannot delete old bounces; retrying tomorrow", "error", err)
	}
}
