package feedback

import (
	"context"
	"strings"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/failpoint"
	"fanfare.dev/fanfare/internal/mail/bounce"
	"fanfare.dev/fanfare/internal/people/suppression"
	"fanfare.dev/fanfare/internal/store/control"
	"fanfare.dev/fanfare/internal/store/deliveries"
)

// A report is a pending report whose delivery is known.
type report struct {
	*pending
	service string
	last    fanfare.Entry // newest entry of the delivery; its Attempt is 0 if there is none
	bounce  control.BounceRecord
}

// apply processes a group. It adds reports that are too early to early, and does not reply to them. An error
// applies to all reports of the group that have no reply yet.
func (p *Processor) apply(ctx context.Context, group []*pending, early *[]*pending) error {
	*early = (*early)[:0]
	all, err := p.locate(ctx, group)
	if err != nil {
		return err
	}
	now := p.options.Clock.Now()
	var known, counted []*report
	for _, r := range all {
		switch {
		case r.last.Attempt > 0:
			known = append(known, r)
		case now.Sub(r.since) < outcomeWait:
			*early = append(*early, r.pending)
		default:
			r.reply(errTryAgain) // no outcome is recorded: the message has not left yet
		}
	}
	for _, r := range known {
		if p.countable(r) {
			counted = append(counted, r)
		}
	}
	if err := p.suppress(ctx, counted, now); err != nil {
		return err
	}
	if err := p.record(known); err != nil {
		return err
	}
	for _, r := range known {
		r.reply(nil)
	}
	return nil
}

// locate finds the deliveries of reports. A report about a delivery that is no longer stored is answered
// immediately.
func (p *Processor) locate(ctx context.Context, group []*pending) (all []*report, err error) {
	days := map[fanfare.Day][]*report{}
	for _, w := range group {
		service, err := p.serviceOf(ctx, w.Delivery)
		if err == nil && w.Service != "" && w.Service != service {
			err = &fanfare.Error{Code: fanfare.NotFound, Message: "the message belongs to another service"}
		}
		if err == nil && w.Shared {
			w.Delivery, err = p.recipient(ctx, service, w)
		}
		switch {
		case fanfare.CodeOf(err) == fanfare.NotFound && err != nil:
			p.counters.unknown.Add(1)
			w.reply(nil)
		case err != nil:
			return nil, err
		default:
			days[w.Delivery.Day] = append(days[w.Delivery.Day], &report{pending: w, service: service})
		}
	}
	for day, ofDay := range days {
		spans := make([]deliveries.Span, len(ofDay))
		for i, r := range ofDay {
			spans[i] = deliveries.Span{Manifest: r.Delivery.Manifest, From: r.Delivery.Position, To: r.Delivery.Position + 1}
		}
		err := p.options.Store.Moment(ctx, day, func(m *deliveries.Moment) error {
			return m.Entries(spans, func(span int, e *fanfare.Entry) { ofDay[span].last = *e })
		})
		if err != nil && fanfare.CodeOf(err) != fanfare.NotFound {
			return nil, err
		}
		for _, r := range ofDay {
			if err != nil { // the day was removed
				p.counters.unknown.Add(1)
				r.reply(nil)
				continue
			}
			all = append(all, r)
		}
	}
	return all, nil
}

// serviceOf returns the service of a delivery.
func (p *Processor) serviceOf(ctx context.Context, ref fanfare.DeliveryRef) (string, error) {
	event := fanfare.EventRef{Day: ref.Day, Seq: ref.Manifest.Event()}
	if service, known := p.services[event]; known {
		return service, nil
	}
	posted, err := p.options.Store.Posted(ctx, event)
	if err != nil {
		return "", err
	}
	if len(p.services) >= maxWaiting {
		clear(p.services)
	}
	p.services[event] = posted.Service
	return posted.Service, nil
}

// recipient finds the delivery of the recipient that a report on a shared message identifies.
func (p *Processor) recipient(ctx context.Context, service string, w *pending) (fanfare.DeliveryRef, error) {
	unknown := &fanfare.Error{Code: fanfare.NotFound, Message: "the report does not identify a recipient of the message"}
	if w.report.Recipient == "" {
		return w.Delivery, unknown
	}
	place, err := p.options.Registry.FindSubscriber(ctx, service, w.report.Recipient)
	if lower := strings.ToLower(w.report.Recipient); fanfare.CodeOf(err) == fanfare.NotFound && lower != w.report.Recipient {
		place, err = p.options.Registry.FindSubscriber(ctx, service, lower) // some servers write addresses in capitals
	}
	if err != nil {
		return w.Delivery, err
	}
	event := fanfare.EventRef{Day: w.Delivery.Day, Seq: w.Delivery.Manifest.Event()}
	manifest, err := p.options.Store.ManifestOf(ctx, event, place.Partition())
	if err != nil {
		return w.Delivery, err
	}
	if manifest != nil {
		for _, position := range manifest.PositionsOf(place) {
			return fanfare.DeliveryRef{Day: event.Day, Manifest: manifest.ID, Position: position}, nil
		}
	}
	return w.Delivery, unknown
}

