package registry

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"fanfare.dev/fanfare"
)

// Why an address is suppressed, the weakest reason first: a stronger one takes the
// place of a weaker one, and never the other way round.
const (
	SoftBounces = "soft_bounces" // too many messages were refused for now
	Imported    = "imported"     // it was on the list of another system
	NotWanted   = "unsubscribed" // its owner wants nothing at all
	HardBounce  = "hard_bounce"  // there is no such mailbox
	ByHand      = "manual"       // an operator asked for it
	Complaint   = "complaint"    // its owner called a message spam
	Erased      = "erased"       // its owner was forgotten, and wants to be left alone
)

// SuppressionReasons lists them, the weakest first.
var SuppressionReasons = []string{SoftBounces, Imported, NotWanted, HardBounce, ByHand, Complaint, Erased}

// allServices is the number in the place of a service of what holds for all of them.
const allServices = 0

// A SuppressionAsk asks that nobody writes to an address any more.
type SuppressionAsk struct {
	Service string    // "": all services
	Address string    // as it is written
	Reason  string    // one of SuppressionReasons
	Source  string    // who says so: "smtp 192.0.2.1", a file, a key
	Until   time.Time // zero: for good
}

// Suppress puts addresses on the suppression list, all or none. When it returns
// that is durable, and whatever asks whether an address may be written to knows
// it. An address that is on the list already stays there with the stronger of the
// two reasons and for the longer of the two times, so that asking twice is asking
// once. The pointer of an error begins with the index of the ask.
func (r *Registry) Suppress(ctx context.Context, asks []SuppressionAsk) error {
	records := make([]SuppressionRecord, len(asks))
	for i := range asks {
		record, err := r.suppressionAsked(&asks[i])
		if err != nil {
			return below(fmt.Sprintf("/%d", i), err)
		}
		records[i] = record
	}
	return r.change(ctx, func(g *group) ([]fanfare.Place, error) {
		for i := range records {
			if err := g.suppress(records[i]); err != nil {
				return nil, err
			}
		}
		return nil, nil
	})
}

// suppressionAsked checks an ask.
func (r *Registry) suppressionAsked(ask *SuppressionAsk) (s SuppressionRecord, err error) {
	service := uint32(allServices)
	if ask.Service != "" {
		svc, err := r.config.Load().service(ask.Service)
		if err != nil {
			return s, err
		}
		service = svc.number
	}
	if !slices.Contains(SuppressionReasons, ask.Reason) {
		return s, invalid("/reason", "use one of "+strings.Join(SuppressionReasons, ", "), "%s is no reason", quote(ask.Reason))
	}
	kind := kindWritten(ask.Address)
	normal, err := r.normal(kind, ask.Address)
	if err != nil {
		return s, invalid("/address", "", "%s is not an address: %s", quote(ask.Address), reason(err))
	}
	s = r.suppressionOf(service, kind, normal)
	s.Reason = ask.Reason
	return s, nil
}

// suppress puts an address on the list, where that says more than the list does.
func (g *group) suppress(asked SuppressionRecord) error {
	is, known, err := g.suppression(asked.key())
	if err != nil {
		return err
	}
	if known && strength(is.Reason) >= strength(asked.Reason) {
		return nil
	}
	asked.At = g.batch.At
	g.keepSuppression(asked)
	return nil
}

func strength(reason string) int { return slices.Index(SuppressionReasons, reason) }

// suppression returns what the list says of an address in the group's eyes.
func (g *group) suppression(key suppressionKey) (SuppressionRecord, bool, error) {
	if s, ok := g.suppressed[key]; ok {
		return s, !s.Lifted, nil
	}
	if g.w.flight != nil && len(g.w.flight.suppressed) > 0 {
		if g.w.land(); g.aborted {
			return SuppressionRecord{}, false, errAborted
		}
	}
	s, ok := g.w.r.suppressions.get(key)
	return s, ok, nil
}

// keepSuppression has the list say something else of an address.
func (g *group) keepSuppression(s SuppressionRecord) {
	g.effects++
	if g.suppressed == nil {
		g.suppressed = map[suppressionKey]SuppressionRecord{}
	}
	g.suppressed[s.key()] = s
	g.batch.Suppressions = append(g.batch.Suppressions, s)
}
