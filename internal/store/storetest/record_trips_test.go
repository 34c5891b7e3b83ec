package storetest_test

import (
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store/deliveries"
	"fanfare.dev/fanfare/internal/store/storetest"
)

// Each answer that is waited for is a round trip to a database on another
// machine. How many there are does not depend on how much is written or read.
func TestTheRecordWaitsForFewAnswersHoweverMuchItIsGiven(t *testing.T) {
	for _, size := range []int{1, 100} {
		waits := 0
		s := deliveries.New(&watched{storetest.Open(t), func(answered bool) error {
			if answered {
				waits++
			}
			return nil
		}})
		var events []*fanfare.MatchResult
		for i := range size {
			events = append(events, frozenEvent(uint64(i+1), noon, 3, 3))
		}
		day := fanfare.DayOf(noon)
		ids, seqs, spans := asked(events)
		commit := group(events[0], 0, size)
		batches := make([]fanfare.Batch, size)
		held := make([]int64, size)
		for _, c := range []struct {
			name string
			do   func() error
			want int
		}{
			{"freeze", func() error { _, err := s.Freeze(t.Context(), events, noon); return err }, 2},
			{"freeze again", func() error { _, err := s.Freeze(t.Context(), events, noon); return err }, 1},
			{"commit", func() error { return s.Commit(t.Context(), day, commit) }, 0},
			{"load", func() error {
				return s.Moment(t.Context(), day, func(m *deliveries.Moment) error {
					if err := m.Latest(spans, func(int, uint32, uint16, fanfare.State) {}); err != nil {
						return err
					}
					if err := m.Manifests(ids, func(*fanfare.Manifest) {}); err != nil {
						return err
					}
					return m.Posted(seqs, func(*fanfare.AcceptedEvent) {})
				})
			}, 3},
			{"hasten", func() error { return s.HastenDue(t.Context(), events[0].Posted.Ref()) }, 0},
			{"remove due", func() error { return s.RemoveDue(t.Context(), day, commit.Dues) }, 0},
			{"hold", func() error { return s.Hold(t.Context(), &fanfare.Batch{Day: day}) }, 1},
			{"rehold", func() error { return s.Rehold(t.Context(), day, batches) }, 1},
			{"remove held", func() error { return s.RemoveHeld(t.Context(), day, held) }, 0},
			{"open", func() error {
				return s.Open(t.Context(), day, func(fanfare.EventSeq, int64, fanfare.Progress) {})
			}, 2},
			{"history", func() error { _, err := s.History(t.Context(), day, fanfare.NewRowID(0, 0)); return err }, 4},
			{"find", func() error { _, err := s.FindEvent(t.Context(), day, "news", "story-1"); return err }, 5},
			{"forget", func() error {
				return s.EraseAttempts(t.Context(), day, make([]fanfare.DeliveryRef, size))
			}, 0},
		} {
			waits = 0
			if err := c.do(); err != nil {
				t.Fatal(err)
			}
			if waits != c.want {
				t.Errorf("%s of %d waits for %d answers, want %d", c.name, size, waits, c.want)
			}
		}
	}
}

// asked are the first manifests of events, their sequences, and the deliveries
// of those manifests.
func asked(events []*fanfare.MatchResult) (ids []fanfare.ManifestID, seqs []fanfare.EventSeq, spans []deliveries.Span) {
	for _, f := range events {
		m := &f.Manifests[0]
		ids, seqs = append(ids, m.ID), append(seqs, f.Posted.Seq)
		spans = append(spans, deliveries.Span{Manifest: m.ID, To: uint32(m.Members())})
	}
	return ids, seqs, spans
}
