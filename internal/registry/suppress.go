package registry

import (
	"context"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/inputerror"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/people/addresskind"
	"fanfare.dev/fanfare/internal/people/suppression"
	"fanfare.dev/fanfare/internal/store/control"
)

// Suppressed counts the addresses that are suppressed.
func (r *Registry) Suppressed() int { return r.suppressions.Len() }

// SuppressedBy counts them by reason.
func (r *Registry) SuppressedBy() map[string]int { return r.suppressions.CountByReason() }

// mayReach refuses an address that is suppressed.
func (r *Registry) mayReach(service uint32, kind uint8, address, at string) error {
	if r.suppressions.Len() == 0 {
		return nil
	}
	key, s, ok := r.suppressions.InForce(service, kind, address, r.opt.Now().UnixNano())
	if !ok {
		return nil
	}
	return suppression.RefusedError(key, s, at)
}

// mayBeSent is mayReach for a message to somebody by name: of them, only who was
// forgotten is refused; what goes to the others is settled as suppressed.
func (r *Registry) mayBeSent(service uint32, kind uint8, address, at string) error {
	key, s, ok := r.suppressions.InForce(service, kind, address, r.opt.Now().UnixNano())
	if !ok || s.Reason != suppression.ReasonErased {
		return nil
	}
	return suppression.RefusedError(key, s, at)
}

// Suppressing returns why nothing may be sent to an address in normal form over a
// channel, "" where something may. It is asked before each message: seen is what the
// caller remembers between two questions about the same address, 0 before the first,
// and makes all but the first nearly free while the list does not change.
func (r *Registry) Suppressing(c *catalog.Channel, address string, seen *uint64) string {
	version := r.suppressions.Version() + 1
	if *seen == version {
		return ""
	}
	*seen = version
	if r.suppressions.Len() == 0 {
		return ""
	}
	kind := addresskind.OfDriver(c.Driver)
	if !r.suppressions.HasTag(r.suppressions.Tag(kind, suppression.Fold(kind, address))) {
		return ""
	}
	svc, err := r.Snapshot().Service(c.Service)
	if err != nil {
		return ""
	}
	key, s, ok := r.suppressions.InForce(svc.Number, kind, address, r.opt.Now().UnixNano())
	switch {
	case !ok:
		return ""
	case key.Service == suppression.AllServices:
		*seen = 0 // it is asked again, as long as it is refused
		return s.Reason + ", for all services"
	}
	*seen = 0
	return s.Reason
}

// Unsuppress takes an address off the list of a service, or with no service off
// that of all services. One that is not on it is no error. What came back of it
// until now is forgotten with that, and the rules of bounces count anew.
func (r *Registry) Unsuppress(ctx context.Context, service, address string) error {
	return r.lift(ctx, service, address, people.SourceAPI, func(string) bool { return true })
}

// Unwelcome reports whether an address is on the list of a service because its owner
// wanted nothing at all.
func (r *Registry) Unwelcome(service, address string) bool {
	asked, err := r.suppressionNamed(service, address)
	if err != nil {
		return false
	}
	is, known := r.suppressions.Get(suppression.KeyOf(&asked), r.opt.Now().UnixNano())
	return known && is.Reason == suppression.ReasonUnsubscribed
}

// Welcome takes an address that is Unwelcome off the list: its owner has asked for
// messages again. No other reason is theirs to take back, and what holds for all
// services is not the business of one.
func (r *Registry) Welcome(ctx context.Context, service, address, source string) error {
	return r.lift(ctx, service, address, source, func(reason string) bool { return reason == suppression.ReasonUnsubscribed })
}

func (r *Registry) lift(ctx context.Context, service, address, source string, may func(reason string) bool) error {
	asked, err := r.suppressionNamed(service, address)
	if err != nil {
		return err
	}
	return r.change(ctx, func(g *group) ([]fanfare.RowID, error) {
		is, known, err := g.suppression(suppression.KeyOf(&asked))
		if err == nil && known && may(is.Reason) {
			asked.Lifted, asked.At, asked.Reason, asked.Until = true, g.batch.At, is.Reason, is.Until
			g.keepSuppression(asked)
			g.deed = audit.Operation{Service: service, Action: "lift", Kind: "suppression", Name: ""} // of whom is not told
			err = g.tellSuppression(control.NoticeLifted, &asked, source)
		}
		return nil, err
	})
}

// suppressionService is the number of a service, or of all of them.
func (r *Registry) suppressionService(name string) (uint32, error) {
	if name == "" {
		return suppression.AllServices, nil
	}
	svc, err := r.Snapshot().Service(name)
	if err != nil {
		return 0, err
	}
	return svc.Number, nil
}

// suppressionNamed is what would be kept of an address as it is written; without a
// service, for all services.
func (r *Registry) suppressionNamed(service, address string) (suppression.Record, error) {
	number, err := r.suppressionService(service)
	if err != nil {
		return suppression.Record{}, err
	}
	kind := addresskind.OfAddress(address)
	normal, err := r.normal(kind, address)
	if err != nil {
		return suppression.Record{}, inputerror.Invalid("/address", "", "%s", people.AddressProblem(address, "", err))
	}
	s := r.suppressions.NewRecord(number, kind, normal)
	s.Address = normal
	return s, nil
}
