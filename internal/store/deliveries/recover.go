package deliveries

import (
	"context"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
)

// Highest returns the highest event sequence that any day has, so that a new
// stream can number above it.
func (s *Store) Highest(ctx context.Context) (fanfare.EventSeq, error) {
	days, err := s.Days(ctx)
	if err != nil {
		return 0, err
	}
	var highest int64
	for i, of := range days {
		if i > 1 && highest > 0 {
			break // older days have lower ones
		}
		err := s.read(ctx, of, func(in store.Session) error {
			ofDay, err := number(in, "highest")
			highest = max(highest, ofDay)
			return err
		})
		if err != nil {
			return 0, err
		}
	}
	return fanfare.EventSeq(highest), nil
}

// Open visits the broadcasts of a day that are not completed, with their
// progress so far, counted from their attempts.
func (s *Store) Open(ctx context.Context, of fanfare.Day, visit func(seq fanfare.EventSeq, messages int64, progress fanfare.Progress)) error {
	return s.read(ctx, of, func(in store.Session) error {
		type open struct {
			seq      fanfare.EventSeq
			messages int64
		}
		var opens []open
		if err := in.Each("open_broadcasts", func(r store.Row) error {
			opens = append(opens, open{fanfare.EventSeq(r.Int64(0)), r.Int64(1)})
			return nil
		}); err != nil {
			return err
		}
		counted := 0 // of opens
		var count tally
		visitTo := func(i int) {
			for ; counted < i; counted++ {
				visit(opens[counted].seq, opens[counted].messages, count.progress)
				count = tally{}
			}
		}
		err := in.EachOf("open_attempts", len(opens), func(i int) []any { return eventManifests(opens[i].seq) }, func(i int, r store.Row) error {
			visitTo(i)
			count.add(r)
			return nil
		})
		if err == nil {
			visitTo(len(opens))
		}
		return err
	})
}

// tally counts the newest entries of all deliveries of an event, whose attempts
// it is given in order. Deliveries without an entry are not in the counts.
type tally struct {
	progress           fanfare.Progress
	begun              bool
	manifest, position int64
	state              fanfare.State
}

func (t *tally) add(r store.Row) {
	p := &t.progress
	manifest, position := r.Int64(0), r.Int64(1)
	if t.begun && manifest == t.manifest && position == t.position {
		p.Counts[t.state]-- // of an earlier attempt
	}
	t.begun, t.manifest, t.position, t.state = true, manifest, position, fanfare.State(r.Int64(2))
	p.Counts[t.state]++
	at := timeAt(r.Int64(3))
	if p.First.IsZero() || at.Before(p.First) {
		p.First = at
	}
	if at.After(p.Last) {
		p.Last = at
	}
}
