package storetest_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store/deliveries"
	"fanfare.dev/fanfare/internal/store/storetest"
)

// group is a commit of n entries from a position on, with all that may come with
// them.
func group(f *fanfare.MatchResult, from, n int) *fanfare.Commit {
	c := &fanfare.Commit{Completions: []fanfare.Completion{{Seq: f.Posted.Seq, Progress: fanfare.Progress{First: noon, Last: noon, Completed: noon}}}}
	for i := range n {
		position := uint32(from + i)
		c.Entries = append(c.Entries, entry(f, position, 1, fanfare.Deferred))
		c.Dues = append(c.Dues, fanfare.Due{At: noon, Channel: 1, Slice: fanfare.RecipientRange{Manifest: f.Manifests[0].ID, Positions: []uint32{position}, Attempt: 2}})
	}
	return c
}

var errBroken = errors.New("broken")

// kept says all that a day has.
func kept(t *testing.T, s *deliveries.Store, day fanfare.Day) string {
	t.Helper()
	ctx := t.Context()
	broadcasts, err := s.Broadcasts(ctx, day, "", 0, math.MaxInt64, 1000)
	if err != nil {
		t.Fatal(err)
	}
	var all []any
	for _, b := range broadcasts {
		ref, _ := fanfare.ParseEventRef(b.Event)
		manifests, err := s.Manifests(ctx, ref)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b.Event, b.State, manifests)
		for i := range manifests {
			err := s.Attempts(ctx, day, manifests[i].ID, 0, math.MaxUint32, func(e *fanfare.Entry) error { all = append(all, *e); return nil })
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	dues, err := s.DueBy(ctx, day, noon.Add(1000*time.Hour), 1000)
	if err != nil {
		t.Fatal(err)
	}
	held, ids, err := s.Held(ctx, day)
	if err != nil {
		t.Fatal(err)
	}
	lag, err := s.HistoryLag(ctx, day)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(append(all, dues, held, ids, lag)...)
}

func TestACommitIsAtomic(t *testing.T) {
	onEach(t, func(t *testing.T, place string) {
		first, second := frozenEvent(5, noon, 1000), frozenEvent(6, noon, 3, 3)
		day := first.Posted.Ref().Day
		of := storetest.OpenAt(t, place)
		for name, write := range map[string]func(*deliveries.Store) error{
			"freeze": func(s *deliveries.Store) error {
				_, err := s.Freeze(t.Context(), []*fanfare.MatchResult{first, second}, noon)
				return err
			},
			"commit": func(s *deliveries.Store) error { return s.Commit(t.Context(), day, group(first, 10, 100)) },
			"hold":   func(s *deliveries.Store) error { return s.Hold(t.Context(), &fanfare.Batch{Day: day}) },
			"rehold": func(s *deliveries.Store) error { return s.Rehold(t.Context(), day, make([]fanfare.Batch, 3)) },
			"hasten": func(s *deliveries.Store) error { return s.HastenDue(t.Context(), first.Posted.Ref()) },
		} {
			t.Run(name, func(t *testing.T) {
				s := deliveries.New(of)
				left := 0 // statements until one breaks
				breaking := deliveries.New(&watched{of, func(bool) error {
					if left--; left == 0 {
						return errBroken
					}
					return nil
				}})
				if err := s.Remove(t.Context(), day); err != nil {
					t.Fatal(err)
				}
				freeze(t, s, first)
				if err := s.Commit(t.Context(), day, group(first, 0, 10)); err != nil {
					t.Fatal(err)
				}
				if err := s.Hold(t.Context(), &fanfare.Batch{Day: day, Channel: 7}); err != nil {
					t.Fatal(err)
				}
				before := kept(t, s, day)
				after := 1
				for ; ; after++ {
					left = after
					err := write(breaking)
					if err == nil {
						break
					}
					if !errors.Is(err, errBroken) || after > 10 {
						t.Fatalf("broken after %d statements: %v", after, err)
					}
					if now := kept(t, s, day); now != before {
						t.Fatalf("broken after %d statements there is\n%s, before\n%s", after, now, before)
					}
				}
				if after == 1 || kept(t, s, day) == before {
					t.Errorf("it wrote nothing in %d statements", after-1)
				}
			})
		}
	})
}

// An outcome may be recorded twice when it is not known whether it was kept.
func TestAnOutcomeThatIsRecordedTwiceIsTheFirst(t *testing.T) {
	onEachRecord(t, func(t *testing.T, s *deliveries.Store) {
		f := frozenEvent(5, noon, 1000)
		day := f.Posted.Ref().Day
		freeze(t, s, f)
		first := group(f, 0, 100)
		if err := s.Commit(t.Context(), day, first); err != nil {
			t.Fatal(err)
		}
		want := kept(t, s, day)
		if err := s.Commit(t.Context(), day, first); err != nil {
			t.Fatal(err)
		}
		again := group(f, 0, 100)
		for i := range again.Entries {
			e := &again.Entries[i]
			e.State, e.Text, e.NextAt = fanfare.Accepted, "another answer", time.Time{}
		}
		again.Dues = nil
		if err := s.Commit(t.Context(), day, again); err != nil {
			t.Fatal(err)
		}
		if now := kept(t, s, day); now != want {
			t.Errorf("now there is\n%s, at first\n%s", now, want)
		}
	})
}

func TestOfTwoOutcomesOfAnAttemptInOneGroupTheFirstIsKept(t *testing.T) {
	onEachRecord(t, func(t *testing.T, s *deliveries.Store) {
		f := frozenEvent(5, noon, 3)
		day := f.Posted.Ref().Day
		freeze(t, s, f)
		entries := []fanfare.Entry{entry(f, 2, 1, fanfare.Accepted), entry(f, 0, 1, fanfare.Failed), entry(f, 2, 1, fanfare.Failed), entry(f, 0, 1, fanfare.Accepted)}
		if err := s.Commit(t.Context(), day, &fanfare.Commit{Entries: entries}); err != nil {
			t.Fatal(err)
		}
		var kept []fanfare.State
		err := s.Attempts(t.Context(), day, f.Manifests[0].ID, 0, 3, func(e *fanfare.Entry) error {
			kept = append(kept, e.State)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if want := []fanfare.State{fanfare.Failed, fanfare.Accepted}; !slices.Equal(kept, want) {
			t.Errorf("kept are %v, not %v", kept, want)
		}
	})
}

func TestACompletedBroadcastShowsItsCounts(t *testing.T) {
	onEachRecord(t, func(t *testing.T, s *deliveries.Store) {
		f := frozenEvent(5, noon, 2)
		freeze(t, s, f)
		var counts fanfare.Counts
		counts[fanfare.Accepted], counts[fanfare.Failed] = 1, 1
		err := s.Commit(t.Context(), f.Posted.Ref().Day, &fanfare.Commit{
			Entries:     []fanfare.Entry{entry(f, 0, 1, fanfare.Accepted), entry(f, 1, 1, fanfare.Failed)},
			Completions: []fanfare.Completion{{Seq: f.Posted.Seq, Progress: fanfare.Progress{Counts: counts, First: noon, Last: noon.Add(time.Second), Completed: noon.Add(2 * time.Second)}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		b, err := s.Broadcast(t.Context(), f.Posted.Ref())
		if err != nil || b.State != "completed" || b.Counts != counts || !b.Stages.First.Equal(noon) || !b.Stages.Last.Equal(noon.Add(time.Second)) || !b.Stages.Completed.Equal(noon.Add(2*time.Second)) {
			t.Errorf("broadcast %+v (%v)", b, err)
		}
		err = s.Open(t.Context(), f.Posted.Ref().Day, func(seq fanfare.EventSeq, _ int64, _ fanfare.Progress) { t.Errorf("event %v is still open", seq) })
		if err != nil {
			t.Error(err)
		}
	})
}

func TestOfSeveralCompletionsOfABroadcastTheLastIsKept(t *testing.T) {
	onEachRecord(t, func(t *testing.T, s *deliveries.Store) {
		one, other := frozenEvent(5, noon, 1), frozenEvent(6, noon, 1)
		freeze(t, s, one, other)
		completion := func(f *fanfare.MatchResult, seconds int) fanfare.Completion {
			at := noon.Add(time.Duration(seconds) * time.Second)
			return fanfare.Completion{Seq: f.Posted.Seq, Progress: fanfare.Progress{First: noon, Last: at, Completed: at}}
		}
		for _, group := range [][]fanfare.Completion{
			{completion(one, 1)},
			{completion(one, 2), completion(other, 3), completion(one, 4), completion(other, 5)},
		} {
			if err := s.Commit(t.Context(), fanfare.DayOf(noon), &fanfare.Commit{Completions: group}); err != nil {
				t.Fatal(err)
			}
		}
		for f, seconds := range map[*fanfare.MatchResult]int{one: 4, other: 5} {
			b, err := s.Broadcast(t.Context(), f.Posted.Ref())
			if want := noon.Add(time.Duration(seconds) * time.Second); err != nil || !b.Stages.Completed.Equal(want) {
				t.Errorf("event %v was completed at %v (%v), want %v", f.Posted.Seq, b.Stages.Completed, err, want)
			}
		}
	})
}

func TestBroadcastsOfADayAreListedNewestFirst(t *testing.T) {
	onEachRecord(t, func(t *testing.T, s *deliveries.Store) {
		for stream := range uint64(30) {
			f := frozenEvent(stream+1, noon, 1)
			if stream%3 == 0 {
				f.Posted.Service = "weather"
			}
			freeze(t, s, f)
		}
		for _, c := range []struct {
			service string
			before  uint64
			limit   int
			want    []uint64
		}{
			{"", 100, 3, []uint64{30, 29, 28}},
			{"weather", 100, 3, []uint64{28, 25, 22}},
			{"weather", 22, 2, []uint64{19, 16}},
			{"news", 3, 10, []uint64{2}},
			{"nobody", 100, 10, nil},
		} {
			list, err := s.Broadcasts(t.Context(), fanfare.DayOf(noon), c.service, 0, fanfare.NewEventSeq(c.before, 0), c.limit)
			if err != nil {
				t.Fatal(err)
			}
			var got []uint64
			for _, b := range list {
				ref, _ := fanfare.ParseEventRef(b.Event)
				got = append(got, ref.Seq.Stream())
				if b.Data != nil {
					t.Error("a list has data")
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%d of %q before %d: got %v, want %v", c.limit, c.service, c.before, got, c.want)
			}
		}
	})
}

// TestAttemptsAreReadAsANaiveModelSays commits random attempts, in random groups
// over three manifests, and compares the newest ones, all of them, and what a
// restart counts.
func TestAttemptsAreReadAsANaiveModelSays(t *testing.T) {
	onEachRecord(t, func(t *testing.T, s *deliveries.Store) {
		stream := uint64(0)
		rapid.Check(t, func(t *rapid.T) {
			stream++
			ctx := context.Background()
			f := frozenEvent(stream, noon, 12, 5, 1)
			day := f.Posted.Ref().Day
			if _, err := s.Freeze(ctx, []*fanfare.MatchResult{f}, noon); err != nil {
				t.Fatal(err)
			}
			model := map[fanfare.DeliveryRef][]fanfare.Entry{}
			var first, last time.Time
			for range rapid.IntRange(0, 8).Draw(t, "groups") {
				commit := &fanfare.Commit{}
				in := map[fanfare.DeliveryRef]bool{}
				for range rapid.IntRange(1, 20).Draw(t, "entries") {
					m := f.Manifests[rapid.IntRange(0, 2).Draw(t, "manifest")]
					ref := fanfare.DeliveryRef{Day: day, Manifest: m.ID, Position: uint32(rapid.IntRange(0, m.Members()-1).Draw(t, "position"))}
					tries := model[ref]
					if in[ref] || len(tries) > 0 && tries[len(tries)-1].State.Settled() {
						continue
					}
					in[ref] = true
					state := rapid.SampledFrom([]fanfare.State{fanfare.Deferred, fanfare.Deferred, fanfare.Accepted, fanfare.Failed, fanfare.Expired, fanfare.Cancelled, fanfare.Suppressed}).Draw(t, "state")
					e := fanfare.Entry{Delivery: ref, Attempt: uint16(len(tries) + 1), State: state, Code: 1, At: noon.Add(time.Duration(rapid.IntRange(0, 5000).Draw(t, "at")) * time.Millisecond)}
					model[ref] = append(tries, e)
					commit.Entries = append(commit.Entries, e)
					if first.IsZero() || e.At.Before(first) {
						first = e.At
					}
					if e.At.After(last) {
						last = e.At
					}
				}
				if err := s.Commit(ctx, day, commit); err != nil {
					t.Fatal(err)
				}
			}
			for _, m := range f.Manifests {
				from := uint32(rapid.IntRange(0, m.Members()).Draw(t, "from"))
				to := uint32(rapid.IntRange(0, m.Members()+2).Draw(t, "to"))
				var latest, attempts, wantLatest, wantAttempts []string
				for position := from; position < to; position++ {
					tries := model[fanfare.DeliveryRef{Day: day, Manifest: m.ID, Position: position}]
					for _, e := range tries {
						wantAttempts = append(wantAttempts, fmt.Sprint(e))
					}
					if n := len(tries); n > 0 {
						wantLatest = append(wantLatest, fmt.Sprint(position, n, tries[n-1].State))
					}
				}
				err := s.Latest(ctx, day, m.ID, from, to, func(position uint32, attempt uint16, state fanfare.State) {
					latest = append(latest, fmt.Sprint(position, attempt, state))
				})
				if err != nil || !slices.Equal(latest, wantLatest) {
					t.Fatalf("latest of %x [%d, %d): got %v (%v), want %v", m.ID, from, to, latest, err, wantLatest)
				}
				err = s.Attempts(ctx, day, m.ID, from, to, func(e *fanfare.Entry) error { attempts = append(attempts, fmt.Sprint(*e)); return nil })
				if err != nil || !slices.Equal(attempts, wantAttempts) {
					t.Fatalf("attempts of %x [%d, %d): got %v (%v), want %v", m.ID, from, to, attempts, err, wantAttempts)
				}
			}
			want := fanfare.Progress{First: first, Last: last}
			for _, tries := range model {
				want.Counts[tries[len(tries)-1].State]++
			}
			var reasons int64
			for _, state := range []fanfare.State{fanfare.Failed, fanfare.Expired, fanfare.Cancelled, fanfare.Suppressed} {
				reasons += want.Counts[state]
			}
			found := false
			err := s.Open(ctx, day, func(seq fanfare.EventSeq, messages int64, progress fanfare.Progress) {
				if seq != f.Posted.Seq {
					return
				}
				found = true
				for _, one := range progress.Reasons {
					if reasons -= one.Deliveries; one.Reason != "1" {
						t.Errorf("an unknown reason: %+v", one)
					}
				}
				progress.Reasons = nil
				if !reflect.DeepEqual(progress, want) || reasons != 0 || messages != 18 {
					t.Fatalf("a restart counts %+v of %d, want %+v of 18", progress, messages, want)
				}
			})
			if err != nil || !found {
				t.Fatalf("the broadcast is not open (%v)", err)
			}
			complete := &fanfare.Commit{Completions: []fanfare.Completion{{Seq: f.Posted.Seq, Progress: want}}}
			if err := s.Commit(ctx, day, complete); err != nil { // so that the next one is the only open one
				t.Fatal(err)
			}
		})
	})
}
