package selfservice

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/httpapi/recipientpages"
	"fanfare.dev/fanfare/internal/mail/signedlink"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/people/pages"
	"fanfare.dev/fanfare/internal/people/registry"
)

const (
	// preferencesDays is how long the link to the preferences is valid after its message.
	preferencesDays = 60
	// byPage is the reason for ending a subscription on the preferences page.
	byPage = byLink + ": preferences"
)

// Preferences shows recipients their subscriptions and changes them.
type Preferences struct {
	signer       *signedlink.Signer
	unsubscriber *Unsubscriber
	registry     *registry.Registry
	mails        *Mailer
	programs     *MailPrograms
	clock        clock.Clock
}

// to returns a link to the preferences of the owner of a subscription, valid from today.
func (p *Preferences) to(service string, of fanfare.RowID) string {
	link := signedlink.Link{Service: service, Subscription: of, Delivery: fanfare.DeliveryRef{Day: fanfare.DayOf(p.clock.Now())}}
	return string(p.signer.Clone().AppendPreferences(nil, link))
}

// open reads a link. An expired link does not open the preferences; a new one can only be
// sent to its address. The same applies to a link that was sent to a former address of the
// person, because somebody else may read email there now.
func (p *Preferences) open(ctx context.Context, token string) (link signedlink.Link, person people.Person, late bool, err error) {
	if link, err = p.signer.Clone().VerifyPreferences(token); err != nil {
		return link, person, false, errForeignLink()
	}
	person, err = p.registry.PersonOf(ctx, link.Service, link.Subscription)
	late = link.Delivery.Day+preferencesDays < fanfare.DayOf(p.clock.Now()) || moved(&person)
	if fanfare.CodeOf(err) == fanfare.NotFound { // erased
		err = nil
	}
	return link, person, late, err
}

// Preferences returns the preferences for a link.
func (p *Preferences) Preferences(ctx context.Context, token string) (recipientpages.Preferences, error) {
	link, person, late, err := p.open(ctx, token)
	if err != nil {
		return recipientpages.Preferences{}, err
	}
	shown := recipientpages.Preferences{Site: SiteOf(p.registry, link.Service), Locale: person.Locale, Late: late}
	if late {
		return shown, nil
	}
	shown.TimeZone = person.TimeZone
	for i := range person.Subscriptions {
		s := &person.Subscriptions[i]
		one := pages.Preference{Choice: choiceOf(p.registry, s, person.Locale), Cadence: s.Cadence, Channel: s.Channel, Cadences: p.cadences(s), Channels: p.channels(s)}
		shown.List = append(shown.List, one)
	}
	slices.SortStableFunc(shown.List, func(a, b pages.Preference) int { return strings.Compare(a.Title, b.Title) })
	shown.MailPrograms = p.programs.offered(ctx, &person)
	shown.Locales = locales(p.registry, link.Service, person.Locale)
	return shown, nil
}

// cadences returns the cadences that a subscription can have, its own first.
func (p *Preferences) cadences(s *people.Subscription) []string {
	t := p.registry.Configuration().Topic(s.Service, s.Topic)
	if t == nil || t.Digest.IsZero() {
		return nil
	}
	return with([]string{"immediate", "daily 08:00", "weekly monday 08:00"}, s.Cadence)
}

// channels returns the channels that can send to the same address.
func (p *Preferences) channels(s *people.Subscription) []pages.Channel {
	is := p.registry.Configuration().Channel(s.Service, s.Channel)
	list := channelsFor(p.registry, s.Service, func(c *catalog.Channel) bool {
		return is != nil && c.AddressKind() == is.AddressKind()
	})
	if len(list) < 2 {
		return nil
	}
	return list
}

// reaches reports whether a subscription can move to a channel.
func (p *Preferences) reaches(s *people.Subscription, channel string) bool {
	return slices.ContainsFunc(p.channels(s), func(c pages.Channel) bool { return c.Name == channel })
}

// locales returns the languages of the pages of a service, and that of the person.
func locales(r *registry.Registry, service, own string) []string {
	list := []string{"en"}
	for tag := range SiteOf(r, service).Texts {
		list = append(list, tag)
	}
	list = distinct(list)
	if i := slices.IndexFunc(list, func(tag string) bool { return strings.EqualFold(tag, own) }); i >= 0 {
		list[i] = own
	}
	return with(list, own)
}

// with adds one at the start of a list that lacks it.
func with(list []string, one string) []string {
	if one == "" || slices.Contains(list, one) {
		return list
	}
	return append([]string{one}, list...)
}

