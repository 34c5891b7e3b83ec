package control

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/people/registry"
	"fanfare.dev/fanfare/internal/pipeline/deliver"
	"fanfare.dev/fanfare/internal/pipeline/deliver/channels"
	"fanfare.dev/fanfare/internal/store/deliveries"
)

// Recorder knows the broadcasts that are not completed.
type Recorder interface {
	Open(most int) []fanfare.EventRef
	Progress(event fanfare.EventRef) (p fanfare.Progress, open bool)
}

// Options are the components that Switches needs.
type Options struct {
	Registry *registry.Registry
	Store    *deliveries.Store
	Recorder Recorder
	Due      DueWork
	Faults   *channels.Faults
	Clock    clock.Clock
	Logger   *slog.Logger

	DrainRelay   func(name string, drained bool)
	ApplyRates   func(context.Context) error // enforces the rates of channels
	DropStopped  func()                      // removes messages that may no longer be sent from the queues of channels
	RatesChanged func()                      // tells the channels that rates of broadcasts have changed
}

// Switches stop and start work by scope. A change is durable before its call returns. Every connection reads the
// switches before each message, without a lock.
type Switches struct {
	options  Options
	rates    BroadcastRates
	releaser releaser

	mu            sync.Mutex                // held during a change
	approvedEarly map[fanfare.EventRef]bool // approved after the store held them and before Held was called
	current       atomic.Pointer[snapshot]
}

// New returns Switches; Load reads the stored state.
func New(o Options) *Switches {
	s := &Switches{options: o, approvedEarly: map[fanfare.EventRef]bool{}, releaser: newReleaser(o.Due, o.Store, o.Logger)}
	s.releaser.holds = s.Holds
	return s
}

// Rates enforces the rates of the broadcasts that have their own rate.
func (s *Switches) Rates() *BroadcastRates { return &s.rates }

// snapshot is the state of all switches at one moment, with reasons. It is immutable.
type snapshot struct {
	all        *string
	services   map[string]string
	channels   map[channelName]string
	broadcasts map[target]broadcastSwitch
	held       map[fanfare.EventRef]approvalHold // wait for approval
	rates      map[fanfare.EventRef]catalog.Rate // broadcasts that have their own rate
	faults     *channels.Faults                  // nil: none
}

func newSnapshot() *snapshot {
	return &snapshot{broadcasts: map[target]broadcastSwitch{}, held: map[fanfare.EventRef]approvalHold{}, rates: map[fanfare.EventRef]catalog.Rate{}}
}

// broadcastSwitch is the switch of a broadcast, and the time since when it is set.
type broadcastSwitch struct {
	fanfare.Switch
	since time.Time
}

// target is a broadcast, or its part in one channel. Channel 0 means all channels.
type target struct {
	event   fanfare.EventRef
	channel uint16
}

type channelName struct{ service, name string }

// Load reads the stored switches of some days.
func (s *Switches) Load(ctx context.Context, days []fanfare.Day) error {
	next := newSnapshot()
	for _, day := range days {
		err := s.options.Store.Switches(ctx, day, func(sw fanfare.Switch, since time.Time) {
			next.broadcasts[target{sw.Event, sw.Channel}] = broadcastSwitch{sw, since}
		})
		if err != nil {
			return err
		}
	}
	if err := s.loadControls(ctx, days, next); err != nil {
		return err
	}
	s.publish(next)
	s.rates.set(next.rates, s.options.Clock.Now())
	return nil
}

// publish makes a snapshot current. It adds the scopes that the registry stores.
func (s *Switches) publish(next *snapshot) {
	next.faults = s.options.Faults
	next.all, next.services, next.channels = nil, map[string]string{}, map[channelName]string{}
	for _, p := range s.options.Registry.Paused() {
		switch p.Scope.Kind {
		case fanfare.ScopeAll:
			next.all = &p.Reason
		case fanfare.ScopeService:
			next.services[p.Scope.Name] = p.Reason
		case fanfare.ScopeChannel:
			service, name, _ := strings.Cut(p.Scope.Name, "/")
			next.channels[channelName{service, name}] = p.Reason
		}
	}
	s.current.Store(next)
}

// Decide returns whether messages of a broadcast may be sent over a channel, and if not, why.
func (s *Switches) Decide(event fanfare.EventRef, channel *catalog.Channel) (deliver.Decision, string) {
	return s.current.Load().decide(event, channel)
}

func (b *snapshot) decide(event fanfare.EventRef, channel *catalog.Channel) (deliver.Decision, string) {
	whole, paused := b.broadcasts[target{event, 0}]
	for _, sw := range [...]broadcastSwitch{whole, b.broadcasts[target{event, channel.Number}]} {
		if sw.State == fanfare.SwitchCancelled {
			return deliver.Cancel, sw.Reason // final, even if the broadcast is also paused
		}
	}
	fault := b.faults.Of(channel.Number)
	if fault != nil && fault.Deleted {
		return deliver.Cancel, fault.Reason
	}
	if paused {
		return deliver.Hold, whole.Reason
	}
	if h, waits := b.held[event]; waits {
		return deliver.Hold, h.reason
	}
	if reason, ok := b.channelPaused(channel); ok {
		return deliver.Hold, reason
	}
	if fault != nil {
		return deliver.Hold, fault.Reason
	}
	return deliver.Go, ""
}

