package storetest_test

import (
	"context"
	"fmt"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store/control"
	"fanfare.dev/fanfare/internal/store/storetest"
)

// BenchmarkControlRead reads 1,000 neighbours, as the loading of a batch does.
func BenchmarkControlRead(b *testing.B) {
	for _, step := range []uint32{1, 4, 20} {
		b.Run(fmt.Sprintf("one of %d", step), func(b *testing.B) {
			c := control.New(storetest.Open(b))
			var all, asked []fanfare.RowID
			for local := range uint32(20_000) {
				all = append(all, fanfare.NewRowID(5, local+1))
			}
			for i := range uint32(1000) {
				asked = append(asked, fanfare.NewRowID(5, i*step+1))
			}
			if err := c.Commit(subscriberBatch(1, all...)); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				n := 0
				err := c.SubscriberRecords(context.Background(), asked, func(*control.SubscriberRecord) error { n++; return nil })
				if err != nil || n != 1000 {
					b.Fatal(n, err)
				}
			}
		})
	}
}
