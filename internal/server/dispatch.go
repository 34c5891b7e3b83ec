package server

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/bus"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/failpoint"
	"fanfare.dev/fanfare/internal/pipeline/deliver"
	"fanfare.dev/fanfare/internal/registry"
	"fanfare.dev/fanfare/internal/store/deliveries"
	"fanfare.dev/fanfare/internal/store/retry"
)

// dispatch moves the batches of one channel and lane from the bus to the
// outlet: one memory-bounded loop, a batch at a time, each broadcast in turn.
type dispatch struct {
	queue    *bus.Queue
	outlet   *deliver.Sender
	loader   *loader
	registry *registry.Registry
	store    *deliveries.Store
	channel  uint16
	lane     fanfare.Lane
	clock    clock.Clock
	logger   *slog.Logger
	beside   func(func()) // runs something that a drain waits for
	files    allowance
}

// run works until ctx ends or the bus closes.
func (d *dispatch) run(ctx context.Context) {
	waiting := newTurns(d.queue, d.outlet, d.lane, func(l *bus.Lease, err error) { d.fail(ctx, l, err) })
	defer waiting.giveBack()
	for {
		next, err := waiting.next(ctx)
		if err != nil {
			return
		}
		if err := retry.WhileAway(ctx, func() error { return d.hand(ctx, next) }); err != nil {
			d.fail(ctx, next.lease, err)
		}
	}
}

// hand loads a batch and gives it to the outlet, which calls Finish when it is
// done with it.
func (d *dispatch) hand(ctx context.Context, h hint) error {
	lease, batch := h.lease, h.batch
	channel, ok := d.registry.Channel(d.channel)
	if !ok {
		if err := d.loader.cancelAll(ctx, batch); err != nil {
			return err
		}
		return lease.Done()
	}
	if err := d.files.wait(ctx); err != nil {
		return err
	}
	out, err := d.loader.load(ctx, batch, channel)
	if err != nil {
		return err
	}
	d.files.add(out.enclosed)
	if failpoint.Fault("acknowledge-before-record") {
		_ = lease.Done() // the crash test must notice
	}
	d.releaseUnused(out)
	d.outlet.Submit(&deliver.Batch{
		Lane: d.lane, Flow: h.flow, Jobs: out.jobs, LeaseEnd: lease.Until,
		JobDone: func(job *deliver.Job) { d.loader.claims.release(job.Message.Delivery) },
		Finish: func(held, again int) {
			d.loader.memory.release(out)
			d.files.add(-out.enclosed)
			d.finish(context.WithoutCancel(ctx), lease, batch, out, held, again)
		},
	})
	return nil
}

// releaseUnused ends the claims on members that did not become jobs, which stand in
// the order in which they leave.
func (d *dispatch) releaseUnused(out *loaded) {
	if len(out.jobs) == len(out.mine) {
		return
	}
	used := make(map[fanfare.DeliveryRef]struct{}, len(out.jobs))
	for i := range out.jobs {
		used[out.jobs[i].Message.Delivery] = struct{}{}
	}
	d.loader.claims.release(slices.DeleteFunc(out.mine, func(ref fanfare.DeliveryRef) bool {
		_, is := used[ref]
		return is
	})...)
}

// finish takes a batch off the bus when all of it is settled, deferred or held.
// It runs while connections wait, so what may take long is done beside them.
func (d *dispatch) finish(ctx context.Context, lease *bus.Lease, batch *fanfare.Batch, out *loaded, held, again int) {
	failpoint.Hit("before-batch-ack")
	var err error
	switch {
	case out.busy > 0:
		err = lease.Later(retry.Pause)
	case again > 0, out.left > 0:
		err = lease.Later(0)
	case held > 0:
		d.beside(func() { d.hold(ctx, lease, *batch) }) // which of its slices are over is read on resume
		return
	case len(out.held) > 0:
		batch.Slices = out.held
		d.beside(func() { d.hold(ctx, lease, *batch) })
		return
	default:
		err = lease.Done()
	}
	failpoint.Hit("after-batch-ack")
	if err != nil {
		d.logger.Warn("a batch could not be taken off, it comes again", "error", err)
	}
}

// hold keeps a paused batch in the store, where it holds no slot.
func (d *dispatch) hold(ctx context.Context, lease *bus.Lease, batch fanfare.Batch) {
	err := d.store.Hold(ctx, &batch)
	if err == nil {
		err = lease.Done()
	}
	if err == nil && !d.loader.switches.holds(&batch) { // resumed meanwhile: that has not seen it
		d.loader.switches.resumed(ctx)
	}
	if err != nil {
		d.logger.Log(ctx, min(retry.LogLevel(err), bus.FailureLevel(ctx, err)), "a paused batch could not be held, it comes again", "error", err)
		if err := lease.Later(retry.Pause); err != nil {
			d.logger.Warn("a batch could not be given back, it comes again", "error", err)
		}
	}
}

// fail gives a batch back, or parks it when it has failed too often.
func (d *dispatch) fail(ctx context.Context, lease *bus.Lease, cause error) {
	if ctx.Err() != nil {
		return // stopping: the lease ends by itself
	}
	d.logger.Error("a batch could not be loaded", "error", cause, "failures", lease.Deliveries)
	if lease.Deliveries >= fanfare.MaxFailures {
		err := d.park(ctx, lease, cause)
		if err == nil {
			err = lease.Done()
		}
		if err == nil {
			return
		}
		d.logger.Log(ctx, bus.FailureLevel(ctx, err), "a batch could not be parked, it comes again", "error", err)
	}
	if err := lease.Later(retry.Pause); err != nil {
		d.logger.Warn("a batch could not be given back, it comes again", "error", err)
	}
}

// park keeps a batch for an operator. One that cannot be read any more belongs
// to no event; it is kept all the same, under the day on which it came.
func (d *dispatch) park(ctx context.Context, lease *bus.Lease, cause error) error {
	parked := fanfare.Parked{Kind: fanfare.ParkedBatch, Reason: cause.Error(), Failures: lease.Deliveries, At: d.clock.Now()}
	day, event := fanfare.DayOf(lease.Kept), fanfare.EventSeq(0)
	var batch fanfare.Batch
	if json.Unmarshal(lease.Data, &batch) == nil && len(batch.Slices) > 0 {
		day, event, parked.Members = batch.Day, batch.Slices[0].Manifest.Event(), batch.Members()
	}
	return d.store.Park(ctx, day, event, parked, lease.Data)
}
