package postgres

import (
	"fmt"
	"testing"

	"fanfare.dev/fanfare/internal/store"
	"fanfare.dev/fanfare/internal/test/pgtest"
)

// BenchmarkImport is the commit of a group of new subscriptions with their
// subscribers, as an import makes it.
func BenchmarkImport(b *testing.B) {
	for _, rows := range []int{100, 900, 5000, 16000} {
		b.Run(fmt.Sprint(rows), func(b *testing.B) {
			db, err := Open(b.Context(), pgtest.Database(b), Options{Durability: store.Relaxed})
			if err != nil {
				b.Fatal(err)
			}
			defer db.Close()
			place := int64(0)
			for b.Loop() {
				err := db.Control().Write(b.Context(), func(s store.Session) error {
					if err := s.Insert("subscribers_insert", rows, func(i int, to store.Values) {
						to.Int64(place + int64(i))
						to.Int64(1)
						to.Int64(1)
						to.Text("someone.or.other@mail.example.org")
						for range 4 {
							to.Null()
						}
					}); err != nil {
						return err
					}
					return s.Insert("subscriptions_insert", rows, func(i int, to store.Values) {
						for _, v := range []int64{place + int64(i), place + int64(i), 1, 1, 1_700_000_000_000_000_000, place, 7} {
							to.Int64(v)
						}
						for range 4 {
							to.Null()
						}
					})
				})
				if err != nil {
					b.Fatal(err)
				}
				place += int64(rows)
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(place), "us/subscription")
		})
	}
}
