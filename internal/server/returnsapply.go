package server

import (
	"context"
	"strings"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/failpoint"
	"fanfare.dev/fanfare/internal/mail/bounce"
	"fanfare.dev/fanfare/internal/registry"
	"fanfare.dev/fanfare/internal/store/control"
	"fanfare.dev/fanfare/internal/store/deliveries"
)

// A returned is an arrival whose delivery is known.
type returned struct {
	*arrived
	service string
	last    fanfare.Entry // of the delivery, the newest; its Attempt is 0 where there is none
	bounce  control.BounceRecord
}

// apply keeps what follows from a group. What is too early is added to early, and
// has no answer yet. An error is for all of the group that have none.
func (t *returnTaker) apply(ctx context.Context, group []*arrived, early *[]*arrived) error {
	*early = (*early)[:0]
	all, err := t.look(ctx, group)
	if err != nil {
		return err
	}
	now := t.clock.Now()
	var mine, counted []*returned
	for _, r := range all {
		switch {
		case r.last.Attempt > 0:
			mine = append(mine, r)
		case now.Sub(r.since) < earlyWait:
			*early = append(*early, r.arrived)
		default:
			r.answer(errNotNow) // it has not left, as far as is known here
		}
	}
	for _, r := range mine {
		if t.counts(r) {
			counted = append(counted, r)
		}
	}
	if err := t.giveUp(ctx, counted, now); err != nil {
		return err
	}
	if err := t.record(mine); err != nil {
		return err
	}
	for _, r := range mine {
		r.answer(nil)
	}
	return nil
}

// look finds the deliveries of arrivals. Those of which nothing is kept any more
// are answered: nothing follows from them.
func (t *returnTaker) look(ctx context.Context, group []*arrived) (all []*returned, err error) {
	days := map[fanfare.Day][]*returned{}
	for _, w := range group {
		service, err := t.serviceOf(ctx, w.Delivery)
		if err == nil && w.Service != "" && w.Service != service {
			err = &fanfare.Error{Code: fanfare.NotFound, Message: "the message is another service's"}
		}
		if err == nil && w.Shared {
			w.Delivery, err = t.whom(ctx, service, w)
		}
		switch {
		case fanfare.CodeOf(err) == fanfare.NotFound && err != nil:
			t.tally.unknown.Add(1)
			w.answer(nil)
		case err != nil:
			return nil, err
		default:
			days[w.Delivery.Day] = append(days[w.Delivery.Day], &returned{arrived: w, service: service})
		}
	}
	for day, ofDay := range days {
		spans := make([]deliveries.Span, len(ofDay))
		for i, r := range ofDay {
			spans[i] = deliveries.Span{Manifest: r.Delivery.Manifest, From: r.Delivery.Position, To: r.Delivery.Position + 1}
		}
		err := t.store.Moment(ctx, day, func(m *deliveries.Moment) error {
			return m.Entries(spans, func(span int, e *fanfare.Entry) { ofDay[span].last = *e })
		})
		if err != nil && fanfare.CodeOf(err) != fanfare.NotFound {
			return nil, err
		}
		for _, r := range ofDay {
			if err != nil { // the day was removed
				t.tally.unknown.Add(1)
				r.answer(nil)
				continue
			}
			all = append(all, r)
		}
	}
	return all, nil
}

// serviceOf returns the service of a delivery.
func (t *returnTaker) serviceOf(ctx context.Context, ref fanfare.DeliveryRef) (string, error) {
	event := fanfare.EventRef{Day: ref.Day, Seq: ref.Manifest.Event()}
	if service, known := t.events[event]; known {
		return service, nil
	}
	posted, err := t.store.Posted(ctx, event)
	if err != nil {
		return "", err
	}
	if len(t.events) >= maxReturns {
		clear(t.events)
	}
	t.events[event] = posted.Service
	return posted.Service, nil
}

// whom finds the delivery of the recipient that a report on a shared message names.
func (t *returnTaker) whom(ctx context.Context, service string, w *arrived) (fanfare.DeliveryRef, error) {
	nobody := &fanfare.Error{Code: fanfare.NotFound, Message: "the report names nobody who got the message"}
	if w.report.Recipient == "" {
		return w.Delivery, nobody
	}
	place, err := t.registry.FindSubscriber(ctx, service, w.report.Recipient)
	if small := strings.ToLower(w.report.Recipient); fanfare.CodeOf(err) == fanfare.NotFound && small != w.report.Recipient {
		place, err = t.registry.FindSubscriber(ctx, service, small) // some servers write names in capitals
	}
	if err != nil {
		return w.Delivery, err
	}
	event := fanfare.EventRef{Day: w.Delivery.Day, Seq: w.Delivery.Manifest.Event()}
	manifest, err := t.store.ManifestOf(ctx, event, place.Partition())
	if err != nil {
		return w.Delivery, err
	}
	if manifest != nil {
		for _, position := range manifest.PositionsOf(place) {
			return fanfare.DeliveryRef{Day: event.Day, Manifest: manifest.ID, Position: position}, nil
		}
	}
	return w.Delivery, nobody
}

