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
				count.end()
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
	newest             fanfare.Entry // of the delivery; only what is counted
}

func (t *tally) add(r store.Row) {
	p := &t.progress
	if manifest, position := r.Int64(0), r.Int64(1); manifest != t.manifest || position != t.position {
		t.end()
		t.manifest, t.position = manifest, position
	}
	t.begun = true
	t.newest = fanfare.Entry{State: fanfare.State(r.Int64(2))}
	if t.newest.State.HasReason() {
		t.newest.Code, t.newest.Text = int(r.Int64(4)), r.Text(5)
	}
	at := timeAt(r.Int64(3))
	if p.First.IsZero() || at.Before(p.First) {
		p.First = at
	}
	if at.After(p.Last) {
		p.Last = at
	}
}

// end counts the last delivery.
func (t *tally) end() {
	if !t.begun {
		return
	}
	t.begun = false
	t.progress.Counts[t.newest.State]++
	if t.newest.State.HasReason() {
		t.progress.Reasons = t.progress.Reasons.Add(&t.newest)
	}
}
