package messages

import (
	"context"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog/state"
	"fanfare.dev/fanfare/internal/httpapi/wire"
)

// Try checks a message and renders it for each recipient as Send does, but sends and stores nothing.
func (m *Messages) Try(ctx context.Context, service string, request *wire.MessageRequest) (run wire.MessageRun, err error) {
	posted := &fanfare.AcceptedEvent{
		Service: service, Lane: fanfare.Urgent, ReceivedAt: m.options.Clock.Now(),
		Event:     fanfare.Event{ID: "dry-run", Source: messageSource, Type: messageType, Data: request.Data},
		NotBefore: request.NotBefore, Expires: request.Expires,
		Direct: &fanfare.Direct{Reference: request.Reference, List: request.Recipients != nil},
	}
	if err := m.options.Collector.CheckTimes(posted); err != nil {
		return run, err
	}
	d, err := m.draft(ctx, posted, request, state.ChooseAny)
	if err != nil {
		return run, err
	}
	if err := d.checkRecipients(ctx, m.options.Registry, request); err != nil {
		return run, err
	}
	if err := d.checkSize(); err != nil {
		return run, err
	}
	run.DryRunChannel = m.options.Estimate(d.channel.Number, len(d.recipients))
	run.Hold, run.Errors = m.options.Registry.Hold(posted, int64(len(d.recipients))), d.refused
	return run, nil
}
