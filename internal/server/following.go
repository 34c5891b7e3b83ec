package server

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

// keyOf returns the key of an event, where its topic has one and the event too.
func keyOf(index *condition.Index, topic *catalog.Topic, data json.RawMessage) (fanfare.KeyRef, bool, error) {
	if topic.Key == "" {
		return fanfare.KeyRef{}, false, nil
	}
	key, ok, err := index.KeyOf(condition.Key{Service: topic.Service, Topic: topic.Name}, data)
	return fanfare.KeyRef{Topic: topic.Number, Series: topic.Series, Key: key}, ok, err
}

// before finds the event that came before one of the same key. One that comes late
// has none, and becomes nobody's state: what lay between was crossed by another.
func (m *matching) before(r *round, topic *catalog.Topic, f *fanfare.MatchResult) (was json.RawMessage, err error) {
	f.Posted.After = ""
	key, ok, err := keyOf(m.index, topic, f.Posted.Event.Data)
	if err != nil || !ok {
		return nil, err
	}
	before, known := r.states.Last(key)
	switch {
	case !known:
		f.Key = &key
	case before.Event.Seq < f.Posted.Seq:
		f.Key, f.Posted.After, was = &key, before.Event.String(), before.Data
	}
	return was, nil
}

// last is the state that an event becomes.
func last(f *fanfare.MatchResult) *fanfare.Last {
	return &fanfare.Last{Of: *f.Key, Event: f.Posted.Ref(), At: f.Posted.ReceivedAt, Data: f.Posted.Event.Data}
}

// settle runs keep, which freezes the round, on states that nobody else changes
// meanwhile. The events of keys that others have moved since are matched again.
func (m *matching) settle(ctx context.Context, r *round, keep func() error) error {
	return r.states.Keep(
		func(doubts []topicstate.Doubt) error { return m.readBack(ctx, doubts) },
		func(moved []fanfare.KeyRef) error { return m.matchAgain(ctx, r, moved) },
		keep)
}

// matchAgain matches the events of some keys once more, in their order.
func (m *matching) matchAgain(ctx context.Context, r *round, keys []fanfare.KeyRef) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("matching panicked: %v", p)
		}
	}()
	for _, f := range r.frozen {
		if f.Key == nil || !slices.Contains(keys, *f.Key) {
			continue
		}
		again, err := m.match(ctx, r, f.Posted)
		if err != nil {
			return err
		}
		again.KeptAt = f.KeptAt
		*f = *again
	}
	return nil
}

// advance puts the states of events that are frozen now. Those of events that were
// frozen before are there.
func (m *matching) advance(frozen []*fanfare.MatchResult, fresh []bool) {
	for i, f := range frozen {
		if fresh[i] && f.Key != nil {
			m.states.Put(last(f))
		}
	}
}

// doubt notes the keys of events of which nobody knows whether they are frozen.
func (m *matching) doubt(r *round, of fanfare.Day, frozen []*fanfare.MatchResult) {
	var keys []fanfare.KeyRef
	for _, f := range frozen {
		if f.Key != nil {
			keys = append(keys, *f.Key)
		}
	}
	if len(keys) > 0 {
		r.states.Doubt(of, keys)
	}
}

// readBack learns what is kept of keys that are in doubt.
func (m *matching) readBack(ctx context.Context, doubts []topicstate.Doubt) error {
	for _, d := range doubts {
		err := retry.WhileAway(ctx, func() error {
			return m.store.StatesOf(ctx, d.Day, d.Keys, func(l *fanfare.Last) error { m.states.Put(l); return nil })
		})
		if err != nil && fanfare.CodeOf(err) != fanfare.NotFound { // then not even the day was kept
			return err
		}
	}
	return nil
}
