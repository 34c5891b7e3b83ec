package sends

import (
	"context"
	"errors"
	"fmt"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/failpoint"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/pipeline/ingest/messages"
	"fanfare.dev/fanfare/internal/store/control"
	"fanfare.dev/fanfare/internal/store/retry"
)

const (
	// maxOpenParts limits the parts of a send that are on their way at the same time, so that a pause or a cancellation reaches the others.
	maxOpenParts = 4
	// lookEvery is how often Run looks for sends that are due.
	lookEvery = time.Second
	// lookAgain is how often a driver looks at its open broadcasts if nothing wakes it.
	lookAgain = 30 * time.Second
	// maxPause is the longest time between two attempts at a part, after temporary errors.
	maxPause = 30 * time.Second
	// queuedPause is how long a driver waits for a broadcast that is not matched yet.
	queuedPause = 100 * time.Millisecond
	// settledPatience limits how long a request waits until its effect has reached the broadcasts.
	settledPatience = 10 * time.Second
	tidyEvery       = time.Hour
	day             = 24 * time.Hour
)

// Run sends what is due, and deletes what ended long ago, until ctx ends. It returns when nothing is in progress.
func (s *Sends) Run(ctx context.Context) {
	defer s.drivers.Wait()
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	var tidied time.Time
	for {
		s.mu.Lock()
		all := make([]*entry, 0, len(s.byID))
		for _, e := range s.byID {
			all = append(all, e)
		}
		s.mu.Unlock()
		now := s.Clock.Now()
		tidying := now.Sub(tidied) >= tidyEvery
		for _, e := range all {
			s.look(ctx, e, now, tidying)
		}
		if tidying {
			tidied = now
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-s.wake:
		}
	}
}

// wakeUp makes Run look at all sends.
func (s *Sends) wakeUp() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// look starts a driver if a send needs one, and deletes a send that ended long ago.
func (s *Sends) look(ctx context.Context, e *entry, now time.Time, tidying bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	x := &e.send
	if e.gone || e.driving {
		return
	}
	due := x.State == wire.SendScheduled && !x.SendAt.After(now)
	if !due && !x.needsDriver() {
		if tidying && !x.EndedAt.IsZero() && now.Sub(x.EndedAt) > s.Keep {
			if err := s.delete(ctx, e); err != nil && ctx.Err() == nil {
				s.Logger.Warn("cannot delete a send that ended long ago; retrying", "send", x.ID, "error", err)
			}
		}
		return
	}
	if due {
		err := s.change(ctx, e, func(x *send) error {
			x.State, x.StartedAt, x.Settled = wire.SendSending, now.UTC(), true
			return nil
		})
		if err != nil {
			if ctx.Err() == nil {
				s.Logger.Log(ctx, retry.LogLevel(err), "cannot begin a send; retrying", "send", x.ID, "error", err)
			}
			return
		}
	}
	e.driving = true
	s.drivers.Go(func() {
		d := &driver{sends: s, entry: e, settled: make(chan struct{}, 1)}
		d.run(ctx)
		e.mu.Lock()
		e.driving = false
		e.mu.Unlock()
		s.wakeUp() // the state may have changed at the last moment
	})
}

// needsDriver reports whether there is work to do for a send.
func (x *send) needsDriver() bool {
	return x.State == wire.SendSending || !x.Settled && !x.StartedAt.IsZero() && (x.State == wire.SendPaused || x.State == wire.SendCancelled)
}

