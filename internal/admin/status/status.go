// Package status reports the state of a server: the status in the API and the Prometheus metrics.
//
// State. Rates holds samples of counters of the last seconds. Everything else is read from the other parts of the
// server on request. The API calls the package.
package status

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/admin/backup"
	"fanfare.dev/fanfare/internal/admin/control"
	"fanfare.dev/fanfare/internal/admin/report"
	"fanfare.dev/fanfare/internal/bus"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/datadir"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/mail/inbound"
	"fanfare.dev/fanfare/internal/people/registry"
	"fanfare.dev/fanfare/internal/pipeline/deliver/channels"
	"fanfare.dev/fanfare/internal/pipeline/match/topicstate"
	"fanfare.dev/fanfare/internal/store/database"
	"fanfare.dev/fanfare/internal/store/retry"
)

// Recorder counts outcomes, and knows the broadcasts that are not completed.
type Recorder interface {
	Totals() (attempts fanfare.Counts, commits int64)
	Backlog() (broadcasts int, pending, deferred int64)
	Open(most int) []fanfare.EventRef
}

// Options are the parts of the server whose state is reported.
type Options struct {
	Traces              *report.Traces
	Version, Durability string
	Started             time.Time
	Restored            *backup.Note // nil if the server was not restored
	Ready               func() error

	Bus interface {
		Backlog(ctx context.Context) (bus.Backlog, error)
	}
	DB       *database.DB
	Disk     *datadir.DiskFloor
	Registry *registry.Registry
	Recorder Recorder
	Rates    *Rates
	Channels *channels.Channels
	Capture  channels.Capture
	Switches *control.Switches
	Parking  *control.Parking
	States   *topicstate.States
	Inbound  *inbound.Server // nil without inbound mail
	Notifier interface {
		Posted() int64
		Waiting() int64
		Lag() time.Duration
	}

	Nodes          func() wire.Nodes // nil: the server is not a node of a cluster
	TemplateFaults func() []wire.TemplateFault
	MatchCheck     func() *wire.MatchCheck
	Gathered       func(ctx context.Context) ([]wire.Gathered, error) // digests that are due next
	IndexLag       func() int64                                       // events that are missing from the history index
	Workers        func() []wire.WorkerStatus                         // workers with sessions or instances
	NextStart      func() string                                      // see wire.Status

	Collectors []prometheus.Collector
	Register   []func(*prometheus.Registry) // register further metrics
}

// A Reporter reports the status of a server, and traces of events.
type Reporter struct {
	*report.Traces
	options Options
}

// New returns a Reporter.
func New(o Options) *Reporter { return &Reporter{Traces: o.Traces, options: o} }

// maxListed is the maximum number of open broadcasts in a status.
const maxListed = 50

// Status returns the current status. It checks the database last, so that it reports an outage whenever an outage made
// the status incomplete.
func (r *Reporter) Status(ctx context.Context) (wire.Status, error) {
	s, err := r.status(ctx)
	s.Database, s.Ready = r.options.DB.Status(), true
	if err := r.options.Ready(); err != nil {
		s.Ready, s.Reason = false, err.Error()
	}
	return s, err
}

