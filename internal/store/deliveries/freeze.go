package deliveries

import (
	"context"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
)

// Freeze commits events with their manifests, the states of their keys, their waiting recipients,
// and whether they wait for approval. An event that exists already is not changed, and neither is
// a digest run for which another event exists. Freeze reports for each event whether it was new.
// All events must have been received on the same day.
func (s *Store) Freeze(ctx context.Context, events []*fanfare.MatchResult, now time.Time) ([]bool, error) {
	posted, members, err := encode(events)
	if err != nil {
		return nil, err
	}
	fresh := make([]bool, len(events))
	err = s.begin(ctx, fanfare.DayOf(events[0].Posted.ReceivedAt), func(in store.Session) error {
		clear(fresh)
		var order []int64
		var added []*fanfare.MatchResult
		var manifests []encoded
		todo, err := beginRuns(in, events)
		if err != nil {
			return err
		}
		err = in.EachOf("freeze", len(todo), func(i int) []any {
			e := events[todo[i]]
			return []any{int64(e.Posted.Seq), e.Posted.Service, e.Posted.Topic, posted[todo[i]],
				e.Matched, e.Messages, e.KeptAt.UnixNano(), e.MatchedAt.UnixNano(), now.UnixNano()}
		}, func(i int, r store.Row) error {
			i = todo[i]
			fresh[i] = true
			order, added = append(order, r.Int64(0)), append(added, events[i])
			manifests = append(manifests, members[i]...)
			return nil
		})
		if err != nil || len(order) == 0 {
			return err
		}
		if err := insertManifests(in, manifests); err != nil {
			return err
		}
		if err := advance(in, added); err != nil {
			return err
		}
		if err := gather(in, added); err != nil {
			return err
		}
		if err := insertItems(in, added); err != nil {
			return err
		}
		if err := setControls(in, holds(added), now); err != nil {
			return err
		}
		// Last, since nobody else freezes from here to the commit.
		return insertNumbered(in, "frozen_next", "frozen_insert", len(order), func(i int, to store.Values) { to.Int64(order[i]) })
	})
	return fresh, err
}

// An encoded manifest is a manifest in its stored form.
type encoded struct {
	id   fanfare.ManifestID
	blob []byte
}

// encode encodes events and their manifests. Manifests for a million people take a while, during which other transactions
// may write.
func encode(events []*fanfare.MatchResult) (posted [][]byte, manifests [][]encoded, err error) {
	posted, manifests = make([][]byte, len(events)), make([][]encoded, len(events))
	for i, event := range events {
		if posted[i], err = encodePosted(event.Posted); err != nil {
			return nil, nil, err
		}
		manifests[i] = make([]encoded, len(event.Manifests))
		for j := range event.Manifests {
			m := &event.Manifests[j]
			blob, err := encodeManifest(m)
			if err != nil {
				return nil, nil, err
			}
			manifests[i][j] = encoded{m.ID, blob}
		}
	}
	return posted, manifests, nil
}

func insertManifests(in store.Session, manifests []encoded) error {
	return in.Insert("manifest_insert", len(manifests), func(i int, to store.Values) {
		to.Int64(int64(manifests[i].id))
		to.Bytes(manifests[i].blob)
	})
}

// insertNumbered inserts n rows with the ids after the last assigned one. It locks the counter until the commit, so that
// ids become visible in order. An id is never reused.
func insertNumbered(in store.Session, next, insert string, n int, bind func(i int, to store.Values)) error {
	if n == 0 {
		return nil
	}
	last, err := number(in, next, int64(n))
	if err != nil {
		return err
	}
	return in.Insert(insert, n, func(i int, to store.Values) {
		to.Int64(last - int64(n-1-i))
		bind(i, to)
	})
}
