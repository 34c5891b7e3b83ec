package feedback

import (
	"context"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/mail/bounce"
	"fanfare.dev/fanfare/internal/people/suppression"
	"fanfare.dev/fanfare/internal/store/control"
)

// Bounced counts a bounce of a mail that another system sent to an address of a service, and suppresses the address if it reaches a rule of
// the service. It is idempotent: id is the same whenever the bounce is reported again.
func (p *Processor) Bounced(ctx context.Context, service, address string, id uint64, of *bounce.Report, arrival *bounce.Arrival) error {
	kind := bounceKind(of)
	if kind == 0 {
		return nil
	}
	r := &report{pending: &pending{Arrival: *arrival, report: *of}, service: service}
	r.last.Address = address
	var err error
	if r.bounce, err = p.options.Registry.NewBounceRecord(service, address); err != nil {
		return ignoreNotFound(err)
	}
	// No delivery of ours has day 0.
	r.bounce.Delivery, r.bounce.Kind, r.bounce.At = fanfare.DeliveryRef{Manifest: fanfare.ManifestID(id)}, kind, arrival.At.UnixNano()
	kept, err := p.options.Control.AddBounces(ctx, []control.BounceRecord{r.bounce})
	if err != nil {
		return err
	}
	rules := p.options.Registry.Bounces(service)
	ask, reached := suppressionFor(&rules, kept[0], r, p.options.Clock.Now())
	if !reached {
		return nil
	}
	return p.options.Registry.Suppress(ctx, []suppression.Request{ask})
}
