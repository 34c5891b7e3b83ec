package selfservice

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/httpapi/recipientpages"
	"fanfare.dev/fanfare/internal/mail/linktoken"
	"fanfare.dev/fanfare/internal/mail/signedlink"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/people/pages"
	"fanfare.dev/fanfare/internal/people/registry"
)

const (
	undoing linktoken.Purpose = 'r'
	// undoFor is how long an unsubscribe can be undone.
	undoFor = 7 * 24 * time.Hour
	// byLink begins the reason for ending a subscription with a link.
	byLink = "unsubscribed by link"
)

// Unsubscriber handles unsubscribe links and undoes unsubscribes.
type Unsubscriber struct {
	signer   *signedlink.Signer
	passes   *linktoken.Key
	mails    *Mailer
	registry *registry.Registry
	clock    clock.Clock
	store    interface {
		Manifest(ctx context.Context, day fanfare.Day, id fanfare.ManifestID) (*fanfare.Manifest, error)
	}
}

// An undo is the content of an undo token.
type undo struct {
	Service string        `json:"s"`
	Of      fanfare.RowID `json:"o"` // a subscription of the person
	Seq     uint64        `json:"q"` // change sequence of the ends
}

// errForeignLink does not reveal what is wrong with a link.
func errForeignLink() error {
	return &fanfare.Error{Code: fanfare.NotFound, Message: "the link is not valid", Hint: "open the complete link from the email"}
}

func (l *Unsubscriber) verify(token string) (signedlink.Link, error) {
	link, err := l.signer.Clone().Verify(token)
	if err != nil {
		return link, errForeignLink()
	}
	return link, nil
}

// listed returns all subscriptions that a message was about, because an unsubscribe
// refers to the whole message.
func (l *Unsubscriber) listed(ctx context.Context, link signedlink.Link) []fanfare.RowID {
	if m, err := l.store.Manifest(ctx, link.Delivery.Day, link.Delivery.Manifest); err == nil {
		if _, member, ok := m.At(link.Delivery.Position); ok {
			return member.Subscriptions
		}
	}
	return []fanfare.RowID{link.Subscription}
}

// reader returns the person to whom a link was sent, with the subscriptions that the link
// shows. If the person no longer has the address, these are only the subscriptions that the
// message was about, because somebody else may read email there now.
func (l *Unsubscriber) reader(ctx context.Context, link signedlink.Link, listed []fanfare.RowID) (people.Person, error) {
	person, err := l.registry.PersonOf(ctx, link.Service, link.Subscription)
	if err == nil && moved(&person) {
		person.Subscriptions = slices.DeleteFunc(person.Subscriptions, func(s people.Subscription) bool { return !slices.Contains(listed, s.Place) })
	}
	return person, err
}

// Offer lists the subscriptions that a link can end. It changes nothing.
func (l *Unsubscriber) Offer(ctx context.Context, token string) (recipientpages.UnsubscribeOffer, error) {
	link, err := l.verify(token)
	if err != nil {
		return recipientpages.UnsubscribeOffer{}, err
	}
	offer := recipientpages.UnsubscribeOffer{Site: SiteOf(l.registry, link.Service)}
	listed := l.listed(ctx, link)
	person, err := l.reader(ctx, link, listed)
	if err != nil {
		if fanfare.CodeOf(err) == fanfare.NotFound {
			err = nil // erased: nothing is sent to them
		}
		return offer, err
	}
	offer.Locale = person.Locale
	offer.Choices = choicesOf(l.registry, &person, listed)
	return offer, nil
}

