package selfservice

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/httpapi/recipientpages"
	"fanfare.dev/fanfare/internal/mail/linktoken"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/people/pages"
	"fanfare.dev/fanfare/internal/people/pages/words"
	"fanfare.dev/fanfare/internal/people/registry"
)

const (
	confirming linktoken.Purpose = 'c'
	// confirmFor is how long a sign-up can be confirmed.
	confirmFor = 48 * time.Hour
)

// Signups subscribes people after they have confirmed their address. Nothing is stored
// before that: the link contains the whole sign-up.
type Signups struct {
	passes   *linktoken.Key
	registry *registry.Registry
	mails    *Mailer
	links    *Preferences
	clock    clock.Clock
}

// A request is the form of a sign-up that is sealed into its link.
type request struct {
	Service  string          `json:"s"`
	Topic    string          `json:"t"`
	Channel  string          `json:"c"`
	To       string          `json:"a"`
	Rule     string          `json:"r,omitempty"`
	Params   json.RawMessage `json:"p,omitempty"`
	Cadence  string          `json:"k,omitempty"`
	Locale   string          `json:"l,omitempty"`
	TimeZone string          `json:"z,omitempty"`
	Terms    string          `json:"e,omitempty"`
	Source   string          `json:"o,omitempty"`
	At       int64           `json:"w"` // Unix nanoseconds
}

func (a *request) put() people.SubscriptionPut {
	return people.SubscriptionPut{Topic: a.Topic, Channel: a.Channel, To: a.To, Rule: a.Rule, Params: a.Params, Cadence: a.Cadence, Locale: a.Locale, TimeZone: a.TimeZone}
}

// subscription returns the requested subscription, with the fields that are shown to people.
func (a *request) subscription() *people.Subscription {
	return &people.Subscription{Service: a.Service, Topic: a.Topic, Rule: a.Rule, Params: a.Params}
}

// Form returns the contents of the sign-up form of a topic.
func (s *Signups) Form(service, topic string) (recipientpages.SignupForm, error) {
	f := recipientpages.SignupForm{}
	t := s.registry.Configuration().Topic(service, topic)
	if t == nil || t.Settings().Signup == nil {
		return f, &fanfare.Error{Code: fanfare.NotFound, Message: "the topic has no sign-up page", Hint: "set signup: true in the document of the topic"}
	}
	f.Site, f.Signup, f.Title, f.Rules = SiteOf(s.registry, service), *t.Settings().Signup, t.Title, t.Rules
	if f.Title == "" {
		f.Title = words.OfName(topic)
	}
	f.Channels = channelsFor(s.registry, service, func(c *catalog.Channel) bool {
		return c.SendsMail() && (len(f.Signup.Channels) == 0 || slices.Contains(f.Signup.Channels, c.Name))
	})
	slices.SortStableFunc(f.Channels, func(a, b pages.Channel) int { // the first one is the default
		return slices.Index(f.Signup.Channels, a.Name) - slices.Index(f.Signup.Channels, b.Name)
	})
	f.Locales = locales(s.registry, service, "")
	if !t.Digest.IsZero() {
		f.Cadences = []string{"immediate", "daily 08:00", "weekly monday 08:00"}
	}
	return f, nil
}

// Ask sends a confirmation link to the address if may allows it. The response does not reveal
// whether the address is known: an existing subscriber gets a different email, and a suppressed
// address gets none, unless its owner unsubscribed from everything. Errors are only about
// the input.
func (s *Signups) Ask(ctx context.Context, service string, ask *recipientpages.SignupAsk, may recipientpages.MayMail) error {
	a := request{Service: service, Topic: ask.Topic, Channel: ask.Channel, To: ask.To, Rule: ask.Rule, Params: ask.Params, Cadence: ask.Cadence, Locale: ask.Locale, TimeZone: ask.TimeZone,
		Terms: ask.Terms, Source: ask.Source, At: s.clock.Now().UnixNano()}
	put := a.put()
	address, err := s.registry.CheckPut(service, &put)
	if err != nil {
		return err
	}
	a.To = address
	if c := s.registry.Configuration().Channel(service, a.Channel); !c.SendsMail() {
		return &fanfare.Error{Code: fanfare.Invalid, Pointer: "/channel", Message: "a confirmation link can only be sent by email", Hint: "choose an email channel"}
	}
	if !may(service, address) {
		return nil
	}
	mail := pageMail{kind: "confirm", service: service, channel: a.Channel, to: a.To, locale: a.Locale, title: s.title(&a), expires: s.clock.Now().Add(confirmFor)}
	if of, err := s.has(ctx, &a); err != nil {
		return err
	} else if of != 0 {
		mail.kind, mail.url = "known", s.links.to(service, of)
	} else {
		token, err := s.sealed(&a)
		if err != nil {
			return err
		}
		mail.url = s.mails.base + "/c/" + token
	}
	if err = s.mails.send(ctx, &mail); fanfare.CodeOf(err) == fanfare.Conflict {
		return nil // its owner was erased
	}
	return err
}

func (s *Signups) sealed(a *request) (string, error) {
	b, err := json.Marshal(a)
	if err != nil {
		return "", err
	}
	token, err := s.passes.Seal(confirming, s.clock.Now().Add(confirmFor), b)
	if err != nil {
		return "", &fanfare.Error{Code: fanfare.TooLarge, Message: "the sign-up does not fit into a link", Hint: "shorten the params"}
	}
	return token, nil
}

