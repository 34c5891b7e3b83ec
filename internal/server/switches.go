package server

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/pipeline/deliver"
	"fanfare.dev/fanfare/internal/pipeline/deliver/channels"
	"fanfare.dev/fanfare/internal/pipeline/record"
	"fanfare.dev/fanfare/internal/registry"
	"fanfare.dev/fanfare/internal/store/deliveries"
)

// switches stop and start work by scope. What they say is durable before they
// answer, and read without a lock by every connection before each message.
type switches struct {
	registry *registry.Registry
	store    *deliveries.Store
	recorder *record.Recorder
	clock    clock.Clock
	paces    *paces
	faults   *channels.Faults
	resumed  func(context.Context, ...fanfare.EventRef) // puts held batches back to work, and has due what waits of cancelled broadcasts
	relay    func(name string, drained bool)

	soon         func()                      // is resumed beside the caller
	reconfigured func(context.Context) error // puts the rates of channels in force
	stopped      func()                      // takes what may not leave any more out of the outlets
	hurry        func()                      // tells the outlets that rates have changed

	mu    sync.Mutex                // held by the one who changes
	ahead map[fanfare.EventRef]bool // approved when they were frozen and not on the board yet
	now   atomic.Pointer[switchboard]
}

// switchboard is what is stopped at one moment, with the reasons.
type switchboard struct {
	all        *string
	services   map[string]string
	channels   map[channelName]string
	broadcasts map[part]stopped
	held       map[fanfare.EventRef]hold          // wait for approval
	rates      map[fanfare.EventRef]registry.Rate // of broadcasts that have one of their own
	faults     *channels.Faults                   // nil: none
}

func newSwitchboard() *switchboard {
	return &switchboard{broadcasts: map[part]stopped{}, held: map[fanfare.EventRef]hold{}, rates: map[fanfare.EventRef]registry.Rate{}}
}

// stopped is the switch of a broadcast, and since when it is set.
type stopped struct {
	fanfare.Switch
	since time.Time
}

// part is a broadcast, or with a channel its part in that channel.
type part struct {
	event   fanfare.EventRef
	channel uint16
}

// channelName is what a channel is called.
type channelName struct{ service, name string }

// load reads what was stopped before this start.
func (s *switches) load(ctx context.Context, days []fanfare.Day) error {
	board := newSwitchboard()
	for _, day := range days {
		err := s.store.Switches(ctx, day, func(sw fanfare.Switch, since time.Time) {
			board.broadcasts[part{sw.Event, sw.Channel}] = stopped{sw, since}
		})
		if err != nil {
			return err
		}
	}
	if err := s.loadControls(ctx, days, board); err != nil {
		return err
	}
	s.publish(board)
	s.paces.set(board.rates, s.clock.Now())
	return nil
}

// publish puts a board in force, with the scopes that the registry keeps.
func (s *switches) publish(board *switchboard) {
	board.faults = s.faults
	board.all, board.services, board.channels = nil, map[string]string{}, map[channelName]string{}
	for _, p := range s.registry.Paused() {
		switch p.Scope.Kind {
		case fanfare.ScopeAll:
			board.all = &p.Reason
		case fanfare.ScopeService:
			board.services[p.Scope.Name] = p.Reason
		case fanfare.ScopeChannel:
			service, name, _ := strings.Cut(p.Scope.Name, "/")
			board.channels[channelName{service, name}] = p.Reason
		}
	}
	s.now.Store(board)
}

