package server

import (
	"context"
	"encoding/json"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/admin/report"
	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/httpapi"
	"fanfare.dev/fanfare/internal/registry"
	"fanfare.dev/fanfare/internal/store/deliveries"
)

// personal gathers everything that is kept of one person.
type personal struct {
	registry *registry.Registry
	traces   *report.Traces
	store    *deliveries.Store
	digests  digestReport
}

// exportPage is how many subscriptions are read at a time.
const exportPage = 1000

// Export visits what is kept, part by part. An error of visit ends it.
func (p *personal) Export(ctx context.Context, service, id string, visit func(*httpapi.PersonalLine) error) error {
	s, places, err := p.registry.PersonalRecord(ctx, service, id)
	if err != nil {
		return err
	}
	if err := visit(&httpapi.PersonalLine{Type: "subscriber", Subscriber: &s}); err != nil {
		return err
	}
	for after := fanfare.RowID(0); ; {
		page, next, err := p.registry.SubscriptionPage(ctx, service, registry.SubscriptionFilter{Subscriber: id}, after, exportPage)
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
	err = p.registry.SuppressionsOf(ctx, service, places, func(s *registry.Suppression) error {
		return visit(&httpapi.PersonalLine{Type: "suppression", Suppression: s})
	})
	if err != nil {
		return err
	}
	agreed, err := p.registry.Consents(ctx, service, id)
	if err != nil {
		return err
	}
	for i := range agreed {
		if err := visit(&httpapi.PersonalLine{Type: "consent", Consent: &agreed[i]}); err != nil {
			return err
		}
	}
	if err := p.deliveries(ctx, service, places, visit); err != nil {
		return err
	}
	if err := p.waiting(ctx, service, places, visit); err != nil {
		return err
	}
	return p.registry.PersonalAudit(ctx, service, places, func(line *audit.Entry) error {
		entry := httpapi.AuditEntryOf(line)
		return visit(&httpapi.PersonalLine{Type: "audit", Audit: &entry})
	})
}

// deliveries visits what the person got, and the messages that were sent to them
// by name with what these said.
func (p *personal) deliveries(ctx context.Context, service string, places []fanfare.RowID, visit func(*httpapi.PersonalLine) error) error {
	return p.traces.EachDelivery(ctx, service, places, func(d *fanfare.Delivery) error {
		if err := visit(&httpapi.PersonalLine{Type: "delivery", Delivery: d}); err != nil || d.Kind != fanfare.KindMessage {
			return err
		}
		ref, _ := fanfare.ParseEventRef(d.Event)
		posted, err := p.store.Posted(ctx, ref)
		if err != nil {
			return err
		}
		return visit(&httpapi.PersonalLine{Type: "message", Message: sentTo(posted, places)})
	})
}

// waiting visits the events that wait for the person's digests.
func (p *personal) waiting(ctx context.Context, service string, places []fanfare.RowID, visit func(*httpapi.PersonalLine) error) error {
	days, err := p.store.Days(ctx)
	if err != nil {
		return err
	}
	for _, day := range days {
		pending, err := p.store.Pending(ctx, day)
		if err != nil && !gone(err) {
			return err
		}
		for i := range pending {
			w := &pending[i]
			if w.Service != service {
				continue
			}
			named := p.digests.named(w)
			for _, place := range places {
				err := p.digests.eachGathered(ctx, day, w, place, func(event fanfare.EventRef, _ *fanfare.Member) error {
					return visit(&httpapi.PersonalLine{Type: "waiting", Waiting: &httpapi.PersonalWaiting{Event: event.String(), Cadence: named.Cadence, Zone: named.Zone, Due: named.Due}})
				})
				if err != nil && !gone(err) {
					return err
				}
			}
		}
	}
	return nil
}

// sentTo is what a message says to one person.
func sentTo(posted *fanfare.AcceptedEvent, places []fanfare.RowID) *httpapi.PersonalMessage {
	m := &httpapi.PersonalMessage{ID: posted.Ref().MessageID(), Reference: posted.Direct.Reference, Data: posted.Event.Data}
	if c := posted.Direct.Content; c != nil {
		m.Content, _ = json.Marshal(c) // plain texts: cannot fail
	}
	for _, place := range places {
		if to := posted.Direct.To(place); to != nil {
			m.Recipient = to.Data
		}
	}
	return m
}
