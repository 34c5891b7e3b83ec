package server

import (
	"context"
	"maps"
	"slices"
	"sync/atomic"

	"fanfare.dev/fanfare/internal/pipeline/deliver"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
	"fanfare.dev/fanfare/internal/registry"
	"fanfare.dev/fanfare/internal/store/retry"
)

// A standstill is in the place of the way out of a channel whose own cannot be made.
// Nothing is loaded for it: mail that is not signed, say, must not wait there.
type standstill struct{ why error }

func (s standstill) Serve(context.Context, driver.Queue) error { return s.why }

func standingStill(why error) []deliver.RelaySettings {
	return []deliver.RelaySettings{{Name: "none", Driver: standstill{why}, Weight: 1}}
}

// faults are the channels whose settings have not been in force since the start. Their
// batches are held like those of a paused channel, where a cancel reaches them, and are
// cancelled once the channel is deleted. One writes, under the lock of the outlets.
type faults struct {
	now atomic.Pointer[map[uint16]*faulty]
}

// faulty is a channel that never could send.
type faulty struct {
	why  string
	gone bool // it was deleted, and will not be able to
}

// notInForce begins the reason for which the batches of a faulty channel are held.
const notInForce = "the settings of the channel cannot be put in force: "

// channelGone is why what is left for a channel is cancelled.
const channelGone = "the channel was deleted"

// of returns what is wrong with a channel, nil: nothing.
func (f *faults) of(channel uint16) *faulty {
	if f == nil {
		return nil
	}
	if all := f.now.Load(); all != nil {
		return (*all)[channel]
	}
	return nil
}

// set says what is wrong with a channel, nil: nothing. It reports whether that is new.
func (f *faults) set(channel uint16, what *faulty) bool {
	if known := f.of(channel); known == what || known != nil && what != nil && *known == *what {
		return false
	}
	all := map[uint16]*faulty{}
	if before := f.now.Load(); before != nil {
		all = maps.Clone(*before)
	}
	if what == nil {
		delete(all, channel)
	} else {
		all[channel] = what
	}
	f.now.Store(&all)
	return true
}

// noteFault notes why the settings of a channel are not in force, nil where they are,
// and tells when that changes. What is held for the fault goes back to work.
func (o *outlets) noteFault(out *outlet, fault error, of *registry.Channel) {
	was := out.fault
	out.fault = ""
	if fault != nil {
		out.fault = fault.Error()
		if !out.begun {
			o.switches.faults.set(of.Number, &faulty{why: notInForce + out.fault})
		}
	} else {
		out.begun = true
		if o.switches.faults.set(of.Number, nil) {
			o.switches.soon()
		}
	}
	switch name := of.Service + "/" + of.Name; {
	case out.fault == was:
	case out.fault != "":
		o.logger.Error("the settings of a channel cannot be put in force, which is tried again until they can", "channel", name, "error", out.fault)
	default:
		o.logger.Info("the settings of a channel are in force now", "channel", name)
	}
}

// lapse has what waits for channels cancelled that were deleted before they could send.
func (o *outlets) lapse() {
	for _, channel := range o.registry.ClosedChannels() {
		if known := o.switches.faults.of(channel.Number); known == nil || known.gone {
			continue
		}
		o.switches.faults.set(channel.Number, &faulty{why: channelGone, gone: true})
		o.switches.soon()
		o.logger.Warn("a channel was deleted that could not send, what waits for it is cancelled", "channel", channel.Service+"/"+channel.Name, "error", o.open[channel.Number].fault)
	}
}

// mendFaulty tries the settings of channels again that could not be put in force.
func (o *outlets) mendFaulty(ctx context.Context) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, channel := range o.registry.Channels() {
		if out := o.open[channel.Number]; out != nil && out.fault != "" {
			_, _ = o.put(ctx, channel) // it was told, and an outlet is there
		}
	}
}

// serveClosed makes outlets for channels that were deleted before this start, and for
// which something waits on the bus: it leaves, or is cancelled where it cannot.
func (o *outlets) serveClosed(ctx context.Context) {
	o.mu.Lock()
	defer o.mu.Unlock()
	closed := o.registry.ClosedChannels()
	if !slices.ContainsFunc(closed, func(c *registry.Channel) bool { return o.open[c.Number] == nil }) {
		return
	}
	waiting, err := o.bus.Waiting(ctx)
	for _, channel := range closed {
		if err == nil && o.open[channel.Number] == nil && waiting[channel.Number] {
			_, err = o.put(ctx, channel)
		}
	}
	o.lapse()
	if err != nil && ctx.Err() == nil {
		o.logger.Log(ctx, retry.LogLevel(err), "what waits for deleted channels could not be looked for, it is tried again", "error", err)
	}
}
