package messages

import (
	"context"
	"crypto/rand"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog/state"
	"fanfare.dev/fanfare/internal/httpapi/wire"
)

// A ContentMessage is a message to one address whose content comes with it.
type ContentMessage struct {
	Key                string // the same message again has the same key; "": it is new
	Channel            string // name
	To                 string
	Content            fanfare.EventContent
	NotBefore, Expires time.Time // zero: no limit

	Asked bool // the recipient has just requested it: it is sent even if the recipient unsubscribed from everything
}

// SendContent accepts a message. It is durable when SendContent returns. A message whose key is known is not sent again.
func (m *Messages) SendContent(ctx context.Context, service string, of *ContentMessage) (fanfare.EventRef, error) {
	posted := &fanfare.AcceptedEvent{
		Service: service, Lane: fanfare.Urgent, ReceivedAt: m.options.Clock.Now(), Content: &of.Content, NotBefore: of.NotBefore, Expires: of.Expires,
		Event:  fanfare.Event{ID: of.Key, Source: messageSource, Type: messageType},
		Direct: &fanfare.Direct{Asked: of.Asked},
	}
	if of.Key == "" {
		posted.Event.ID = rand.Text()
	} else if ref, known := m.options.Collector.Known(posted); known {
		return ref, nil
	}
	if err := m.options.Disk.Check(); err != nil {
		return fanfare.EventRef{}, err
	}
	defer m.options.Accepting.Enter()()
	request := &wire.MessageRequest{Channel: of.Channel, To: of.To}
	d, err := m.draft(ctx, posted, request, state.ChooseReleased)
	if err != nil {
		return fanfare.EventRef{}, err
	}
	if err := d.setRecipients(ctx, m.options.Registry, request); err != nil {
		return fanfare.EventRef{}, err
	}
	results, err := m.options.Collector.Post(ctx, []fanfare.AcceptedEvent{*posted})
	if err != nil {
		return fanfare.EventRef{}, err
	}
	return results[0].Ref, results[0].Err
}
