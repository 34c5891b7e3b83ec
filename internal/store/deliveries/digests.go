package deliveries

import (
	"context"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
)

// beginRuns records which events are digest runs, each slot and time once. It returns the indexes
// of all events except runs for which an event was frozen before.
func beginRuns(in store.Session, events []*fanfare.MatchResult) ([]int, error) {
	todo := make([]int, 0, len(events))
	for i, e := range events {
		run := e.Posted.Run
		if run == nil {
			todo = append(todo, i)
			continue
		}
		begun := false
		err := in.Each("run_insert", func(store.Row) error { begun = true; return nil }, int64(run.Slot), run.Due.Unix(), int64(e.Posted.Seq))
		if err != nil {
			return nil, err
		}
		if begun {
			todo = append(todo, i)
		}
	}
	return todo, nil
}

// Items are kept so many at a time, or fewer where their events are large.
const (
	itemsAtOnce     = 256
	itemBytesAtOnce = 4 << 20
)

// insertItems stores the events that the members of runs refer to. It holds only a few of them in memory.
func insertItems(in store.Session, events []*fanfare.MatchResult) error {
	for _, e := range events {
		if e.Items == nil {
			continue
		}
		k := itemKeeper{in: in, run: e.Posted.Seq}
		if err := e.Items(k.keep); err != nil {
			return err
		}
		if err := k.flush(); err != nil {
			return err
		}
	}
	return nil
}

// An itemKeeper stores the events of one run.
type itemKeeper struct {
	in    store.Session
	run   fanfare.EventSeq
	items []keptItem
	bytes int
}

type keptItem struct {
	number uint32
	event  fanfare.EventSeq
	posted []byte
}

func (k *itemKeeper) keep(item fanfare.RunItem) error {
	posted, err := encodePosted(item.Posted)
	if err != nil {
		return err
	}
	k.items = append(k.items, keptItem{item.Number, item.Posted.Seq, posted})
	if k.bytes += len(posted); len(k.items) < itemsAtOnce && k.bytes < itemBytesAtOnce {
		return nil
	}
	return k.flush()
}

func (k *itemKeeper) flush() error {
	items := k.items
	k.items, k.bytes = k.items[:0], 0
	return k.in.Insert("items_insert", len(items), func(i int, to store.Values) {
		to.Int64(int64(k.run))
		to.Int64(int64(items[i].number))
		to.Int64(int64(items[i].event))
		to.Bytes(items[i].posted)
	})
}

// RunAt returns the event of a slot's run, or none if the run is not frozen.
func (s *Store) RunAt(ctx context.Context, slot uint16, due time.Time) (ref fanfare.EventRef, frozen bool, err error) {
	ref.Day = fanfare.DayOf(due)
	err = s.read(ctx, ref.Day, func(in store.Session) error {
		return in.Each("run", func(r store.Row) error {
			ref.Seq, frozen = fanfare.EventSeq(r.Int64(0)), true
			return nil
		}, int64(slot), due.Unix())
	})
	if fanfare.CodeOf(err) == fanfare.NotFound {
		err = nil
	}
	return ref, frozen, err
}

// LastRuns visits the slots with runs that were due on a day, with the last run of each.
func (s *Store) LastRuns(ctx context.Context, of fanfare.Day, visit func(slot uint16, due time.Time)) error {
	return s.read(ctx, of, func(in store.Session) error {
		return in.Each("runs_last", func(r store.Row) error {
			visit(uint16(r.Int64(0)), second(r.Int64(1)))
			return nil
		})
	})
}

// Items reads events that the members of a run refer to. It returns NotFound if one of the numbers does not exist.
func (s *Store) Items(ctx context.Context, run fanfare.EventRef, numbers []uint32, visit func(fanfare.RunItem) error) error {
	return s.read(ctx, run.Day, func(in store.Session) error {
		found := 0
		err := in.EachOf("item", len(numbers), func(i int) []any { return []any{int64(run.Seq), int64(numbers[i])} }, func(i int, r store.Row) error {
			found++
			return visitItem(run, r, numbers[i], visit)
		})
		if err == nil && found < len(numbers) {
			err = &fanfare.Error{Code: fanfare.NotFound, Message: "some events of the digest " + run.String() + " are no longer stored"}
		}
		return err
	})
}

func visitItem(run fanfare.EventRef, r store.Row, number uint32, visit func(fanfare.RunItem) error) error {
	posted, err := decodeItem(run, number, fanfare.EventSeq(r.Int64(0)), r.Bytes(1))
	if err != nil {
		return err
	}
	return visit(fanfare.RunItem{Number: number, Posted: posted})
}
