package storetest_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store/deliveries"
	"fanfare.dev/fanfare/internal/store/storetest"
)

// Two owners have the same partition at once, as where one begins before it is
// known that the other has ended. Nothing is lost or doubled by it.
func onEachTwoOwners(t *testing.T, test func(t *testing.T, a, b *deliveries.Store)) {
	t.Helper()
	onEach(t, func(t *testing.T, place string) {
		db := storetest.OpenAt(t, place)
		test(t, deliveries.New(db), deliveries.New(db))
	})
}

// atOnce runs functions that begin together and waits for them.
func atOnce(t *testing.T, all ...func() error) {
	t.Helper()
	var work sync.WaitGroup
	begin := make(chan struct{})
	for _, one := range all {
		work.Go(func() {
			<-begin
			if err := one(); err != nil {
				t.Error(err)
			}
		})
	}
	close(begin)
	work.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

func TestAnEventThatTwoOwnersFreezeAtOnceIsWhollyOneOfTheirs(t *testing.T) {
	onEachTwoOwners(t, func(t *testing.T, a, b *deliveries.Store) {
		day := fanfare.DayOf(noon)
		events := 0
		for round := range uint64(20) {
			var versions [2][]*fanfare.MatchResult // what each of them has matched
			for i := range uint64(6) {
				stream := 1 + round*6 + i
				events++
				one, other := frozenEvent(stream, noon, 3, 1), frozenEvent(stream, noon, 1, 2, 5)
				one.Posted.Event.Source, other.Posted.Event.Source = "/one", "/other"
				versions[0], versions[1] = append(versions[0], one), append(versions[1], other)
			}
			if round%5 == 4 { // in another order, in which each waits for the other
				slices.Reverse(versions[1])
			}
			var fresh [2][]bool
			freezing := func(s *deliveries.Store, who int) func() error {
				return func() (err error) {
					fresh[who], err = s.Freeze(context.Background(), versions[who], noon)
					return err
				}
			}
			atOnce(t, freezing(a, 0), freezing(b, 1))
			won := map[fanfare.EventSeq]*fanfare.MatchResult{}
			for who, list := range fresh {
				for i, is := range list {
					f := versions[who][i]
					if !is {
						continue
					}
					if won[f.Posted.Seq] != nil {
						t.Errorf("both were told that event %v is theirs", f.Posted.Seq)
					}
					won[f.Posted.Seq] = f
				}
			}
			for _, f := range versions[0] {
				want := won[f.Posted.Seq]
				if want == nil {
					t.Fatalf("nobody was told that event %v is theirs", f.Posted.Seq)
				}
				got, err := b.Manifests(t.Context(), f.Posted.Ref())
				if err != nil || fmt.Sprint(got) != fmt.Sprint(want.Manifests) {
					t.Errorf("event %v of %s has the manifests %v (%v), want %v", f.Posted.Seq, want.Posted.Event.Source, got, err, want.Manifests)
				}
				posted, err := a.Posted(t.Context(), f.Posted.Ref())
				if err != nil || posted.Event.Source != want.Posted.Event.Source {
					t.Errorf("event %v is that of %s (%v), want %s", f.Posted.Seq, posted.Event.Source, err, want.Posted.Event.Source)
				}
			}
		}
		if lag, err := a.HistoryLag(t.Context(), day); err != nil || lag != int64(events) {
			t.Errorf("%d events wait for the history (%v), want %d", lag, err, events)
		}
	})
}

func TestAnOutcomeThatTwoOwnersRecordAtOnceIsTheFirstAndStays(t *testing.T) {
	onEachTwoOwners(t, func(t *testing.T, a, b *deliveries.Store) {
		const n = 600
		f := frozenEvent(5, noon, n)
		freeze(t, a, f)
		day := f.Posted.Ref().Day
		recording := func(s *deliveries.Store, state fanfare.State) func() error {
			return func() error {
				for from := 0; from < n; from += 50 {
					commit := &fanfare.Commit{}
					for i := from; i < from+50; i++ {
						e := entry(f, uint32(i), 1, state)
						e.Text = state.String()
						commit.Entries = append(commit.Entries, e)
					}
					if err := s.Commit(context.Background(), day, commit); err != nil {
						return err
					}
				}
				return nil
			}
		}
		outcomes := func() []string {
			list := make([]string, n)
			err := a.Attempts(t.Context(), day, f.Manifests[0].ID, 0, n, func(e *fanfare.Entry) error {
				if list[e.Delivery.Position] != "" {
					t.Errorf("position %d has two first attempts", e.Delivery.Position)
				}
				if e.Text != e.State.String() {
					t.Errorf("position %d is %v and says %q", e.Delivery.Position, e.State, e.Text)
				}
				list[e.Delivery.Position] = e.Text
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			return list
		}
		atOnce(t, recording(a, fanfare.Accepted), recording(b, fanfare.Failed))
		first := outcomes()
		if slices.Contains(first, "") {
			t.Errorf("some have no outcome: %v", first)
		}
		atOnce(t, recording(a, fanfare.Expired), recording(b, fanfare.Cancelled))
		if second := outcomes(); !slices.Equal(first, second) {
			t.Errorf("outcomes have changed from %v to %v", first, second)
		}
	})
}

func TestDueWorkIsRemovedOnceAndLaterWorkStays(t *testing.T) {
	onEachTwoOwners(t, func(t *testing.T, a, b *deliveries.Store) {
		f := frozenEvent(5, noon, 200)
		freeze(t, a, f)
		day := f.Posted.Ref().Day
		due := func(position uint32, attempt uint16) fanfare.Due {
			return fanfare.Due{At: noon, Channel: 1, Slice: fanfare.RecipientRange{Manifest: f.Manifests[0].ID, Positions: []uint32{position}, Attempt: attempt}}
		}
		waiting := &fanfare.Commit{}
		for i := range uint32(100) {
			waiting.Dues = append(waiting.Dues, due(i, 2))
		}
		for range 2 { // the second time nothing is added
			if err := a.Commit(t.Context(), day, waiting); err != nil {
				t.Fatal(err)
			}
		}
		taking := func(s *deliveries.Store) func() error {
			return func() error {
				taken, err := s.DueBy(context.Background(), day, noon, 1000)
				if err != nil {
					return err
				}
				return s.RemoveDue(context.Background(), day, taken)
			}
		}
		atOnce(t, taking(a), taking(b), func() error {
			more := &fanfare.Commit{}
			for i := range uint32(100) {
				d := due(100+i, 2)
				d.At = noon.Add(time.Hour) // not due, so nobody has taken it
				more.Dues = append(more.Dues, d)
			}
			return a.Commit(context.Background(), day, more)
		})
		if next, err := a.NextDue(t.Context(), day); err != nil || !next.Equal(noon.Add(time.Hour)) {
			t.Errorf("next due %v (%v)", next, err)
		}
		if left, err := b.DueBy(t.Context(), day, noon.Add(time.Hour), 1000); err != nil || len(left) != 100 {
			t.Errorf("%d pieces are left (%v), want the 100 that came meanwhile", len(left), err)
		}
	})
}

// A cancel makes what waits due at once while outcomes defer more of the same
// event: each piece is there afterwards, at its time or hastened.
func TestWorkThatIsHastenedWhileMoreIsDeferredStays(t *testing.T) {
	onEachTwoOwners(t, func(t *testing.T, a, b *deliveries.Store) {
		f := frozenEvent(5, noon, 400)
		freeze(t, a, f)
		day := f.Posted.Ref().Day
		done := make(chan struct{})
		atOnce(t, func() error {
			defer close(done)
			for i := range uint32(400) {
				d := fanfare.Due{At: noon.Add(time.Duration(i%7) * time.Second), Channel: 1,
					Slice: fanfare.RecipientRange{Manifest: f.Manifests[0].ID, Positions: []uint32{i}, Attempt: 2}}
				if err := a.Commit(context.Background(), day, &fanfare.Commit{Dues: []fanfare.Due{d}}); err != nil {
					return err
				}
			}
			return nil
		}, func() error {
			for {
				select {
				case <-done:
					return nil
				default:
				}
				if err := b.HastenDue(context.Background(), f.Posted.Ref()); err != nil {
					return err
				}
			}
		})
		left, err := a.DueBy(t.Context(), day, noon.Add(time.Hour), 1000)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[uint32]int{}
		for _, d := range left {
			seen[d.Slice.Positions[0]]++
		}
		for i := range uint32(400) {
			if seen[i] != 1 {
				t.Errorf("position %d waits %d times", i, seen[i])
			}
		}
	})
}
