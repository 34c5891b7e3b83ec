package report

import (
	"context"

	"fanfare.dev/fanfare"
)

// Pauses know the pauses of everything, of services and of channels.
type Pauses interface {
	// Paused reports whether a channel of a service is paused, and why; with "" for the channel, whether the service is.
	Paused(service, channel string) (why string, is bool)
	// AnyChannelPaused reports whether a channel of a service is paused.
	AnyChannelPaused(service string) bool
}

// setPaused changes the state of a running broadcast to paused if nothing of it may be sent: everything is paused, or its
// service, or each of its channels.
func (t *Traces) setPaused(ctx context.Context, ref fanfare.EventRef, b *fanfare.Broadcast) error {
	if b.State != running || t.Pauses == nil {
		return nil
	}
	why, is := t.Pauses.Paused(b.Service, "")
	if !is && t.Pauses.AnyChannelPaused(b.Service) {
		var err error
		if why, is, err = t.channelsPaused(ctx, ref, b.Service); err != nil {
			return err
		}
	}
	if is {
		b.State, b.Reason = isPaused, why
	}
	return nil
}

// channelsPaused reports whether each channel of a broadcast is paused, and the reason of the first.
func (t *Traces) channelsPaused(ctx context.Context, ref fanfare.EventRef, service string) (why string, is bool, err error) {
	manifests, err := t.Store.Manifests(ctx, ref)
	if err != nil {
		return "", false, err
	}
	for i := range manifests {
		for _, section := range manifests[i].Sections {
			channel, known := t.Registry.Channel(section.Channel)
			if !known {
				return "", false, nil
			}
			one, stopped := t.Pauses.Paused(service, channel.Name)
			if !stopped {
				return "", false, nil
			}
			if !is {
				why, is = one, true
			}
		}
	}
	return why, is, nil
}
