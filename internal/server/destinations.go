package server

import (
	"context"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/pipeline/deliver"
	"fanfare.dev/fanfare/internal/pipeline/due"
	"fanfare.dev/fanfare/internal/registry"
	"fanfare.dev/fanfare/internal/store/deliveries"
)

// destinations are whom channels send to: what their answers have shown is in the
// outlets, what was put off for them in the store.
type destinations struct {
	registry *registry.Registry
	outlets  *outlets
	store    *deliveries.Store
	due      *due.Scheduler
}

// Destinations lists those of a channel that are not well, and those for whom
// messages wait, by name.
func (d *destinations) Destinations(ctx context.Context, service, channel string) ([]wire.Destination, error) {
	c, err := d.channel(service, channel)
	if err != nil {
		return nil, err
	}
	of := map[string]*wire.Destination{}
	named := func(name string) *wire.Destination {
		if of[name] == nil {
			of[name] = &wire.Destination{Name: name, State: destinationWaiting}
		}
		return of[name]
	}
	// What was put off comes before why: asked for after it, the outlet knows of
	// whatever had it put off.
	err = d.eachDay(ctx, func(day fanfare.Day) error {
		waits, err := d.store.DestinationWaits(ctx, day, c.Number)
		for _, w := range waits {
			one := named(w.Destination)
			one.Postponed += w.Messages
			if one.PostponedTo.IsZero() || w.Until.Before(one.PostponedTo) {
				one.PostponedTo = w.Until
			}
		}
		return err
	})
	if out := d.outlets.of(c.Number); out != nil {
		for _, s := range out.Destinations() {
			one := named(s.Name)
			one.State, one.Until, one.Failures, one.LastReply, one.LastReplyAt = string(s.State), s.Until, s.Failures, s.Text, s.TextAt
			one.RatePerSecond, one.AtOnce, one.Underway, one.Aside = s.Rate, s.AtOnce, s.Underway, s.Aside
		}
	}
	all := make([]wire.Destination, 0, len(of))
	for _, one := range of {
		all = append(all, *one)
	}
	slices.SortFunc(all, func(a, b wire.Destination) int { return strings.Compare(a.Name, b.Name) })
	return all, err
}

// destinationWaiting is the state of one that is well as far as is known.
const destinationWaiting = "waiting"

// ResumeDestination has leave what waits for one: first what is put off from now on
// is for other reasons, then what was is due.
func (d *destinations) ResumeDestination(ctx context.Context, service, channel, name string) error {
	c, err := d.channel(service, channel)
	if err != nil {
		return err
	}
	known := false
	if out := d.outlets.of(c.Number); out != nil {
		if known, err = out.ResumeDestination(ctx, name); err != nil {
			return err
		}
	}
	err = d.eachDay(ctx, func(day fanfare.Day) error {
		if !known { // what has to be told is whether there is anything
			waits, err := d.store.DestinationWaits(ctx, day, c.Number)
			if err != nil {
				return err
			}
			known = slices.ContainsFunc(waits, func(w fanfare.Waiting) bool { return w.Destination == name })
		}
		if err := d.store.HastenDestination(ctx, day, c.Number, name); err != nil {
			return err
		}
		return d.due.Load(ctx, day)
	})
	if err == nil && !known {
		err = &fanfare.Error{Code: fanfare.NotFound, Message: "nothing waits for " + name + ", and nothing is known of it",
			Hint: "`fanfare destinations list " + service + "/" + channel + "` shows those that are not well"}
	}
	return err
}

func (d *destinations) channel(service, name string) (*registry.Channel, error) {
	c, ok := d.registry.ChannelNamed(service, name)
	if !ok {
		return nil, &fanfare.Error{Code: fanfare.NotFound, Message: "service " + service + " has no channel " + name, Hint: "`fanfare channel list` shows its channels"}
	}
	return c, nil
}

// eachDay visits the days that have something; one may go meanwhile.
func (d *destinations) eachDay(ctx context.Context, visit func(fanfare.Day) error) error {
	days, err := d.store.Days(ctx)
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

// destinationMetrics count the destinations that are not well, by channel and
// state: of no destination has the metrics a name.
type destinationMetrics struct{ reports *reports }

var destinationsUnwell = prometheus.NewDesc("fanfare_destinations_unwell", "Destinations that are not well, by the worst that is the matter with each: suspended, slow or limited.",
	[]string{"service", "channel", "state"}, nil)

// Describe names the metric.
func (destinationMetrics) Describe(to chan<- *prometheus.Desc) { to <- destinationsUnwell }

// Collect asks each outlet.
func (m destinationMetrics) Collect(to chan<- prometheus.Metric) {
	for _, c := range m.reports.registry.Channels() {
		out := m.reports.outlets.of(c.Number)
		if out == nil {
			continue
		}
		counts := out.Unwell()
		for _, state := range deliver.DestinationStates {
			to <- prometheus.MustNewConstMetric(destinationsUnwell, prometheus.GaugeValue, float64(counts[state]), c.Service, c.Name, string(state))
		}
	}
}