// Choose applies the choices of the page, and changes nothing else.
func (p *Preferences) Choose(ctx context.Context, token string, ask recipientpages.PreferenceChange) (left recipientpages.Unsubscribed, err error) {
	link, person, late, err := p.open(ctx, token)
	if err != nil || late {
		return left, err
	}
	if patch := ask.Person(person.Locale, person.TimeZone); patch != nil {
		text, err := json.Marshal(patch)
		if err != nil {
			return left, err
		}
		if _, err := p.registry.PatchSubscriber(ctx, link.Service, person.ID, text, nil); err != nil {
			return left, err
		}
	}
	var ends []fanfare.RowID
	var puts []people.SubscriptionPut
	for i := range person.Subscriptions {
		s := &person.Subscriptions[i]
		one, named := ask.Each[fanfare.SubscriptionID(s.Place)]
		switch {
		case !named:
		case !one.Keep:
			ends = append(ends, s.Place)
		case slices.Contains(p.cadences(s), one.Cadence) && one.Cadence != s.Cadence, p.reaches(s, one.Channel) && one.Channel != s.Channel:
			put := putAgain(s)
			put.By = people.SourcePreferences
			if slices.Contains(p.cadences(s), one.Cadence) {
				put.Cadence = one.Cadence
			}
			if p.reaches(s, one.Channel) && one.Channel != s.Channel {
				if put.Channel = one.Channel; put.ID == "" { // a new key means another subscription
					ends = append(ends, s.Place)
				}
			}
			puts = append(puts, put)
		}
	}
	if err := p.put(ctx, link.Service, puts); err != nil {
		return left, err
	}
	if len(ends) > 0 {
		left, err = p.unsubscriber.end(ctx, &person, link.Subscription, ends, people.Ending{Source: people.SourcePreferences, Text: byPage})
	}
	return left, err
}

func (p *Preferences) put(ctx context.Context, service string, puts []people.SubscriptionPut) error {
	if len(puts) == 0 {
		return nil
	}
	results := make([]people.PutResult, len(puts))
	if err := p.registry.PutSubscriptions(ctx, service, puts, results); err != nil {
		return err
	}
	for i := range results {
		if results[i].Err != nil {
			return results[i].Err
		}
	}
	return nil
}

// putAgain returns the put that does not change a subscription.
func putAgain(s *people.Subscription) people.SubscriptionPut {
	p := people.SubscriptionPut{ID: s.ID, Topic: s.Topic, Channel: s.Channel, To: s.To, Filter: s.Filter, Rule: s.Rule, Params: s.Params, Data: s.Data, Title: s.Title, Description: s.Description, Cadence: s.Cadence}
	if _, ours := fanfare.ParseSubscriptionID(s.ID); ours {
		p.ID = ""
	}
	return p
}

// Renew sends a new link to the address of an expired link. The response is the same in all cases.
func (p *Preferences) Renew(ctx context.Context, token string, may recipientpages.MayMail) error {
	link, person, _, err := p.open(ctx, token)
	if err != nil {
		return err
	}
	of, address := link.Subscription, person.Address
	if moved(&person) {
		if of, address = p.home(&person); address == "" {
			return nil
		}
	}
	channel := firstMail(p.registry, link.Service)
	if address == "" || channel == "" || !may(link.Service, address) {
		return nil
	}
	return quietly(p.mails.send(ctx, &pageMail{kind: "link", service: link.Service, channel: channel, to: address, locale: person.Locale,
		url: p.to(link.Service, of), expires: p.clock.Now().Add(24 * time.Hour)}))
}

// moved reports whether a person no longer has the address to which a link was sent.
func moved(person *people.Person) bool {
	return len(person.Subscriptions) > 0 && !slices.ContainsFunc(person.Subscriptions, func(s people.Subscription) bool { return s.To == person.Address })
}

// home returns an email address of a person, and a subscription to it.
func (p *Preferences) home(person *people.Person) (fanfare.RowID, string) {
	for i := range person.Subscriptions {
		s := &person.Subscriptions[i]
		if c := p.registry.Configuration().Channel(person.Service, s.Channel); c != nil && c.SendsMail() {
			return s.Place, s.To
		}
	}
	return 0, ""
}

// firstMail returns the first email channel of a service, or "".
func firstMail(r *registry.Registry, service string) string {
	for _, c := range r.Configuration().Channels(service) {
		if c.SendsMail() {
			return c.Name
		}
	}
	return ""
}

// quietly ignores the error for a suppressed address.
func quietly(err error) error {
	if code := fanfare.CodeOf(err); code == fanfare.Conflict || code == fanfare.Invalid {
		return nil
	}
	return err
}
