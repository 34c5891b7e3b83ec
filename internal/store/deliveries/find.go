package deliveries

import (
	"context"
	"encoding/json"
	"math"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
)

// indexed is the part of an event by which it is found.
type indexed struct {
	Service string `json:"service"`
	Event   struct {
		ID string `json:"id"`
	} `json:"event"`
	Direct struct {
		Reference string `json:"reference"`
	} `json:"direct"`
}

// FindEvent returns the newest event of a day whose CloudEvent has the id, or 0 if there is none.
func (s *Store) FindEvent(ctx context.Context, of fanfare.Day, service, id string) (fanfare.EventSeq, error) {
	found, err := s.FindEvents(ctx, of, service, id)
	return append(found, 0)[0], err
}

// FindEvents returns the events of a day whose CloudEvent has the id, newest first. Their sources can be different.
func (s *Store) FindEvents(ctx context.Context, of fanfare.Day, service, id string) ([]fanfare.EventSeq, error) {
	return s.lookUp(ctx, of, historyEventIDs, textKey(service, id), func(p *indexed) bool { return p.Service == service && p.Event.ID == id })
}

// FindReference returns the direct sends of a day that have a reference, newest
// first.
func (s *Store) FindReference(ctx context.Context, of fanfare.Day, service, reference string) ([]fanfare.EventSeq, error) {
	return s.lookUp(ctx, of, historyReferences, textKey(service, reference), func(p *indexed) bool {
		return p.Service == service && p.Direct.Reference == reference
	})
}

// lookUp returns the events of a day with a key of a kind for which the check succeeds, newest first.
func (s *Store) lookUp(ctx context.Context, of fanfare.Day, kind int64, key uint64, is func(*indexed) bool) ([]fanfare.EventSeq, error) {
	return s.search(ctx, of, kind, key, func(in store.Session, candidates []fanfare.EventSeq, position int64) (found []fanfare.EventSeq, err error) {
		add := func(seq fanfare.EventSeq, posted []byte) {
			var p indexed
			if json.Unmarshal(posted, &p) == nil && is(&p) {
				found = append(found, seq)
			}
		}
		err = in.EachOf("posted", len(candidates), func(i int) []any { return []any{int64(candidates[i])} }, func(i int, r store.Row) error {
			add(candidates[i], r.Bytes(0))
			return nil
		})
		if err != nil {
			return nil, err
		}
		return found, in.Each("broadcasts_behind", func(r store.Row) error {
			add(fanfare.EventSeq(r.Int64(1)), r.Bytes(3))
			return nil
		}, position, int64(math.MaxInt64))
	})
}
