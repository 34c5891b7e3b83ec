package server

import (
	"context"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/admin/inspect"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/registry"
)

// Try checks a direct send as Send would, and writes each message, but keeps and
// makes nothing.
func (m *messages) Try(ctx context.Context, service string, request *wire.MessageRequest) (run wire.MessageRun, err error) {
	posted := &fanfare.AcceptedEvent{
		Service: service, Lane: fanfare.Urgent, ReceivedAt: m.clock.Now(),
		Event:     fanfare.Event{ID: "dry-run", Source: messageSource, Type: messageType, Data: request.Data},
		NotBefore: request.NotBefore, Expires: request.Expires,
		Direct: &fanfare.Direct{Reference: request.Reference, List: request.Recipients != nil},
	}
	if err := m.collector.CheckTimes(posted); err != nil {
		return run, err
	}
	d, err := m.draft(ctx, posted, request, registry.ChooseAny)
	if err != nil {
		return run, err
	}
	if err := d.find(ctx, m.registry, request); err != nil {
		return run, err
	}
	if err := d.fits(); err != nil {
		return run, err
	}
	run.DryRunChannel = inspect.ChannelRun(m.registry, d.channel.Number, len(d.people))
	run.Hold, run.Errors = m.registry.Hold(posted, int64(len(d.people))), d.refused
	return run, nil
}
