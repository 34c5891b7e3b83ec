package mailbox_test

import (
	"log/slog"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/mailbox"
	"fanfare.dev/fanfare/internal/store/storetest"
)

// BenchmarkBlockOfAThousand stores the messages of a broadcast to 1,000 people, of whom one in a hundred has a disabled account.
func BenchmarkBlockOfAThousand(b *testing.B) {
	w := benchWorld(b)
	for n := 1; n <= 1000; n += 100 {
		w.account(b, n)
		must(b, w.SetDisabled(b.Context(), mailbox.AccountID(n), true))
	}
	list := personal(lunch, 1000)
	seq := lunch.Seq
	for b.Loop() {
		seq++
		for i := range list {
			list[i].Delivery.Manifest = fanfare.NewManifestID(seq, 0)
		}
		for i, err := range w.DepositAll(b.Context(), list) {
			if err != nil && i%100 != 0 {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/message")
}

func benchWorld(b *testing.B) *world {
	b.Helper()
	w := &world{db: storetest.Open(b), clock: &testClock{now: noon}}
	w.Store = mailbox.New(w.db, mailbox.Options{Clock: w.clock, Logger: slog.New(slog.DiscardHandler)})
	b.Cleanup(w.Close)
	return w
}
