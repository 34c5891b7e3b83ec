package mailbox_test

import (
	"fmt"
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

// BenchmarkFirstAccessAfterAYear reads the inboxes of people who have not opened one of 365 daily broadcasts to 10,000 people.
func BenchmarkFirstAccessAfterAYear(b *testing.B) {
	const people, block, days = 10_000, 1000, 365
	w := benchWorld(b)
	list := make([]mailbox.Deposit, people)
	for i := range list {
		list[i].Owner = owner(i + 1)
	}
	for day := range days {
		for i := range list {
			list[i].Content = mail(fmt.Sprintf("news of day %d", day), fmt.Sprintf("Hello person %d,\r\nhttps://example.org/unsubscribe/%x", i+1, uint64(i+1)*uint64(day+1)*0x9e3779b97f4a7c15))
			list[i].Delivery = fanfare.DeliveryRef{Day: lunch.Day + fanfare.Day(day), Manifest: fanfare.NewManifestID(lunch.Seq, 0), Position: uint32(i)}
		}
		for from := 0; from < people; from += block {
			w.depositAll(b, list[from:from+block])
		}
	}
	n := 0
	for b.Loop() {
		n = n%people + 1
		w.account(b, n)
		if got := len(w.inbox(b, n)); got != days {
			b.Fatalf("the inbox of person %d has %d messages", n, got)
		}
		n += block - 1
	}
}
