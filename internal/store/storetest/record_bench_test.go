package storetest_test

import (
	"math/rand/v2"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store/deliveries"
	"fanfare.dev/fanfare/internal/store/storetest"
)

// A workload of many small events: each is frozen, loaded, sent and over.
const (
	smallEvents = 64 // at a time
	smallSize   = 1  // members of each
)

func BenchmarkSmallEvents(b *testing.B) {
	s := deliveries.New(storetest.Open(b))
	day := fanfare.DayOf(noon)
	stream := uint64(0)
	events := make([]*fanfare.MatchResult, smallEvents)
	var last []*fanfare.MatchResult
	next := func() {
		for i := range events {
			stream++
			events[i] = frozenEvent(stream, noon, smallSize)
		}
		last = events
	}
	next()
	freeze(b, s, events...)
	b.Run("freeze", func(b *testing.B) {
		for range b.N {
			b.StopTimer()
			next()
			b.StartTimer()
			freeze(b, s, events...)
		}
	})
	b.Run("load", func(b *testing.B) {
		ids, seqs, spans := asked(last)
		members := 0
		for b.Loop() {
			err := s.Moment(b.Context(), day, func(m *deliveries.Moment) error {
				if err := m.Latest(spans, func(int, uint32, uint16, fanfare.State) {}); err != nil {
					return err
				}
				if err := m.Manifests(ids, func(m *fanfare.Manifest) { members += m.Members() }); err != nil {
					return err
				}
				return m.Posted(seqs, func(*fanfare.AcceptedEvent) {})
			})
			if err != nil {
				b.Fatal(err)
			}
		}
		if members == 0 {
			b.Fatal("nothing was loaded")
		}
	})
	b.Run("commit", func(b *testing.B) {
		for range b.N {
			b.StopTimer()
			next()
			commit := &fanfare.Commit{}
			for _, f := range events {
				commit.Entries = append(commit.Entries, entry(f, 0, 1, fanfare.Accepted))
				commit.Completions = append(commit.Completions, fanfare.Completion{Seq: f.Posted.Seq, Progress: fanfare.Progress{First: noon, Last: noon, Completed: noon}})
			}
			b.StartTimer()
			if err := s.Commit(b.Context(), day, commit); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// A workload of a broadcast: outcomes alone, in groups as connections make them. They
// answer about in the order of positions.
func BenchmarkOutcomes(b *testing.B) {
	const group, seed = 35, 1
	for name, told := range map[string]bool{"kept": false, "told": true} { // told: the service hears of them
		b.Run(name, func(b *testing.B) {
			s := deliveries.New(storetest.Open(b))
			f := frozenEvent(1, noon, 1)
			freeze(b, s, f)
			position := uint32(0)
			commit := &fanfare.Commit{Entries: make([]fanfare.Entry, group)}
			order := rand.New(rand.NewPCG(seed, 0))
			for b.Loop() {
				for i, at := range order.Perm(group) {
					commit.Entries[i] = entry(f, position+uint32(at), 1, fanfare.Accepted)
					commit.Entries[i].Told = told
					commit.Entries[i].Text, commit.Entries[i].Address = "2.0.0 Ok: queued as 14465", "person00030919@example.net"
				}
				position += group
				if err := s.Commit(b.Context(), fanfare.DayOf(noon), commit); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(position), "ns/outcome")
		})
	}
}
