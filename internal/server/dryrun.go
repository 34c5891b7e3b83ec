package server

import (
	"context"
	"slices"
	"strings"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/condition"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/pipeline/plan"
	"fanfare.dev/fanfare/internal/registry"
)

// DryRun matches an event as it would be matched now, and keeps nothing.
func (j *judging) DryRun(ctx context.Context, posted *fanfare.AcceptedEvent, sample int) (wire.DryRun, error) {
	out := wire.DryRun{Topic: posted.Topic, Channels: []wire.DryRunChannel{}, Rules: []wire.DryRunRule{}, Sample: []wire.DryRunHit{}}
	topic, ok := j.registry.Topic(posted.Service, posted.Topic)
	if !ok {
		return out, &fanfare.Error{Code: fanfare.NotFound, Message: "the service has no topic " + posted.Topic}
	}
	if err := j.matching.Lock(ctx); err != nil {
		return out, err
	}
	defer j.matching.Unlock()
	event := condition.EventOf(&posted.Event)
	var err error
	if event.Previous, err = j.states.Before(posted.Service, posted.Topic, posted.Event.Data); err != nil {
		return out, err
	}
	hits, err := j.verifier.Match(ctx, verifiedTopic(topic), "of a dry run", event, nil)
	if err != nil {
		return out, err
	}
	if posted.Audience != nil {
		if hits, err = j.people.narrow(ctx, posted, hits); err != nil {
			return out, err
		}
		out.Outside = int(posted.Audience.Outside)
	}
	out.Matched = len(hits)
	out.Rules = byRule(topic, hits)
	if out.Sample, err = j.sample(ctx, topic, hits, sample); err != nil {
		return out, err
	}
	hits, later := plan.Gather(0, hits, j.due)
	out.Gathered = j.gathered(later)
	messages := map[uint16]int{}
	for _, m := range plan.Manifests(0, hits, pinsOf(j.registry, topic)) { // sorts hits
		for i := range m.Sections {
			messages[m.Sections[i].Channel] += m.Sections[i].Members.Len()
		}
	}
	for number, n := range messages {
		out.Messages += n
		out.Channels = append(out.Channels, channelRun(j.registry, number, n))
	}
	if posted.Lane == fanfare.TopicLane {
		posted.Lane = topic.Lane
	}
	out.Hold = j.registry.Hold(posted, int64(out.Messages))
	slices.SortFunc(out.Channels, func(a, b wire.DryRunChannel) int { return strings.Compare(a.Channel, b.Channel) })
	return out, nil
}

// due is when what is gathered for a slot now would be told; what is the case is told
// without being gathered.
func (j *judging) due(number uint16) (time.Time, bool) {
	slot, known := j.registry.Slot(number)
	if !known || slot.Cadence.OfState() {
		return time.Time{}, false
	}
	return slot.Next(j.clock.Now()), true
}

// gathered says how many would be told later, by slot.
func (j *judging) gathered(later []fanfare.Gathered) (list []wire.DryRunDigest) {
	for i, g := range later {
		if i == 0 || later[i-1].Slot != g.Slot {
			slot, _ := j.registry.Slot(g.Slot)
			list = append(list, wire.DryRunDigest{Cadence: slot.Cadence.String(), Zone: slot.Zone.String(), Due: g.Due})
		}
		list[len(list)-1].Recipients += g.Manifest.Members()
	}
	slices.SortStableFunc(list, func(a, b wire.DryRunDigest) int { return a.Due.Compare(b.Due) })
	return list
}

// channelRun is what so many messages would take over a channel.
func channelRun(people *registry.Registry, number uint16, messages int) wire.DryRunChannel {
	c, ok := people.Channel(number)
	if !ok {
		return wire.DryRunChannel{Messages: messages}
	}
	run := wire.DryRunChannel{Channel: c.Name, Messages: messages}
	rate, _ := people.RateOf(c)
	if all := people.ServiceLimits(c.Service).Rate; all.PerSecond() > 0 && (rate.PerSecond() == 0 || all.PerSecond() < rate.PerSecond()) {
		rate = all
	}
	if rate.PerSecond() > 0 {
		run.Rate, run.Seconds = rate.String(), int64(float64(messages)/rate.PerSecond())
	}
	return run
}

func (j *judging) channel(number uint16) string {
	if c, ok := j.registry.Channel(number); ok {
		return c.Name
	}
	return ""
}

// byRule counts hits by rule, in the topic's order; own filters come last.
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

// sample names n of the hits, at even distances.
func (j *judging) sample(ctx context.Context, topic *catalog.Topic, hits []fanfare.Hit, n int) ([]wire.DryRunHit, error) {
	n = min(n, len(hits))
	list := make([]wire.DryRunHit, 0, n)
	places, people := make([]fanfare.RowID, n), make([]fanfare.RowID, n)
	chosen := map[fanfare.RowID]fanfare.Hit{}
	for i := range n {
		hit := hits[i*len(hits)/n]
		places[i], people[i], chosen[hit.Place] = hit.Place, hit.Subscriber, hit
	}
	slices.Sort(people)
	known := map[fanfare.RowID]registry.SubscriberRow{}
	err := j.registry.Subscribers(ctx, slices.Compact(people), func(r *registry.SubscriberRow) error {
		known[r.Place] = registry.SubscriberRow{ID: r.ID, Address: r.Address}
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = j.registry.Subscriptions(ctx, places, func(r *registry.SubscriptionRow) error {
		hit := chosen[r.Place]
		list = append(list, wire.DryRunHit{Subscription: r.ID, Subscriber: known[hit.Subscriber].ID, To: known[hit.Subscriber].Address,
			Channel: j.channel(hit.Channel), Rule: ruleAt(topic, int(hit.Rule))})
		return nil
	})
	return list, err
}