// counts reports whether something that came back counts for giving its address
// up, and makes its record. What is about the sender does not.
func (t *returnTaker) counts(r *returned) bool {
	kind := kindOfBounce(&r.report)
	if kind == 0 || r.last.Address == "" || r.last.State == fanfare.Failed || r.last.State == fanfare.Delivered && kind != control.BounceComplaint {
		return false // a second time, most likely
	}
	bounce, err := t.registry.BounceOf(r.service, r.last.Address)
	if err != nil {
		return false // the service was deleted
	}
	bounce.Delivery, bounce.Kind, bounce.At = r.Delivery, kind, r.At.UnixNano()
	r.bounce = bounce
	return true
}

// kindOfBounce is the rule that a report counts for; 0 for none.
func kindOfBounce(r *bounce.Report) control.BounceKind {
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
	return 0 // blocked, content, throttled, greylisted, denied: the sender, or the message
}

// giveUp counts what came back, and suppresses the addresses of which it is enough.
func (t *returnTaker) giveUp(ctx context.Context, counted []*returned, now time.Time) error {
	if len(counted) == 0 {
		return nil
	}
	records := make([]control.BounceRecord, len(counted))
	for i, r := range counted {
		records[i] = r.bounce
	}
	failpoint.Hit("before-return-count")
	kept, err := t.control.AddBounces(ctx, records)
	if err != nil {
		return err
	}
	var asks []registry.SuppressionAsk
	for i, r := range counted {
		rules := t.registry.Bounces(r.service)
		if ask, enough := enough(&rules, kept[i], r, now); enough {
			asks = append(asks, ask)
		}
	}
	failpoint.Hit("before-return-suppression")
	return t.registry.Suppress(ctx, asks)
}

// enough holds what is kept of an address against the rules of its service. Who is
// certainly unknown counts for the rule of hard bounces, too.
func enough(rules *registry.BounceSettings, kept []control.BounceRecord, r *returned, now time.Time) (ask registry.SuppressionAsk, reached bool) {
	at := map[control.BounceKind][]time.Time{}
	for i := range kept {
		when := time.Unix(0, kept[i].At)
		at[kept[i].Kind] = append(at[kept[i].Kind], when)
		if kept[i].Kind == control.BounceUnknown {
			at[control.BounceHard] = append(at[control.BounceHard], when)
		}
	}
	ask = registry.SuppressionAsk{Service: r.service, Address: r.last.Address, Source: r.Source}
	for _, kind := range []control.BounceKind{control.BounceComplaint, control.BounceUnknown, control.BounceHard, control.BounceMailboxFull, control.BounceSoft} {
		rule := rules.Rule(kind)
		if !rule.Reached(at[kind], now) {
			continue
		}
		ask.Until = rule.Until(now)
		switch kind {
		case control.BounceComplaint:
			ask.Reason = registry.Complaint
		case control.BounceUnknown, control.BounceHard:
			ask.Reason = registry.HardBounce
		default:
			ask.Reason = registry.SoftBounces
		}
		return ask, true
	}
	return ask, false
}

// record moves the deliveries that were accepted. An entry is the mark that all
// that follows from it was kept.
func (t *returnTaker) record(mine []*returned) error {
	var entries []fanfare.Entry
	moved := map[fanfare.DeliveryRef]bool{}
	for _, r := range mine {
		if r.last.State == fanfare.Accepted && !moved[r.Delivery] {
			moved[r.Delivery] = true
			entries = append(entries, entryOf(r))
		}
	}
	if len(entries) == 0 {
		return nil
	}
	failpoint.Hit("before-return-record")
	err := t.recorder.RecordAll(entries)
	failpoint.Hit("after-return-record")
	if fanfare.CodeOf(err) == fanfare.NotFound { // the day was removed meanwhile
		return nil
	}
	return err
}

// entryOf is what the record has of something that came back.
func entryOf(r *returned) fanfare.Entry {
	e := fanfare.Entry{Delivery: r.Delivery, State: fanfare.Delivered, Returned: true, Code: r.report.Code, Relay: r.report.Relay, Address: r.last.Address, At: r.At}
	switch r.report.Outcome {
	case bounce.Failed:
		e.State = fanfare.Failed
		e.Text, e.Class = bounced(&r.report), r.report.Class
	case bounce.Complained: // and so it was read
		e.Complaint = true
		e.Text = "the reader called it junk (" + r.report.Feedback + ")"
	default:
		e.Text = r.report.Text
	}
	return e
}

// bounced is the text of a bounce: the class, and what the server said.
func bounced(r *bounce.Report) string {
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