func (r *Reporter) status(ctx context.Context) (wire.Status, error) {
	s := wire.Status{
		Version: r.options.Version, Durability: r.options.Durability, Started: r.options.Started,
		DiskFreeBytes: r.options.Disk.Free(), IndexLagEvents: r.options.IndexLag(),
	}
	if r.options.Nodes != nil {
		nodes := r.options.Nodes()
		s.Cluster = nodes.Cluster()
	}
	known := r.options.States.Total()
	s.MatchCheck = r.options.MatchCheck()
	s.Untold = r.options.Notifier.Waiting()
	s.Suppressions = int64(r.options.Registry.SuppressionCount())
	s.StateKeys, s.StatesFull = known.Keys, known.Full
	s.Capture, s.AllowRecipients = r.options.Capture.To, r.options.Capture.Allowed()
	s.Inbound = inboundStatus(r.options.Inbound)
	s.TemplateFaults = r.options.TemplateFaults()
	s.NextStart = r.options.NextStart()
	s.Workers = r.options.Workers()
	backlog, err := r.options.Bus.Backlog(ctx)
	if err != nil {
		return s, err
	}
	s.Bus = wire.Bus{EventsPending: int64(backlog.EventGroups), BatchesPending: int64(backlog.Batches)}
	_, s.Deliveries.Pending, s.Deliveries.Deferred = r.options.Recorder.Backlog()
	for _, ref := range r.openBroadcasts() {
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
	s.Deliveries.AcceptedPerSecond = r.options.Rates.of(fanfare.Accepted)
	s.Deliveries.FailedPerSecond = r.options.Rates.of(fanfare.Failed)
	for _, c := range r.options.Registry.Channels() {
		s.Channels = append(s.Channels, r.channel(c))
	}
	for _, svc := range r.options.Registry.Configuration().Services() {
		if svc.ServiceLimits != (catalog.ServiceLimits{}) {
			s.Services = append(s.Services, r.serviceLimits(&svc, s.Channels))
		}
	}
	if s.Gathered, err = r.options.Gathered(ctx); err != nil && !retry.IsAway(err) {
		return s, err
	}
	for _, p := range append(r.options.Registry.Paused(), r.options.Switches.PausedBroadcasts()...) {
		s.Paused = append(s.Paused, wire.Paused(p))
	}
	if r.options.Restored != nil && r.options.Switches.AllPaused() {
		s.Restored = r.options.Restored.Wire()
	}
	parked, err := r.options.Parking.Parked(ctx)
	if retry.IsAway(err) {
		return s, nil // the rest of the status is complete
	}
	s.Parked = len(parked)
	return s, err
}

// openBroadcasts lists broadcasts that are not completed, first those that wait for approval.
func (r *Reporter) openBroadcasts() []fanfare.EventRef {
	held := r.options.Switches.HeldBroadcasts()
	held = held[:min(len(held), maxListed)]
	open := r.options.Recorder.Open(maxListed)
	slices.SortFunc(open, func(a, b fanfare.EventRef) int { return cmp.Or(cmp.Compare(a.Day, b.Day), cmp.Compare(a.Seq, b.Seq)) }) // else the status would seem to change
	others := slices.DeleteFunc(open, func(ref fanfare.EventRef) bool { return slices.Contains(held, ref) })
	return append(held, others[:min(len(others), maxListed-len(held))]...)
}

func (r *Reporter) channel(c *catalog.Channel) wire.Channel {
	out := r.options.Channels.Status(c.Number)
	state, rate := "idle", r.options.Rates.ofChannel(c.Number, rateSeconds)
	away, _ := r.options.DB.Away()
	switch {
	case r.options.Switches.ChannelPaused(c):
		state = "paused"
	case out.LastError != "":
		state = "suspended"
	case !away.IsZero(): // messages that are being sent are finished; no others are sent before outcomes can be stored
		state, rate = "waiting", r.options.Rates.ofChannel(c.Number, 1)
	case out.Connections > 0:
		state = "running"
	}
	limit, byHand := r.options.Registry.ChannelRate(c)
	return wire.Channel{Service: c.Service, Name: c.Name, Driver: c.Driver, State: state, Connections: out.Connections,
		RateLimit: limit.String(), RateSetByHand: byHand,
		RatePerSecond: rate, LastError: out.LastError,
		DailyQuota: r.options.Channels.Quotas().Status(c.Service+"/"+c.Name, c.DailyQuota), Relays: channels.Relays(&out), Problems: r.options.Channels.Problems(c)}
}

// serviceLimits returns the limits of a service over all its channels, and their current rate.
func (r *Reporter) serviceLimits(s *catalog.Service, channels []wire.Channel) wire.ServiceLimits {
	limits := wire.ServiceLimits{Service: s.Name, RateLimit: s.Rate.String(), DailyQuota: r.options.Channels.Quotas().Status(s.Name, s.DailyQuota)}
	for i := range channels {
		if channels[i].Service == s.Name {
			limits.RatePerSecond += channels[i].RatePerSecond
		}
	}
	return limits
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