// awaitSettled returns when the state of a send has reached its broadcasts, or after a time.
func (s *Sends) awaitSettled(ctx context.Context, e *entry) {
	limit := time.NewTimer(settledPatience)
	defer limit.Stop()
	for {
		e.mu.Lock()
		waits, changed := !e.send.Settled && !e.send.StartedAt.IsZero(), e.changed
		e.mu.Unlock()
		if !waits {
			return
		}
		select {
		case <-changed:
		case <-limit.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// A driver sends, pauses or cancels one send.
type driver struct {
	sends   *Sends
	entry   *entry
	open    map[fanfare.EventRef]func() // broadcasts that are not completed, and the functions that forget them
	settled chan struct{}               // a broadcast was completed
}

// run works until the send needs nothing more, or ctx ends.
func (d *driver) run(ctx context.Context) {
	defer func() {
		for _, forget := range d.open {
			forget()
		}
	}()
	pause := time.Second
	for {
		x, changed := d.current()
		if !x.needsDriver() || ctx.Err() != nil {
			return
		}
		err := d.step(ctx, &x, changed)
		if err == nil || errors.Is(err, errStopped) {
			pause = time.Second
			continue
		}
		if ctx.Err() != nil {
			return
		}
		if permanent(err) && x.State == wire.SendSending {
			d.fail(ctx, err)
			continue
		}
		d.sends.Logger.Log(ctx, retry.LogLevel(err), "cannot continue a send; retrying", "send", x.ID, "state", x.State, "error", err)
		d.wait(ctx, changed, pause)
		pause = min(2*pause, maxPause)
	}
}

// current returns the send and a channel that is closed when it changes.
func (d *driver) current() (send, <-chan struct{}) {
	d.entry.mu.Lock()
	defer d.entry.mu.Unlock()
	return d.entry.send, d.entry.changed
}

// wait returns after a time, or when the send changes.
func (d *driver) wait(ctx context.Context, changed <-chan struct{}, most time.Duration) {
	limit := time.NewTimer(most)
	defer limit.Stop()
	select {
	case <-changed:
	case <-d.settled:
	case <-limit.C:
	case <-ctx.Done():
	}
}

// permanent reports whether repeating does not help.
func permanent(err error) bool {
	switch fanfare.CodeOf(err) {
	case fanfare.Invalid, fanfare.NotFound, fanfare.Conflict, fanfare.TooLarge, fanfare.Forbidden:
		return true
	}
	return false
}

// fail pauses the send until an operator has corrected the cause of an error.
func (d *driver) fail(ctx context.Context, cause error) {
	e := d.entry
	e.mu.Lock()
	defer e.mu.Unlock()
	err := d.sends.change(ctx, e, func(x *send) error {
		if x.State != wire.SendSending {
			return nil
		}
		x.State, x.Settled = wire.SendPaused, false
		x.Uncertain = errors.Is(cause, errUncertain)
		x.Reason = fmt.Sprintf("part %d of %d cannot be sent: %v", x.Next+1, x.List.Chunks, cause)
		return nil
	})
	d.sends.Logger.Warn("a send was paused because a part of it cannot be sent", "send", e.send.ID, "error", cause, "stored", err == nil)
}

// step does a part of the work.
func (d *driver) step(ctx context.Context, x *send, changed <-chan struct{}) error {
	if err := d.look(ctx, x); err != nil {
		return err
	}
	if !x.Settled {
		return d.settle(ctx, x, changed)
	}
	switch {
	case x.Next < x.List.Chunks && len(d.open) < maxOpenParts:
		return d.sendPart(ctx, x)
	case len(d.open) == 0:
		return d.edit(ctx, func(x *send) {
			if x.State == wire.SendSending && x.Next == x.List.Chunks {
				x.State, x.EndedAt = wire.SendCompleted, d.sends.Clock.Now().UTC()
			}
		})
	}
	d.wait(ctx, changed, lookAgain)
	return nil
}

// edit changes the send.
func (d *driver) edit(ctx context.Context, edit func(x *send)) error {
	d.entry.mu.Lock()
	defer d.entry.mu.Unlock()
	return d.sends.change(ctx, d.entry, func(x *send) error {
		edit(x)
		return nil
	})
}

// look finds the broadcasts that are not completed.
func (d *driver) look(ctx context.Context, x *send) error {
	if d.open == nil { // the beginning
		parts, err := d.sends.Store.SendParts(ctx, x.ID)
		if err != nil {
			return err
		}
		d.open = map[fanfare.EventRef]func(){}
		for i := range parts {
			if ref, ok := fanfare.ParseEventRef(parts[i].Event); ok {
				d.watch(ctx, ref)
			}
		}
	}
	for ref := range d.open {
		b, err := d.sends.Traces.Broadcast(ctx, ref)
		if fanfare.CodeOf(err) == fanfare.NotFound && err != nil || err == nil && !b.Stages.Completed.IsZero() {
			d.open[ref]()
			delete(d.open, ref)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// watch adds an open broadcast.
func (d *driver) watch(ctx context.Context, ref fanfare.EventRef) {
	done, forget := d.sends.Messages.Await(ref)
	ended, end := context.WithCancel(ctx)
	d.open[ref] = func() {
		end()
		forget()
	}
	go func() {
		select {
		case <-done:
		case <-ended.Done():
			return
		}
		select {
		case d.settled <- struct{}{}:
		default:
		}
	}()
}

// settle makes the open broadcasts take over the state of the send. A broadcast that is not matched yet takes it over when it is.
func (d *driver) settle(ctx context.Context, x *send, changed <-chan struct{}) error {
	do, reason := d.sends.Switches.Resume, x.Reason
	switch x.State {
	case wire.SendPaused:
		do = d.sends.Switches.Pause
	case wire.SendCancelled:
		do = d.sends.Switches.Cancel
	}
	if reason == "" {
		reason = "send " + x.ID + " is " + x.State
	}
	waiting := false
	for ref := range d.open {
		err := do(ctx, fanfare.Scope{Kind: fanfare.ScopeBroadcast, Name: ref.String()}, reason)
		switch fanfare.CodeOf(err) {
		case fanfare.NotFound: // not matched yet
			waiting = waiting || err != nil
		case fanfare.Conflict: // it has ended
		default:
			if err != nil {
				return err
			}
		}
	}
	if waiting {
		d.wait(ctx, changed, queuedPause)
		return nil
	}
	return d.edit(ctx, func(now *send) {
		now.Settled = now.Settled || now.State == x.State
	})
}

// errStopped is the error of a step during which the send was paused or cancelled.
var errStopped = errors.New("the send was stopped")

// errUncertain is in the chain of an error about a part that may have been sent so long ago that its event is not stored any more.
var errUncertain = errors.New("uncertain")

// sendPart sends the next part, and stores its outcome.
func (d *driver) sendPart(ctx context.Context, x *send) error {
	s := d.sends
	defer s.Accepting.Enter()() // an erasure waits for the rows that are read here
	rows, err := s.rows(ctx, x, x.Next)
	if err != nil {
		return err
	}
	part := &messages.Part{Send: x.ID, Number: int(x.Next), Request: x.request(), Begun: x.Begun}
	for i := range rows {
		if rows[i].valid() {
			part.Request.Recipients = append(part.Request.Recipients, rows[i].recipient())
		}
	}
	var o messages.PartOutcome
	if len(part.Request.Recipients) > 0 {
		if o, err = d.send(ctx, x, part); err != nil {
			return err
		}
	}
	failpoint.Hit("after-send-part")
	outcome, err := pack([]storedOutcome{{Places: o.Rows, Refused: o.Refused}})
	if err != nil {
		return err
	}
	stored := &control.SendPart{Send: x.ID, Part: x.Next, At: s.Clock.Now().UnixNano(), Outcome: outcome}
	if o.Event != (fanfare.EventRef{}) {
		stored.Event = o.Event.String()
	}
	if err := d.record(context.WithoutCancel(ctx), stored, len(part.Request.Recipients)-len(o.Refused), len(o.Refused)); err != nil {
		return err
	}
	if o.Event != (fanfare.EventRef{}) {
		d.watch(ctx, o.Event)
	}
	return nil
}

// send sends a part. Before, it stores that the part begins, so that the next start looks it up.
func (d *driver) send(ctx context.Context, x *send, part *messages.Part) (messages.PartOutcome, error) {
	s := d.sends
	now := s.Clock.Now().UTC()
	if part.Begun.IsZero() {
		stopped := false
		err := d.edit(ctx, func(x *send) {
			if stopped = x.State != wire.SendSending; !stopped {
				x.Begun = now
			}
		})
		if err != nil {
			return messages.PartOutcome{}, err
		}
		if stopped {
			return messages.PartOutcome{}, errStopped
		}
		failpoint.Hit("before-send-part")
		return s.Messages.SendPart(ctx, x.Service, part)
	}
	part.Only = now.Sub(part.Begun) > s.Record-day
	o, err := s.Messages.SendPart(ctx, x.Service, part)
	if errors.Is(err, messages.ErrNotSent) {
		err = fmt.Errorf("%w: %w", &fanfare.Error{Code: fanfare.Conflict, Message: fmt.Sprintf("it began at %s, and its event may have been deleted since", part.Begun.Format(time.RFC3339)),
			Hint: "find out whether its recipients got it; then resume the send to send the part, or cancel it"}, errUncertain)
	}
	return o, err
}

// record stores that a part was sent.
func (d *driver) record(ctx context.Context, part *control.SendPart, sent, refused int) error {
	e := d.entry
	e.mu.Lock()
	defer e.mu.Unlock()
	x := e.send
	x.Next, x.Begun = part.Part+1, time.Time{}
	x.Sent, x.RefusedRows = x.Sent+int64(sent), x.RefusedRows+int64(refused)
	record, err := x.record()
	if err == nil {
		err = d.sends.Store.PutSend(ctx, record, part)
	}
	if err != nil {
		return err
	}
	e.set(x)
	return nil
}
