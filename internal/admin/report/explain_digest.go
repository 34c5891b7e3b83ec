package report

import (
	"context"
	"slices"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/people"
)

// gathered adds that the event waits for a digest of the subscription, and the result.
func (x *Explainer) gathered(ctx context.Context, e *explanation, s *people.Subscription, ref fanfare.EventRef) (bool, error) {
	g, err := x.Traces.Digests.Waiting(ctx, ref, s.Owner, s.Place)
	if g == nil || err != nil {
		return false, err
	}
	now := e.good()
	e.check("recorded", true, "it was among the recipients when the event was matched")
	if !now {
		e.last().Detail += ", although it would not be now: " + e.difference()
	}
	e.decided = true
	when := g.Cadence
	if g.Zone != "" {
		when += " " + g.Zone
	}
	if g.Digest == "" {
		e.check("digest", true, "it waits for the digest %s, due %s", when, g.Due.UTC().Format("2006-01-02 15:04:05Z"))
		return true, nil
	}
	list, err := x.Traces.digestsOf(ctx, ref, s.Owner)
	if err != nil {
		return false, err
	}
	at := slices.IndexFunc(list, func(d fanfare.Delivery) bool { return slices.Contains(d.Subscriptions, s.ID) })
	e.check("digest", at >= 0, "the digest %s of %s tells of it", g.Digest, when)
	if at < 0 {
		e.last().Detail = "the digest " + g.Digest + " of " + when + " does not tell of it: the subscription had ended or was changed, a newer event of the same key came, or there were too many"
		return true, nil
	}
	e.Delivery = &list[at]
	e.check("delivery", reached(list[at].State), "%s", outcome(&list[at]))
	return true, nil
}
