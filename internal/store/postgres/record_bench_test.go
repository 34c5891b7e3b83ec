package postgres

import (
	"fmt"
	"testing"

	"fanfare.dev/fanfare/internal/store"
	"fanfare.dev/fanfare/internal/test/pgtest"
)

// BenchmarkRecord is the commit of a group of outcomes, as the recorder makes
// it: new positions of one manifest. The groups of a running broadcast have about
// as many rows as there are connections to relays.
func BenchmarkRecord(b *testing.B) {
	for _, durability := range []store.Durability{store.Fsync, store.Relaxed} {
		for _, rows := range []int{1, 8, 42, 512, 5000} {
			b.Run(fmt.Sprintf("%s/%d", durability, rows), func(b *testing.B) {
				db, err := Open(b.Context(), pgtest.Database(b), Options{Durability: durability})
				if err != nil {
					b.Fatal(err)
				}
				defer db.Close()
				part, err := db.Day(b.Context(), today, true)
				if err != nil {
					b.Fatal(err)
				}
				position := int64(0)
				for b.Loop() {
					if err := record(part, 1, position, rows); err != nil {
						b.Fatal(err)
					}
					position += int64(rows)
				}
				b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(position), "us/row")
			})
		}
	}
}
