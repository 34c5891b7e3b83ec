package notify

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/httpapi"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/notifier"
)

// Callbacks post the final status of each notification to the receiver that its service has chosen,
// as messages of a webhook channel. The queue of the channel keeps and repeats them.
type Callbacks struct {
	catalog Catalog
	logger  *slog.Logger
	opened  atomic.Pointer[opened]
}

// opened is what Callbacks need to post.
type opened struct {
	api  *API
	send Sender
}

// A Sender sends messages; *messages.Messages has this method.
type Sender interface {
	Send(ctx context.Context, service string, request *wire.MessageRequest, once httpapi.Once) (httpapi.Sent, error)
}

// NewCallbacks returns callbacks that can be asked what they want. They post after Open.
func NewCallbacks(c Catalog, logger *slog.Logger) *Callbacks {
	return &Callbacks{catalog: c, logger: logger}
}

// Open lets the callbacks post.
func (c *Callbacks) Open(api *API, send Sender) { c.opened.Store(&opened{api, send}) }

// Wants reports whether the outcomes of a channel are reported. Those of the callbacks themselves are not.
func (c *Callbacks) Wants(channel uint16) bool {
	of, ok := c.catalog.Channel(channel)
	if !ok {
		return false
	}
	service := c.catalog.Snapshot().Services[of.Service]
	return service != nil && service.Notify.Callbacks.Delivery != "" && service.Notify.Callbacks.Delivery != of.Name
}

var errNotOpen = &fanfare.Error{Code: fanfare.Unavailable, Message: "the API for clients of GOV.UK Notify is not open yet"}

// Post sends a callback for each outcome that makes the status of a notification final.
func (c *Callbacks) Post(ctx context.Context, outcomes []notifier.Outcome) error {
	o := c.opened.Load()
	if o == nil {
		return errNotOpen
	}
	for i := range outcomes {
		err := c.post(ctx, o, &outcomes[i])
		wrong, known := errors.AsType[*fanfare.Error](err)
		switch {
		case err == nil:
		case known && (wrong.Code == fanfare.Invalid || wrong.Code == fanfare.NotFound || wrong.Code == fanfare.Conflict):
			c.logger.Warn("a callback to a client of GOV.UK Notify cannot be sent", "service", outcomes[i].Of.Service, "error", err)
		default:
			return err
		}
	}
	return nil
}

// A deliveryCallback is the body of a callback.
type deliveryCallback struct {
	ID          string  `json:"id"`
	Reference   *string `json:"reference"`
	To          *string `json:"to"`
	Status      string  `json:"status"`
	CreatedAt   *string `json:"created_at"`
	CompletedAt *string `json:"completed_at"`
	SentAt      *string `json:"sent_at"`
	Type        string  `json:"notification_type"`
	TemplateID  string  `json:"template_id"`
	Version     int     `json:"template_version"`
}

func (c *Callbacks) post(ctx context.Context, o *opened, outcome *notifier.Outcome) error {
	service := c.catalog.Snapshot().Services[outcome.Of.Service]
	if service == nil {
		return nil
	}
	receiver := service.Channels[service.Notify.Callbacks.Delivery]
	if receiver == nil {
		return nil
	}
	posted, err := o.api.options.Messages.Posted(ctx, service.Name, outcome.Of.Ref())
	if fanfare.CodeOf(err) == fanfare.NotFound {
		return nil // the message was removed
	}
	if err != nil || posted.Direct.Notify == nil || len(posted.Direct.Recipients) == 0 {
		return err
	}
	message, err := o.api.options.Messages.State(ctx, posted)
	if err != nil {
		return err
	}
	n := o.api.notificationOf(&caller{service: service}, posted, &message)
	var due time.Time
	if wait, reports := service.Notify.DeliveredAfter(); n.CompletedAt == nil && reports && outcome.State == fanfare.Accepted {
		due = outcome.At.Add(wait)
		n.Status, n.CompletedAt, n.SentAt = statusDelivered, at(due), at(outcome.At)
	}
	if n.CompletedAt == nil {
		return nil
	}
	if err := o.api.addAddresses(ctx, []*notification{n}); err != nil {
		return err
	}
	to := n.EmailAddress
	if n.Type == catalog.TemplateSMS {
		to = n.PhoneNumber
	}
	body, err := json.Marshal(&deliveryCallback{
		ID: n.ID, Reference: n.Reference, To: to, Status: n.Status, CreatedAt: n.CreatedAt, CompletedAt: n.CompletedAt, SentAt: n.SentAt,
		Type: n.Type, TemplateID: n.Template.ID, Version: n.Template.Version,
	})
	if err != nil {
		return err
	}
	_, err = o.send.Send(ctx, service.Name, &wire.MessageRequest{
		Channel: receiver.Name, To: receiver.URL, Content: &wire.MessageContent{JSON: "{{ event | json }}"}, Data: body, NotBefore: due,
	}, httpapi.Once{Key: "notify-callback-" + n.ID + "-" + n.Status, Digest: n.ID + "-" + n.Status})
	return err
}
