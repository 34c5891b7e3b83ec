package channels

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/mail/dkimkeys"
	"fanfare.dev/fanfare/internal/mail/mx"
	"fanfare.dev/fanfare/internal/people/registry"
	"fanfare.dev/fanfare/internal/pipeline/deliver"
	"fanfare.dev/fanfare/internal/pipeline/deliver/inbox"
	"fanfare.dev/fanfare/internal/pipeline/deliver/limit"
	"fanfare.dev/fanfare/internal/pipeline/deliver/remote"
)

// Channels contains a sender for each channel, with a dispatch loop for each of its lanes. It is safe
// for concurrent use.
type Channels struct {
	options Options
	parts   Parts
	clock   clock.Clock
	logger  *slog.Logger
	replies *replies
	budgets budgets

	mu       sync.Mutex
	open     map[uint16]*channel // by number
	loops    sync.WaitGroup
	leftover sync.WaitGroup // work that is unfinished when loops end
	ctx      context.Context
	stop     context.CancelFunc
}

// Options are the dependencies that Channels needs at creation.
type Options struct {
	Capture Capture
	Sites   *mx.Sites
	Records *dkimkeys.Records
	Lease   time.Duration // of a batch
	Nodes   *remote.Hub   // the nodes of a cluster that deliver; nil: this server is alone
	Remote  bool          // this server opens no connections: only the nodes deliver
	Clock   clock.Clock
	Logger  *slog.Logger
}

// Parts are the dependencies that Channels needs to send.
type Parts struct {
	Registry   *registry.Registry
	Recorder   Recorder
	Faults     *Faults
	Release    func() // resumes batches that are no longer held because of a fault; returns immediately
	Gate       func(channel uint16) deliver.Gate
	Flows      deliver.BroadcastRates
	Waiting    func(context.Context) (map[uint16]bool, error) // the channels that have batches on the bus
	Dispatch   func(context.Context, Loop) (run func(context.Context), err error)
	ReplyRules string // file with the operator's rules, "" for none
	Files      FileMarks
	WebhookKey []byte // signs for channels without a secret
	Networks   []netip.Prefix
	Abort      context.Context   // when it ends, all connections of this node are closed, also during a message; nil: never
	NodeLease  deliver.NodeLease // nil: this server is alone
	Mailboxes  inbox.Store
	Workers    Workers // nil: this server has no broker
}

// Workers passes requests to the workers of a service.
type Workers interface {
	// Start returns an error if no instance of a worker is connected, and lets agents start one.
	Start(service, worker string) error
	// MessageLimit returns the maximum size of a request, in bytes.
	MessageLimit(service, worker string) int
	// Call returns the response of a worker. The error is a *worker.Fault if the worker failed.
	Call(ctx context.Context, service, worker, channel string, request []byte) ([]byte, error)
}

// Recorder stores outcomes. After Stop, waiting calls return.
type Recorder interface {
	deliver.Recorder
	Stop()
}

// Loop specifies what a dispatch loop serves.
type Loop struct {
	Channel  uint16
	Lane     fanfare.Lane
	Sender   *deliver.Sender
	Keys     *dkimkeys.Keyring
	Leftover func(func()) // runs a function that Drain waits for
}

type channel struct {
	*deliver.Sender
	keys     *dkimkeys.Keyring
	settings string       // active, to detect a change
	own      ownRelays    // before they are spread over nodes
	rate     catalog.Rate // active
	share    *limit.Share // of the rate of its service
	service  catalog.ServiceLimits

	problems []wire.ChannelProblem // of passwords and secrets, at the last check

	fault   string // why its settings are not active; "" while they are
	started bool   // its settings have been active
}

// New returns Channels without any channel.
func New(o Options) *Channels {
	c := &Channels{options: o, clock: o.Clock, logger: o.Logger, open: map[uint16]*channel{}}
	c.ctx, c.stop = context.WithCancel(context.Background())
	return c
}

// Start creates the senders of all channels and starts delivery. The faults of channels are logged
// and shown in the status: they must not keep other channels from sending.
func (c *Channels) Start(ctx context.Context, p Parts) error {
	c.parts = p
	c.budgets = budgets{quotas: Quotas{registry: p.Registry, clock: c.clock, logger: c.logger}, clock: c.clock}
	c.replies = newReplies(p.ReplyRules, c.logger)
	if capture := c.options.Capture; capture.InForce() {
		c.logger.Warn(capture.describe(), "capture", capture.To, "allow_recipients", len(capture.allow))
	}
	_, err := c.configure(ctx)
	return err
}

