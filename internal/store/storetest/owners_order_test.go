package storetest_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
	"fanfare.dev/fanfare/internal/store/deliveries"
	"fanfare.dev/fanfare/internal/store/storetest"
)

func TestIdsThatTwoOwnersGiveAreUniqueAndNotGivenAgainAfterARestart(t *testing.T) {
	onEach(t, func(t *testing.T, place string) {
		day := fanfare.DayOf(noon)
		given := map[string]bool{}
		note := func(id string) {
			t.Helper()
			if given[id] {
				t.Errorf("id %s is given again", id)
			}
			given[id] = true
		}
		for range 3 {
			db := storetest.OpenAt(t, place)
			a, b := deliveries.New(db), deliveries.New(db)
			keeping := func(s *deliveries.Store) func() error {
				return func() error {
					for i := range 20 {
						if err := s.Hold(context.Background(), &fanfare.Batch{Day: day, Channel: uint16(i)}); err != nil {
							return err
						}
						if err := s.Park(context.Background(), day, 1, fanfare.Parked{Kind: "event", At: noon}, []byte{byte(i)}); err != nil {
							return err
						}
					}
					return nil
				}
			}
			atOnce(t, keeping(a), keeping(b))
			batches, ids, err := a.Held(t.Context(), day)
			if err != nil || len(batches) != 40 || len(ids) != 40 {
				t.Fatalf("%d batches under %d ids are held (%v)", len(batches), len(ids), err)
			}
			for _, id := range ids {
				note(fmt.Sprint("held ", id))
			}
			parked, payloads, err := b.Parked(t.Context(), day)
			if err != nil || len(parked) != 40 || len(payloads) != 40 {
				t.Fatalf("%d pieces with %d payloads are parked (%v)", len(parked), len(payloads), err)
			}
			for _, p := range parked {
				note(p.ID)
			}
			atOnce(t, func() error { return a.RemoveHeld(context.Background(), day, ids) }, func() error { return b.RemoveHeld(context.Background(), day, ids) })
			for _, p := range parked {
				if err := a.Unpark(t.Context(), p.ID); err != nil {
					t.Error(err)
				}
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// A reader in the order of freezing continues after the last event that it saw, while several
// writers freeze events: it skips none and sees none twice.
func TestReadingInTheOrderOfFreezingSeesEachEventOnce(t *testing.T) {
	const writers, each = 4, 60
	onEach(t, func(t *testing.T, place string) {
		db := storetest.OpenAt(t, place)
		s := deliveries.New(db)
		freeze(t, s, frozenEvent(1, noon, 1))
		day := partOf(t, db, fanfare.DayOf(noon))
		var work sync.WaitGroup
		for writer := range uint64(writers) {
			work.Go(func() {
				for i := range uint64(each) {
					stream := 2 + writer*1000 + i*3
					events := []*fanfare.MatchResult{frozenEvent(stream, noon, int(i%3)), frozenEvent(stream+1, noon, 1)}
					if _, err := s.Freeze(context.Background(), events, noon); err != nil {
						t.Error(err)
					}
				}
			})
		}
		done := make(chan struct{})
		go func() { work.Wait(); close(done) }()
		seen := map[int64]bool{}
		position := int64(0)
		for ended := false; ; {
			before := position
			err := day.Read(t.Context(), func(in store.Session) error {
				return in.Each("broadcasts_behind", func(r store.Row) error {
					if at := r.Int64(0); at != position+1 {
						return fmt.Errorf("after position %d comes %d", position, at)
					}
					position++
					seq := r.Int64(1)
					if seen[seq] {
						return fmt.Errorf("event %d comes twice", seq)
					}
					seen[seq] = true
					return nil
				}, position, int64(7))
			})
			if err != nil {
				t.Fatal(err)
			}
			if ended && position == before {
				break
			}
			select {
			case <-done:
				ended = true
			default:
			}
		}
		if len(seen) != 1+2*writers*each {
			t.Errorf("%d events were seen, want %d", len(seen), 1+2*writers*each)
		}
	})
}

// The history is complete when it was indexed, and merged, while events were
// frozen and a person was asked for.
func TestTheHistoryThatIsBuiltWhileEventsAreFrozenIsComplete(t *testing.T) {
	const writers, each = 3, 60
	onEachTwoOwners(t, func(t *testing.T, a, b *deliveries.Store) {
		freeze(t, a, frozenEvent(1, noon, 1))
		day, person := fanfare.DayOf(noon), fanfare.NewRowID(0, 0)
		var work sync.WaitGroup
		for writer := range uint64(writers) {
			work.Go(func() {
				for i := range uint64(each) {
					if _, err := a.Freeze(context.Background(), []*fanfare.MatchResult{frozenEvent(2+writer*1000+i, noon, 2, 1)}, noon); err != nil {
						t.Error(err)
					}
				}
			})
		}
		done := make(chan struct{})
		go func() { work.Wait(); close(done) }()
		least := 0
		for ended := false; !ended; {
			select {
			case <-done:
				ended = true
			default:
			}
			_, indexErr := b.IndexHistory(t.Context(), day)
			_, mergeErr := b.MergeHistory(t.Context(), day)
			found, err := b.History(t.Context(), day, person)
			if err := errors.Join(indexErr, mergeErr, err); err != nil {
				t.Fatal(err)
			}
			if len(found) < least {
				t.Errorf("a person had %d events, and has %d", least, len(found))
			}
			least = len(found)
		}
		if found, err := a.History(t.Context(), day, person); err != nil || len(found) != 1+writers*each {
			t.Errorf("a person has %d events (%v), want %d", len(found), err, 1+writers*each)
		}
		if _, err := b.IndexHistory(t.Context(), day); err != nil {
			t.Fatal(err)
		}
		if found, err := a.History(t.Context(), day, person); err != nil || len(found) != 1+writers*each {
			t.Errorf("with all in runs a person has %d events (%v), want %d", len(found), err, 1+writers*each)
		}
	})
}
