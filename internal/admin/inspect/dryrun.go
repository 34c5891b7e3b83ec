package inspect

import (
	"context"
	"slices"
	"strings"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/condition"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/people/registry"
	"fanfare.dev/fanfare/internal/pipeline/match"
	"fanfare.dev/fanfare/internal/pipeline/plan"
)

// DryRun matches an event with the current subscriptions and stores nothing. sample is the number of subscriptions that it lists.
func (in *Inspector) DryRun(ctx context.Context, event *fanfare.AcceptedEvent, sample int) (wire.DryRun, error) {
	out := wire.DryRun{Topic: event.Topic, Channels: []wire.DryRunChannel{}, Rules: []wire.DryRunRule{}, Sample: []wire.DryRunHit{}}
	topic, ok := in.opt.Registry.Topic(event.Service, event.Topic)
	if !ok {
		return out, &fanfare.Error{Code: fanfare.NotFound, Message: "the service has no topic " + event.Topic}
	}
	if err := in.dryRuns.Lock(ctx); err != nil {
		return out, err
	}
	defer in.dryRuns.Unlock()
	data := condition.EventOf(&event.Event)
	var err error
	if data.Previous, err = in.Before(event.Service, event.Topic, event.Event.Data); err != nil {
		return out, err
	}
	hits, err := in.opt.Verifier.Match(ctx, match.VerifyTopic(topic), "of a dry run", data, nil)
	if err != nil {
		return out, err
	}
	if event.Audience != nil {
		if hits, err = in.opt.Audiences.Narrow(ctx, event, hits); err != nil {
			return out, err
		}
		out.Outside = int(event.Audience.Outside)
	}
	out.Matched = len(hits)
	out.Rules = byRule(topic, hits)
	if out.Sample, err = in.sampleHits(ctx, topic, hits, sample); err != nil {
		return out, err
	}
	hits, later := plan.SplitDigests(0, hits, in.due)
	out.Gathered = in.waiting(later)
	messages := map[uint16]int{}
	for _, m := range plan.Manifests(0, hits, match.Pins(in.opt.Registry, topic)) { // sorts hits
		for i := range m.Sections {
			messages[m.Sections[i].Channel] += m.Sections[i].Members.Len()
		}
	}
	for number, n := range messages {
		out.Messages += n
		out.Channels = append(out.Channels, ChannelRun(in.opt.Registry, number, n))
	}
	if event.Lane == fanfare.TopicLane {
		event.Lane = topic.Lane
	}
	out.Hold = in.opt.Registry.Hold(event, int64(out.Messages))
	slices.SortFunc(out.Channels, func(a, b wire.DryRunChannel) int { return strings.Compare(a.Channel, b.Channel) })
	return out, nil
}

// due returns when the next digest of a slot is sent. It returns false if the slot has no digest or if it reports a state, because events do
// not wait for states.
func (in *Inspector) due(number uint16) (time.Time, bool) {
	slot, known := in.opt.Registry.Slot(number)
	if !known || slot.Cadence.OfState() {
		return time.Time{}, false
	}
	return slot.Next(in.opt.Clock.Now()), true
}

// waiting counts the recipients who would be notified later, by slot.
func (in *Inspector) waiting(later []fanfare.Gathered) (list []wire.DryRunDigest) {
	for i, g := range later {
		if i == 0 || later[i-1].Slot != g.Slot {
			slot, _ := in.opt.Registry.Slot(g.Slot)
			list = append(list, wire.DryRunDigest{Cadence: slot.Cadence.String(), Zone: slot.Zone.String(), Due: g.Due})
		}
		list[len(list)-1].Recipients += g.Manifest.Members()
	}
	slices.SortStableFunc(list, func(a, b wire.DryRunDigest) int { return a.Due.Compare(b.Due) })
	return list
}

// ChannelRun estimates how long a number of messages takes over a channel.
func ChannelRun(people *registry.Registry, number uint16, messages int) wire.DryRunChannel {
	c, ok := people.Channel(number)
	if !ok {
		return wire.DryRunChannel{Messages: messages}
	}
	run := wire.DryRunChannel{Channel: c.Name, Messages: messages}
	rate, _ := people.ChannelRate(c)
	if all := people.ServiceLimits(c.Service).Rate; all.PerSecond() > 0 && (rate.PerSecond() == 0 || all.PerSecond() < rate.PerSecond()) {
		rate = all
	}
	if rate.PerSecond() > 0 {
		run.Rate, run.Seconds = rate.String(), int64(float64(messages)/rate.PerSecond())
	}
	return run
}

func (in *Inspector) channel(number uint16) string {
	if c, ok := in.opt.Registry.Channel(number); ok {
		return c.Name
	}
	return ""
}

// byRule counts hits by rule, in the order of the topic; filters come last.
func byRule(topic *catalog.Topic, hits []fanfare.Hit) []wire.DryRunRule {
	counts := make([]int, len(topic.Rules)+1)
	for i := range hits {
		at := len(topic.Rules)
		if rule := int(hits[i].Rule); rule >= 0 && rule < at {
			at = rule
		}
		counts[at]++
	}
	list := []wire.DryRunRule{}
	for i, n := range counts {
		if n > 0 {
			list = append(list, wire.DryRunRule{Rule: ruleAt(topic, i), Matched: n})
		}
	}
	return list
}

func ruleAt(topic *catalog.Topic, i int) string {
	if i >= 0 && i < len(topic.Rules) {
		return topic.Rules[i].Name
	}
	return ""
}

// sampleHits lists n of the hits at even distances.
func (in *Inspector) sampleHits(ctx context.Context, topic *catalog.Topic, hits []fanfare.Hit, n int) ([]wire.DryRunHit, error) {
	n = min(n, len(hits))
	list := make([]wire.DryRunHit, 0, n)
	places, subscribers := make([]fanfare.RowID, n), make([]fanfare.RowID, n)
	chosen := map[fanfare.RowID]fanfare.Hit{}
	for i := range n {
		hit := hits[i*len(hits)/n]
		places[i], subscribers[i], chosen[hit.Place] = hit.Place, hit.Subscriber, hit
	}
	slices.Sort(subscribers)
	known := map[fanfare.RowID]people.SubscriberRow{}
	err := in.opt.Registry.Subscribers(ctx, slices.Compact(subscribers), func(r *people.SubscriberRow) error {
		known[r.Place] = people.SubscriberRow{ID: r.ID, Address: r.Address}
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = in.opt.Registry.Subscriptions(ctx, places, func(r *people.SubscriptionRow) error {
		hit := chosen[r.Place]
		list = append(list, wire.DryRunHit{Subscription: r.ID, Subscriber: known[hit.Subscriber].ID, To: known[hit.Subscriber].Address,
			Channel: in.channel(hit.Channel), Rule: ruleAt(topic, int(hit.Rule))})
		return nil
	})
	return list, err
}
