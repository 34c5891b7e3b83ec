package match

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/condition"
	"fanfare.dev/fanfare/internal/pipeline/match/topicstate"
	"fanfare.dev/fanfare/internal/store/retry"
)

// KeyOf returns the key of an event with some data; false if its topic or the data has no key.
func KeyOf(index *condition.Index, topic *catalog.Topic, data json.RawMessage) (fanfare.KeyRef, bool, error) {
	if topic.Key == "" {
		return fanfare.KeyRef{}, false, nil
	}
	key, ok, err := index.KeyOf(condition.Key{Service: topic.Service, Topic: topic.Name}, data)
	return fanfare.KeyRef{Topic: topic.Number, Series: topic.Series, Key: key}, ok, err
}

// previous returns the data of the last event with the same key. A late event has none, and
// does not become the state of its key: a later event has already crossed the levels in between.
func (m *Matcher) previous(r *round, topic *catalog.Topic, f *fanfare.MatchResult) (was json.RawMessage, err error) {
	f.Posted.After = ""
	key, ok, err := KeyOf(m.Index, topic, f.Posted.Event.Data)
	if err != nil || !ok {
		return nil, err
	}
	last, known := r.states.Last(key)
	switch {
	case !known:
		f.Key = &key
	case last.Event.Seq < f.Posted.Seq:
		f.Key, f.Posted.After, was = &key, last.Event.String(), last.Data
	}
	return was, nil
}

// stateOf returns the state that an event becomes.
func stateOf(f *fanfare.MatchResult) *fanfare.Last {
	return &fanfare.Last{Of: *f.Key, Event: f.Posted.Ref(), At: f.Posted.ReceivedAt, Data: f.Posted.Event.Data}
}

// withStates runs commit, which freezes the round, while no other round changes its states.
// Events of keys that another round has changed since are matched again first.
func (m *Matcher) withStates(ctx context.Context, r *round, commit func() error) error {
	return r.states.Commit(
		func(uncertain []topicstate.Uncertain) error { return m.readBack(ctx, uncertain) },
		func(changed []fanfare.KeyRef) error { return m.matchAgain(ctx, r, changed) },
		commit)
}

// matchAgain matches the events of some keys once more, in their order.
func (m *Matcher) matchAgain(ctx context.Context, r *round, keys []fanfare.KeyRef) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("matching panicked: %v", p)
		}
	}()
	for _, f := range r.results {
		if f.Key == nil || !slices.Contains(keys, *f.Key) {
			continue
		}
		again, err := m.match(ctx, r, f.Posted, nil)
		if err != nil {
			return err
		}
		again.KeptAt = f.KeptAt
		*f = *again
	}
	return nil
}

// putStates puts the states of events that are frozen now. The states of events that were
// frozen before are there already.
func (m *Matcher) putStates(results []*fanfare.MatchResult, fresh []bool) {
	for i, f := range results {
		if fresh[i] && f.Key != nil {
			m.States.Put(stateOf(f))
		}
	}
}

// markUncertain marks the keys of events whose commit failed: they may be frozen or not.
func markUncertain(r *round, day fanfare.Day, results []*fanfare.MatchResult) {
	var keys []fanfare.KeyRef
	for _, f := range results {
		if f.Key != nil {
			keys = append(keys, *f.Key)
		}
	}
	if len(keys) > 0 {
		r.states.MarkUncertain(day, keys)
	}
}

// readBack reads the states of uncertain keys from the store.
func (m *Matcher) readBack(ctx context.Context, uncertain []topicstate.Uncertain) error {
	for _, d := range uncertain {
		err := retry.WhileAway(ctx, func() error {
			return m.Store.StatesOf(ctx, d.Day, d.Keys, func(l *fanfare.Last) error { m.States.Put(l); return nil })
		})
		if err != nil && fanfare.CodeOf(err) != fanfare.NotFound { // not found: the day was not created either
			return err
		}
	}
	return nil
}
