package sessionlog_test

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"fanfare.dev/fanfare/internal/session"
	"fanfare.dev/fanfare/internal/session/frame"
	"fanfare.dev/fanfare/internal/session/sessionlog"
	"fanfare.dev/fanfare/internal/store"
	"fanfare.dev/fanfare/internal/store/postgres"
	"fanfare.dev/fanfare/internal/store/sqlite"
	"fanfare.dev/fanfare/internal/test/pgtest"
)

// onEachSynced runs a benchmark on each database with the durability fsync.
func onEachSynced(b *testing.B, run func(b *testing.B, l *sessionlog.Log)) {
	b.Run("sqlite", func(b *testing.B) {
		db, err := sqlite.Open(b.Context(), b.TempDir(), store.Fsync)
		must(b, err)
		run(b, sessionlog.New(db))
		must(b, db.Close())
	})
	b.Run("postgres", func(b *testing.B) {
		db, err := postgres.Open(b.Context(), pgtest.Prepared(b), postgres.Options{Durability: store.Fsync, Logger: slog.New(slog.DiscardHandler)})
		must(b, err)
		run(b, sessionlog.New(db))
		must(b, db.Close())
	})
}

// benchGroups returns the entries that 8 clients append together, each of so many requests with a body of so many bytes.
func benchGroups(r *session.Record, first uint64, count, body int) []session.Entry {
	const clients = 8
	data := make([]byte, count*(frame.RequestSize+body))
	var entries []session.Entry
	for client := range uint32(clients) {
		entries = append(entries, session.Entry{Session: r.Number, Client: client + 1, Kind: session.RequestEntry, First: first, Count: uint32(count), High: first + uint64(count) - 1, Data: data})
	}
	return entries
}

// BenchmarkAppend measures commits of a broker that has one group of requests of each of 8 clients, and their counters.
func BenchmarkAppend(b *testing.B) {
	for _, body := range []int{4, 1 << 10} {
		for _, count := range []int{50, 200, 1000} {
			b.Run(fmt.Sprintf("body=%d/group=%d", body, count), func(b *testing.B) {
				onEachSynced(b, func(b *testing.B, l *sessionlog.Log) {
					r := opened(b, l)
					a := &session.Append{Epochs: map[uint64]uint64{r.Number: r.Epoch}}
					first := uint64(1)
					requests := 0
					for b.Loop() {
						a.Entries = benchGroups(r, first, count, body)
						a.Clients = a.Clients[:0]
						for _, e := range a.Entries {
							a.Clients = append(a.Clients, session.ClientUpdate{Session: r.Number, Client: session.ClientRecord{Number: e.Client, Name: "desk", Requests: e.High, Accepted: e.High}})
							requests += count
						}
						must(b, l.Append(b.Context(), a))
						first += uint64(count)
					}
					b.ReportMetric(float64(requests)/b.Elapsed().Seconds(), "requests/s")
				})
			})
		}
	}
}

// BenchmarkEntries measures how fast the responses of one client are read, in groups of 200.
func BenchmarkEntries(b *testing.B) {
	const group, body = 200, 4
	for _, total := range []int{1_000_000, 10_000_000} {
		b.Run(fmt.Sprint(total), func(b *testing.B) {
			onEachSynced(b, func(b *testing.B, l *sessionlog.Log) {
				r := opened(b, l)
				data := make([]byte, group*(frame.ResponseSize+body))
				began := time.Now()
				for first := 1; first < total; {
					a := &session.Append{Epochs: map[uint64]uint64{r.Number: r.Epoch}}
					for range 50 {
						a.Entries = append(a.Entries, session.Entry{Session: r.Number, Client: 1, Kind: session.ResponseEntry, First: uint64(first), Count: group, High: uint64(first + group - 1), Data: data})
						first += group
					}
					must(b, l.Append(b.Context(), a))
				}
				b.Logf("%d responses were appended in %v", total, time.Since(began).Round(time.Millisecond))
				read := 0
				for b.Loop() {
					read = 0
					must(b, l.Entries(b.Context(), r.Number, 1, session.ResponseEntry, 1, 0, func(e session.Entry) bool { read += int(e.Count); return true }))
				}
				if read != total {
					b.Fatalf("%d responses were read", read)
				}
				b.ReportMetric(float64(b.N)*float64(total)/b.Elapsed().Seconds(), "responses/s")
				began = time.Now()
				must(b, l.PurgeClient(b.Context(), r.Number, 1))
				b.Logf("they were purged in %v", time.Since(began).Round(time.Millisecond))
			})
		})
	}
}