// Unsubscribe ends the selected subscriptions. It is idempotent.
func (l *Unsubscriber) Unsubscribe(ctx context.Context, token string, ask recipientpages.UnsubscribeRequest) (left recipientpages.Unsubscribed, err error) {
	link, err := l.verify(token)
	if err != nil {
		return left, err
	}
	left.Site = SiteOf(l.registry, link.Service)
	listed := l.listed(ctx, link)
	person, err := l.reader(ctx, link, listed)
	if fanfare.CodeOf(err) == fanfare.NotFound {
		return left, nil // erased: nothing is sent to them
	}
	if err != nil {
		return left, err
	}
	left.Locale = person.Locale
	ends := listed
	if ask.ByPage() {
		ends = nil
		for i := range person.Subscriptions {
			s := &person.Subscriptions[i]
			if ask.All || slices.Contains(ask.Chosen, fanfare.SubscriptionID(s.Place)) {
				ends = append(ends, s.Place)
			}
		}
	}
	if len(ends) == 0 {
		return left, nil
	}
	how := people.Ending{Source: people.SourceOneClick, Text: byLink}
	if ask.ByPage() {
		how.Source = people.SourcePage
	}
	if ask.Reason != "" {
		how.Reason, how.Text = ask.Reason, byLink+": "+recipientpages.UnsubscribeReasons[ask.Reason]
	}
	left, err = l.end(ctx, &person, link.Subscription, ends, how)
	if err == nil && len(left.Titles) > 0 {
		err = l.confirmByMail(ctx, &person, &left)
	}
	return left, err
}

// end ends subscriptions of a person, and returns the token to undo that.
func (l *Unsubscriber) end(ctx context.Context, person *people.Person, of fanfare.RowID, ends []fanfare.RowID, how people.Ending) (left recipientpages.Unsubscribed, err error) {
	left = recipientpages.Unsubscribed{Site: SiteOf(l.registry, person.Service), Locale: person.Locale}
	for i := range person.Subscriptions {
		if s := &person.Subscriptions[i]; slices.Contains(ends, s.Place) {
			left.Titles = append(left.Titles, titleOf(l.registry, s))
		}
	}
	left.Titles = distinct(left.Titles)
	seq, err := l.registry.EndSubscriptions(ctx, person.Service, ends, how)
	if err != nil || seq == 0 {
		return left, err
	}
	what, err := json.Marshal(undo{person.Service, of, seq})
	if err != nil {
		return left, err
	}
	left.Undo, err = l.passes.Seal(undoing, l.clock.Now().Add(undoFor), what)
	return left, err
}

// confirmByMail confirms an unsubscribe by email, if the document of the service requires it.
func (l *Unsubscriber) confirmByMail(ctx context.Context, person *people.Person, left *recipientpages.Unsubscribed) error {
	svc := l.registry.Configuration().Service(person.Service)
	channel := firstMail(l.registry, person.Service)
	if svc == nil || !svc.Pages.Goodbye || person.Address == "" || channel == "" {
		return nil
	}
	return quietly(l.mails.send(ctx, &pageMail{kind: "goodbye", service: person.Service, channel: channel, to: person.Address, locale: person.Locale,
		title: strings.Join(left.Titles, ", "), url: l.mails.base + "/r/" + left.Undo, expires: l.clock.Now().Add(undoFor)}))
}

// Undo restores the subscriptions that an Unsubscribe ended.
func (l *Unsubscriber) Undo(ctx context.Context, token string, really bool) (recipientpages.UndoResult, error) {
	b, err := l.passes.Open(undoing, token, l.clock.Now())
	if errors.Is(err, linktoken.ErrForeign) {
		return recipientpages.UndoResult{}, errForeignLink()
	}
	var of undo
	if bad := json.Unmarshal(b, &of); bad != nil {
		return recipientpages.UndoResult{}, bad
	}
	done := recipientpages.UndoResult{Site: SiteOf(l.registry, of.Service), Late: err != nil}
	person, err := l.registry.PersonOf(ctx, of.Service, of.Of)
	done.Locale = person.Locale
	if err == nil && really && !done.Late {
		var n int
		n, err = l.registry.Restore(ctx, of.Service, of.Of, of.Seq, byLink)
		done.Late = n == 0
	}
	if code := fanfare.CodeOf(err); code == fanfare.NotFound || code == fanfare.Conflict { // erased, or suppressed
		done.Late, err = true, nil
	}
	return done, err
}

// choicesOf lists the subscriptions of a person; those in listed are selected.
func choicesOf(r *registry.Registry, p *people.Person, listed []fanfare.RowID) []pages.Choice {
	var list []pages.Choice
	for i := range p.Subscriptions {
		s := &p.Subscriptions[i]
		one := choiceOf(r, s, p.Locale)
		one.Checked = slices.Contains(listed, s.Place)
		list = append(list, one)
	}
	slices.SortStableFunc(list, func(a, b pages.Choice) int { return strings.Compare(a.Title, b.Title) })
	return list
}
