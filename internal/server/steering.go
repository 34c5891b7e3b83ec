package server

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/deliver/limit"
	"fanfare.dev/fanfare/internal/registry"
)

// loadControls reads what was said of the broadcasts of some days before this
// start: which wait for approval, and how fast others may leave.
func (s *switches) loadControls(ctx context.Context, days []fanfare.Day, board *switchboard) error {
	for _, day := range days {
		var wrong error
		err := s.store.Controls(ctx, day, func(c fanfare.Control, since time.Time) {
			if err := board.say(c, since); err != nil {
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

// say takes over a control. What a board does not need to know is left to the
// store.
func (b *switchboard) say(c fanfare.Control, since time.Time) error {
	switch c.Name {
	case fanfare.ControlHold:
		if c.Value == "" {
			delete(b.held, c.Event)
		} else {
			b.held[c.Event] = hold{c.Value, since}
		}
	case fanfare.ControlRate:
		if c.Value == "" {
			delete(b.rates, c.Event)
			return nil
		}
		rate, err := registry.ParseRate(c.Value)
		if err != nil {
			return fmt.Errorf("rate of %s: %w", c.Event, err)
		}
		b.rates[c.Event] = rate
	}
	return nil
}

// hold is why a broadcast waits for approval, and since when.
type hold struct {
	reason string
	since  time.Time
}

// Held puts in force that broadcasts wait for approval: the store has it since
// they were frozen. It comes before the first of their batches.
func (s *switches) Held(frozen []*fanfare.MatchResult) {
	s.mu.Lock()
	defer s.mu.Unlock()
	board := s.now.Load().copy()
	for _, f := range frozen {
		ref := f.Posted.Ref()
		if !s.ahead[ref] {
			board.held[ref] = hold{f.Hold, s.clock.Now()}
		}
		delete(s.ahead, ref)
	}
	s.publish(board)
}

// Approve lets a broadcast leave that waits for it.
func (s *switches) Approve(ctx context.Context, id, by string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	ref, err := s.open(ctx, id)
	if err != nil {
		return err
	}
	_, waits := s.now.Load().held[ref]
	if !waits { // or only about to be: it is in the store before it is here
		b, err := s.store.Broadcast(ctx, ref)
		if err != nil {
			return err
		}
		if b.State != fanfare.BroadcastHeld {
			return &fanfare.Error{Code: fanfare.Conflict, Message: "broadcast " + id + " does not wait for approval", Hint: "`fanfare status` shows those that do; one that is paused is resumed"}
		}
	}
	err = s.control(ctx, ref, fanfare.Control{Event: ref, Name: fanfare.ControlHold}, fanfare.Control{Event: ref, Name: fanfare.ControlApproved, Value: by})
	if err != nil {
		return err
	}
	if !waits {
		s.ahead[ref] = true
	}
	s.resumed(ctx) // from here on it is approved, whatever happens
	return nil
}

// SetRate sets how fast a broadcast or a channel may leave: a rate as a document
// has it. A broadcast that is unlimited has the channel's; "configured" is what
// the document says of a channel.
func (s *switches) SetRate(ctx context.Context, scope fanfare.Scope, text string) error {
	rate, err := registry.ParseRate(text)
	configured := text == rateConfigured && scope.Kind == fanfare.ScopeChannel
	if err != nil && !configured {
		return &fanfare.Error{Code: fanfare.Invalid, Pointer: "/rate", Message: err.Error(), Hint: "write it as 30/s, 1000/min, 5000/h or unlimited; of a channel also: configured"}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch scope.Kind {
	case fanfare.ScopeChannel:
		asked := &rate
		if configured {
			asked = nil
		}
		if err := s.registry.SetChannelRate(ctx, scope.Name, asked); err != nil {
			return err
		}
		return s.reconfigured(context.WithoutCancel(ctx))
	case fanfare.ScopeBroadcast:
		ref, err := s.open(ctx, scope.Name)
		if err != nil {
			return err
		}
		c := fanfare.Control{Event: ref, Name: fanfare.ControlRate, Value: text}
		if rate == (registry.Rate{}) {
			c.Value = ""
		}
		return s.control(ctx, ref, c)
	}
	return &fanfare.Error{Code: fanfare.Invalid, Pointer: "/scope/kind", Message: fmt.Sprintf("%q has no rate of its own", scope.Kind), Hint: "use channel or broadcast"}
}

// rateConfigured takes back what was set by hand.
const rateConfigured = "configured"

// control keeps controls of a broadcast and puts them in force.
func (s *switches) control(ctx context.Context, ref fanfare.EventRef, controls ...fanfare.Control) error {
	now := s.clock.Now()
	if err := s.store.SetControls(ctx, ref.Day, controls, now); err != nil {
		return err
	}
	board := s.now.Load().copy()
	for _, c := range controls {
		if err := board.say(c, now); err != nil {
			return err
		}
	}
	s.publish(board)
	s.paces.set(board.rates, now)
	s.hurry()
	return nil
}

// heldBroadcasts lists the broadcasts that wait for approval and are not over, the
// longest first.
func (s *switches) heldBroadcasts() []fanfare.EventRef {
	held := s.now.Load().held
	refs := slices.DeleteFunc(slices.Collect(maps.Keys(held)), func(ref fanfare.EventRef) bool {
		_, open := s.recorder.Progress(ref)
		return !open
	})
	slices.SortFunc(refs, func(a, b fanfare.EventRef) int { return held[a].since.Compare(held[b].since) })
	return refs
}

// paces keep the rates of broadcasts that have one, over all channels and
// connections. Those that have none cost a look at a map.
type paces struct {
	of atomic.Pointer[map[fanfare.EventRef]*pace]
}

type pace struct {
	mu   sync.Mutex
	rate limit.Rate
}

// set puts rates in force. Those that stay go on as they were.
func (p *paces) set(rates map[fanfare.EventRef]registry.Rate, now time.Time) {
	was := p.of.Load()
	is := make(map[fanfare.EventRef]*pace, len(rates))
	for ref, rate := range rates {
		one := &pace{}
		if was != nil && (*was)[ref] != nil {
			one = (*was)[ref]
		}
		one.mu.Lock()
		one.rate.Set(rate.PerSecond(), now)
		one.mu.Unlock()
		is[ref] = one
	}
	p.of.Store(&is)
}

func (p *paces) find(event fanfare.EventRef) *pace {
	all := p.of.Load()
	if all == nil || len(*all) == 0 {
		return nil
	}
	return (*all)[event]
}

// GroupSize returns the size of the next group of a broadcast, where most messages may
// leave together, and whether it has a rate.
func (p *paces) GroupSize(event fanfare.EventRef, most int) (n int, limited bool) {
	one := p.find(event)
	if one == nil {
		return most, false
	}
	one.mu.Lock()
	defer one.mu.Unlock()
	return one.rate.GroupSize(most), one.rate.Limited()
}

// Take counts n messages of a broadcast that leave together now, or tells how long
// they have to wait.
func (p *paces) Take(event fanfare.EventRef, n int, now time.Time) time.Duration {
	one := p.find(event)
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

// Refund gives back a message that was counted and did not leave.
func (p *paces) Refund(event fanfare.EventRef) {
	if one := p.find(event); one != nil {
		one.mu.Lock()
		defer one.mu.Unlock()
		one.rate.Refund()
	}
}
