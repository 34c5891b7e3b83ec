package selfservice

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/httpapi/recipientpages"
	"fanfare.dev/fanfare/internal/mail/linktoken"
	"fanfare.dev/fanfare/internal/people"
)

const (
	changingAddress linktoken.Purpose = 'a'
	// byAddress is the reason for ending a subscription that continues at another address.
	byAddress = "the address was changed"
)

// An addressChange is a change of address that waits for its confirmation.
type addressChange struct {
	Service string        `json:"s"`
	Of      fanfare.RowID `json:"o"` // a subscription of the person
	From    string        `json:"f"`
	To      string        `json:"a"`
	At      int64         `json:"w"` // time of the request, in Unix nanoseconds
}

// Move sends a link to a new address, which moves the subscriptions of the old address to it.
func (p *Preferences) Move(ctx context.Context, token, to string, may recipientpages.MayMail) error {
	link, person, late, err := p.open(ctx, token)
	if err != nil || late || person.Address == "" {
		return err
	}
	put := people.SubscriptionPut{}
	for i := range person.Subscriptions {
		if s := &person.Subscriptions[i]; s.To == person.Address {
			put = putAgain(s)
		}
	}
	channel := firstMail(p.registry, link.Service)
	if put.Topic == "" || channel == "" {
		return nil // the address has no subscriptions
	}
	put.To = to
	if to, err = p.registry.CheckPut(link.Service, &put); err != nil {
		return err
	}
	if !may(link.Service, to) {
		return nil
	}
	b, err := json.Marshal(addressChange{link.Service, link.Subscription, person.Address, to, p.clock.Now().UnixNano()})
	if err != nil {
		return err
	}
	pass, err := p.unsubscriber.passes.Seal(changingAddress, p.clock.Now().Add(confirmFor), b)
	if err != nil {
		return err
	}
	site := SiteOf(p.registry, link.Service)
	return quietly(p.mails.send(ctx, &pageMail{kind: "confirm", service: link.Service, channel: channel, to: to, locale: person.Locale, title: site.Name,
		url: p.mails.base + "/a/" + pass, expires: p.clock.Now().Add(confirmFor)}))
}

// LookMove describes the change that a link confirms.
func (p *Preferences) LookMove(_ context.Context, token string) (recipientpages.Confirmation, error) {
	of, late, err := p.openMove(token)
	return recipientpages.Confirmation{Site: SiteOf(p.registry, of.Service), Address: of.To, Late: late}, err
}

func (p *Preferences) openMove(token string) (of addressChange, late bool, err error) {
	b, err := p.unsubscriber.passes.Open(changingAddress, token, p.clock.Now())
	if errors.Is(err, linktoken.ErrForeign) {
		return of, false, errForeignLink()
	}
	return of, err != nil, json.Unmarshal(b, &of)
}

// owner returns the id of the person. If the email to the new address has created a
// subscriber, it is merged into that person. owner returns "" if a subscriber with
// subscriptions has the address.
func (p *Preferences) owner(ctx context.Context, of *addressChange, person *people.Person) (string, error) {
	other, err := p.registry.SubscriberByAddress(ctx, of.Service, of.To)
	if err != nil || other.ID == person.ID {
		if fanfare.CodeOf(err) == fanfare.NotFound {
			err = nil
		}
		return person.ID, err
	}
	page, _, err := p.registry.SubscriptionPage(ctx, of.Service, people.SubscriptionFilter{Subscriber: other.ID}, 0, 1)
	if err != nil || len(page) > 0 {
		return "", err
	}
	_, err = p.registry.MergeSubscriber(ctx, of.Service, other.ID, person.ID)
	return person.ID, err
}

// ConfirmMove moves all subscriptions from the old address to the new one, and informs
// the old address.
func (p *Preferences) ConfirmMove(ctx context.Context, token string) (recipientpages.Confirmation, error) {
	of, late, err := p.openMove(token)
	c := recipientpages.Confirmation{Site: SiteOf(p.registry, of.Service), Address: of.To, Late: late}
	if err != nil || late {
		return c, err
	}
	person, err := p.registry.PersonOf(ctx, of.Service, of.Of)
	if err != nil {
		if c.Late = fanfare.CodeOf(err) == fanfare.NotFound; c.Late {
			err = nil
		}
		return c, err
	}
	c.Locale = person.Locale
	whose, err := p.owner(ctx, &of, &person)
	if err != nil {
		return c, err
	}
	var ends []fanfare.RowID
	var puts []people.SubscriptionPut
	for i := range person.Subscriptions {
		s := &person.Subscriptions[i]
		if s.To != of.From {
			continue
		}
		put := putAgain(s)
		put.To, put.Subscriber, put.State, put.By = of.To, whose, s.State, people.SourceMove
		put.Consent = people.ConfirmedConsent("", byAddress, time.Unix(0, of.At))
		puts, ends = append(puts, put), append(ends, s.Place)
	}
	if len(puts) == 0 {
		return c, nil // already done
	}
	if err := liftUnwanted(ctx, p.registry, of.Service, of.To, people.SourceMove); err != nil {
		return c, err
	}
	if err := p.put(ctx, of.Service, puts); err != nil {
		if code := fanfare.CodeOf(err); code == fanfare.Conflict || code == fanfare.Invalid {
			c.Late, err = true, nil
		}
		return c, err
	}
	if _, err := p.registry.EndSubscriptions(ctx, of.Service, ends, people.Ending{Source: people.SourceMove, Text: byAddress}); err != nil {
		return c, err
	}
	return c, quietly(p.mails.send(ctx, &pageMail{kind: "moved", service: of.Service, channel: firstMail(p.registry, of.Service), to: of.From, locale: person.Locale,
		expires: p.clock.Now().Add(7 * 24 * time.Hour)}))
}