// countable reports whether a report counts against its address, and creates its bounce record. Reports about the
// sender do not count.
func (p *Processor) countable(r *report) bool {
	kind := bounceKind(&r.report)
	if kind == 0 || r.last.Address == "" || r.last.State == fanfare.Failed || r.last.State == fanfare.Delivered && kind != control.BounceComplaint {
		return false // most likely a repeated report
	}
	bounce, err := p.options.Registry.NewBounceRecord(r.service, r.last.Address)
	if err != nil {
		return false // the service was deleted
	}
	bounce.Delivery, bounce.Kind, bounce.At = r.Delivery, kind, r.At.UnixNano()
	r.bounce = bounce
	return true
}

// bounceKind returns the rule that a report counts for, or 0.
func bounceKind(r *bounce.Report) control.BounceKind {
	if r.Outcome == bounce.Complained {
		return control.BounceComplaint
	}
	if r.Outcome != bounce.Failed {
		return 0
	}
	switch r.Class {
	case fanfare.ClassInvalid:
		if r.Certain {
			return control.BounceUnknown
		}
		return control.BounceHard
	case fanfare.ClassFull:
		return control.BounceMailboxFull
	case fanfare.ClassNetwork, fanfare.ClassBusy, "":
		return control.BounceSoft
	}
	return 0 // blocked, content, throttled, greylisted, denied: about the sender or the message
}

// suppress stores the bounces, and suppresses the addresses that reach a rule of their service.
func (p *Processor) suppress(ctx context.Context, counted []*report, now time.Time) error {
	if len(counted) == 0 {
		return nil
	}
	records := make([]control.BounceRecord, len(counted))
	for i, r := range counted {
		records[i] = r.bounce
	}
	failpoint.Hit("before-return-count")
	kept, err := p.options.Control.AddBounces(ctx, records)
	if err != nil {
		return err
	}
	var asks []suppression.Request
	for i, r := range counted {
		rules := p.options.Registry.Bounces(r.service)
		if ask, reached := suppressionFor(&rules, kept[i], r, now); reached {
			asks = append(asks, ask)
		}
	}
	if p.options.Bounced != nil {
		for _, r := range counted {
			if r.bounce.Kind == control.BounceHard || r.bounce.Kind == control.BounceUnknown {
				if err := p.options.Bounced(ctx, &Returned{Service: r.service, Address: r.last.Address, Text: r.report.Text, Delivery: r.Delivery, At: r.At}); err != nil {
					return err
				}
			}
		}
	}
	failpoint.Hit("before-return-suppression")
	return p.options.Registry.Suppress(ctx, asks)
}

// suppressionFor compares the bounces of an address with the rules of its service. A bounce of an address that is
// certainly unknown counts for the rule of hard bounces, too.
func suppressionFor(rules *catalog.BounceSettings, kept []control.BounceRecord, r *report, now time.Time) (ask suppression.Request, reached bool) {
	at := map[control.BounceKind][]time.Time{}
	for i := range kept {
		when := time.Unix(0, kept[i].At)
		at[kept[i].Kind] = append(at[kept[i].Kind], when)
		if kept[i].Kind == control.BounceUnknown {
			at[control.BounceHard] = append(at[control.BounceHard], when)
		}
	}
	ask = suppression.Request{Service: r.service, Address: r.last.Address, Source: r.Source}
	for _, kind := range []control.BounceKind{control.BounceComplaint, control.BounceUnknown, control.BounceHard, control.BounceMailboxFull, control.BounceSoft} {
		rule := rules.Rule(kind)
		if !rule.Reached(at[kind], now) {
			continue
		}
		ask.Until = rule.Until(now)
		switch kind {
		case control.BounceComplaint:
			ask.Reason = suppression.ReasonComplaint
		case control.BounceUnknown, control.BounceHard:
			ask.Reason = suppression.ReasonHardBounce
		default:
			ask.Reason = suppression.ReasonSoftBounces
		}
		return ask, true
	}
	return ask, false
}

// record writes the new state of deliveries that were accepted. The entry marks the report as processed.
func (p *Processor) record(known []*report) error {
	var entries []fanfare.Entry
	recorded := map[fanfare.DeliveryRef]bool{}
	for _, r := range known {
		if r.last.State == fanfare.Accepted && !recorded[r.Delivery] {
			recorded[r.Delivery] = true
			entries = append(entries, entryOf(r))
		}
	}
	if len(entries) == 0 {
		return nil
	}
	failpoint.Hit("before-return-record")
	err := p.options.Recorder.RecordAll(entries)
	failpoint.Hit("after-return-record")
	if fanfare.CodeOf(err) == fanfare.NotFound { // the day was removed in the meantime
		return nil
	}
	return err
}

// entryOf returns the entry that records a report.
func entryOf(r *report) fanfare.Entry {
	e := fanfare.Entry{Delivery: r.Delivery, State: fanfare.Delivered, Returned: true, Code: r.report.Code, Relay: r.report.Relay, Address: r.last.Address, At: r.At}
	switch r.report.Outcome {
	case bounce.Failed:
		e.State = fanfare.Failed
		e.Text, e.Class = bounceText(&r.report), r.report.Class
	case bounce.Complained: // the message was delivered
		e.Complaint = true
		e.Text = "the recipient reported it as spam (" + r.report.Feedback + ")"
	default:
		e.Text = r.report.Text
	}
	return e
}

// bounceText returns the class of a bounce and the reply of the server.
func bounceText(r *bounce.Report) string {
	class := string(r.Class)
	if class == "" {
		class = "unclear"
	}
	text := "bounced (" + class + ")"
	if r.Text != "" {
		text += ": " + r.Text
	} else if r.Status != "" {
		text += ": " + r.Status
	}
	return text
}
