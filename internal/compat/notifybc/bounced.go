package notifybc

import (
	"context"
	"time"

	"fanfare.dev/fanfare/internal/compat/notifybc/roles"
	"fanfare.dev/fanfare/internal/mail/bounce"
	"fanfare.dev/fanfare/internal/people"
)

// Bounces count bounces of addresses.
type Bounces interface {
	// Count returns the number of bounces of an address. It counts each id once.
	Count(ctx context.Context, channel, address, message, id string, at time.Time) (count int, err error)
	// Close begins the count anew.
	Close(ctx context.Context, channel, address string) error
}

// A Suppressor suppresses addresses that bounce, as the settings of their service say.
type Suppressor interface {
	// Bounced counts a bounce of a mail that another system sent; id is the same whenever the bounce is reported again.
	Bounced(ctx context.Context, service, address string, id uint64, r *bounce.Report, of *bounce.Arrival) error
}

// A Bounce is mail that came back because its address does not exist.
type Bounce struct {
	Address string
	Text    string // of the mail server
	ID      string // the same whenever the bounce is reported again
	At      time.Time
}

// Bounced counts a bounce of an email address. If there are more than the settings allow, all confirmed subscriptions of the address are
// set to deleted, as NotifyBC does. It is idempotent.
func (a *API) Bounced(ctx context.Context, b *Bounce) error {
	count, err := a.Bounces.Count(ctx, channelEmail, b.Address, b.Text, b.ID, b.At)
	if limit := a.Settings.Email.Bounce.UnsubscribeAbove; err != nil || limit == 0 || count <= limit {
		return err
	}
	if err := a.endAll(ctx, channelEmail, b.Address); err != nil {
		return err
	}
	a.Logger.Info("an address has too many bounces; its subscriptions have ended", "bounces", count)
	return a.Bounces.Close(ctx, channelEmail, b.Address)
}

// endAll sets all confirmed subscriptions of an address to deleted.
func (a *API) endAll(ctx context.Context, channel, address string) error {
	f := people.SubscriptionFilter{Channel: a.ourChannel(channel), Subscriber: address, State: people.StateActive}
	x := &Exchange{Caller: roles.Caller{Role: roles.SuperAdmin}, api: a}
	for try := 0; ; {
		var list []*subscription
		err := a.each(ctx, f, func(s *subscription) bool {
			s.state = stateDeleted
			x.stamp(s.members, "updated", "updatedBy")
			list = append(list, s)
			return len(list) < maxTogether
		})
		if err != nil || len(list) == 0 {
			return err
		}
		switch err = a.store(ctx, list...); {
		case err == nil:
		case err == errChanged && try < maxTries: //nolint:errorlint // errors of results are not wrapped
			try++
		default:
			return err
		}
	}
}
