package server

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/admin/backup"
	"fanfare.dev/fanfare/internal/admin/migrate"
	"fanfare.dev/fanfare/internal/admin/report"
	"fanfare.dev/fanfare/internal/bus"
	"fanfare.dev/fanfare/internal/datadir"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/mail/feedback"
	"fanfare.dev/fanfare/internal/mail/inbound"
	"fanfare.dev/fanfare/internal/notifier"
	"fanfare.dev/fanfare/internal/pipeline/deliver/channels"
	"fanfare.dev/fanfare/internal/pipeline/match/topicstate"
	"fanfare.dev/fanfare/internal/pipeline/match/verify"
	"fanfare.dev/fanfare/internal/pipeline/record"
	"fanfare.dev/fanfare/internal/registry"
	"fanfare.dev/fanfare/internal/store/database"
	"fanfare.dev/fanfare/internal/store/deliveries"
	"fanfare.dev/fanfare/internal/store/maintain"
	"fanfare.dev/fanfare/internal/store/retry"
)

// reports answers how the server is doing and what happened.
type reports struct {
	*report.Traces
	version    string
	durability string
	started    time.Time
	bus        *bus.Bus
	registry   *registry.Registry
	store      *deliveries.Store
	database   *database.DB
	moves      *migrate.Mover
	recorder   *record.Recorder
	channels   *channels.Channels
	capture    channels.Capture
	faults     *templateFaults
	logger     *slog.Logger
	switches   *switches
	parking    *parking
	floor      *datadir.DiskFloor
	verifier   *verify.Verifier
	indexing   *maintain.History
	notifier   *notifier.Notifier
	states     *topicstate.States
	rates      *rates
	gathered   *gatheredStatus
	inbound    *inbound.Server // nil where no mail comes in
	feedback   *feedback.Counters
	ready      func() error
	restored   *backup.Note // nil where the server was not
}

// maxListed is how many running broadcasts a status shows.
const maxListed = 50

// Status gathers how everything is doing at this moment. Last it looks whether the
// database is there, since it may be lost meanwhile: it says so wherever it has left
// something out for that.
func (r *reports) Status(ctx context.Context) (wire.Status, error) {
	s, err := r.status(ctx)
	s.Database, s.Ready = r.database.Status(), true
	if err := r.ready(); err != nil {
		s.Ready, s.Reason = false, err.Error()
	}
	return s, err
}

func (r *reports) status(ctx context.Context) (wire.Status, error) {
	s := wire.Status{
		Version: r.version, Durability: r.durability, Started: r.started,
		DiskFreeBytes: r.floor.Free(), IndexLagEvents: r.indexing.Lag(),
	}
	known := r.states.Total()
	s.MatchCheck = r.matchCheckStatus()
	s.Untold = r.notifier.Waiting()
	s.Suppressions = int64(r.registry.Suppressed())
	s.StateKeys, s.StatesFull = known.Keys, known.Full
	s.Capture, s.AllowRecipients = r.capture.To, r.capture.Allowed()
	s.Inbound = inboundStatus(r.inbound)
	s.TemplateFaults = r.faults.status()
	s.NextStart = r.moves.BeforeNextStart()
	backlog, err := r.bus.Backlog(ctx)
	if err != nil {
		return s, err
	}
	s.Bus = wire.Bus{EventsPending: int64(backlog.EventGroups), BatchesPending: int64(backlog.Batches)}
	_, s.Deliveries.Pending, s.Deliveries.Deferred = r.recorder.Backlog()
	for _, ref := range r.underway() {
		b, err := r.Broadcast(ctx, ref)
		if retry.IsAway(err) {
			break
		}
		if err != nil {
			return s, err
		}
		b.Data = nil
		s.Broadcasts = append(s.Broadcasts, b)
	}
	s.Deliveries.AcceptedPerSecond = r.rates.of(fanfare.Accepted)
	s.Deliveries.FailedPerSecond = r.rates.of(fanfare.Failed)
	for _, c := range r.registry.Channels() {
		s.Channels = append(s.Channels, r.channel(c))
	}
	for _, svc := range r.registry.Configuration().Services() {
		if svc.ServiceLimits != (registry.ServiceLimits{}) {
			s.Services = append(s.Services, r.serviceLimits(&svc, s.Channels))
		}
	}
	if s.Gathered, err = r.gathered.list(ctx); err != nil && !retry.IsAway(err) {
		return s, err
	}
	for _, p := range append(r.registry.Paused(), r.switches.pausedBroadcasts()...) {
		s.Paused = append(s.Paused, wire.Paused(p))
	}
	if r.restored != nil && r.switches.now.Load().all != nil {
		s.Restored = r.restored.Wire()
	}
	parked, err := r.parking.Parked(ctx)
	if retry.IsAway(err) {
		return s, nil // what is in memory is of more use than nothing
	}
	s.Parked = len(parked)
	return s, err
}