// title returns the title of a sign-up for people.
func (s *Signups) title(a *request) string {
	return titleOf(s.registry, a.subscription())
}

// has returns the active subscription that a sign-up requests, or 0. An address whose owner
// unsubscribed from everything has none.
func (s *Signups) has(ctx context.Context, a *request) (fanfare.RowID, error) {
	if s.registry.Unsubscribed(a.Service, a.To) {
		return 0, nil
	}
	found, err := s.of(ctx, a, "active")
	if err != nil || len(found) == 0 {
		return 0, err
	}
	return found[0].Place, nil
}

// of lists the subscriptions of the address that are equal to the requested one.
func (s *Signups) of(ctx context.Context, a *request, state string) (same []people.Subscription, err error) {
	all, err := ofAddress(ctx, s.registry, a.Service, people.SubscriptionFilter{Topic: a.Topic, Subscriber: a.To, State: state})
	for i := range all {
		if p := &all[i]; p.Rule == a.Rule && p.Filter == "" && equalParams(p.Params, a.Params) {
			same = append(same, *p)
		}
	}
	return same, err
}

func equalParams(a, b json.RawMessage) bool {
	var x, y any
	if len(a) > 0 && json.Unmarshal(a, &x) != nil || len(b) > 0 && json.Unmarshal(b, &y) != nil {
		return false
	}
	return reflect.DeepEqual(x, y)
}

// Look describes the sign-up that a link confirms.
func (s *Signups) Look(_ context.Context, token string) (recipientpages.Confirmation, error) {
	a, late, err := s.open(token)
	if err != nil {
		return recipientpages.Confirmation{}, err
	}
	return s.shown(a, late), nil
}

func (s *Signups) open(token string) (a *request, late bool, err error) {
	b, err := s.passes.Open(confirming, token, s.clock.Now())
	if errors.Is(err, linktoken.ErrForeign) {
		return nil, false, errForeignLink()
	}
	late, a = err != nil, &request{}
	return a, late, json.Unmarshal(b, a)
}

func (s *Signups) shown(a *request, late bool) recipientpages.Confirmation {
	c := recipientpages.Confirmation{Site: SiteOf(s.registry, a.Service), Locale: a.Locale, Title: s.title(a), Address: a.To, Terms: a.Terms, Late: late}
	c.Detail = detailOf(s.registry, a.subscription(), a.Locale)
	if rule := ruleOf(s.registry, a.subscription()); rule != nil {
		c.About = rule.Description
	}
	return c
}

// Confirm creates the subscription and stores the consent. A link that was used before
// does not restore a subscription that has ended since.
func (s *Signups) Confirm(ctx context.Context, token string) (recipientpages.Confirmation, error) {
	a, late, err := s.open(token)
	if err != nil || late {
		if err == nil {
			return s.shown(a, true), nil
		}
		return recipientpages.Confirmation{}, err
	}
	c := s.shown(a, false)
	of, err := s.has(ctx, a)
	if err != nil {
		return c, err
	}
	if of == 0 {
		if c.Late, err = s.subscribe(ctx, a); err != nil || c.Late {
			return c, err
		}
		if of, err = s.has(ctx, a); err != nil {
			return c, err
		}
	}
	c.Preferences = strings.TrimPrefix(s.links.to(a.Service, of), s.mails.base+"/")
	return c, nil
}

// subscribe creates the requested subscription, unless it has ended since, the address is
// suppressed, or the topic was replaced by another one.
func (s *Signups) subscribe(ctx context.Context, a *request) (late bool, err error) {
	at := time.Unix(0, a.At).UTC()
	ended, err := s.of(ctx, a, "ended")
	if err != nil || slices.ContainsFunc(ended, func(s people.Subscription) bool { return s.EndedAt.After(at) }) {
		return err == nil, err
	}
	put := a.put()
	put.State, put.By = "active", people.SourceSignup // also if it was paused
	put.Consent = people.ConfirmedConsent(a.Terms, a.Source, at)
	if _, err := s.registry.CheckPut(a.Service, &put); err != nil {
		return true, nil //nolint:nilerr // it is told
	}
	if err := liftUnwanted(ctx, s.registry, a.Service, a.To, people.SourceSignup); err != nil {
		return false, err
	}
	results := make([]people.PutResult, 1)
	if err := s.registry.PutSubscriptions(ctx, a.Service, []people.SubscriptionPut{put}, results); err != nil {
		return false, err
	}
	if code := fanfare.CodeOf(results[0].Err); code == fanfare.Conflict || code == fanfare.Invalid {
		return true, nil
	}
	return false, results[0].Err
}

// SiteOf returns the appearance of the pages of a service.
func SiteOf(r *registry.Registry, service string) *pages.Site {
	site := &pages.Site{Name: words.OfName(service)}
	svc := r.Configuration().Service(service)
	if svc == nil {
		return site
	}
	if svc.Title != "" {
		site.Name = svc.Title
	}
	site.Color, site.Logo, site.Texts = svc.Pages.Color, svc.Pages.Logo, svc.Pages.Texts
	for _, l := range svc.Pages.Links {
		site.Links = append(site.Links, pages.Link{Title: l.Title, URL: l.URL})
	}
	return site
}