// Tasks returns the background tasks, which run until their context ends: they follow the files
// of reply rules and keys, and the DNS.
func (c *Channels) Tasks() []func(context.Context) {
	return []func(context.Context){c.replies.run, c.followFiles, c.awaitRecords}
}

// Context returns the context of deliveries. It ends when Drain begins.
func (c *Channels) Context() context.Context { return c.ctx }

// Reconcile creates a sender for each channel and applies changed settings. It returns the
// faults of all channels.
func (c *Channels) Reconcile(ctx context.Context) error {
	faults, err := c.configure(ctx)
	return errors.Join(append(faults, err)...)
}

func (c *Channels) configure(ctx context.Context) (faults []error, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conf := range c.parts.Registry.Channels() {
		fault, err := c.apply(ctx, conf)
		if err != nil {
			return faults, err
		}
		if fault != nil {
			faults = append(faults, fault)
		}
	}
	c.cancelDeleted()
	return faults, nil
}

// apply applies the settings of a channel. fault describes what is wrong with them. The caller
// holds mu.
func (c *Channels) apply(ctx context.Context, conf *catalog.Channel) (fault, err error) {
	inForce := *conf
	inForce.Rate, _ = c.parts.Registry.ChannelRate(conf)
	wanted := settingsText(inForce.ChannelSettings)
	known := c.open[conf.Number]
	service := c.parts.Registry.ServiceLimits(conf.Service)
	if known != nil && known.service != service {
		known.service = service
		c.budgets.set(conf.Service, service.Rate)
		known.SetBudgets(c.budgets.of(conf, service, known.share))
	}
	if known != nil && known.settings == wanted && known.rate == inForce.Rate && known.fault == "" {
		return nil, nil
	}
	ring := &dkimkeys.Keyring{}
	if known != nil {
		ring = known.keys
	}
	files := dkimkeys.Versions(conf)
	keys, broken := ring.Merge(conf, c.options.Capture.keys(conf), c.options.Records.Published)
	settings, wrong := c.options.Capture.settings(&inForce, c.settings)
	if fault = errors.Join(wrong, dkimkeys.Unsigned(keys, broken, c.clock.Now())); fault != nil {
		if known != nil {
			if !known.started {
				ring.Set(keys, broken, files) // so that the status shows their current faults
			}
			c.noteFault(known, fault, conf)
			return fault, nil
		}
		settings.Relays = brokenRelays(fault)
		c.parts.Faults.Set(conf.Number, &Fault{Reason: notInForce + fault.Error()})
	}
	if settings.SendTimeout < time.Duration(conf.SendTimeout) {
		c.logger.Warn("send_timeout is limited to two thirds of the lease; increase lease to allow a longer send_timeout", "channel", conf.Name, "send_timeout", settings.SendTimeout.String())
	}
	if conf.Destinations.By == catalog.ByMX {
		settings.Destinations.Site = c.options.Sites.Of
	}
	ring.Set(keys, broken, files)
	c.logBroken(conf, broken)
	share := c.budgets.rate(conf.Service).NewShare()
	if known != nil {
		share = known.share
	} else {
		c.budgets.set(conf.Service, service.Rate)
	}
	settings.Budgets = c.budgets.of(conf, service, share)
	own := c.ownRelays(&inForce, &settings, fault)
	settings.Relays, settings.Connections = c.spread(conf, &own)
	switch {
	case known == nil:
		if err := c.add(ctx, conf, settings, ring); err != nil {
			return nil, err
		}
	case known.settings == wanted && known.fault == "":
		known.SetRate(settings.Rate)
		own = known.own // its drivers stay in use
	default:
		known.Reconfigure(settings)
	}
	now := c.open[conf.Number]
	now.settings, now.rate, now.share, now.service, now.own = wanted, inForce.Rate, share, service, own
	c.noteFault(now, fault, conf)
	return fault, nil
}

// settingsText returns all settings except the rate, which changes without new connections.
func settingsText(s catalog.ChannelSettings) string {
	s.Rate = catalog.Rate{}
	return fmt.Sprintf("%+v", s)
}