// decide says whether work of a broadcast may leave by a channel.
func (b *switchboard) decide(event fanfare.EventRef, channel *registry.Channel) (deliver.Decision, string) {
	whole, paused := b.broadcasts[part{event, 0}]
	for _, sw := range [...]stopped{whole, b.broadcasts[part{event, channel.Number}]} {
		if sw.State == fanfare.SwitchCancelled {
			return deliver.Cancel, sw.Reason // for good, however it is paused besides
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
	if reason, ok := b.pauses(channel); ok {
		return deliver.Hold, reason
	}
	if fault != nil {
		return deliver.Hold, fault.Reason
	}
	return deliver.Go, ""
}

// pauses reports whether somebody has stopped all that leaves by a channel, and why.
func (b *switchboard) pauses(channel *registry.Channel) (reason string, is bool) {
	if b.all != nil {
		return *b.all, true
	}
	if reason, is = b.services[channel.Service]; is {
		return reason, true
	}
	reason, is = b.channels[channelName{channel.Service, channel.Name}]
	return reason, is
}

// holds reports whether all of a batch is stopped.
func (b *switchboard) holds(batch *fanfare.Batch, channel *registry.Channel) bool {
	for i := range batch.Slices {
		event := fanfare.EventRef{Day: batch.Day, Seq: batch.Slices[i].Manifest.Event()}
		if decision, _ := b.decide(event, channel); decision != deliver.Hold {
			return false
		}
	}
	return true
}

// Pause stops a scope: what is on the wire ends, nothing else leaves.
func (s *switches) Pause(ctx context.Context, scope fanfare.Scope, reason string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if scope.Kind != fanfare.ScopeBroadcast {
		if err := s.registry.SetPaused(ctx, scope, true, reason); err != nil {
			return err
		}
		if scope.Kind == fanfare.ScopeRelay {
			s.relay(scope.Name, true)
			return nil
		}
		s.publish(s.now.Load().copy())
		s.stopped()
		return nil
	}
	ref, err := s.open(ctx, scope.Name)
	if err != nil {
		return err
	}
	if err := s.set(ctx, []fanfare.Switch{{Event: ref, State: fanfare.SwitchPaused, Reason: reason}}); err != nil {
		return err
	}
	s.stopped()
	return nil
}

// Resume lets a scope go on.
func (s *switches) Resume(ctx context.Context, scope fanfare.Scope, reason string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if scope.Kind != fanfare.ScopeBroadcast {
		if err := s.registry.SetPaused(ctx, scope, false, reason); err != nil {
			return err
		}
		if scope.Kind == fanfare.ScopeRelay {
			s.relay(scope.Name, false)
			return nil
		}
		s.publish(s.now.Load().copy())
		s.resumed(ctx)
		return nil
	}
	ref, err := s.open(ctx, scope.Name)
	if err != nil {
		return err
	}
	board := s.now.Load()
	if _, paused := board.broadcasts[part{ref, 0}]; !paused {
		if h, waits := board.held[ref]; waits {
			return &fanfare.Error{Code: fanfare.Conflict, Message: "broadcast " + scope.Name + " " + h.reason, Hint: "`fanfare approve " + scope.Name + "` lets it leave, with a key that has the scope approve"}
		}
	}
	if err := s.set(ctx, []fanfare.Switch{{Event: ref}}); err != nil {
		return err
	}
	s.resumed(ctx)
	return nil
}

// Cancel settles what is open in a scope as cancelled. Broadcasts that begin
// later are not touched.
func (s *switches) Cancel(ctx context.Context, scope fanfare.Scope, reason string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	cancelled, err := s.reached(ctx, scope, reason)
	if err != nil {
		return err
	}
	if err := s.set(ctx, cancelled); err != nil {
		return err
	}
	s.stopped()
	events := make([]fanfare.EventRef, len(cancelled))
	for i := range cancelled {
		events[i] = cancelled[i].Event
	}
	s.resumed(ctx, events...)
	return nil
}

// reached lists the open broadcasts that a scope reaches.
func (s *switches) reached(ctx context.Context, scope fanfare.Scope, reason string) ([]fanfare.Switch, error) {
	if scope.Kind == fanfare.ScopeBroadcast {
		ref, err := s.open(ctx, scope.Name)
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
		channel, ok := s.registry.ChannelNamed(service, name)
		if !ok {
			return nil, &fanfare.Error{Code: fanfare.NotFound, Message: fmt.Sprintf("unknown channel %q", scope.Name), Hint: "write service/channel; fanfare channel list shows which there are"}
		}
		number = channel.Number
	default:
		return nil, &fanfare.Error{Code: fanfare.Invalid, Pointer: "/scope/kind", Message: fmt.Sprintf("unknown scope %q", scope.Kind), Hint: "use all, service, channel or broadcast"}
	}
	var reached []fanfare.Switch
	for _, ref := range s.recorder.Open(math.MaxInt) {
		if service != "" {
			b, err := s.store.Broadcast(ctx, ref)
			if err != nil {
				return nil, err
			}
			if b.Service != service {
				continue
			}
		}
		reached = append(reached, fanfare.Switch{Event: ref, Channel: number, State: fanfare.SwitchCancelled, Reason: reason})
	}
	return reached, nil
}

// open finds a broadcast that is not over.
func (s *switches) open(ctx context.Context, id string) (fanfare.EventRef, error) {
	ref, ok := fanfare.ParseEventRef(id)
	if !ok {
		return ref, &fanfare.Error{Code: fanfare.Invalid, Pointer: "/scope/name", Message: fmt.Sprintf("%q is not an event's id", id), Hint: "it begins with evt-; `fanfare status` shows those under way"}
	}
	b, err := s.store.Broadcast(ctx, ref)
	if err != nil {
		return ref, err
	}
	if !b.Stages.Completed.IsZero() || b.State == fanfare.SwitchCancelled {
		return ref, &fanfare.Error{Code: fanfare.Conflict, Message: "broadcast " + id + " is over: " + b.State}
	}
	return ref, nil
}

// set keeps switches and puts them in force.
func (s *switches) set(ctx context.Context, changes []fanfare.Switch) error {
	now := s.clock.Now()
	byDay := map[fanfare.Day][]fanfare.Switch{}
	for _, sw := range changes {
		byDay[sw.Event.Day] = append(byDay[sw.Event.Day], sw)
	}
	for day, list := range byDay {
		if err := s.store.SetSwitches(ctx, day, list, now); err != nil {
			return err
		}
	}
	board := s.now.Load().copy()
	for _, sw := range changes {
		if sw.State == "" {
			delete(board.broadcasts, part{sw.Event, sw.Channel})
		} else {
			board.broadcasts[part{sw.Event, sw.Channel}] = stopped{sw, now}
		}
	}
	s.publish(board)
	return nil
}

func (b *switchboard) copy() *switchboard {
	return &switchboard{broadcasts: maps.Clone(b.broadcasts), held: maps.Clone(b.held), rates: maps.Clone(b.rates)}
}

// pausedBroadcasts lists the broadcasts that are paused and not over.
func (s *switches) pausedBroadcasts() []registry.PausedScope {
	var paused []registry.PausedScope
	for p, sw := range s.now.Load().broadcasts {
		if _, open := s.recorder.Progress(p.event); open && p.channel == 0 && sw.State == fanfare.SwitchPaused {
			paused = append(paused, registry.PausedScope{
				Scope: fanfare.Scope{Kind: fanfare.ScopeBroadcast, Name: p.event.String()}, Reason: sw.Reason, Since: sw.since,
			})
		}
	}
	slices.SortFunc(paused, func(a, b registry.PausedScope) int { return a.Since.Compare(b.Since) })
	return paused
}

// pauseSour pauses a broadcast whose first messages all failed.
func (s *switches) pauseSour(ctx context.Context, ref fanfare.EventRef) error {
	return s.Pause(ctx, fanfare.Scope{Kind: fanfare.ScopeBroadcast, Name: ref.String()}, "its first 100 messages all failed; mend the cause and resume it")
}

// Paused tells which pause stops all that leaves by a channel of a service, and with ""
// for the channel all that the service sends.
func (s *switches) Paused(service, channel string) (why string, is bool) {
	board := s.now.Load()
	what, reason := "everything", ""
	if is = board.all != nil; is {
		reason = *board.all
	} else if reason, is = board.services[service]; is {
		what = "service " + service
	} else if reason, is = board.channels[channelName{service, channel}]; is {
		what = "channel " + service + "/" + channel
	}
	if !is {
		return "", false
	}
	if reason != "" {
		reason = ": " + reason
	}
	return what + " is paused" + reason, true
}

// AnyChannelPaused reports whether a channel of a service is paused.
func (s *switches) AnyChannelPaused(service string) bool {
	for name := range s.now.Load().channels {
		if name.service == service {
			return true
		}
	}
	return false
}

// channelPaused reports whether somebody has stopped all that leaves by a channel.
func (s *switches) channelPaused(c *registry.Channel) bool {
	_, is := s.now.Load().pauses(c)
	return is
}
