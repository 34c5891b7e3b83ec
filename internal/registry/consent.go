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
	"fanfare.dev/fanfare/internal/store/control"
)

// A Consent is a proof that somebody asked for a subscription: to what they agreed,
// where and when. It is written once, and goes with the person.
type Consent struct {
	Subscription string    `json:"subscription" doc:"id of the subscription"`
	Address      string    `json:"address" doc:"to which messages go"`
	How          string    `json:"how" enum:"confirmed,vouched" doc:"confirmed: by the link that was mailed to the address; vouched: the program that subscribed it says so"`
	Topic        string    `json:"topic" doc:"what they are told of"`
	Terms        string    `json:"terms,omitempty" doc:"version or URL of what they agreed to"`
	Source       string    `json:"source,omitempty" doc:"where they did"`
	AskedAt      time.Time `json:"asked_at" doc:"when they asked"`
	At           time.Time `json:"at" doc:"when it was confirmed, or kept"`

	Place fanfare.RowID `json:"-"` // of the subscription
}

// A ConsentAsk is what a program says that somebody agreed to.
type ConsentAsk struct {
	Terms  string    `json:"terms"`
	Source string    `json:"source"`
	At     time.Time `json:"at,omitzero"`
}

// The ways to agree.
const (
	consentConfirmed = "confirmed"
	consentVouched   = "vouched"
)

// maxConsentBytes bounds each of the texts of a consent.
const maxConsentBytes = 512

// Confirmed is a put's consent that was confirmed by a link, asked for at a time.
func Confirmed(terms, source string, asked time.Time) json.RawMessage {
	b, _ := json.Marshal(ConsentAsk{Terms: terms, Source: source, At: asked.UTC()}) // plain: cannot fail
	return append(json.RawMessage(confirmedMark), b...)
}

// confirmedMark stands before what a client cannot write: an object begins with a brace.
const confirmedMark = "!"

// checkConsent reads what the put says of it.
func checkConsent(p *Put, w *want) error {
	w.consent = nil
	if len(p.Consent) == 0 || bytes.Equal(p.Consent, []byte("null")) {
		return nil
	}
	var ask ConsentAsk
	text, confirmed := bytes.CutPrefix(p.Consent, []byte(confirmedMark))
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&ask); err != nil {
		return inputerror.Invalid("/consent", "give terms, source and at, such as 2026-03-01T12:00:00Z", "consent cannot be read: %v", err)
	}
	for _, text := range [...]struct{ name, value string }{{"terms", ask.Terms}, {"source", ask.Source}} {
		if len(text.value) > maxConsentBytes {
			return inputerror.TooLarge("/consent/"+text.name, len(text.value), maxConsentBytes)
		}
		if strings.ContainsFunc(text.value, func(r rune) bool { return r < ' ' }) {
			return inputerror.Invalid("/consent/"+text.name, "", "%s must be one line", text.name)
		}
		if text.value == "" && !confirmed {
			return inputerror.Invalid("/consent/"+text.name, "say what was agreed to, and where", "%s is missing", text.name)
		}
	}
	w.consent = &Consent{How: consentVouched, Topic: w.topic.Name, Terms: ask.Terms, Source: ask.Source, AskedAt: ask.At}
	if confirmed {
		w.consent.How = consentConfirmed
	}
	return nil
}

// noteConsent adds the consent that came with a put which was done.
func (g *group) noteConsent(w *want) {
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
	body, _ := json.Marshal(kept) // plain: cannot fail
	g.batch.Consents = append(g.batch.Consents, control.ConsentRecord{Subscription: w.place, At: g.batch.At, Body: body})
}

// Consents lists what a subscriber agreed to, the latest first.
func (r *Registry) Consents(ctx context.Context, service, id string) ([]Consent, error) {
	_, places, err := r.PersonalRecord(ctx, service, id)
	if err != nil {
		return nil, err
	}
	var of []fanfare.RowID
	for _, p := range places {
		of = append(of, r.subscriptionsOfRow.Of(p)...)
	}
	ids := map[fanfare.RowID]string{}
	err = r.Subscriptions(ctx, control.SortPlaces(of), func(s *SubscriptionRow) error {
		ids[s.Place] = s.ID
		return nil
	})
	if err != nil {
		return nil, r.unreadable(err)
	}
	list := []Consent{}
	err = r.opt.Store.ConsentRecords(ctx, of, func(c *control.ConsentRecord) error {
		var one Consent
		if err := json.Unmarshal(c.Body, &one); err != nil {
			return err
		}
		one.Place, one.Subscription = c.Subscription, ids[c.Subscription]
		list = append(list, one)
		return nil
	})
	if err != nil {
		return nil, r.unreadable(err)
	}
	slices.SortStableFunc(list, func(a, b Consent) int { return b.At.Compare(a.At) })
	return list, nil
}

// CheckPut refuses a put that could not be made so now, and makes nothing. It returns
// the address in its normal form.
func (r *Registry) CheckPut(service string, p *Put) (address string, err error) {
	svc, err := r.Snapshot().Service(service)
	if err != nil {
		return "", err
	}
	var w want
	r.check(svc, p, &w)
	return w.address, w.err
}
