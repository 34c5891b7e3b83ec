package sqlite

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
)

// BenchmarkImport is the commit of a group of new subscriptions with their subscribers,
// as an import makes it, at the ends of all partitions; and at the end of one, which
// says what it costs that they are many.
func BenchmarkImport(b *testing.B) {
	for _, partitions := range []int{1, fanfare.Partitions} {
		for _, rows := range []int{1000, 5000, 16_000} {
			b.Run(fmt.Sprintf("%d partitions/%d", partitions, rows), func(b *testing.B) {
				db, err := Open(b.Context(), b.TempDir(), store.Relaxed)
				if err != nil {
					b.Fatal(err)
				}
				defer db.Close()
				random := rand.New(rand.NewPCG(1, 2))
				var next [fanfare.Partitions]uint32
				n := 0
				for b.Loop() {
					b.StopTimer()
					places := newPlaces(&next, rows, func() int { return random.IntN(partitions) })
					b.StartTimer()
					if err := db.Control().Write(b.Context(), func(s store.Session) error { return insertPeople(s, places) }); err != nil {
						b.Fatal(err)
					}
					n += rows
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/subscription")
			})
		}
	}
}

// newPlaces gives out n places in partitions that choose names, in order.
func newPlaces(next *[fanfare.Partitions]uint32, n int, choose func() int) []fanfare.RowID {
	first := *next
	for range n {
		next[choose()]++
	}
	places := make([]fanfare.RowID, 0, n)
	for partition := range next {
		for local := first[partition]; local < next[partition]; local++ {
			places = append(places, fanfare.NewRowID(partition, local+1))
		}
	}
	return places
}

// insertPeople inserts a subscriber and a subscription with data at each of places.
func insertPeople(s store.Session, places []fanfare.RowID) error {
	err := s.Insert("subscribers_insert", len(places), func(i int, to store.Values) {
		to.Int64(int64(places[i]))
		to.Int64(1)
		to.Int64(1)
		to.Text("someone.or.other@mail.example.org")
		for range 4 {
			to.Null()
		}
	})
	if err != nil {
		return err
	}
	return s.Insert("subscriptions_insert", len(places), func(i int, to store.Values) {
		for _, v := range []int64{int64(places[i]), int64(places[i]), 1, 1, 1_700_000_000_000_000_000, 12_345, 7} {
			to.Int64(v)
		}
		for range 3 {
			to.Null()
		}
		to.Text(`{"name":"Someone Or Other","link":"https://example.org/unsubscribe/1234567890"}`)
		to.Null()
	})
}
