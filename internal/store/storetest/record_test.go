package storetest_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store/deliveries"
	"fanfare.dev/fanfare/internal/store/storetest"
)

// noon is when the events of the tests are received.
var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// onEachRecord runs a test on the new record of each driver.
func onEachRecord(t *testing.T, test func(t *testing.T, s *deliveries.Store)) {
	t.Helper()
	onEach(t, func(t *testing.T, place string) { test(t, deliveries.New(storetest.OpenAt(t, place))) })
}

// frozenEvent makes an event whose manifests have members of these sizes, each
// manifest from a partition of its own.
func frozenEvent(stream uint64, received time.Time, sizes ...int) *fanfare.MatchResult {
	seq := fanfare.NewEventSeq(stream, 0)
	f := &fanfare.MatchResult{
		Posted: &fanfare.AcceptedEvent{
			Service: "news", Topic: "story", Lane: fanfare.Bulk, ChangeSeq: 9, ReceivedAt: received, Seq: seq,
			Event: fanfare.Event{ID: fmt.Sprintf("story-%d", stream), Source: "/test", Type: "story", Time: received, Data: json.RawMessage(`{"n":1}`)},
		},
		KeptAt: received.Add(time.Second), MatchedAt: received.Add(2 * time.Second),
	}
	for i, n := range sizes {
		m := fanfare.Manifest{ID: fanfare.NewManifestID(seq, 2*i), Sections: []fanfare.Section{{Channel: 1, Template: 1}}}
		for local := range n {
			place := fanfare.NewRowID(2*i, uint32(local))
			m.Sections[0].Members.Add(place, place)
		}
		f.Manifests = append(f.Manifests, m)
		f.Messages += int64(n)
		f.Matched += int64(n)
	}
	return f
}

