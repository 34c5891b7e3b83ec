package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/bus"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/mail/dkimkeys"
	"fanfare.dev/fanfare/internal/mail/mx"
	"fanfare.dev/fanfare/internal/mail/signedlink"
	"fanfare.dev/fanfare/internal/pipeline/compose"
	"fanfare.dev/fanfare/internal/pipeline/deliver"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
	"fanfare.dev/fanfare/internal/pipeline/deliver/file"
	"fanfare.dev/fanfare/internal/pipeline/deliver/limit"
	"fanfare.dev/fanfare/internal/pipeline/deliver/smtp"
	"fanfare.dev/fanfare/internal/pipeline/record"
	"fanfare.dev/fanfare/internal/registry"
	"fanfare.dev/fanfare/internal/store/deliveries"
)

// outlets has one outlet for each channel, with a dispatch loop for each lane.
type outlets struct {
	bus      *bus.Bus
	registry *registry.Registry
	store    *deliveries.Store
	recorder *record.Recorder
	switches *switches
	replies  *replies
	signer   *signedlink.Signer
	returns  *signedlink.Signer
	domains  []string
	sites    *mx.Sites
	records  *dkimkeys.Records
	claims   *claims
	lease    time.Duration // of a batch
	clock    clock.Clock
	logger   *slog.Logger
	captured captured

	templates   *compose.Templates
	attachments *compose.Attachments
	memory      *memory
	faults      *templateFaults
	hooks       hooks
	marks       fileMarks
	budgets     *budgets

	mu      sync.Mutex
	open    map[uint16]*outlet
	running sync.WaitGroup // dispatch loops
	aside   sync.WaitGroup // what they have left to do
	ctx     context.Context
	stop    context.CancelFunc
}

type outlet struct {
	*deliver.Sender
	keys     *dkimkeys.Keyring
	settings string        // of the channel, to notice a change
	rate     registry.Rate // in force
	share    *limit.Share  // of the rate of its service
	together registry.ServiceLimits

	problems []wire.ChannelProblem // of passwords and secrets, as they were looked at last

	fault string // why the settings of the channel are not in force; "" while they are
	begun bool   // they have been
}

// reconcile makes an outlet for each channel and puts changed settings in force. A
// channel whose settings cannot be, as its password is not there, keeps those from
// before, or has what it sends wait; the others are not held up by it.
func (o *outlets) reconcile(ctx context.Context) error {
	faults, err := o.configure(ctx)
	return errors.Join(append(faults, err)...)
}

// configure is reconcile that tells what is wrong with channels apart.
func (o *outlets) configure(ctx context.Context) (faults []error, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, channel := range o.registry.Channels() {
		fault, err := o.put(ctx, channel)
		if err != nil {
			return faults, err
		}
		if fault != nil {
			faults = append(faults, fault)
		}
	}
	o.lapse()
	return faults, nil
}

// put puts the settings of a channel in force; fault is what is wrong with them.
func (o *outlets) put(ctx context.Context, channel *registry.Channel) (fault, err error) {
	inForce := *channel
	inForce.Rate, _ = o.registry.RateOf(channel)
	wanted := settingsBut(inForce.ChannelSettings)
	known := o.open[channel.Number]
	together := o.registry.ServiceLimits(channel.Service)
	if known != nil && known.together != together {
		known.together = together
		o.budgets.set(channel.Service, together.Rate)
		known.SetBudgets(o.budgets.of(channel, together, known.share))
	}
	if known != nil && known.settings == wanted && known.rate == inForce.Rate && known.fault == "" {
		return nil, nil
	}
	ring := &dkimkeys.Keyring{}
	if known != nil {
		ring = known.keys
	}
	files := dkimkeys.Versions(channel)
	keys, broken := ring.Merge(channel, o.captured.keys(channel), o.records.Published)
	settings, wrong := o.captured.settings(&inForce, func(c *registry.Channel) (deliver.Settings, error) { return settingsOf(c, o.lease, o.hooks, o.marks) })
	if fault = errors.Join(wrong, dkimkeys.Unsigned(keys, broken, o.clock.Now())); fault != nil {
		if known != nil {
			if !known.begun {
				ring.Set(keys, broken, files) // what is wrong with them now
			}
			o.noteFault(known, fault, channel)
			return fault, nil
		}
		settings.Relays = standingStill(fault)
		o.switches.faults.set(channel.Number, &faulty{why: notInForce + fault.Error()})
	}
	if settings.SendTimeout < time.Duration(channel.SendTimeout) {
		o.logger.Warn("send_timeout is cut to two thirds of the lease; raise lease to have more", "channel", channel.Name, "send_timeout", settings.SendTimeout.String())
	}
	if channel.Destinations.By == registry.ByMX {
		settings.Destinations.Site = o.sites.Of
	}
	ring.Set(keys, broken, files)
	o.tellBroken(channel, broken)
	share := o.budgets.rate(channel.Service).Share()
	if known != nil {
		share = known.share
	} else {
		o.budgets.set(channel.Service, together.Rate)
	}
	settings.Budgets = o.budgets.of(channel, together, share)
	for i := range settings.Relays {
		settings.Relays[i].Drained = o.registry.Drained(channel, settings.Relays[i].Name)
	}
	switch {
	case known == nil:
		if err := o.add(ctx, channel, settings, wanted, ring); err != nil {
			return nil, err
		}
	case known.settings == wanted && known.fault == "":
		known.SetRate(settings.Rate)
	default:
		known.Reconfigure(settings)
	}
	now := o.open[channel.Number]
	now.settings, now.rate, now.share, now.together = wanted, inForce.Rate, share, together
	o.noteFault(now, fault, channel)
	return fault, nil
}

