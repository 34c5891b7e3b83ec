package privacy

import (
	"context"
	"encoding/json"
	"strings"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/admin/report"
	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/httpapi"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/mailbox"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/people/registry"
	"fanfare.dev/fanfare/internal/people/suppression"
	"fanfare.dev/fanfare/internal/store/deliveries"
)

// Digests knows the events that wait for digests.
type Digests interface {
	Describe(w *deliveries.Waiting) fanfare.Gathering
	EachMember(ctx context.Context, day fanfare.Day, w *deliveries.Waiting, subscriber fanfare.RowID, visit func(fanfare.EventRef, *fanfare.Member) error) error
}

// An Exporter collects all data that the server stores about a person.
type Exporter struct {
	Registry *registry.Registry
	Traces   *report.Traces
	Store    *deliveries.Store
	Digests  Digests

	Mailboxes *mailbox.Store
	Sends     Sends
	Others    []Records // of other packages
}

// exportPage is the number of subscriptions that are read together.
const exportPage = 1000

// Export visits the data of a person, line by line. An error of visit ends it.
func (e *Exporter) Export(ctx context.Context, service, id string, visit func(*httpapi.PersonalLine) error) error {
	s, places, err := e.Registry.PersonalRecord(ctx, service, id)
	if err != nil {
		return err
	}
	if err := visit(&httpapi.PersonalLine{Type: "subscriber", Subscriber: &s}); err != nil {
		return err
	}
	for after := fanfare.RowID(0); ; {
		page, next, err := e.Registry.SubscriptionPage(ctx, service, people.SubscriptionFilter{Subscriber: id}, after, exportPage)
		if err != nil {
			return err
		}
		for i := range page {
			if err := visit(&httpapi.PersonalLine{Type: "subscription", Subscription: &page[i]}); err != nil {
				return err
			}
		}
		if after = next; next == 0 {
			break
		}
	}
	err = e.Registry.SuppressionsOf(ctx, service, places, func(s *suppression.Suppression) error {
		return visit(&httpapi.PersonalLine{Type: "suppression", Suppression: s})
	})
	if err != nil {
		return err
	}
	agreed, err := e.Registry.Consents(ctx, service, id)
	if err != nil {
		return err
	}
	for i := range agreed {
		if err := visit(&httpapi.PersonalLine{Type: "consent", Consent: &agreed[i]}); err != nil {
			return err
		}
	}
	var texts [][]byte
	err = e.deliveries(ctx, service, places, func(line *httpapi.PersonalLine) error {
		if m := line.Message; m != nil {
			texts = append(texts, m.Data, m.Recipient, m.Content)
		}
		return visit(line)
	})
	if err != nil {
		return err
	}
	if err := e.waiting(ctx, service, places, visit); err != nil {
		return err
	}
	if err := e.mailboxes(ctx, service, places, visit); err != nil {
		return err
	}
	names := namesOf(&s)
	if err := e.sends(ctx, service, names, places, visit); err != nil {
		return err
	}
	for _, records := range e.Others {
		if err := records.Export(ctx, service, names, texts, visit); err != nil {
			return err
		}
	}
	return e.Registry.PersonalAudit(ctx, service, places, func(line *audit.Entry) error {
		entry := httpapi.AuditEntryOf(line)
		return visit(&httpapi.PersonalLine{Type: "audit", Audit: &entry})
	})
}

// deliveries visits the deliveries to the person, and the content of direct messages to them.
func (e *Exporter) deliveries(ctx context.Context, service string, places []fanfare.RowID, visit func(*httpapi.PersonalLine) error) error {
	return e.Traces.EachDelivery(ctx, service, places, func(d *fanfare.Delivery) error {
		if err := visit(&httpapi.PersonalLine{Type: "delivery", Delivery: d}); err != nil || d.Kind != fanfare.KindMessage {
			return err
		}
		ref, _ := fanfare.ParseEventRef(d.Event)
		posted, err := e.Store.Posted(ctx, ref)
		if err != nil {
			return err
		}
		return visit(&httpapi.PersonalLine{Type: "message", Message: sentTo(posted, places)})
	})
}

// namesOf returns the id and the addresses of a person, in lower case.
func namesOf(s *people.Subscriber) []string {
	names := []string{strings.ToLower(s.ID)}
	for i := range s.Addresses {
		names = append(names, strings.ToLower(s.Addresses[i].Address))
	}
	return names
}

// sends visits the rows of the person in uploaded lists.
func (e *Exporter) sends(ctx context.Context, service string, names []string, places []fanfare.RowID, visit func(*httpapi.PersonalLine) error) error {
	return e.Sends.Export(ctx, service, places, names, func(send string, row wire.SendRow) error {
		return visit(&httpapi.PersonalLine{Type: "send", Send: &httpapi.PersonalSend{ID: send, SendRow: row}})
	})
}

// waiting visits the events that wait for digests of the person.
func (e *Exporter) waiting(ctx context.Context, service string, places []fanfare.RowID, visit func(*httpapi.PersonalLine) error) error {
	days, err := e.Store.Days(ctx)
	if err != nil {
		return err
	}
	for _, day := range days {
		pending, err := e.Store.Pending(ctx, day)
		if err != nil && !removed(err) {
			return err
		}
		for i := range pending {
			w := &pending[i]
			if w.Service != service {
				continue
			}
			named := e.Digests.Describe(w)
			for _, place := range places {
				err := e.Digests.EachMember(ctx, day, w, place, func(event fanfare.EventRef, _ *fanfare.Member) error {
					return visit(&httpapi.PersonalLine{Type: "waiting", Waiting: &httpapi.PersonalWaiting{Event: event.String(), Cadence: named.Cadence, Zone: named.Zone, Due: named.Due}})
				})
				if err != nil && !removed(err) {
					return err
				}
			}
		}
	}
	return nil
}

// sentTo returns the content of a direct message for one person.
func sentTo(posted *fanfare.AcceptedEvent, places []fanfare.RowID) *httpapi.PersonalMessage {
	m := &httpapi.PersonalMessage{ID: posted.Ref().MessageID(), Reference: posted.Direct.Reference, Data: posted.Event.Data}
	if c := posted.Direct.Content; c != nil {
		m.Content, _ = json.Marshal(c) // contains only strings, so it cannot fail
	}
	if c := posted.Content; c != nil {
		m.Content, _ = json.Marshal(&c.Content)
	}
	for _, place := range places {
		if to := posted.Direct.To(place); to != nil {
			m.Recipient = to.Data
		}
	}
	return m
}
