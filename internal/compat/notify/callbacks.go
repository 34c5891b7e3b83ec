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
	api    *API
	send   Sender
	cancel func(ctx context.Context, scope fanfare.Scope, reason string) error // settles the open deliveries of a scope as cancelled
}

// A Sender sends messages; *messages.Messages has this method.
type Sender interface {
	Send(ctx context.Context, service string, request *wire.MessageRequest, once httpapi.Once) (httpapi.Sent, error)
}

// NewCallbacks returns callbacks that can be asked what they want. They post after Open.
func NewCallbacks(c Catalog, logger *slog.Logger) *Callbacks {
	return &Callbacks{catalog: c, logger: logger}
}

// Open lets the callbacks post. cancel settles the open deliveries of a scope as cancelled.
func (c *Callbacks) Open(api *API, send Sender, cancel func(ctx context.Context, scope fanfare.Scope, reason string) error) {
	c.opened.Store(&opened{api, send, cancel})
}

// Wants reports whether the outcomes of a channel are reported. Those of the callbacks themselves are not. The channel is 0 for an outcome that
// came back, because the entry of such an outcome does not have it.
func (c *Callbacks) Wants(channel uint16) bool {
	of, ok := c.catalog.Channel(channel)
	if !ok {
		for _, service := range c.catalog.Snapshot().Services {
			if service.Notify.Callbacks.Delivery != "" {
				return true
			}
		}
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
	waiting, key := "notify-callback-"+n.ID, "notify-callback-"+n.ID+"-"+n.Status // the reference of a callback that waits, and the name of this one
	if !due.IsZero() {
		key += "-later"
	} else {
		if err := o.withdraw(ctx, service, outcome, waiting); err != nil {
			return err
		}
		waiting = ""
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
		Channel: receiver.Name, To: receiver.URL, Content: &wire.MessageContent{JSON: "{{ event | json }}"}, Data: body, NotBefore: due, Reference: waiting,
	}, httpapi.Once{Key: key, Digest: n.ID + "-" + n.Status})
	return err
}

// withdraw cancels the callback that would report an accepted notification as delivered later, because its outcome is known before that.
func (o *opened) withdraw(ctx context.Context, service *catalog.ServiceSnapshot, outcome *notifier.Outcome, reference string) error {
	wait, reports := service.Notify.DeliveredAfter()
	if !reports || wait == 0 || !outcome.Returned {
		return nil
	}
	days, err := o.api.options.Store.Days(ctx)
	if err != nil {
		return err
	}
	for _, day := range days {
		if day < outcome.Of.Ref().Day {
			continue
		}
		found, err := o.api.options.Store.FindReference(ctx, day, service.Name, reference)
		if err != nil && fanfare.CodeOf(err) != fanfare.NotFound {
			return err
		}
		for _, seq := range found {
			event := fanfare.EventRef{Day: day, Seq: seq}
			err := o.cancel(ctx, fanfare.Scope{Kind: fanfare.ScopeBroadcast, Name: event.String()}, "the outcome of the notification is known")
			if code := fanfare.CodeOf(err); err != nil && code != fanfare.NotFound && code != fanfare.Conflict { // it has been sent already
				return err
			}
		}
	}
	return nil
}