// settingsBut is all that is configured but the rate, which changes without new
// connections.
func settingsBut(s registry.ChannelSettings) string {
	s.Rate = registry.Rate{}
	return fmt.Sprintf("%+v", s)
}

func (o *outlets) add(ctx context.Context, channel *registry.Channel, settings deliver.Settings, wanted string, ring *dkimkeys.Keyring) error {
	out := deliver.NewSender(deliver.Options{
		Channel: channel.Number, Name: channel.Service + "/" + channel.Name,
		Gate:     &gate{registry: o.registry, switches: o.switches, channel: channel.Number, captured: o.captured},
		Flows:    o.switches.paces,
		Recorder: o.recorder, Replies: o.replies.of(o.registry, channel.Number), Clock: o.clock, Logger: o.logger,
	}, settings)
	o.open[channel.Number] = &outlet{Sender: out, keys: ring, settings: wanted}
	for _, lane := range fanfare.Lanes {
		queue, err := o.bus.Batches(ctx, channel.Number, lane)
		if err != nil {
			return err
		}
		d := &dispatch{
			queue: queue, outlet: out, registry: o.registry, store: o.store,
			channel: channel.Number, lane: lane, clock: o.clock, logger: o.logger, loader: o.loader(ring), beside: o.aside.Go,
		}
		o.running.Go(func() { d.run(o.ctx) })
	}
	return nil
}

func (o *outlets) loader(keys *dkimkeys.Keyring) *loader {
	l := &loader{keys: keys, store: o.store, registry: o.registry, recorder: o.recorder, switches: o.switches, claims: o.claims, templates: o.templates, attachments: o.attachments, memory: o.memory, faults: o.faults, clock: o.clock,
		returns: o.returns.Clone(), domains: o.domains, sites: o.sites}
	if o.signer != nil {
		l.signer = o.signer.Clone()
	}
	return l
}

// settingsOf turns what people configured into what an outlet runs on.
func settingsOf(c *registry.Channel, lease time.Duration, hooks hooks, marks fileMarks) (deliver.Settings, error) {
	s := deliver.Settings{
		Connections: c.Connections, Rate: rate.Inf,
		SendTimeout: min(time.Duration(c.SendTimeout), lease*2/3), IdleTimeout: 30 * time.Second,
	}
	s.Adapt, s.Multicast, s.Destinations = c.Adapt, c.Multicast, destinationsOf(c)
	s.Reserve.Urgent, s.Reserve.Normal = c.Reserve.Shares()
	if perSecond := c.Rate.PerSecond(); perSecond > 0 {
		s.Rate = rate.Limit(perSecond)
	}
	s.Retry, s.RetryBy = retriesOf(c)
	switch c.Driver {
	case "file":
		folder := filepath.Clean(c.Path)
		s.Relays = []deliver.RelaySettings{{Name: folder, Driver: file.New(folder, marks.of(c.Number)), Weight: 1}}
		s.Connections = max(1, min(s.Connections, 4))
	case "smtp":
		for _, hop := range c.Hops() {
			driver, err := relayOf(hop.Channel, &s)
			if err != nil {
				return s, err
			}
			s.Relays = append(s.Relays, deliver.RelaySettings{Name: hop.Name, Driver: driver, Weight: hop.Weight})
		}
	case "webhook":
		s.Direct = true
		driver, err := hooks.driver(c, &s)
		if err != nil {
			return s, err
		}
		s.Relays = []deliver.RelaySettings{{Name: "webhook", Driver: driver, Weight: 1, Many: true}}
	default:
		return s, fmt.Errorf("channel %s/%s: no driver %q", c.Service, c.Name, c.Driver)
	}
	return s, nil
}

