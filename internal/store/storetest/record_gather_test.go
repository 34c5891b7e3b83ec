package storetest_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/plan"
	"fanfare.dev/fanfare/internal/store/deliveries"
)

var (
	eight = noon.Truncate(24 * time.Hour).Add(32 * time.Hour)
	nine  = eight.Add(time.Hour)
)

// waitingEvent is an event that some subscriptions of a partition wait for.
func waitingEvent(stream uint64, slot uint16, due time.Time, subscriptions ...uint32) *fanfare.MatchResult {
	f := frozenEvent(stream, noon)
	var hits []fanfare.Hit
	for _, n := range subscriptions {
		hits = append(hits, fanfare.Hit{Place: fanfare.NewRowID(3, n), Subscriber: fanfare.NewRowID(3, n), Channel: 1, Rule: -1, Slot: slot})
	}
	_, f.Gathered = plan.SplitDigests(f.Posted.Seq, hits, func(uint16) (time.Time, bool) { return due, true })
	return f
}

// runEvent is an event that sends what was gathered for a slot.
func runEvent(stream uint64, slot uint16, due time.Time, of ...*fanfare.MatchResult) *fanfare.MatchResult {
	f := frozenEvent(stream, due, 2)
	f.Posted.Topic, f.Posted.Run = "", &fanfare.Run{Slot: slot, Due: due, Cadence: "daily 08:00"}
	f.Items = func(visit func(fanfare.RunItem) error) error {
		for i, e := range of {
			if err := visit(fanfare.RunItem{Number: uint32(i), Posted: e.Posted}); err != nil {
				return err
			}
		}
		return nil
	}
	return f
}

