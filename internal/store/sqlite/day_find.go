package sqlite

import (
	"context"
	"encoding/json"
	"slices"

	"zombiezen.com/go/sqlite"

	"fanfare.dev/fanfare"
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

// FindEvent returns the newest event of a day whose CloudEvent has an id; 0 if
// there is none.
func (s *Deliveries) FindEvent(ctx context.Context, of fanfare.Day, service, id string) (fanfare.EventSeq, error) {
	found, err := s.lookUp(ctx, of, historyEventIDs, textKey(service, id), func(p *indexed) bool { return p.Service == service && p.Event.ID == id })
	return append(found, 0)[0], err
}

// FindReference returns the direct sends of a day that have a reference, newest
// first.
func (s *Deliveries) FindReference(ctx context.Context, of fanfare.Day, service, reference string) ([]fanfare.EventSeq, error) {
	return s.lookUp(ctx, of, historyReferences, textKey(service, reference), func(p *indexed) bool {
		return p.Service == service && p.Direct.Reference == reference
	})
}

// lookUp returns the events of a day that have a key of a kind, and are what is
// sought, newest first.
func (s *Deliveries) lookUp(ctx context.Context, of fanfare.Day, kind int64, key uint64, is func(*indexed) bool) ([]fanfare.EventSeq, error) {
	d, err := s.day(ctx, of, false)
	if err != nil {
		return nil, err
	}
	var found []fanfare.EventSeq
	err = d.snapshot(ctx, func(conn *sqlite.Conn) error {
		position, err := historyPosition(conn)
		if err != nil {
			return err
		}
		candidates, err := findInRuns(conn, kind, key)
		if err != nil {
			return err
		}
		add := func(seq fanfare.EventSeq, posted []byte) {
			var p indexed
			if json.Unmarshal(posted, &p) == nil && is(&p) {
				found = append(found, seq)
			}
		}
		for _, seq := range candidates {
			if err := dayQueries.each(conn, "posted", func(stmt *sqlite.Stmt) error {
				add(seq, bytesAt(stmt, 0))
				return nil
			}, int64(seq)); err != nil {
				return err
			}
		}
		return dayQueries.each(conn, "broadcasts_behind", func(stmt *sqlite.Stmt) error {
			add(fanfare.EventSeq(stmt.ColumnInt64(1)), bytesAt(stmt, 2))
			return nil
		}, position, int64(-1))
	})
	slices.Sort(found)
	slices.Reverse(found)
	return slices.Compact(found), err
}
