package server

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/ctxlock"
	"fanfare.dev/fanfare/internal/pipeline/match/topicstate"
	"fanfare.dev/fanfare/internal/registry"
	"fanfare.dev/fanfare/internal/store/control"
	"fanfare.dev/fanfare/internal/store/deliveries"
	"fanfare.dev/fanfare/internal/store/retry"
)

// carrying takes the states of keys from their days, which will be removed, to the
// control tables, and all of them to memory at the start. A state is kept there
// before it goes here, so that a crash leaves it in one place at least; where it is
// in both, the later one counts.
type carrying struct {
	states  *topicstate.States
	days    *deliveries.Store
	control *control.Store
	series  func() map[uint32]uint32 // of the keys of all topics that have some, by the topics' numbers
	copying ctxlock.Lock             // of who reads the control tables and the days one after the other
	logger  *slog.Logger

	known map[uint32]uint32 // series whose states may be in the control tables; for run alone
}

const (
	carryEvery = time.Hour
	// carryAtOnce is how many states are carried in one transaction, and
	// carryBytes after how many bytes of data it takes no further one.
	carryAtOnce = 1000
	carryBytes  = 16 << 20
)

// load reads all states.
func (c *carrying) load(ctx context.Context, days []fanfare.Day) error {
	return c.loadFor(ctx, days, c.series())
}

// loadFor is load with the series that topics have. States of others are forgotten.
func (c *carrying) loadFor(ctx context.Context, days []fanfare.Day, current map[uint32]uint32) error {
	c.known = current
	over := map[fanfare.KeyRef]bool{}
	take := func(l *fanfare.Last) error {
		if series, ok := current[l.Of.Topic]; ok && series == l.Of.Series {
			c.states.Put(l)
		} else {
			over[fanfare.KeyRef{Topic: l.Of.Topic, Series: l.Of.Series}] = true
		}
		return nil
	}
	if err := c.control.States(ctx, take); err != nil {
		return err
	}
	for s := range over {
		if err := c.control.DropStates(ctx, s.Topic, s.Series); err != nil {
			return err
		}
	}
	for _, day := range days {
		if err := c.days.States(ctx, day, take); err != nil {
			return err
		}
	}
	return nil
}

// seriesOf are those of the topics of a registry.
func seriesOf(people *registry.Registry) func() map[uint32]uint32 {
	return func() map[uint32]uint32 {
		all := map[uint32]uint32{}
		for _, service := range people.Services() {
			for _, topic := range people.Topics(service) {
				if topic.Key != "" {
					all[topic.Number] = topic.Series
				}
			}
		}
		return all
	}
}

// run carries now and then until ctx ends.
func (c *carrying) run(ctx context.Context) {
	ticker := time.NewTicker(carryEvery)
	defer ticker.Stop()
	for {
		if err := c.carry(ctx); err != nil && ctx.Err() == nil {
			c.logger.Log(ctx, retry.LogLevel(err), "states of days that are over could not be carried, it is tried again", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// carry carries the states of all days but those whose events may still come, and
// forgets what topics have known that are gone.
func (c *carrying) carry(ctx context.Context) error {
	if err := c.forget(ctx); err != nil {
		return err
	}
	days, err := c.days.Days(ctx)
	if err != nil {
		return err
	}
	for _, day := range days[min(recentDays, len(days)):] {
		if err := c.day(ctx, day); err != nil {
			return err
		}
	}
	return nil
}

// forget drops what topics have known that are gone, or have another key since.
func (c *carrying) forget(ctx context.Context) error {
	c.states.Retain(c.series)
	now := c.series()
	for topic, series := range c.known {
		if now[topic] != series {
			if err := c.control.DropStates(ctx, topic, series); err != nil {
				return err
			}
		}
	}
	c.known = now
	return nil
}

// day carries all states of a day, unless a copy is being made of everything: it
// would have them in neither place. Those of a series that is gone, and those that
// the topic had no room for, end with the day.
func (c *carrying) day(ctx context.Context, of fanfare.Day) error {
	if !c.copying.TryLock() {
		return &fanfare.Error{Code: fanfare.Unavailable, Message: "a backup or a move is under way"}
	}
	defer c.copying.Unlock()
	for {
		var some []fanfare.Last
		bytes := 0
		err := c.days.SomeStates(ctx, of, carryAtOnce, func(l *fanfare.Last) error {
			if bytes < carryBytes {
				some, bytes = append(some, *l), bytes+len(l.Data)
			}
			return nil
		})
		if err != nil || len(some) == 0 {
			return err
		}
		current := c.series()
		over := func(l fanfare.Last) bool { return current[l.Of.Topic] != l.Of.Series || c.refused(l.Of) }
		if kept := slices.DeleteFunc(slices.Clone(some), over); len(kept) > 0 {
			if err := c.control.KeepStates(ctx, kept); err != nil {
				return err
			}
		}
		if err := c.days.DropStates(ctx, of, some); err != nil {
			return err
		}
	}
}

// refused reports whether a key has no state because its topic is full: what is
// carried would grow without end where each event has a key of its own.
func (c *carrying) refused(k fanfare.KeyRef) bool {
	_, known := c.states.Get(k)
	return !known && c.states.Size(k.Topic, k.Series).Full > 0
}
