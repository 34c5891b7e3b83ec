package maintain

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/match/topicstate"
	"fanfare.dev/fanfare/internal/progress"
	"fanfare.dev/fanfare/internal/store/control"
	"fanfare.dev/fanfare/internal/store/deliveries"
	"fanfare.dev/fanfare/internal/store/retry"
)

const (
	archiveInterval = time.Hour
	// archiveStates is the number of states that are archived in one transaction, and
	// archiveBytes the size of their data after which no further state is added.
	archiveStates = 1000
	archiveBytes  = 16 << 20
)

// A Lock is held by any caller that copies the control tables and the days one after the other.
type Lock interface {
	TryLock() bool
	Unlock()
}

// StateArchive moves topic states from days that will be removed to the control tables, and loads all states at the start. It writes a state
// to the control tables before it removes it from its day, so that a crash leaves it in at least one place. If both places have a state of a
// key, the later one is used.
type StateArchive struct {
	states  *topicstate.States
	days    *deliveries.Store
	control *control.Store
	series  func() map[uint32]uint32
	copying Lock
	logger  *slog.Logger

	archived map[uint32]uint32 // series whose states may be in the control tables; used by Run alone
}

// NewStateArchive returns an archive for states. series returns the current series of each topic that has a key, by topic number.
func NewStateArchive(states *topicstate.States, days *deliveries.Store, control *control.Store, series func() map[uint32]uint32, copying Lock, logger *slog.Logger) *StateArchive {
	return &StateArchive{states: states, days: days, control: control, series: series, copying: copying, logger: logger}
}

// Load reads the states of the control tables and of some days, and counts them. It removes states of topics that were deleted or have another
// key.
func (a *StateArchive) Load(ctx context.Context, days []fanfare.Day, count *progress.Phase) error {
	current := a.series()
	a.archived = current
	stale := map[fanfare.KeyRef]bool{}
	take := func(l *fanfare.Last) error {
		count.Add(1)
		if series, ok := current[l.Of.Topic]; ok && series == l.Of.Series {
			a.states.Put(l)
		} else {
			stale[fanfare.KeyRef{Topic: l.Of.Topic, Series: l.Of.Series}] = true
		}
		return nil
	}
	if err := a.control.States(ctx, take); err != nil {
		return err
	}
	for s := range stale {
		if err := a.control.DropStates(ctx, s.Topic, s.Series); err != nil {
			return err
		}
	}
	for _, day := range days {
		if err := a.days.States(ctx, day, take); err != nil {
			return err
		}
	}
	return nil
}

// Run archives the states of old days until ctx ends.
func (a *StateArchive) Run(ctx context.Context) {
	ticker := time.NewTicker(archiveInterval)
	defer ticker.Stop()
	for {
		if err := a.archiveOld(ctx); err != nil && ctx.Err() == nil {
			a.logger.Log(ctx, retry.LogLevel(err), "topic states of old days could not be archived; retrying", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// archiveOld archives the states of all days except recent ones, and drops the states of deleted topics.
func (a *StateArchive) archiveOld(ctx context.Context) error {
	if err := a.dropStale(ctx); err != nil {
		return err
	}
	days, err := a.days.Days(ctx)
	if err != nil {
		return err
	}
	for _, day := range days[min(recentDays, len(days)):] {
		if err := a.Archive(ctx, day); err != nil {
			return err
		}
	}
	return nil
}

// dropStale drops the states of topics that were deleted or have another key.
func (a *StateArchive) dropStale(ctx context.Context) error {
	a.states.Retain(a.series)
	now := a.series()
	for topic, series := range a.archived {
		if now[topic] != series {
			if err := a.control.DropStates(ctx, topic, series); err != nil {
				return err
			}
		}
	}
	a.archived = now
	return nil
}

// Archive moves all states of a day to the control tables. It returns an error while a backup or a move copies both, because the copy would
// contain a state in neither place. States of a deleted series and states of a full topic are removed with the day.
func (a *StateArchive) Archive(ctx context.Context, day fanfare.Day) error {
	if !a.copying.TryLock() {
		return &fanfare.Error{Code: fanfare.Unavailable, Message: "a backup or a database move is in progress"}
	}
	defer a.copying.Unlock()
	for {
		var batch []fanfare.Last
		bytes := 0
		err := a.days.SomeStates(ctx, day, archiveStates, func(l *fanfare.Last) error {
			if bytes < archiveBytes {
				batch, bytes = append(batch, *l), bytes+len(l.Data)
			}
			return nil
		})
		if err != nil || len(batch) == 0 {
			return err
		}
		current := a.series()
		stale := func(l fanfare.Last) bool { return current[l.Of.Topic] != l.Of.Series || a.refused(l.Of) }
		if kept := slices.DeleteFunc(slices.Clone(batch), stale); len(kept) > 0 {
			if err := a.control.KeepStates(ctx, kept); err != nil {
				return err
			}
		}
		if err := a.days.DropStates(ctx, day, batch); err != nil {
			return err
		}
	}
}

// refused reports whether a key has no state because its topic is full. If such states were archived, the table would grow without limit when
// each event has its own key.
func (a *StateArchive) refused(k fanfare.KeyRef) bool {
	_, known := a.states.Get(k)
	return !known && a.states.Size(k.Topic, k.Series).Full > 0
}
