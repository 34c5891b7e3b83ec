package app

import (
	"context"
	"log/slog"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/deliver"
	"fanfare.dev/fanfare/internal/registry"
)

// A standstill is in the place of the way out of a channel whose own cannot be made.
// Nothing is loaded for it: mail that is not signed, say, must not wait there.
type standstill struct{ why error }

func (s standstill) Serve(context.Context, fanfare.Desk) error { return s.why }

func standingStill(why error) []deliver.RelaySettings {
	return []deliver.RelaySettings{{Name: "none", Driver: standstill{why}, Weight: 1}}
}

// noteFault notes why the settings of a channel are not in force, nil where they are,
// and tells when that changes.
func (o *outlet) noteFault(fault error, log *slog.Logger, of *registry.Channel) {
	was := o.fault
	o.fault = ""
	if fault != nil {
		o.fault = fault.Error()
	} else {
		o.begin.Do(func() { close(o.able) })
	}
	switch name := of.Service + "/" + of.Name; {
	case o.fault == was:
	case o.fault != "":
		log.Error("the settings of a channel cannot be put in force, which is tried again until they can", "channel", name, "error", o.fault)
	default:
		log.Info("the settings of a channel are in force now", "channel", name)
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
