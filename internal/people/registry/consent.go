package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/inputerror"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/store/control"
)

// checkConsent checks the consent of a put.
func checkConsent(p *people.SubscriptionPut, w *subscriptionChange) error {
	w.consent = nil
	if len(p.Consent) == 0 || bytes.Equal(p.Consent, []byte("null")) {
		return nil
	}
	var ask people.ConsentRequest
	text, confirmed := bytes.CutPrefix(p.Consent, []byte(people.ConfirmedMark))
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&ask); err != nil {
		return inputerror.Invalid("/consent", "set terms, source and at, such as 2026-03-01T12:00:00Z", "consent cannot be read: %v", err)
	}
	for _, text := range [...]struct{ name, value string }{{"terms", ask.Terms}, {"source", ask.Source}} {
		if len(text.value) > people.MaxConsentBytes {
			return inputerror.TooLarge("/consent/"+text.name, len(text.value), people.MaxConsentBytes)
		}
		if strings.ContainsFunc(text.value, func(r rune) bool { return r < ' ' }) {
			return inputerror.Invalid("/consent/"+text.name, "", "%s must be one line", text.name)
		}
		if text.value == "" && !confirmed {
			return inputerror.Invalid("/consent/"+text.name, "set the terms and the source of the consent", "%s is missing", text.name)
		}
	}
	w.consent = &people.Consent{How: people.ConsentVouched, Topic: w.topic.Name, Terms: ask.Terms, Source: ask.Source, AskedAt: ask.At}
	if confirmed {
		w.consent.How = people.ConsentConfirmed
	}
	return nil
}

// addConsent stores the consent that came with an accepted put.
func (g *group) addConsent(w *subscriptionChange) {
	if w.consent == nil {
		return
	}
	kept := *w.consent
	kept.At = time.Unix(0, g.batch.At).UTC()
	if kept.AskedAt.IsZero() {
		kept.AskedAt = kept.At
	}
	kept.Address = w.address
	if kept.Address == "" {
		if s, err := g.subscription(w.place); err == nil && s != nil {
			if row, err := g.subscriber(s.Subscriber); err == nil && row != nil {
				kept.Address = row.Address
			}
		}
	}
	body, _ := json.Marshal(kept) // plain fields: cannot fail
	g.batch.Consents = append(g.batch.Consents, control.ConsentRecord{Subscription: w.place, At: g.batch.At, Body: body})
}

// Consents lists the consents of a subscriber, the latest first.
func (r *Registry) Consents(ctx context.Context, service, id string) ([]people.Consent, error) {
	_, places, err := r.PersonalRecord(ctx, service, id)
	if err != nil {
		return nil, err
	}
	var of []fanfare.RowID
	for _, p := range places {
		of = append(of, r.subscriptionsOfRow.Of(p)...)
	}
	ids := map[fanfare.RowID]string{}
	err = r.Subscriptions(ctx, control.SortPlaces(of), func(s *people.SubscriptionRow) error {
		ids[s.Place] = s.ID
		return nil
	})
	if err != nil {
		return nil, r.readError(err)
	}
	list := []people.Consent{}
	err = r.opt.Store.ConsentRecords(ctx, of, func(c *control.ConsentRecord) error {
		var one people.Consent
		if err := json.Unmarshal(c.Body, &one); err != nil {
			return err
		}
		one.Place, one.Subscription = c.Subscription, ids[c.Subscription]
		list = append(list, one)
		return nil
	})
	if err != nil {
		return nil, r.readError(err)
	}
	slices.SortStableFunc(list, func(a, b people.Consent) int { return b.At.Compare(a.At) })
	return list, nil
}

// CheckPut returns the error that a put would get now, without making a change. It also returns
// the address in normal form.
func (r *Registry) CheckPut(service string, p *people.SubscriptionPut) (address string, err error) {
	svc, err := r.Snapshot().Service(service)
	if err != nil {
		return "", err
	}
	var w subscriptionChange
	r.check(svc, p, &w)
	return w.address, w.err
}
