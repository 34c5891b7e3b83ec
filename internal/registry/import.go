package registry

import (
	"context"
	"errors"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/background"
	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/people"
)

// An Import puts subscriptions step by step. A step may begin before the one
// before it is over: the steps are decided on in their order, and the next is
// checked and decided on while the one before is being committed. Begin is for
// one caller at a time.
type Import struct {
	r       *Registry
	service string
	last    *job
	failed  error // of a step that could not be begun: none can from then on
}

// Import begins to put many subscriptions of a service.
func (r *Registry) Import(service string) *Import { return &Import{r: r, service: service} }

// Begin is PutSubscriptions without the wait: over gives its error when all is
// durable and the results are set. It takes no more puts than MaxStep. Where a
// step failed, so do those that were begun before that was known, and nothing of
// them is kept. The puts and results must be left alone until then.
func (i *Import) Begin(ctx context.Context, puts []people.SubscriptionPut, results []people.PutResult) (over <-chan error) {
	told := make(chan error, 1)
	if i.failed != nil {
		told <- i.failed
		return told
	}
	p, err := i.r.begin(ctx, i.service, puts, results, i.last, nil)
	if err != nil {
		i.failed = err
		told <- err
		return told
	}
	if !p.refused {
		i.last = p.job
	}
	go func() { told <- p.wait(nil) }()
	return told
}

// MaxStep is how many puts a step of an Import may have.
const MaxStep = maxJob

// A putting is puts that are under way.
type putting struct {
	*job
	puts    []people.SubscriptionPut
	results []people.PutResult
	refused bool // all of them: there is nothing for the writer

	afterEnd func(fanfare.RowID) // returns when no letter for what was replaced or paused can leave; may be nil
}

// begin checks puts and hands the good ones to the writer, which does them after
// those of another job, and not at all if that one fails.
func (r *Registry) begin(ctx context.Context, name string, puts []people.SubscriptionPut, results []people.PutResult, after *job, over <-chan time.Time) (*putting, error) {
	if len(puts) > maxJob || len(results) != len(puts) {
		return nil, errors.New("registry: too many puts for one step, or results of another number")
	}
	conf := r.Snapshot()
	svc, err := conf.Service(name)
	if err != nil {
		return nil, err
	}
	p := &putting{job: &job{svc: svc, conf: conf, actor: audit.ActorOf(ctx), wants: make([]want, len(puts)), after: after}, puts: puts, results: results, refused: true, afterEnd: r.opt.AfterEnd}
	for i := range puts {
		background.Yield(i)
		w := &p.wants[i]
		r.check(svc, &puts[i], w)
		p.refused = p.refused && w.err != nil
	}
	if p.refused {
		p.done = make(chan struct{})
		close(p.done)
		return p, nil
	}
	return p, r.writer.enqueue(ctx, p.job, over)
}

// wait returns when the puts are durable, and sets their results.
func (p *putting) wait(over <-chan time.Time) error {
	if err := p.await(over); err != nil {
		return err
	}
	for i := range p.wants {
		w := &p.wants[i]
		for _, place := range [...]fanfare.RowID{w.replaced, w.silenced} {
			if w.err == nil && place != 0 && p.afterEnd != nil {
				p.afterEnd(place)
			}
		}
		p.results[i] = w.result()
	}
	return nil
}
