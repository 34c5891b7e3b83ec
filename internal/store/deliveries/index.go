package deliveries

import (
	"context"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/checksum"
	"fanfare.dev/fanfare/internal/store"
)

const (
	// runEvents and runPairs bound one run, and so the memory it takes to sort.
	runEvents = 50_000
	runPairs  = 1_000_000
	// eventsAtOnce is how many events one statement reads.
	eventsAtOnce = 256
)

// IndexHistory adds one run with the events since the last run, and returns how many events it covers; 0 means that the
// runs are complete. Only one goroutine may call it at a time.
func (s *Store) IndexHistory(ctx context.Context, of fanfare.Day) (int, error) {
	day, err := s.db.Day(ctx, of, false)
	if err != nil {
		return 0, err
	}
	var found unsorted
	err = day.Read(ctx, func(in store.Session) error {
		position, err := historyPosition(in)
		found = unsorted{position: position}
		for more := err == nil; more && err == nil; {
			more, err = found.read(in, of)
		}
		return err
	})
	if err != nil || found.events == 0 {
		return 0, err
	}
	r, err := s.newRun(ctx, of, day)
	if err != nil {
		return 0, err
	}
	for kind := range historyKinds {
		if err := r.write(ctx, day, int64(kind), cut(found.pairs[kind])); err != nil {
			s.remains.add(of, r)
			return 0, err
		}
	}
	return found.events, day.Write(ctx, func(in store.Session) error {
		if err := r.list(in); err != nil {
			return err
		}
		return in.Run("history_advance", found.position)
	})
}

// unsorted are the pairs of the events up to a position.
type unsorted struct {
	pairs    [historyKinds][]pair
	events   int
	position int64
}

// behind is an event that is not in a run yet.
type behind struct {
	position, messages int64
	seq                fanfare.EventSeq
	damaged            bool
	indexed
}

// read adds some events; false if there are no more, or no capacity for them.
func (u *unsorted) read(in store.Session, of fanfare.Day) (more bool, err error) {
	capacity := runPairs - int64(len(u.pairs[historySubscribers]))
	if capacity <= 0 || u.events >= runEvents {
		return false, nil
	}
	var next []behind
	err = in.Each("broadcasts_behind", func(r store.Row) error {
		e := behind{position: r.Int64(0), seq: fanfare.EventSeq(r.Int64(1)), messages: r.Int64(2)}
		// A damaged event has no id to be found by. Others must be found nevertheless.
		if err := decodePosted(fanfare.EventRef{Day: of, Seq: e.seq}, r.Bytes(3), &e.indexed); err != nil {
			e.damaged = true
		}
		next = append(next, e)
		return nil
	}, u.position, int64(min(eventsAtOnce, runEvents-u.events)))
	next = next[:fitting(next, capacity)]
	if err != nil || len(next) == 0 {
		return false, err
	}
	for i := range next {
		u.add(&next[i])
	}
	err = in.EachOf("manifests_of_event", len(next), func(i int) []any { return eventManifests(next[i].seq) }, func(i int, r store.Row) error {
		m, err := manifestAt(of, r)
		if checksum.IsDamaged(err) {
			return nil
		}
		for j := range m.Sections {
			for _, subscriber := range m.Sections[j].Members.Subscribers() {
				u.pairs[historySubscribers] = append(u.pairs[historySubscribers], pair{uint64(subscriber), next[i].seq})
			}
		}
		return err
	})
	return true, err
}

// fitting returns how many of some events fit. It counts an event that begins before the capacity is reached, because a
// single event may be larger than a run.
func fitting(events []behind, capacity int64) (n int) {
	for ; n < len(events) && capacity > 0; n++ {
		capacity -= events[n].messages
	}
	return n
}

// add adds the data of an event that do not come from its manifests.
func (u *unsorted) add(e *behind) {
	u.events++
	u.position = e.position
	if e.damaged {
		return
	}
	u.pairs[historyEventIDs] = append(u.pairs[historyEventIDs], pair{textKey(e.Service, e.Event.ID), e.seq})
	if reference := e.Direct.Reference; reference != "" {
		u.pairs[historyReferences] = append(u.pairs[historyReferences], pair{textKey(e.Service, reference), e.seq})
	}
	if label := e.notifyLabel(); label != "" {
		u.pairs[historyNotify] = append(u.pairs[historyNotify], pair{textKey(e.Service, label), e.seq})
	}
}