// add creates the sender of a channel and its dispatch loops.
func (c *Channels) add(ctx context.Context, conf *catalog.Channel, settings deliver.Settings, ring *dkimkeys.Keyring) error {
	sender := deliver.NewSender(deliver.Options{
		Channel: conf.Number, Name: conf.Service + "/" + conf.Name,
		Gate: c.parts.Gate(conf.Number), BroadcastRates: c.parts.Flows, Recorder: c.parts.Recorder, NodeLease: c.parts.NodeLease,
		Replies: c.replies.of(c.parts.Registry, conf.Number), Clock: c.clock, Logger: c.logger,
	}, settings)
	c.open[conf.Number] = &channel{Sender: sender, keys: ring}
	for _, lane := range fanfare.Lanes {
		run, err := c.parts.Dispatch(ctx, Loop{Channel: conf.Number, Lane: lane, Sender: sender, Keys: ring, Leftover: c.leftover.Go})
		if err != nil {
			return err
		}
		c.loops.Go(func() { run(c.ctx) })
	}
	return nil
}

// AwaitOff returns when no message for a subscription is on the wire, or ctx ends.
func (c *Channels) AwaitOff(ctx context.Context, subscription fanfare.RowID) error {
	for _, ch := range c.all() {
		if err := ch.AwaitInFlight(ctx, subscription); err != nil {
			return err
		}
	}
	return nil
}

func (c *Channels) all() []*channel {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Values(c.open))
}

// of returns the channel with a number, nil if it has no sender.
func (c *Channels) of(number uint16) *channel {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open[number]
}

// Status returns the state of a channel's sender.
func (c *Channels) Status(number uint16) deliver.Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	ch := c.open[number]
	if ch == nil {
		return deliver.Status{}
	}
	status := ch.Status()
	if ch.fault != "" && status.LastError == "" {
		status.LastError = ch.fault
	}
	return status
}

// Quotas returns the quotas of a day.
func (c *Channels) Quotas() *Quotas { return &c.budgets.quotas }

// Taken returns, by channel, the number of messages that next hops have accepted since the start.
func (c *Channels) Taken() map[uint16]int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := make(map[uint16]int64, len(c.open))
	for number, ch := range c.open {
		taken[number] = ch.Status().Accepted
	}
	return taken
}

// DrainRelay stops or resumes sending through a relay, named service/channel/relay.
func (c *Channels) DrainRelay(name string, drained bool) {
	names := strings.SplitN(name, "/", 3)
	c.mu.Lock() // so that old settings are not applied afterwards
	defer c.mu.Unlock()
	conf, ok := c.parts.Registry.ChannelNamed(names[0], names[1])
	if !ok { // it was deleted in the meantime
		return
	}
	if ch := c.open[conf.Number]; ch != nil {
		ch.Drain(names[2], drained)
	}
}

// Drain stops taking batches and waits until the messages on the wire have an outcome. After the
// timeout, outcomes are no longer recorded, and the next start retries those messages.
func (c *Channels) Drain(timeout time.Duration) {
	c.stop()
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		c.loops.Wait()
		c.mu.Lock() // no sender is added after this
		defer c.mu.Unlock()
		var stopping sync.WaitGroup
		for _, ch := range c.open {
			stopping.Go(ch.Stop)
		}
		stopping.Wait()
		c.leftover.Wait() // none begins once all senders have stopped
	}()
	defer c.budgets.quotas.stop(context.Background())
	limit := time.AfterFunc(timeout, c.parts.Recorder.Stop)
	defer limit.Stop()
	select {
	case <-drained:
	case <-time.After(timeout + closingTime):
		c.logger.Warn("some messages were still being sent when drain_timeout expired; they will be retried after the next start")
	}
}

// closingTime is the time that connections have to close after recording has stopped.
const closingTime = 500 * time.Millisecond

// Sweep removes messages that may no longer be sent from all queues.
func (c *Channels) Sweep() {
	for _, ch := range c.all() {
		ch.RecheckGate()
	}
}

// FlowsChanged tells all senders that rates of broadcasts have changed.
func (c *Channels) FlowsChanged() {
	for _, ch := range c.all() {
		ch.BroadcastRatesChanged()
	}
}

// Drop removes the messages for an erased subscriber from all queues.
func (c *Channels) Drop(subscriber fanfare.RowID) {
	for _, ch := range c.all() {
		ch.SuppressSubscriber(subscriber, "erased")
	}
}