// channelPaused reports whether a channel is paused, either by itself, with its service or with everything, and why.
func (b *snapshot) channelPaused(channel *catalog.Channel) (reason string, is bool) {
	if b.all != nil {
		return *b.all, true
	}
	if reason, is = b.services[channel.Service]; is {
		return reason, true
	}
	reason, is = b.channels[channelName{channel.Service, channel.Name}]
	return reason, is
}

// holds reports whether a whole batch is paused.
func (b *snapshot) holds(batch *fanfare.Batch, channel *catalog.Channel) bool {
	for i := range batch.Slices {
		event := fanfare.EventRef{Day: batch.Day, Seq: batch.Slices[i].Manifest.Event()}
		if decision, _ := b.decide(event, channel); decision != deliver.Hold {
			return false
		}
	}
	return true
}

// Pause pauses a scope. Messages that are being sent are finished; no new ones are sent.
func (s *Switches) Pause(ctx context.Context, scope fanfare.Scope, reason string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if scope.Kind != fanfare.ScopeBroadcast {
		if err := s.options.Registry.SetPaused(ctx, scope, true, reason); err != nil {
			return err
		}
		if scope.Kind == fanfare.ScopeRelay {
			s.options.DrainRelay(scope.Name, true)
			return nil
		}
		s.publish(s.current.Load().copy())
		s.options.DropStopped()
		return nil
	}
	ref, err := s.findOpen(ctx, scope.Name)
	if err != nil {
		return err
	}
	if err := s.set(ctx, []fanfare.Switch{{Event: ref, State: fanfare.SwitchPaused, Reason: reason}}); err != nil {
		return err
	}
	s.options.DropStopped()
	return nil
}

// Resume ends the pause of a scope.
func (s *Switches) Resume(ctx context.Context, scope fanfare.Scope, reason string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if scope.Kind != fanfare.ScopeBroadcast {
		if err := s.options.Registry.SetPaused(ctx, scope, false, reason); err != nil {
			return err
		}
		if scope.Kind == fanfare.ScopeRelay {
			s.options.DrainRelay(scope.Name, false)
			return nil
		}
		s.publish(s.current.Load().copy())
		s.Release(ctx)
		return nil
	}
	ref, err := s.findOpen(ctx, scope.Name)
	if err != nil {
		return err
	}
	next := s.current.Load()
	if _, paused := next.broadcasts[target{ref, 0}]; !paused {
		if h, waits := next.held[ref]; waits {
			return &fanfare.Error{Code: fanfare.Conflict, Message: "broadcast " + scope.Name + " " + h.reason, Hint: "`fanfare approve " + scope.Name + "` releases it; use a key with the approve scope"}
		}
	}
	if err := s.set(ctx, []fanfare.Switch{{Event: ref}}); err != nil {
		return err
	}
	s.Release(ctx)
	return nil
}

// Cancel settles the open deliveries of a scope as cancelled. It does not affect broadcasts that begin later.
func (s *Switches) Cancel(ctx context.Context, scope fanfare.Scope, reason string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	cancelled, err := s.openIn(ctx, scope, reason)
	if err != nil {
		return err
	}
	if err := s.set(ctx, cancelled); err != nil {
		return err
	}
	s.options.DropStopped()
	events := make([]fanfare.EventRef, len(cancelled))
	for i := range cancelled {
		events[i] = cancelled[i].Event
	}
	s.Release(ctx, events...)
	return nil
}

// openIn returns cancelling switches for the open broadcasts of a scope.
func (s *Switches) openIn(ctx context.Context, scope fanfare.Scope, reason string) ([]fanfare.Switch, error) {
	if scope.Kind == fanfare.ScopeBroadcast {
		ref, err := s.findOpen(ctx, scope.Name)
		return []fanfare.Switch{{Event: ref, State: fanfare.SwitchCancelled, Reason: reason}}, err
	}
	service, number := "", uint16(0)
	switch scope.Kind {
	case fanfare.ScopeAll:
	case fanfare.ScopeService:
		service = scope.Name
	case fanfare.ScopeChannel:
		name := ""
		service, name, _ = strings.Cut(scope.Name, "/")
		channel, ok := s.options.Registry.ChannelNamed(service, name)
		if !ok {
			return nil, &fanfare.Error{Code: fanfare.NotFound, Message: fmt.Sprintf("unknown channel %q", scope.Name), Hint: "write service/channel; `fanfare channel list` lists the channels"}
		}
		number = channel.Number
	default:
		return nil, &fanfare.Error{Code: fanfare.Invalid, Pointer: "/scope/kind", Message: fmt.Sprintf("unknown scope %q", scope.Kind), Hint: "use all, service, channel or broadcast"}
	}
	var open []fanfare.Switch
	for _, ref := range s.options.Recorder.Open(math.MaxInt) {
		if service != "" {
			b, err := s.options.Store.Broadcast(ctx, ref)
			if err != nil {
				return nil, err
			}
			if b.Service != service {
				continue
			}
		}
		open = append(open, fanfare.Switch{Event: ref, Channel: number, State: fanfare.SwitchCancelled, Reason: reason})
	}
	return open, nil
}

