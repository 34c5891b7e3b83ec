package dispatch

import (
	"context"
	"encoding/json"
	"slices"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/bus"
	"fanfare.dev/fanfare/internal/failpoint"
	"fanfare.dev/fanfare/internal/pipeline/deliver"
	"fanfare.dev/fanfare/internal/store/retry"
)

// maxLoaders is the number of batches that are loaded at the same time for a sender that delivers whole batches. It stores the messages of a
// batch in a few milliseconds, so that one goroutine that reads rows and writes messages would be the limit.
const maxLoaders = 2

// loop moves the batches of one channel and lane from the bus to the sender, each broadcast in turn. It loads one batch at a time, or
// maxLoaders for a sender that delivers whole batches, whose order is free. The sender bounds the messages in memory.
type loop struct {
	Target
	stage   *Stage
	queue   *bus.Queue
	files   fileBudget
	loaders []*loader       // that load no batch
	results chan loadResult // of loads in other goroutines
}

// A loadResult is the end of a load in another goroutine.
type loadResult struct {
	loader *loader
	next   leasedBatch
	waits  []workerName
	err    error
}

func (l *loop) run(ctx context.Context) {
	waiting := newReadAhead(l.queue, l.Sender, l.Lane, l.mayContinue, func(lease *bus.Lease, err error) { l.fail(ctx, lease, err) })
	defer waiting.giveBack()
	defer func() {
		for len(l.loaders) < maxLoaders {
			l.collect(ctx, waiting)
		}
	}()
	for {
		var next leasedBatch
		var ok bool
		var err error
		switch {
		case len(l.loaders) == maxLoaders:
			next, err = waiting.next(ctx)
			ok = true
		case len(l.loaders) > 0 && l.Sender.DeliversWhole():
			next, ok, err = waiting.poll(ctx) // a batch that arrives later waits until a load has ended
		}
		if err != nil {
			return
		}
		if ok {
			l.start(ctx, next)
		} else {
			l.collect(ctx, waiting)
		}
	}
}

// start loads a batch in another goroutine. There must be a free loader.
func (l *loop) start(ctx context.Context, next leasedBatch) {
	last := len(l.loaders) - 1
	loader := l.loaders[last]
	l.loaders = l.loaders[:last]
	go func() {
		r := loadResult{loader: loader, next: next}
		r.err = retry.WhileAway(ctx, func() (err error) { r.waits, err = l.submit(ctx, loader, next); return err })
		l.results <- r
	}()
}

// collect waits for the end of a load.
func (l *loop) collect(ctx context.Context, waiting *readAhead) {
	r := <-l.results
	l.loaders = append(l.loaders, r.loader)
	if r.err != nil {
		l.fail(ctx, r.next.lease, r.err)
	} else if len(r.waits) > 0 {
		l.putAside(waiting, r.next, r.waits)
	}
}

// putAside lets a batch wait for instances of workers.
func (l *loop) putAside(waiting *readAhead, next leasedBatch, waits []workerName) {
	if len(waiting.aside) == 0 {
		l.stage.Logger.Warn("messages wait because no instance of their worker is connected: start one, or an agent that may run it", "service", waits[0].service, "worker", waits[0].worker)
	}
	waiting.putAside(asideBatch{leasedBatch: next, waits: waits, until: l.stage.Clock.Now().Add(maxAside)})
}

// mayContinue reports whether a batch that waits for workers must be loaded: an instance is connected, the worker was
// deleted, or the batch has waited for long or was paused or cancelled.
func (l *loop) mayContinue(b *asideBatch) bool {
	channel, ok := l.stage.Registry.Channel(l.Channel)
	if !ok || !l.stage.Clock.Now().Before(b.until) || slices.ContainsFunc(b.waits, func(w workerName) bool { return !l.stage.absent(w) }) {
		return true
	}
	return slices.ContainsFunc(b.batch.Slices, func(s fanfare.RecipientRange) bool {
		decision, _ := l.stage.Control.Decide(fanfare.EventRef{Day: b.batch.Day, Seq: s.Manifest.Event()}, channel)
		return decision != deliver.Go
	})
}

