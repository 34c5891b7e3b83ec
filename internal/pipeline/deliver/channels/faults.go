package channels

import (
	"context"
	"maps"
	"slices"
	"sync/atomic"

	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/pipeline/deliver"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
	"fanfare.dev/fanfare/internal/store/retry"
)

// brokenDriver replaces a driver that cannot be created. It accepts no messages: unsigned mail,
// for example, must not wait in it.
type brokenDriver struct{ err error }

func (b brokenDriver) Serve(context.Context, driver.Queue) error { return b.err }

func brokenRelays(err error) []deliver.RelaySettings {
	return []deliver.RelaySettings{{Name: "none", Driver: brokenDriver{err}, Weight: 1}}
}

// Faults contains the channels whose settings have not been active since the start. Their batches
// are held like those of a paused channel, so that they can be cancelled, and are cancelled when
// the channel is deleted. Channels writes it; readers take no lock.
type Faults struct {
	now atomic.Pointer[map[uint16]*Fault]
}

// Fault is why a channel has never been able to send.
type Fault struct {
	Reason  string
	Deleted bool // the channel was deleted and will not send
}

// notInForce is the beginning of the reason why the batches of a channel with a fault are held.
const notInForce = "the settings of the channel cannot be applied: "

// Of returns the fault of a channel, nil if it has none.
func (f *Faults) Of(channel uint16) *Fault {
	if f == nil {
		return nil
	}
	if all := f.now.Load(); all != nil {
		return (*all)[channel]
	}
	return nil
}

// Set sets the fault of a channel, nil for none, and reports whether that is new. One goroutine
// writes at a time: Channels under its lock.
func (f *Faults) Set(channel uint16, fault *Fault) bool {
	if known := f.Of(channel); known == fault || known != nil && fault != nil && *known == *fault {
		return false
	}
	all := map[uint16]*Fault{}
	if before := f.now.Load(); before != nil {
		all = maps.Clone(*before)
	}
	if fault == nil {
		delete(all, channel)
	} else {
		all[channel] = fault
	}
	f.now.Store(&all)
	return true
}

// noteFault records why the settings of a channel are not active, or nil if they are, and logs
// a change. Batches that were held because of the fault are resumed.
func (c *Channels) noteFault(ch *channel, fault error, conf *catalog.Channel) {
	was := ch.fault
	ch.fault = ""
	if fault != nil {
		ch.fault = fault.Error()
		if !ch.started {
			c.parts.Faults.Set(conf.Number, &Fault{Reason: notInForce + ch.fault})
		}
	} else {
		ch.started = true
		if c.parts.Faults.Set(conf.Number, nil) {
			c.parts.Release()
		}
	}
	switch name := conf.Service + "/" + conf.Name; {
	case ch.fault == was:
	case ch.fault != "":
		c.logger.Error("cannot apply the settings of a channel; retrying", "channel", name, "error", ch.fault)
	default:
		c.logger.Info("applied the settings of a channel", "channel", name)
	}
}

// cancelDeleted cancels the messages of channels that were deleted before they could send. The
// caller holds mu.
func (c *Channels) cancelDeleted() {
	for _, conf := range c.parts.Registry.DeletedChannels() {
		if known := c.parts.Faults.Of(conf.Number); known == nil || known.Deleted {
			continue
		}
		c.parts.Faults.Set(conf.Number, &Fault{Reason: deliver.ChannelDeleted, Deleted: true})
		c.parts.Release()
		c.logger.Warn("a channel that could not send was deleted; its waiting messages are cancelled", "channel", conf.Service+"/"+conf.Name, "error", c.open[conf.Number].fault)
	}
}

// retryFaults retries settings that could not be applied.
func (c *Channels) retryFaults(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conf := range c.parts.Registry.Channels() {
		if ch := c.open[conf.Number]; ch != nil && ch.fault != "" {
			_, _ = c.apply(ctx, conf) // the fault was logged, and there is a sender
		}
	}
}

// serveDeleted creates senders for channels that were deleted before this start and still have
// batches on the bus. The batches are sent, or cancelled if that is impossible.
func (c *Channels) serveDeleted(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	deleted := c.parts.Registry.DeletedChannels()
	if !slices.ContainsFunc(deleted, func(conf *catalog.Channel) bool { return c.open[conf.Number] == nil }) {
		return
	}
	waiting, err := c.parts.Waiting(ctx)
	for _, conf := range deleted {
		if err == nil && c.open[conf.Number] == nil && waiting[conf.Number] {
			_, err = c.apply(ctx, conf)
		}
	}
	c.cancelDeleted()
	if err != nil && ctx.Err() == nil {
		c.logger.Log(ctx, retry.LogLevel(err), "cannot look up the waiting messages of deleted channels; retrying", "error", err)
	}
}
