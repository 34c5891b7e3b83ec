package feedback

import (
	"context"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/mail/bounce"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/people/registry"
	"fanfare.dev/fanfare/internal/store/deliveries"
)

// Unsubscriber ends subscriptions for unsubscribe emails, and passes everything else to Next.
type Unsubscriber struct {
	Registry *registry.Registry
	Store    *deliveries.Store
	Next     Handler
}

// Take ends all subscriptions that led to a message, as the unsubscribe link in it does. It is idempotent. If the
// message is no longer stored, there is nothing to end.
func (u *Unsubscriber) Take(ctx context.Context, a bounce.Arrival) error {
	if a.Kind != bounce.Unsubscribe {
		return u.Next.Take(ctx, a)
	}
	ref := a.Delivery
	manifest, err := u.Store.Manifest(ctx, ref.Day, ref.Manifest)
	if err != nil || manifest == nil {
		return ignoreNotFound(err)
	}
	_, member, ok := manifest.At(ref.Position)
	if !ok {
		return nil
	}
	posted, err := u.Store.Posted(ctx, fanfare.EventRef{Day: ref.Day, Seq: ref.Manifest.Event()})
	if err != nil || posted == nil {
		return ignoreNotFound(err)
	}
	ctx = audit.WithActor(ctx, audit.Actor{KeyName: "recipient"})
	_, err = u.Registry.EndSubscriptions(ctx, posted.Service, member.Subscriptions, people.Ending{Source: people.SourceMail, Text: "unsubscribed by email"})
	return ignoreNotFound(err)
}

// ignoreNotFound returns nil for an error with the code NotFound.
func ignoreNotFound(err error) error {
	if fanfare.CodeOf(err) == fanfare.NotFound {
		return nil
	}
	return err
}