// underway lists broadcasts that are not completed: those first that wait for
// somebody's word.
func (r *reports) underway() []fanfare.EventRef {
	held := r.switches.heldBroadcasts()
	held = held[:min(len(held), maxListed)]
	open := r.recorder.Open(maxListed)
	others := slices.DeleteFunc(open, func(ref fanfare.EventRef) bool { return slices.Contains(held, ref) })
	return append(held, others[:min(len(others), maxListed-len(held))]...)
}

func (r *reports) channel(c *registry.Channel) wire.Channel {
	out := r.channels.Status(c.Number)
	state, rate := "idle", r.rates.ofChannel(c.Number, rateSeconds)
	away, _ := r.database.Away()
	switch {
	case r.switches.channelPaused(c):
		state = "paused"
	case out.LastError != "":
		state = "suspended"
	case !away.IsZero(): // what is on the wire ends, and nothing else leaves before its outcome can be kept
		state, rate = "waiting", r.rates.ofChannel(c.Number, 1)
	case out.Connections > 0:
		state = "running"
	}
	limit, byHand := r.registry.RateOf(c)
	return wire.Channel{Service: c.Service, Name: c.Name, Driver: c.Driver, State: state, Connections: out.Connections,
		RateLimit: limit.String(), RateSetByHand: byHand,
		RatePerSecond: rate, LastError: out.LastError,
		DailyQuota: r.channels.Quotas().Status(c.Service+"/"+c.Name, c.DailyQuota), Relays: channels.Relays(&out), Problems: r.channels.Problems(c)}
}

// serviceLimits is what all channels of a service send together at most, and what
// they do.
func (r *reports) serviceLimits(s *registry.Service, channels []wire.Channel) wire.ServiceLimits {
	limits := wire.ServiceLimits{Service: s.Name, RateLimit: s.Rate.String(), DailyQuota: r.channels.Quotas().Status(s.Name, s.DailyQuota)}
	for i := range channels {
		if channels[i].Service == s.Name {
			limits.RatePerSecond += channels[i].RatePerSecond
		}
	}
	return limits
}

// rates samples counters once a second and knows the last ten.
type rates struct {
	recorder *record.Recorder
	channels *channels.Channels
	mu       sync.Mutex
	samples  []sample // newest first
}

type sample struct {
	states fanfare.Counts
	taken  map[uint16]int64 // by channel
}

// rateSeconds is how far back a rate looks.
const rateSeconds = 10

func (r *rates) run(ctx context.Context) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		now := sample{taken: r.channels.Taken()}
		now.states, _ = r.recorder.Totals()
		r.mu.Lock()
		r.samples = append([]sample{now}, r.samples[:min(len(r.samples), rateSeconds)]...)
		r.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// perSecond is the rate of a counter over the samples of the last seconds.
func (r *rates) perSecond(last int, counter func(*sample) int64) float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	seconds := min(len(r.samples)-1, last)
	if seconds < 1 {
		return 0
	}
	return float64(counter(&r.samples[0])-counter(&r.samples[seconds])) / float64(seconds)
}

func (r *rates) of(state fanfare.State) float64 {
	return r.perSecond(rateSeconds, func(s *sample) int64 { return s.states[state] })
}

func (r *rates) ofChannel(channel uint16, seconds int) float64 {
	return r.perSecond(seconds, func(s *sample) int64 { return s.taken[channel] })
}

// inboundStatus returns the counters of the inbound mail server, or nil without one.
func inboundStatus(s *inbound.Server) *wire.Inbound {
	if s == nil {
		return nil
	}
	c := s.Counts()
	return &wire.Inbound{
		Listen: s.Addr().String(), Open: c.Open, Taken: c.Taken, Bounces: c.Bounces, Unsubscribes: c.Unsubscribes,
		Kept: c.Kept, NotNow: c.NotNow, Refused: c.Refused,
	}
}