// gathered shows what waits for a run: events and subscriptions.
func gathered(t *testing.T, s *deliveries.Store, slot uint16, due time.Time) (list []string) {
	t.Helper()
	err := s.Gathered(t.Context(), fanfare.DayOf(noon), slot, due, func(m *fanfare.Manifest) error {
		for i := range m.Sections {
			for member := range m.Sections[i].Members.All() {
				for _, place := range member.Subscriptions {
					list = append(list, fmt.Sprint(m.ID.Event().Stream(), " ", place.Local()))
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func pending(t *testing.T, s *deliveries.Store) (list []string) {
	t.Helper()
	all, err := s.Gatherings(t.Context(), fanfare.DayOf(noon))
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range all {
		list = append(list, fmt.Sprint(w.Slot, " ", w.Due.Hour(), " ", w.Service, " ", w.Members))
	}
	return list
}

func same(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

func TestWaitingRecipientsAreStoredOnceWithTheirEvent(t *testing.T) {
	onEachRecord(t, func(t *testing.T, s *deliveries.Store) {
		first, second := waitingEvent(1, 5, eight, 1, 2), waitingEvent(2, 5, eight, 2)
		for range 2 { // again after an error whose effect is not known
			freeze(t, s, first, second, waitingEvent(3, 6, eight, 9))
		}
		same(t, "slot 5", gathered(t, s, 5, eight), "1 1", "1 2", "2 2")
		same(t, "slot 5, an hour later", gathered(t, s, 5, nine))
		same(t, "pending", pending(t, s), "5 8 news 3", "6 8 news 1")
		of, err := s.GatheredOf(t.Context(), first.Posted.Ref())
		if err != nil || len(of) != 1 || of[0].Slot != 5 || of[0].Members != 2 || !of[0].Due.Equal(eight) {
			t.Errorf("the first event waits for %+v, %v", of, err)
		}
		for range 2 {
			if err := s.EndAwait(t.Context(), fanfare.DayOf(noon), deliveries.Waiting{Slot: 5, Due: eight}); err != nil {
				t.Fatal(err)
			}
		}
		same(t, "pending when 5 is over", pending(t, s), "6 8 news 1")
		same(t, "slot 5 when it is over", gathered(t, s, 5, eight), "1 1", "1 2", "2 2")
		for range 2 {
			if err := s.Await(t.Context(), fanfare.DayOf(noon), []deliveries.Waiting{{Slot: 7, Due: nine, Service: "news"}}); err != nil {
				t.Fatal(err)
			}
		}
		same(t, "pending with a run that nothing is gathered for", pending(t, s), "6 8 news 1", "7 9 news 0")
	})
}

func TestARunIsFrozenOnceWhicheverEventItIs(t *testing.T) {
	onEachRecord(t, func(t *testing.T, s *deliveries.Store) {
		event := waitingEvent(1, 5, eight, 1, 2)
		freeze(t, s, event)
		run := runEvent(10, 5, eight, event)
		again := runEvent(11, 5, eight, event)
		other := runEvent(12, 5, nine, event)
		if fresh := freeze(t, s, run, again); !slices.Equal(fresh, []bool{true, false}) {
			t.Errorf("two events for one run: %v", fresh)
		}
		if fresh := freeze(t, s, run, again, other); !slices.Equal(fresh, []bool{false, false, true}) {
			t.Errorf("again, with the next run: %v", fresh)
		}
		if _, err := s.Broadcast(t.Context(), again.Posted.Ref()); fanfare.CodeOf(err) != fanfare.NotFound {
			t.Errorf("the second event of a run is there: %v", err)
		}
		if manifests, err := s.Manifests(t.Context(), again.Posted.Ref()); err != nil || len(manifests) != 0 {
			t.Errorf("the second event of a run has manifests: %v, %v", manifests, err)
		}
		if ref, frozen, err := s.RunAt(t.Context(), 5, eight); err != nil || !frozen || ref != run.Posted.Ref() {
			t.Errorf("the run is %v, %v, %v", ref, frozen, err)
		}
		for slot, due := range map[uint16]time.Time{5: nine.Add(time.Hour), 6: eight, 7: eight.AddDate(0, 0, 9)} {
			if _, frozen, err := s.RunAt(t.Context(), slot, due); err != nil || frozen {
				t.Errorf("slot %d at %v: %v, %v", slot, due, frozen, err)
			}
		}
		last := map[uint16]time.Time{}
		if err := s.LastRuns(t.Context(), fanfare.DayOf(eight), func(slot uint16, due time.Time) { last[slot] = due }); err != nil || len(last) != 1 || !last[5].Equal(nine) {
			t.Errorf("last runs %v, %v", last, err)
		}
	})
}

func TestARunHasTheEventsThatItsMembersName(t *testing.T) {
	onEachRecord(t, func(t *testing.T, s *deliveries.Store) {
		first, second := waitingEvent(1, 5, eight, 1, 2), waitingEvent(2, 5, eight, 2)
		freeze(t, s, first, second)
		run := runEvent(10, 5, eight, first, second)
		freeze(t, s, run)
		ref := run.Posted.Ref()
		items := func(numbers ...uint32) (list []string, err error) {
			err = s.Items(t.Context(), ref, numbers, func(item fanfare.RunItem) error {
				list = append(list, fmt.Sprint(item.Number, " ", item.Posted.Ref(), " ", item.Posted.Event.ID, " ", string(item.Posted.Event.Data)))
				return nil
			})
			return list, err
		}
		want := []string{"0 " + first.Posted.Ref().String() + ` story-1 {"n":1}`, "1 " + second.Posted.Ref().String() + ` story-2 {"n":1}`}
		both, err := items(0, 1)
		if err != nil {
			t.Fatal(err)
		}
		same(t, "both", both, want...)
		if _, err := items(1, 2); fanfare.CodeOf(err) != fanfare.NotFound {
			t.Errorf("an item that is not there: %v", err)
		}
	})
}

func TestTheEventsOfARunAreReadWhileItIsFrozen(t *testing.T) {
	onEachRecord(t, func(t *testing.T, s *deliveries.Store) {
		event := waitingEvent(1, 5, eight, 1)
		event.Posted.Event.Data = []byte(`"` + strings.Repeat("x", 100_000) + `"`)
		freeze(t, s, event)
		const many = 600 // more than are kept at a time, by number and by bytes
		run := runEvent(10, 5, eight)
		run.Items = func(visit func(fanfare.RunItem) error) error {
			for n := range uint32(many) {
				var failed error
				err := s.Moment(t.Context(), fanfare.DayOf(noon), func(m *deliveries.Moment) error {
					return m.Posted([]fanfare.EventSeq{event.Posted.Seq}, func(p *fanfare.AcceptedEvent) { failed = visit(fanfare.RunItem{Number: n, Posted: p}) })
				})
				if err = cmp.Or(err, failed); err != nil {
					return err
				}
			}
			return nil
		}
		freeze(t, s, run)
		var numbers, got []uint32
		for n := range uint32(many) {
			numbers = append(numbers, n)
		}
		err := s.Items(t.Context(), run.Posted.Ref(), numbers, func(item fanfare.RunItem) error {
			if got = append(got, item.Number); string(item.Posted.Event.Data) != string(event.Posted.Event.Data) {
				t.Errorf("item %d is another event", item.Number)
			}
			return nil
		})
		if err != nil || !slices.Equal(got, numbers) {
			t.Errorf("%d of %d items: %v", len(got), many, err)
		}
	})
}

func TestCarriedOverRecipientsWaitInOnePlace(t *testing.T) {
	onEachRecord(t, func(t *testing.T, s *deliveries.Store) {
		freeze(t, s, waitingEvent(1, 5, eight, 1, 2), waitingEvent(2, 5, eight, 2, 4), waitingEvent(3, 5, eight, 4), waitingEvent(4, 6, nine, 2))
		day, from := fanfare.DayOf(noon), deliveries.Waiting{Slot: 5, Due: eight, Service: "news"}
		carry := func(from deliveries.Waiting, slot uint16, due time.Time, subscriptions ...uint32) (to []string) {
			t.Helper()
			c := plan.Reschedule{}
			for _, n := range subscriptions {
				c[fanfare.NewRowID(3, n)] = plan.Run{Slot: slot, Due: due}
			}
			for n := range 2 {
				runs, err := s.Carry(t.Context(), day, from, c)
				if err != nil {
					t.Fatal(err)
				}
				if n > 0 && len(runs) > 0 {
					t.Errorf("again %v were carried", runs)
				}
				for _, w := range runs {
					to = append(to, fmt.Sprint(w.Slot, " ", w.Due.Hour(), " ", w.Service))
				}
			}
			return to
		}
		same(t, "carried of 2", carry(from, 6, nine, 2), "6 9 news")
		same(t, "slot 5", gathered(t, s, 5, eight), "1 1", "2 4", "3 4")
		same(t, "slot 6", gathered(t, s, 6, nine), "1 2", "2 2", "4 2")
		same(t, "carried of 4", carry(from, 6, nine, 4), "6 9 news")
		same(t, "slot 5 without 4", gathered(t, s, 5, eight), "1 1")
		same(t, "slot 6 with 4", gathered(t, s, 6, nine), "1 2", "2 2", "2 4", "3 4", "4 2")
		same(t, "carried back", carry(deliveries.Waiting{Slot: 6, Due: nine, Service: "news"}, 5, eight, 2), "5 8 news")
		same(t, "slot 5 with 2 again", gathered(t, s, 5, eight), "1 1", "1 2", "2 2", "4 2")
		same(t, "slot 6 without 2", gathered(t, s, 6, nine), "2 4", "3 4")
		same(t, "pending", pending(t, s), "5 8 news 4", "6 9 news 2")
	})
}
