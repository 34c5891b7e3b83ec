package app

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/bus"
	"fanfare.dev/fanfare/internal/deliver"
	"fanfare.dev/fanfare/internal/deliver/file"
	"fanfare.dev/fanfare/internal/deliver/smtp"
	"fanfare.dev/fanfare/internal/format"
	"fanfare.dev/fanfare/internal/kit"
	"fanfare.dev/fanfare/internal/record"
	"fanfare.dev/fanfare/internal/registry"
	"fanfare.dev/fanfare/internal/store/sqlite"
)

// outlets has one outlet for each channel, with a dispatch loop for each lane.
type outlets struct {
	bus      *bus.Bus
	registry *registry.Registry
	store    *sqlite.Deliveries
	recorder *record.Recorder
	switches *switches
	signer   *format.Signer
	claims   *claims
	lease    time.Duration // of a batch
	clock    kit.Clock
	logger   *slog.Logger

	templates *templates
	memory    *memory

	mu      sync.Mutex
	open    map[uint16]*outlet
	running sync.WaitGroup // dispatch loops
	aside   sync.WaitGroup // what they have left to do
	ctx     context.Context
	stop    context.CancelFunc
}

type outlet struct {
	*deliver.Outlet
	settings string // of the channel, to notice a change
}

// reconcile makes an outlet for each channel and puts changed settings in force.
func (o *outlets) reconcile(ctx context.Context) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, channel := range o.registry.Channels() {
		wanted := fmt.Sprintf("%+v", channel.ChannelSettings)
		known := o.open[channel.Number]
		if known != nil && known.settings == wanted {
			continue
		}
		settings, err := settingsOf(channel, o.lease)
		if err != nil {
			return err
		}
		if settings.SendTimeout < time.Duration(channel.SendTimeout) {
			o.logger.Warn("send_timeout is cut to two thirds of the lease; raise lease to have more", "channel", channel.Name, "send_timeout", settings.SendTimeout.String())
		}
		if known != nil {
			known.Reconfigure(settings)
			known.settings = wanted
			continue
		}
		if err := o.add(ctx, channel, settings, wanted); err != nil {
			return err
		}
	}
	return nil
}

func (o *outlets) add(ctx context.Context, channel *registry.Channel, settings deliver.Settings, wanted string) error {
	out := deliver.NewOutlet(deliver.Options{
		Channel: channel.Number, Name: channel.Service + "/" + channel.Name,
		Gate:     &gate{registry: o.registry, switches: o.switches, channel: channel.Number},
		Recorder: o.recorder, Clock: o.clock, Logger: o.logger,
	}, settings)
	o.open[channel.Number] = &outlet{Outlet: out, settings: wanted}
	for _, lane := range fanfare.Lanes {
		queue, err := o.bus.Batches(ctx, channel.Number, lane)
		if err != nil {
			return err
		}
		d := &dispatch{
			queue: queue, outlet: out, registry: o.registry, store: o.store,
			channel: channel.Number, lane: lane, clock: o.clock, logger: o.logger, loader: o.loader(), beside: o.aside.Go,
		}
		o.running.Go(func() { d.run(o.ctx) })
	}
	return nil
}

func (o *outlets) loader() *loader {
	l := &loader{store: o.store, registry: o.registry, recorder: o.recorder, switches: o.switches, claims: o.claims, templates: o.templates, memory: o.memory, clock: o.clock}
	if o.signer != nil {
		l.signer = o.signer.Clone()
	}
	return l
}

// settingsOf turns what people configured into what an outlet runs on.
func settingsOf(c *registry.Channel, lease time.Duration) (deliver.Settings, error) {
	s := deliver.Settings{
		Connections: c.Connections, Rate: rate.Inf, Retry: make(deliver.Retry, len(c.Retry)),
		SendTimeout: min(time.Duration(c.SendTimeout), lease*2/3), IdleTimeout: 30 * time.Second,
	}
	if perSecond := c.Rate.PerSecond(); perSecond > 0 {
		s.Rate = rate.Limit(perSecond)
	}
	for i, wait := range c.Retry {
		s.Retry[i] = time.Duration(wait)
	}
	switch c.Driver {
	case "file":
		s.Driver = file.New(filepath.Clean(c.Path))
		s.Connections = max(1, min(s.Connections, 4))
	case "smtp":
		password, err := c.Password()
		if err != nil {
			return s, err
		}
		config := smtp.Config{
			Address: c.Relay, Hello: c.Hello, TLS: c.TLS, Username: c.Username, Password: password,
			Grouping: c.Grouping, SendTimeout: s.SendTimeout, IdleTimeout: s.IdleTimeout,
		}
		if err := config.Validate(); err != nil {
			return s, err
		}
		s.Driver = smtp.New(config)
	default:
		return s, fmt.Errorf("channel %s/%s: no driver %q", c.Service, c.Name, c.Driver)
	}
	return s, nil
}

// awaitOff returns when no message for a subscription is on the wire, or ctx
// ends.
func (o *outlets) awaitOff(ctx context.Context, subscription fanfare.Place) error {
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

// status returns how the outlet of a channel is doing.
func (o *outlets) status(channel uint16) deliver.Status {
	o.mu.Lock()
	out := o.open[channel]
	o.mu.Unlock()
	if out == nil {
		return deliver.Status{}
	}
	return out.Status()
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

// drop takes what waits for a subscriber out of all queues.
func (o *outlets) drop(subscriber fanfare.Place) {
	o.mu.Lock()
	all := make([]*outlet, 0, len(o.open))
	for _, out := range o.open {
		all = append(all, out)
	}
	o.mu.Unlock()
	for _, out := range all {
		out.Drop(subscriber, "erased")
	}
}
