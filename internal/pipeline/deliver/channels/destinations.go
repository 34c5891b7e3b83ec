package channels

import (
	"context"
	"slices"
	"strings"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/pipeline/deliver"
	"fanfare.dev/fanfare/internal/store/deliveries"
)

// Destinations answers the API about the destinations of channels. Senders know their health, the
// store the messages that wait for them.
type Destinations struct {
	Channels *Channels
	Store    *deliveries.Store
	Hasten   func(ctx context.Context, day fanfare.Day) error // causes the due work of a day to be checked again
}

// Destinations lists, by name, the destinations of a channel that are not healthy and those for
// which messages wait.
func (d *Destinations) Destinations(ctx context.Context, service, channel string) ([]wire.Destination, error) {
	conf, err := d.channel(service, channel)
	if err != nil {
		return nil, err
	}
	byName := map[string]*wire.Destination{}
	named := func(name string) *wire.Destination {
		if byName[name] == nil {
			byName[name] = &wire.Destination{Name: name, State: destinationWaiting}
		}
		return byName[name]
	}
	// The store is read first: the sender then knows the reason of everything that was found there.
	err = d.eachDay(ctx, func(day fanfare.Day) error {
		waits, err := d.Store.DestinationWaits(ctx, day, conf.Number)
		for _, w := range waits {
			one := named(w.Destination)
			one.Postponed += w.Messages
			if one.PostponedTo.IsZero() || w.Until.Before(one.PostponedTo) {
				one.PostponedTo = w.Until
			}
		}
		return err
	})
	if ch := d.Channels.of(conf.Number); ch != nil {
		for _, s := range ch.ImpairedDestinations() {
			one := named(s.Name)
			one.State, one.Until, one.Failures, one.LastReply, one.LastReplyAt = string(s.State), s.Until, s.Failures, s.Text, s.TextAt
			one.RatePerSecond, one.AtOnce, one.Underway, one.Aside = s.Rate, s.Window, s.Active, s.Throttled
		}
	}
	all := make([]wire.Destination, 0, len(byName))
	for _, one := range byName {
		all = append(all, *one)
	}
	slices.SortFunc(all, func(a, b wire.Destination) int { return strings.Compare(a.Name, b.Name) })
	return all, err
}

// destinationWaiting is the state of a destination without a known problem.
const destinationWaiting = "waiting"

// ResumeDestination releases the messages that wait for a destination. The sender is resumed
// before the store, so that messages that are postponed after this have other reasons.
func (d *Destinations) ResumeDestination(ctx context.Context, service, channel, name string) error {
	conf, err := d.channel(service, channel)
	if err != nil {
		return err
	}
	known := false
	if ch := d.Channels.of(conf.Number); ch != nil {
		if known, err = ch.ResumeDestination(ctx, name); err != nil {
			return err
		}
	}
	err = d.eachDay(ctx, func(day fanfare.Day) error {
		if !known { // the answer depends on whether messages wait
			waits, err := d.Store.DestinationWaits(ctx, day, conf.Number)
			if err != nil {
				return err
			}
			known = slices.ContainsFunc(waits, func(w fanfare.Waiting) bool { return w.Destination == name })
		}
		if err := d.Store.HastenDestination(ctx, day, conf.Number, name); err != nil {
			return err
		}
		return d.Hasten(ctx, day)
	})
	if err == nil && !known {
		err = &fanfare.Error{Code: fanfare.NotFound, Message: "the channel has no waiting messages for the destination " + name + " and no record of it",
			Hint: "`fanfare destinations list " + service + "/" + channel + "` lists the destinations that are not healthy"}
	}
	return err
}

func (d *Destinations) channel(service, name string) (*catalog.Channel, error) {
	conf, ok := d.Channels.parts.Registry.ChannelNamed(service, name)
	if !ok {
		return nil, &fanfare.Error{Code: fanfare.NotFound, Message: "service " + service + " has no channel " + name, Hint: "`fanfare channel list` lists its channels"}
	}
	return conf, nil
}

// eachDay visits all days of the store; one may be removed in the meantime.
func (d *Destinations) eachDay(ctx context.Context, visit func(fanfare.Day) error) error {
	days, err := d.Store.Days(ctx)
	if err != nil {
		return err
	}
	for _, day := range days {
		if err := visit(day); err != nil && fanfare.CodeOf(err) != fanfare.NotFound {
			return err
		}
	}
	return nil
}

// Relays converts the next hops of a sender for the API.
func Relays(s *deliver.Status) []wire.RelayStatus {
	all := make([]wire.RelayStatus, len(s.Relays))
	for i := range s.Relays {
		r := &s.Relays[i]
		all[i] = wire.RelayStatus{
			Name: r.Name, Node: r.Node, State: string(r.State), Weight: r.Weight, Share: r.Share, Connections: r.Connections,
			Accepted: r.Accepted, Errors: r.Errors, P50Millis: millis(r.P50), P99Millis: millis(r.P99), LastError: r.LastError,
		}
	}
	return all
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
