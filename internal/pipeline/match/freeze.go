package match

import (
	"context"
	"maps"
	"slices"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/failpoint"
	"fanfare.dev/fanfare/internal/pipeline/plan"
	"fanfare.dev/fanfare/internal/store/retry"
)

// freeze commits the results of a round, publishes their batches and acknowledges the groups.
func (m *Matcher) freeze(ctx context.Context, r *round) error {
	if len(r.pieces) == 0 && len(r.results) == 0 {
		return nil
	}
	var cutter plan.Batcher
	err := m.withStates(ctx, r, func() error {
		days := byDay(r.results)
		for _, day := range slices.Sorted(maps.Keys(days)) { // the state of a day depends on the days before
			if err := m.freezeDay(ctx, r, day, days[day], &cutter); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	failpoint.Hit("before-publish")
	if err := m.Bus.Publish(ctx, cutter.Batches()); err != nil {
		return err
	}
	failpoint.Hit("after-publish")
	for _, p := range r.pieces {
		m.frozen(p)
	}
	failpoint.Hit("after-event-ack")
	return nil
}

func byDay(results []*fanfare.MatchResult) map[fanfare.Day][]*fanfare.MatchResult {
	days := map[fanfare.Day][]*fanfare.MatchResult{}
	for _, f := range results {
		day := fanfare.DayOf(f.Posted.ReceivedAt)
		days[day] = append(days[day], f)
	}
	return days
}

// freezeDay commits the results of one day and cuts their manifests into batches. An event
// that an earlier run has frozen keeps the manifests of that run.
func (m *Matcher) freezeDay(ctx context.Context, r *round, day fanfare.Day, results []*fanfare.MatchResult, cutter *plan.Batcher) error {
	failpoint.Hit("before-manifest")
	var fresh []bool
	warned := false
	err := retry.WhileAway(ctx, func() (err error) {
		fresh, err = m.Store.Freeze(ctx, results, m.Clock.Now())
		if retry.IsFull(err) && !warned { // other errors that are retried here are reported elsewhere
			warned = true
			m.Logger.Error("cannot freeze the recipients of events; retrying", "error", err)
		}
		return err
	})
	if err != nil {
		markUncertain(r, day, results)
		return err
	}
	failpoint.Hit("after-manifest")
	m.putStates(results, fresh)
	if err := retry.WhileAway(ctx, func() error { return m.Digests.Committed(ctx, results, fresh) }); err != nil {
		return err
	}
	if err := m.hold(ctx, day, results, fresh); err != nil {
		return err
	}
	for i, f := range results {
		if fresh[i] && f.Messages > 0 {
			m.Recorder.Begin(f.Posted.Ref(), f.Messages, fanfare.Progress{})
		}
	}
	for i, f := range results {
		manifests := f.Manifests
		if !fresh[i] {
			err := retry.WhileAway(ctx, func() (err error) {
				manifests, err = m.Store.Manifests(ctx, f.Posted.Ref())
				return err
			})
			if err != nil {
				return err
			}
		}
		for j := range manifests {
			cutter.Add(day, f.Posted.Lane, &manifests[j])
		}
	}
	return nil
}

// hold ensures that results that need approval wait for it, before their batches are published.
// For an event that was frozen before, the store knows whether it still waits: it
// may have been approved since.
func (m *Matcher) hold(ctx context.Context, day fanfare.Day, results []*fanfare.MatchResult, fresh []bool) error {
	var held []*fanfare.MatchResult
	repeated := map[fanfare.EventRef]*fanfare.MatchResult{}
	for i, f := range results {
		switch {
		case !fresh[i]:
			repeated[f.Posted.Ref()] = f
		case f.Hold != "":
			held = append(held, f)
		}
	}
	if len(repeated) > 0 {
		err := retry.WhileAway(ctx, func() error {
			return m.Store.Controls(ctx, day, func(c fanfare.Control, _ time.Time) {
				if f := repeated[c.Event]; f != nil && c.Name == fanfare.ControlHold {
					f.Hold = c.Value
					held = append(held, f)
					delete(repeated, c.Event)
				}
			})
		})
		if err != nil {
			return err
		}
	}
	if len(held) > 0 {
		m.Held(held)
	}
	return nil
}