// submit loads a batch and passes it to the sender, which calls Finish when the batch is done. If no member of it can be sent
// before an instance of a worker is connected, submit returns the workers.
func (l *loop) submit(ctx context.Context, loader *loader, next leasedBatch) (waits []workerName, err error) {
	lease, batch := next.lease, next.batch
	channel, ok := l.stage.Registry.Channel(l.Channel)
	if !ok {
		busy, err := l.stage.Cancel(ctx, batch, deliver.ChannelDeleted)
		if err == nil && busy > 0 {
			err = errBusy
		}
		if err != nil {
			return nil, err
		}
		return nil, lease.Done()
	}
	if err := l.files.wait(ctx); err != nil {
		return nil, err
	}
	out, err := loader.load(ctx, batch, channel)
	if err != nil {
		return nil, err
	}
	if len(out.waits) > 0 && out.left > 0 && len(out.jobs) == 0 {
		l.releaseUnused(out)
		l.stage.pages.giveBack(out)
		return out.waits, nil
	}
	l.files.add(out.fileBytes)
	if failpoint.Fault("acknowledge-before-record") {
		_ = lease.Done() // the crash test must detect this
	}
	l.releaseUnused(out)
	l.Sender.Submit(&deliver.Batch{
		Lane: l.Lane, Flow: next.flow, Jobs: out.jobs, LeaseEnd: lease.Until,
		JobDone: func(job *deliver.Job) { l.stage.claims.Release(job.Message.Delivery) },
		Finish: func(held, again int) {
			l.stage.pages.giveBack(out)
			l.files.add(-out.fileBytes)
			l.finish(context.WithoutCancel(ctx), lease, batch, out, held, again)
		},
	})
	return nil, nil
}

// releaseUnused releases the claims on members that did not become jobs. Jobs are in the order
// in which they are sent.
func (l *loop) releaseUnused(out *loaded) {
	if len(out.jobs) == len(out.claimed) {
		return
	}
	used := make(map[fanfare.DeliveryRef]struct{}, len(out.jobs))
	for i := range out.jobs {
		used[out.jobs[i].Message.Delivery] = struct{}{}
	}
	l.stage.claims.Release(slices.DeleteFunc(out.claimed, func(ref fanfare.DeliveryRef) bool {
		_, is := used[ref]
		return is
	})...)
}

// finish removes a batch from the bus when all of it is settled, deferred or held. Connections wait
// for it, so slow work goes to Leftover.
func (l *loop) finish(ctx context.Context, lease *bus.Lease, batch *fanfare.Batch, out *loaded, held, again int) {
	failpoint.Hit("before-batch-ack")
	var err error
	switch {
	case out.busy > 0:
		err = lease.Later(retry.Pause)
	case again > 0, out.left > 0:
		err = lease.Later(0)
	case held > 0:
		l.Leftover(func() { l.hold(ctx, lease, *batch) }) // the resumed batch skips settled deliveries
		return
	case len(out.held) > 0:
		batch.Slices = out.held
		l.Leftover(func() { l.hold(ctx, lease, *batch) })
		return
	default:
		err = lease.Done()
	}
	failpoint.Hit("after-batch-ack")
	if err != nil {
		l.stage.Logger.Warn("cannot acknowledge a batch on the bus; the bus will deliver it again", "error", err)
	}
}

// hold stores a paused batch, so that it does not occupy a queue.
func (l *loop) hold(ctx context.Context, lease *bus.Lease, batch fanfare.Batch) {
	err := l.stage.Store.Hold(ctx, &batch)
	if err == nil {
		err = lease.Done()
	}
	if err == nil && !l.stage.Control.Holds(&batch) { // it was resumed before it was in the store
		l.stage.Control.Release(ctx)
	}
	if err != nil {
		l.stage.Logger.Log(ctx, min(retry.LogLevel(err), bus.FailureLevel(ctx, err)), "cannot store a paused batch; the bus will deliver it again", "error", err)
		if err := lease.Later(retry.Pause); err != nil {
			l.stage.Logger.Warn("cannot return a batch to the bus; the bus will deliver it again", "error", err)
		}
	}
}

// fail returns a batch to the bus, or parks it if it has failed too often.
func (l *loop) fail(ctx context.Context, lease *bus.Lease, cause error) {
	if ctx.Err() != nil {
		return // the server is stopping, and the lease will expire
	}
	l.stage.Logger.Error("cannot load a batch", "error", cause, "failures", lease.Deliveries)
	if lease.Deliveries >= fanfare.MaxFailures {
		err := l.park(ctx, lease, cause)
		if err == nil {
			err = lease.Done()
		}
		if err == nil {
			return
		}
		l.stage.Logger.Log(ctx, bus.FailureLevel(ctx, err), "cannot park a batch; the bus will deliver it again", "error", err)
	}
	if err := lease.Later(retry.Pause); err != nil {
		l.stage.Logger.Warn("cannot return a batch to the bus; the bus will deliver it again", "error", err)
	}
}

// park stores a batch for an operator. A batch that cannot be read belongs to no event and is
// stored under the day on which it arrived.
func (l *loop) park(ctx context.Context, lease *bus.Lease, cause error) error {
	parked := fanfare.Parked{Kind: fanfare.ParkedBatch, Reason: cause.Error(), Failures: lease.Deliveries, At: l.stage.Clock.Now()}
	day, event := fanfare.DayOf(lease.Kept), fanfare.EventSeq(0)
	var batch fanfare.Batch
	if json.Unmarshal(lease.Data, &batch) == nil && len(batch.Slices) > 0 {
		day, event, parked.Members = batch.Day, batch.Slices[0].Manifest.Event(), batch.Members()
	}
	return l.stage.Store.Park(ctx, day, event, parked, lease.Data)
}