// findOpen finds a broadcast that is not completed or cancelled.
func (s *Switches) findOpen(ctx context.Context, id string) (fanfare.EventRef, error) {
	ref, ok := fanfare.ParseEventRef(id)
	if !ok {
		return ref, &fanfare.Error{Code: fanfare.Invalid, Pointer: "/scope/name", Message: fmt.Sprintf("%q is not the id of an event", id), Hint: "an event id begins with evt-; `fanfare status` lists the open broadcasts"}
	}
	b, err := s.options.Store.Broadcast(ctx, ref)
	if err != nil {
		return ref, err
	}
	if !b.Stages.Completed.IsZero() || b.State == fanfare.SwitchCancelled {
		return ref, &fanfare.Error{Code: fanfare.Conflict, Message: "broadcast " + id + " has already ended: " + b.State}
	}
	return ref, nil
}

// set stores switches and makes them current.
func (s *Switches) set(ctx context.Context, changes []fanfare.Switch) error {
	now := s.options.Clock.Now()
	byDay := map[fanfare.Day][]fanfare.Switch{}
	for _, sw := range changes {
		byDay[sw.Event.Day] = append(byDay[sw.Event.Day], sw)
	}
	for day, list := range byDay {
		if err := s.options.Store.SetSwitches(ctx, day, list, now); err != nil {
			return err
		}
	}
	next := s.current.Load().copy()
	for _, sw := range changes {
		if sw.State == "" {
			delete(next.broadcasts, target{sw.Event, sw.Channel})
		} else {
			next.broadcasts[target{sw.Event, sw.Channel}] = broadcastSwitch{sw, now}
		}
	}
	s.publish(next)
	return nil
}

func (b *snapshot) copy() *snapshot {
	return &snapshot{broadcasts: maps.Clone(b.broadcasts), held: maps.Clone(b.held), rates: maps.Clone(b.rates)}
}

// PausedBroadcasts lists the broadcasts that are paused and not completed.
func (s *Switches) PausedBroadcasts() []catalog.PausedScope {
	var paused []catalog.PausedScope
	for p, sw := range s.current.Load().broadcasts {
		if _, open := s.options.Recorder.Progress(p.event); open && p.channel == 0 && sw.State == fanfare.SwitchPaused {
			paused = append(paused, catalog.PausedScope{
				Scope: fanfare.Scope{Kind: fanfare.ScopeBroadcast, Name: p.event.String()}, Reason: sw.Reason, Since: sw.since,
			})
		}
	}
	slices.SortFunc(paused, func(a, b catalog.PausedScope) int { return a.Since.Compare(b.Since) })
	return paused
}

// PauseFailing pauses a broadcast whose first messages all failed.
func (s *Switches) PauseFailing(ctx context.Context, ref fanfare.EventRef) error {
	return s.Pause(ctx, fanfare.Scope{Kind: fanfare.ScopeBroadcast, Name: ref.String()}, "all of its first 100 messages failed; fix the cause and resume the broadcast")
}

// Paused returns the pause that stops a channel of a service or, if the channel is "", the whole service.
func (s *Switches) Paused(service, channel string) (why string, is bool) {
	next := s.current.Load()
	scope, reason := "everything", ""
	if is = next.all != nil; is {
		reason = *next.all
	} else if reason, is = next.services[service]; is {
		scope = "service " + service
	} else if reason, is = next.channels[channelName{service, channel}]; is {
		scope = "channel " + service + "/" + channel
	}
	if !is {
		return "", false
	}
	if reason != "" {
		reason = ": " + reason
	}
	return scope + " is paused" + reason, true
}

// AnyChannelPaused reports whether a channel of a service is paused.
func (s *Switches) AnyChannelPaused(service string) bool {
	for name := range s.current.Load().channels {
		if name.service == service {
			return true
		}
	}
	return false
}

// ChannelPaused reports whether a channel is paused, either by itself, with its service or with everything.
func (s *Switches) ChannelPaused(c *catalog.Channel) bool {
	_, is := s.current.Load().channelPaused(c)
	return is
}

// AllPaused reports whether everything is paused.
func (s *Switches) AllPaused() bool { return s.current.Load().all != nil }
