package notify

import (
	"context"
	"net/http"
	"strings"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/render/notifytext"

	"encoding/json"
)

// A notification is a message as clients see it. All members are always present.
type notification struct {
	ID                 string       `json:"id"`
	Reference          *string      `json:"reference"`
	EmailAddress       *string      `json:"email_address"`
	PhoneNumber        *string      `json:"phone_number"`
	Line1              *string      `json:"line_1"`
	Line2              *string      `json:"line_2"`
	Line3              *string      `json:"line_3"`
	Line4              *string      `json:"line_4"`
	Line5              *string      `json:"line_5"`
	Line6              *string      `json:"line_6"`
	Postcode           *string      `json:"postcode"`
	Postage            *string      `json:"postage"`
	Type               string       `json:"type"`
	Status             string       `json:"status"`
	Template           templateLink `json:"template"`
	Subject            *string      `json:"subject"`
	Body               string       `json:"body"`
	CreatedAt          *string      `json:"created_at"`
	CreatedByName      *string      `json:"created_by_name"`
	SentAt             *string      `json:"sent_at"`
	CompletedAt        *string      `json:"completed_at"`
	ScheduledFor       *string      `json:"scheduled_for"`
	OneClick           *string      `json:"one_click_unsubscribe_url"`
	OneClickDocumented *string      `json:"one_click_unsubscribe"`
	IsCostDataReady    bool         `json:"is_cost_data_ready"`
	CostInPounds       *float64     `json:"cost_in_pounds"`
	CostDetails        any          `json:"cost_details"`

	place    fanfare.RowID
	spelling string // of the phone number
}

type templateLink struct {
	ID      string `json:"id"`
	Version int    `json:"version"`
	URI     string `json:"uri"`
}

// getNotification answers with one notification, which may have been sent with any key of the service.
func (a *API) getNotification(r *http.Request, c *caller) (int, any, error) {
	posted, err := a.find(r.Context(), c, r.PathValue("id"))
	if err != nil {
		return 0, nil, err
	}
	message, err := a.options.Messages.State(r.Context(), posted)
	if err != nil {
		return 0, nil, err
	}
	n := a.notificationOf(c, posted, &message)
	if err := a.addAddresses(r.Context(), []*notification{n}); err != nil {
		return 0, nil, err
	}
	return http.StatusOK, n, nil
}

// find returns the message of an id.
func (a *API) find(ctx context.Context, c *caller, id string) (*fanfare.AcceptedEvent, error) {
	if !isUUID(id) {
		return nil, invalid([]string{"notification_id is not a valid UUID"})
	}
	ref, ok := a.ids.Parse(c.service.Name, strings.ToLower(id))
	if !ok {
		return nil, noResult()
	}
	posted, err := a.options.Messages.Posted(ctx, c.service.Name, ref)
	if err != nil {
		return nil, err
	}
	if posted.Direct.Notify == nil || len(posted.Direct.Recipients) == 0 {
		return nil, noResult()
	}
	return posted, nil
}

// getPDF refuses: no notification is a letter.
func (a *API) getPDF(r *http.Request, c *caller) (int, any, error) {
	if _, err := a.find(r.Context(), c, r.PathValue("id")); err != nil {
		return 0, nil, err
	}
	return 0, nil, badRequest("Notification is not a letter")
}

// notificationOf returns a message without the address of its recipient.
func (a *API) notificationOf(c *caller, posted *fanfare.AcceptedEvent, m *wire.Message) *notification {
	d := posted.Direct
	channel, _ := a.options.Catalog.Channel(d.Channel)
	status := StatusOf(&c.service.Notify, channel, m, a.options.Rules(), a.options.Clock.Now())
	n := &notification{
		ID: a.ids.Of(c.service.Name, posted.Ref()), Reference: orNull(d.Reference), Type: typeName(d.Notify.SMS), Status: status.Name, place: d.Recipients[0].Subscriber, spelling: d.Notify.Spelling,
		CreatedAt: at(posted.ReceivedAt), SentAt: at(status.SentAt), CompletedAt: at(status.CompletedAt),
		OneClick: orNull(d.Unsubscribe), OneClickDocumented: orNull(d.Unsubscribe), CostDetails: map[string]any{},
	}
	if source, ok := a.options.Catalog.Template(d.Template); ok {
		id := templateID(c.service, &source)
		n.Template = templateLink{id, source.Version, a.url(versionPath(id, source.Version))}
		var subject string
		subject, n.Body = contentOf(&source, valuesOf(posted.Event.Data))
		if !d.Notify.SMS {
			n.Subject = &subject
		}
	}
	var free float64
	switch {
	case !d.Notify.SMS:
		n.IsCostDataReady, n.CostInPounds = true, &free
	case status.Name != statusCreated:
		n.IsCostDataReady, n.CostInPounds = true, &free
		n.CostDetails = map[string]any{"billable_sms_fragments": notifytext.Fragments(d.Notify.Prefix + n.Body), "international_rate_multiplier": 1, "sms_rate": 0}
	}
	return n
}

// valuesOf returns a stored personalisation.
func valuesOf(data json.RawMessage) map[string]any {
	if len(data) == 0 {
		return map[string]any{}
	}
	b, err := parseBody(data)
	if err != nil { // it was an object when it was stored
		return map[string]any{}
	}
	return b.members
}

// addAddresses adds the addresses of recipients. Those of erased people stay null.
func (a *API) addAddresses(ctx context.Context, list []*notification) error {
	places := make([]fanfare.RowID, len(list))
	for i := range list {
		places[i] = list[i].place
	}
	addresses, err := a.options.Addresses.AddressesOf(ctx, places)
	if err != nil {
		return err
	}
	for _, n := range list {
		to := orNull(addresses[n.place])
		if n.Type == catalog.TemplateSMS {
			n.PhoneNumber = orNull(spelled(n.spelling, addresses[n.place]))
		} else {
			n.EmailAddress = to
		}
	}
	return nil
}
