package control

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/pipeline/deliver/limit"
)

// loadControls reads the stored controls of the broadcasts of some days: holds for approval, and rates.
func (s *Switches) loadControls(ctx context.Context, days []fanfare.Day, next *snapshot) error {
	for _, day := range days {
		var wrong error
		err := s.options.Store.Controls(ctx, day, func(c fanfare.Control, since time.Time) {
			if err := next.apply(c, since); err != nil {
				wrong = err
			}
		})
		if err == nil {
			err = wrong
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// apply applies a control to a new snapshot. It ignores controls that only the store uses.
func (b *snapshot) apply(c fanfare.Control, since time.Time) error {
	switch c.Name {
	case fanfare.ControlHold:
		if c.Value == "" {
			delete(b.held, c.Event)
		} else {
			b.held[c.Event] = approvalHold{c.Value, since}
		}
	case fanfare.ControlRate:
		if c.Value == "" {
			delete(b.rates, c.Event)
			return nil
		}
		rate, err := catalog.ParseRate(c.Value)
		if err != nil {
			return fmt.Errorf("rate of %s: %w", c.Event, err)
		}
		b.rates[c.Event] = rate
	}
	return nil
}

// approvalHold stores why a broadcast waits for approval, and since when.
type approvalHold struct {
	reason string
	since  time.Time
}

// Held holds broadcasts for approval. The store already contains the hold; the caller calls Held before it publishes the first of their batches.
func (s *Switches) Held(frozen []*fanfare.MatchResult) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := s.current.Load().copy()
	for _, f := range frozen {
		ref := f.Posted.Ref()
		if !s.approvedEarly[ref] {
			next.held[ref] = approvalHold{f.Hold, s.options.Clock.Now()}
		}
		delete(s.approvedEarly, ref)
	}
	s.publish(next)
}

// Approve releases a broadcast that waits for approval.
func (s *Switches) Approve(ctx context.Context, id, by string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	ref, err := s.findOpen(ctx, id)
	if err != nil {
		return err
	}
	_, waits := s.current.Load().held[ref]
	if !waits { // the store may have the hold before Held is called
		b, err := s.options.Store.Broadcast(ctx, ref)
		if err != nil {
			return err
		}
		if b.State != fanfare.BroadcastHeld {
			return &fanfare.Error{Code: fanfare.Conflict, Message: "broadcast " + id + " does not wait for approval", Hint: "`fanfare status` lists the broadcasts that wait for approval; to continue a paused broadcast, use resume"}
		}
	}
	err = s.setControls(ctx, ref, fanfare.Control{Event: ref, Name: fanfare.ControlHold}, fanfare.Control{Event: ref, Name: fanfare.ControlApproved, Value: by})
	if err != nil {
		return err
	}
	if !waits {
		s.approvedEarly[ref] = true
	}
	s.Release(ctx) // the approval is durable, even if this fails
	return nil
}

// SetRate sets the rate of a broadcast or a channel, in the notation of documents. An unlimited broadcast has the rate of its channel.
// "configured" restores the rate of a channel from its document.
func (s *Switches) SetRate(ctx context.Context, scope fanfare.Scope, text string) error {
	rate, err := catalog.ParseRate(text)
	configured := text == rateConfigured && scope.Kind == fanfare.ScopeChannel
	if err != nil && !configured {
		return &fanfare.Error{Code: fanfare.Invalid, Pointer: "/rate", Message: err.Error(), Hint: "write it as 30/s, 1000/min, 5000/h or unlimited; for a channel, configured is also valid"}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch scope.Kind {
	case fanfare.ScopeChannel:
		asked := &rate
		if configured {
			asked = nil
		}
		if err := s.options.Registry.SetChannelRate(ctx, scope.Name, asked); err != nil {
			return err
		}
		return s.options.ApplyRates(context.WithoutCancel(ctx))
	case fanfare.ScopeBroadcast:
		ref, err := s.findOpen(ctx, scope.Name)
		if err != nil {
			return err
		}
		c := fanfare.Control{Event: ref, Name: fanfare.ControlRate, Value: text}
		if rate == (catalog.Rate{}) {
			c.Value = ""
		}
		return s.setControls(ctx, ref, c)
	}
	return &fanfare.Error{Code: fanfare.Invalid, Pointer: "/scope/kind", Message: fmt.Sprintf("%q cannot have its own rate", scope.Kind), Hint: "use channel or broadcast"}
}

// rateConfigured restores the configured rate of a channel.
const rateConfigured = "configured"

// setControls stores controls of a broadcast and makes them current.
func (s *Switches) setControls(ctx context.Context, ref fanfare.EventRef, controls ...fanfare.Control) error {
	now := s.options.Clock.Now()
	if err := s.options.Store.SetControls(ctx, ref.Day, controls, now); err != nil {
		return err
	}
	next := s.current.Load().copy()
	for _, c := range controls {
		if err := next.apply(c, now); err != nil {
			return err
		}
	}
	s.publish(next)
	s.rates.set(next.rates, now)
	s.options.RatesChanged()
	return nil
}

// HeldBroadcasts lists the open broadcasts that wait for approval, longest wait first.
func (s *Switches) HeldBroadcasts() []fanfare.EventRef {
	held := s.current.Load().held
	refs := slices.DeleteFunc(slices.Collect(maps.Keys(held)), func(ref fanfare.EventRef) bool {
		_, open := s.options.Recorder.Progress(ref)
		return !open
	})
	slices.SortFunc(refs, func(a, b fanfare.EventRef) int { return held[a].since.Compare(held[b].since) })
	return refs
}

// BroadcastRates enforce the rates of broadcasts over all channels and connections. A broadcast without a rate costs one
// lookup in a map.
type BroadcastRates struct {
	rates atomic.Pointer[map[fanfare.EventRef]*broadcastRate]
}

type broadcastRate struct {
	mu   sync.Mutex
	rate limit.Rate
}

// set makes rates current. Rates that do not change keep their state.
func (b *BroadcastRates) set(rates map[fanfare.EventRef]catalog.Rate, now time.Time) {
	previous := b.rates.Load()
	next := make(map[fanfare.EventRef]*broadcastRate, len(rates))
	for ref, rate := range rates {
		one := &broadcastRate{}
		if previous != nil && (*previous)[ref] != nil {
			one = (*previous)[ref]
		}
		one.mu.Lock()
		one.rate.Set(rate.PerSecond(), now)
		one.mu.Unlock()
		next[ref] = one
	}
	b.rates.Store(&next)
}

func (b *BroadcastRates) find(event fanfare.EventRef) *broadcastRate {
	all := b.rates.Load()
	if all == nil || len(*all) == 0 {
		return nil
	}
	return (*all)[event]
}

// GroupSize returns how many messages of a broadcast, at most most, may be sent together, and reports whether the broadcast has a rate.
func (b *BroadcastRates) GroupSize(event fanfare.EventRef, most int) (n int, limited bool) {
	one := b.find(event)
	if one == nil {
		return most, false
	}
	one.mu.Lock()
	defer one.mu.Unlock()
	return one.rate.GroupSize(most), one.rate.Limited()
}

// Take counts n messages of a broadcast that are about to be sent together, or returns how long they must wait.
func (b *BroadcastRates) Take(event fanfare.EventRef, n int, now time.Time) time.Duration {
	one := b.find(event)
	if one == nil {
		return 0
	}
	one.mu.Lock()
	defer one.mu.Unlock()
	wait := one.rate.WaitFor(n, false, now)
	if wait == 0 {
		one.rate.TakeFor(n, now)
	}
	return wait
}

// Refund returns a message that was counted and not sent.
func (b *BroadcastRates) Refund(event fanfare.EventRef) {
	if one := b.find(event); one != nil {
		one.mu.Lock()
		defer one.mu.Unlock()
		one.rate.Refund()
	}
}