// relayOf makes the driver of the one relay of a channel.
func relayOf(c *registry.Channel, s *deliver.Settings) (driver.Driver, error) {
	password, err := c.Password()
	if err != nil {
		return nil, err
	}
	config := smtp.Config{
		Address: c.Relay, Hello: c.Hello, TLS: c.TLS, Username: c.Username, Password: password,
		Grouping: c.Grouping, SendTimeout: s.SendTimeout, IdleTimeout: s.IdleTimeout, MaxRecipients: c.Multicast,
	}
	if err := config.Validate(); err != nil {
		return nil, err
	}
	return smtp.New(config), nil
}

// awaitOff returns when no message for a subscription is on the wire, or ctx
// ends.
func (o *outlets) awaitOff(ctx context.Context, subscription fanfare.RowID) error {
	o.mu.Lock()
	all := make([]*outlet, 0, len(o.open))
	for _, out := range o.open {
		all = append(all, out)
	}
	o.mu.Unlock()
	for _, out := range all {
		if err := out.AwaitOff(ctx, subscription); err != nil {
			return err
		}
	}
	return nil
}

// of returns the outlet of a channel, nil if it has none.
func (o *outlets) of(channel uint16) *outlet {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.open[channel]
}

// status returns how the outlet of a channel is doing.
func (o *outlets) status(channel uint16) deliver.Status {
	o.mu.Lock()
	defer o.mu.Unlock()
	out := o.open[channel]
	if out == nil {
		return deliver.Status{}
	}
	status := out.Status()
	if out.fault != "" && status.LastError == "" {
		status.LastError = out.fault
	}
	return status
}

// drainRelay lets nothing leave by a relay, named service/channel/relay, or again.
func (o *outlets) drainRelay(name string, drained bool) {
	names := strings.SplitN(name, "/", 3)
	o.mu.Lock() // so that no settings from before come into force after
	defer o.mu.Unlock()
	channel, ok := o.registry.ChannelNamed(names[0], names[1])
	if !ok { // it was deleted meanwhile
		return
	}
	if out := o.open[channel.Number]; out != nil {
		out.Drain(names[2], drained)
	}
}

// taken counts by channel what the next hops took since the start.
func (o *outlets) taken() map[uint16]int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	taken := make(map[uint16]int64, len(o.open))
	for number, out := range o.open {
		taken[number] = out.Status().Taken
	}
	return taken
}

// drain stops taking batches and lets what is on the wire end. After the
// timeout outcomes are not waited for any more: what is still out there, with a
// relay that does not answer or a disk that takes nothing, is tried again by the
// next start.
func (o *outlets) drain(timeout time.Duration) {
	o.stop()
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		o.running.Wait()
		o.mu.Lock()
		defer o.mu.Unlock()
		var stopping sync.WaitGroup
		for _, out := range o.open {
			stopping.Go(out.Stop)
		}
		stopping.Wait()
		o.aside.Wait() // nothing begins there once all outlets have stopped
	}()
	defer o.budgets.quotas.stop(context.Background())
	limit := time.AfterFunc(timeout, o.recorder.Stop)
	defer limit.Stop()
	select {
	case <-drained:
	case <-time.After(timeout + grace):
		o.logger.Warn("messages are still on the wire after drain_timeout, they are tried again by the next start")
	}
}

// grace is how long connections have to close once nothing is recorded any more.
const grace = 500 * time.Millisecond

// sweep takes what may not leave any more out of all queues.
func (o *outlets) sweep() { o.each(func(out *outlet) { out.Sweep() }) }

// hurry tells all that rates of broadcasts have changed.
func (o *outlets) hurry() { o.each(func(out *outlet) { out.FlowsChanged() }) }

// each does something with every outlet.
func (o *outlets) each(do func(*outlet)) {
	o.mu.Lock()
	all := slices.Collect(maps.Values(o.open))
	o.mu.Unlock()
	for _, out := range all {
		do(out)
	}
}

// drop takes what waits for a subscriber out of all queues.
func (o *outlets) drop(subscriber fanfare.RowID) {
	o.each(func(out *outlet) { out.Drop(subscriber, "erased") })
}