func freeze(t testing.TB, s *deliveries.Store, events ...*fanfare.MatchResult) []bool {
	t.Helper()
	fresh, err := s.Freeze(t.Context(), events, noon.Add(3*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	return fresh
}

// entry is an attempt of a delivery of the first manifest of an event.
func entry(f *fanfare.MatchResult, position uint32, attempt uint16, state fanfare.State) fanfare.Entry {
	e := fanfare.Entry{
		Delivery: fanfare.DeliveryRef{Day: f.Posted.Ref().Day, Manifest: f.Manifests[0].ID, Position: position}, Attempt: attempt, State: state,
		Code: 250, Text: "said", Relay: "relay:25", Address: "p@example.org", At: noon.Add(time.Duration(attempt) * time.Minute),
	}
	if state == fanfare.Deferred {
		e.NextAt = e.At.Add(time.Minute)
	}
	return e
}

func TestAnEventIsFrozenOnce(t *testing.T) {
	onEachRecord(t, func(t *testing.T, s *deliveries.Store) {
		first, other := frozenEvent(5, noon, 3, 2), frozenEvent(6, noon, 1)
		if fresh := freeze(t, s, first); !slices.Equal(fresh, []bool{true}) {
			t.Errorf("the first time: %v", fresh)
		}
		again := frozenEvent(5, noon, 7, 7, 7) // what a rerun would match now
		again.Posted.Event.Data = json.RawMessage(`{"n":2}`)
		if fresh := freeze(t, s, again, other, again); !slices.Equal(fresh, []bool{false, true, false}) {
			t.Errorf("with a new one between two reruns: %v", fresh)
		}
		for _, want := range []*fanfare.MatchResult{first, other} {
			got, err := s.Manifests(t.Context(), want.Posted.Ref())
			if err != nil || fmt.Sprint(got) != fmt.Sprint(want.Manifests) {
				t.Errorf("event %v has the manifests %v (%v), want %v", want.Posted.Seq, got, err, want.Manifests)
			}
			posted, err := s.Posted(t.Context(), want.Posted.Ref())
			if err != nil || string(posted.Event.Data) != `{"n":1}` || posted.Seq != want.Posted.Seq || posted.ChangeSeq != 9 {
				t.Errorf("event %+v (%v)", posted, err)
			}
			b, err := s.Broadcast(t.Context(), want.Posted.Ref())
			if err != nil || b.Messages != want.Messages || b.State != "running" || b.Lane != "bulk" || !b.Stages.Received.Equal(noon) ||
				!b.Stages.Kept.Equal(noon.Add(time.Second)) || !b.Stages.Matched.Equal(noon.Add(2*time.Second)) || !b.Stages.Frozen.Equal(noon.Add(3*time.Second)) {
				t.Errorf("broadcast %+v (%v)", b, err)
			}
		}
		if lag, err := s.HistoryLag(t.Context(), fanfare.DayOf(noon)); err != nil || lag != 2 {
			t.Errorf("%d events wait for the history (%v), want 2", lag, err)
		}
	})
}

func TestManifestsAreFoundByIDAndByPartition(t *testing.T) {
	onEachRecord(t, func(t *testing.T, s *deliveries.Store) {
		f := frozenEvent(5, noon, 3, 2) // partitions 0 and 2 on
		freeze(t, s, frozenEvent(4, noon, 1), f, frozenEvent(6, noon, 1))
		for partition, want := range []fanfare.ManifestID{f.Manifests[0].ID, f.Manifests[0].ID, f.Manifests[1].ID, f.Manifests[1].ID} {
			if m, err := s.ManifestOf(t.Context(), f.Posted.Ref(), partition); err != nil || m.ID != want {
				t.Errorf("partition %d is covered by %v (%v), want %x", partition, m, err, want)
			}
		}
		if m, err := s.Manifest(t.Context(), f.Posted.Ref().Day, f.Manifests[1].ID); err != nil || m.Members() != 2 {
			t.Errorf("got %v, %v", m, err)
		}
		nobody := frozenEvent(7, noon)
		freeze(t, s, nobody)
		if m, err := s.ManifestOf(t.Context(), nobody.Posted.Ref(), 63); err != nil || m != nil {
			t.Errorf("an event that nobody wanted has the manifest %v (%v)", m, err)
		}
		if b, err := s.Broadcast(t.Context(), nobody.Posted.Ref()); err != nil || b.State != "completed" || !b.Stages.Completed.Equal(b.Stages.Frozen) {
			t.Errorf("an event that nobody wanted is %+v (%v)", b, err)
		}
	})
}

func TestMissingRecordsAreNotFound(t *testing.T) {
	onEachRecord(t, func(t *testing.T, s *deliveries.Store) {
		freeze(t, s, frozenEvent(5, noon, 1))
		today, other := fanfare.DayOf(noon), fanfare.DayOf(noon)-9
		for name, ask := range map[string]func() error{
			"event of a day":     func() error { _, err := s.Broadcast(t.Context(), fanfare.EventRef{Day: today, Seq: 1}); return err },
			"posted of a day":    func() error { _, err := s.Posted(t.Context(), fanfare.EventRef{Day: today, Seq: 1}); return err },
			"manifest of a day":  func() error { _, err := s.Manifest(t.Context(), today, 1); return err },
			"event of no day":    func() error { _, err := s.Broadcast(t.Context(), fanfare.EventRef{Day: other, Seq: 1}); return err },
			"outcome of no day":  func() error { return s.Commit(t.Context(), other, &fanfare.Commit{}) },
			"history of no day":  func() error { _, err := s.History(t.Context(), other, 1); return err },
			"due work of no day": func() error { _, err := s.NextDue(t.Context(), other); return err },
		} {
			if err := ask(); fanfare.CodeOf(err) != fanfare.NotFound {
				t.Errorf("%s: got %v, want not found", name, err)
			}
		}
		if got, err := s.Manifests(t.Context(), fanfare.EventRef{Day: other, Seq: 1}); err != nil || len(got) > 0 {
			t.Errorf("an event of no day has the manifests %v (%v)", got, err)
		}
		if days, err := s.Days(t.Context()); err != nil || !slices.Equal(days, []fanfare.Day{today}) {
			t.Errorf("asking has made days: %v (%v)", days, err)
		}
	})
}

func TestAllThatIsKeptIsThereAfterARestart(t *testing.T) {
	onEach(t, func(t *testing.T, at string) {
		f := frozenEvent(5, noon, 3)
		ref, day := f.Posted.Ref(), f.Posted.Ref().Day
		db := storetest.OpenAt(t, at)
		s := deliveries.New(db)
		freeze(t, s, f)
		commit := &fanfare.Commit{
			Entries: []fanfare.Entry{entry(f, 0, 1, fanfare.Accepted), entry(f, 1, 1, fanfare.Deferred)},
			Dues:    []fanfare.Due{{At: noon.Add(time.Hour), Channel: 1, Slice: fanfare.RecipientRange{Manifest: f.Manifests[0].ID, Positions: []uint32{1}, Attempt: 2}}},
		}
		if err := s.Commit(t.Context(), day, commit); err != nil {
			t.Fatal(err)
		}
		if err := s.SetSwitches(t.Context(), day, []fanfare.Switch{{Event: ref, State: fanfare.SwitchPaused, Reason: "why"}}, noon); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		s = deliveries.New(storetest.OpenAt(t, at))
		if next, err := s.NextDue(t.Context(), day); err != nil || !next.Equal(noon.Add(time.Hour)) {
			t.Errorf("next due %v (%v)", next, err)
		}
		if b, err := s.Broadcast(t.Context(), ref); err != nil || b.State != fanfare.SwitchPaused || b.Reason != "why" {
			t.Errorf("broadcast %+v (%v)", b, err)
		}
		var got []fanfare.Entry
		err := s.Attempts(t.Context(), day, f.Manifests[0].ID, 0, 3, func(e *fanfare.Entry) error { got = append(got, *e); return nil })
		if err != nil || fmt.Sprint(got) != fmt.Sprint(commit.Entries) {
			t.Errorf("attempts %v (%v), want %v", got, err, commit.Entries)
		}
		if highest, err := s.Highest(t.Context()); err != nil || highest != ref.Seq {
			t.Errorf("highest %v (%v), want %v", highest, err, ref.Seq)
		}
	})
}

func TestHighestIsFoundBehindDaysWithoutEvents(t *testing.T) {
	onEachRecord(t, func(t *testing.T, s *deliveries.Store) {
		f := frozenEvent(7, noon, 1)
		freeze(t, s, f)
		for i := range 3 { // days that only have parked work
			day := f.Posted.Ref().Day + fanfare.Day(i+1)
			if err := s.Park(t.Context(), day, 1, fanfare.Parked{Kind: "event", At: noon}, nil); err != nil {
				t.Fatal(err)
			}
		}
		if highest, err := s.Highest(t.Context()); err != nil || highest != f.Posted.Seq {
			t.Errorf("highest %v (%v), want %v", highest, err, f.Posted.Seq)
		}
	})
}

func TestARemovedDayIsGoneAndTheOthersStay(t *testing.T) {
	onEachRecord(t, func(t *testing.T, s *deliveries.Store) {
		old, recent := frozenEvent(5, noon.Add(-48*time.Hour), 1), frozenEvent(6, noon, 1)
		freeze(t, s, old)
		freeze(t, s, recent)
		for range 2 { // the second time does nothing
			if err := s.Remove(t.Context(), old.Posted.Ref().Day); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.Broadcast(t.Context(), old.Posted.Ref()); fanfare.CodeOf(err) != fanfare.NotFound {
			t.Errorf("got %v", err)
		}
		if _, err := s.Broadcast(t.Context(), recent.Posted.Ref()); err != nil {
			t.Error(err)
		}
		if days, err := s.Days(t.Context()); err != nil || !slices.Equal(days, []fanfare.Day{recent.Posted.Ref().Day}) {
			t.Errorf("left are %v (%v)", days, err)
		}
	})
}

// TestReadersAndWritersAndRemovalDoNotMeet is for the race detector,
// and for those who would wait for ever.
func TestReadersAndWritersAndRemovalDoNotMeet(t *testing.T) {
	onEachRecord(t, func(t *testing.T, s *deliveries.Store) {
		var work sync.WaitGroup
		ok := func(err error) {
			if err != nil && fanfare.CodeOf(err) != fanfare.NotFound {
				t.Error(err)
			}
		}
		for worker := range 4 {
			work.Go(func() {
				random := rand.New(rand.NewPCG(uint64(worker), 0))
				for i := range 25 {
					f := frozenEvent(uint64(worker*1000+i+1), noon.Add(time.Duration(random.IntN(2))*24*time.Hour), 3)
					_, err := s.Freeze(t.Context(), []*fanfare.MatchResult{f}, noon)
					ok(err)
					ok(s.Commit(t.Context(), f.Posted.Ref().Day, &fanfare.Commit{Entries: []fanfare.Entry{entry(f, 0, 1, fanfare.Accepted)}}))
					_, err = s.History(t.Context(), f.Posted.Ref().Day, 0)
					ok(err)
					ok(s.Latest(t.Context(), f.Posted.Ref().Day, f.Manifests[0].ID, 0, 3, func(uint32, uint16, fanfare.State) {}))
					if random.IntN(20) == 0 {
						ok(s.Remove(t.Context(), f.Posted.Ref().Day))
					}
				}
			})
		}
		work.Wait()
	})
}
