package sqlite

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"
	"zombiezen.com/go/sqlite"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/registry"
)

func openControl(tb testing.TB) *Control {
	tb.Helper()
	c, err := OpenControl(context.Background(), filepath.Join(tb.TempDir(), "control.db"), Relaxed)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { c.Close() })
	return c
}

// people makes one batch with the subscribers at places.
func people(seq uint64, places ...fanfare.Place) *registry.Batch {
	b := &registry.Batch{ChangeSeq: seq, At: 1}
	for _, p := range places {
		b.Subscribers[p.Partition()] = append(b.Subscribers[p.Partition()], registry.SubscriberRecord{
			Place: p, Service: 1, Kind: 1, Address: fmt.Sprintf("p%d@example.org", p)})
		b.Subscriptions[p.Partition()] = append(b.Subscriptions[p.Partition()], registry.SubscriptionRecord{
			Place: p, Subscriber: p, Topic: 1, Channel: 2, Data: []byte(`{"a":1}`)})
	}
	return b
}

func TestControlFindsExactlyTheWantedRowsInOrder(t *testing.T) {
	c := openControl(t)
	var all []fanfare.Place
	for partition := range 8 {
		for local := range uint32(400) {
			all = append(all, fanfare.NewPlace(partition*9, local*3+1))
		}
	}
	if err := c.Commit(people(1, all...)); err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		// Runs of different density: looked up one by one, many at once, or scanned.
		var asked []fanfare.Place
		for range rapid.IntRange(0, 6).Draw(t, "runs") {
			at := fanfare.NewPlace(rapid.IntRange(0, 63).Draw(t, "partition"), rapid.Uint32Range(0, 1300).Draw(t, "local"))
			step := rapid.SampledFrom([]fanfare.Place{1, 3, 7, 30}).Draw(t, "step")
			for i := range rapid.IntRange(1, 200).Draw(t, "length") {
				asked = append(asked, at+step*fanfare.Place(i))
			}
		}
		slices.Sort(asked)
		asked = slices.Compact(asked)
		var want, got, owners []fanfare.Place
		for _, p := range asked {
			if _, ok := slices.BinarySearch(all, p); ok {
				want = append(want, p)
			}
		}
		ctx := context.Background()
		err := errors.Join(
			c.SubscriberRecords(ctx, asked, func(r *registry.SubscriberRecord) error { owners = append(owners, r.Place); return nil }),
			c.SubscriptionRecords(ctx, asked, func(r *registry.SubscriptionRecord) error { got = append(got, r.Place); return nil }))
		if err != nil || !slices.Equal(got, want) || !slices.Equal(owners, want) {
			t.Fatalf("asked %v: %v\n got %v\nwant %v", asked, err, got, want)
		}
	})
}

func TestControlStopsAtTheVisitorsErrorAndGoesOnAfterwards(t *testing.T) {
	c := openControl(t)
	if err := c.Commit(people(1, 1, 2, 3)); err != nil {
		t.Fatal(err)
	}
	stop := errors.New("stop")
	for range 2 * controlReaders {
		if err := c.SubscriberRecords(context.Background(), []fanfare.Place{1, 2, 3}, func(*registry.SubscriberRecord) error { return stop }); !errors.Is(err, stop) {
			t.Fatal(err)
		}
	}
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	if err := c.SubscriberRecords(gone, []fanfare.Place{1}, func(*registry.SubscriberRecord) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("with an ended context: %v", err)
	}
}

func TestAFullDiskKeepsNothingOfTheBatchAndTheNextOneWorks(t *testing.T) {
	c := openControl(t)
	if err := c.Commit(people(1, 1)); err != nil {
		t.Fatal(err)
	}
	var many []fanfare.Place
	for local := range uint32(20_000) {
		many = append(many, fanfare.NewPlace(5, local+1))
	}
	if err := c.run("PRAGMA max_page_count = 60"); err != nil {
		t.Fatal(err)
	}
	if err := c.Commit(people(2, many...)); fanfare.CodeOf(err) != fanfare.DiskFull {
		t.Fatalf("error is %v", err)
	}
	count := func() (subscribers, subscriptions int, seq uint64) {
		err := c.Load(context.Background(), registry.Loader{
			ChangeSeq:    func(s uint64) { seq = s },
			Config:       func(*registry.ConfigRecord) error { return nil },
			Filter:       func(*registry.FilterRecord) error { return nil },
			Subscriber:   func(*registry.SubscriberRecord) error { subscribers++; return nil },
			Subscription: func(*registry.SubscriptionRecord) error { subscriptions++; return nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		return subscribers, subscriptions, seq
	}
	if a, b, seq := count(); a != 1 || b != 1 || seq != 1 {
		t.Errorf("after the failure: %d subscribers, %d subscriptions, change sequence %d", a, b, seq)
	}
	if err := c.run("PRAGMA max_page_count = 1000000"); err != nil {
		t.Fatal(err)
	}
	if err := c.Commit(people(2, many...)); err != nil {
		t.Fatal(err)
	}
	if a, b, seq := count(); a != 20_001 || b != 20_001 || seq != 2 {
		t.Errorf("after the next: %d subscribers, %d subscriptions, change sequence %d", a, b, seq)
	}
}

func TestAFileOfAnotherProgramIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "control.db")
	conn, err := openWriter(path, Relaxed, 1024)
	if err != nil {
		t.Fatal(err)
	}
	other := Control{writer: conn, readers: make(chan *sqlite.Conn)}
	if err := errors.Join(other.run("CREATE TABLE theirs (a)"), other.Close()); err != nil {
		t.Fatal(err)
	}
	if c, err := OpenControl(context.Background(), path, Relaxed); err == nil {
		c.Close()
		t.Error("it was opened")
	}
}

// BenchmarkControlRead reads 1,000 neighbours, as the loading of a batch does.
func BenchmarkControlRead(b *testing.B) {
	for _, step := range []uint32{1, 4, 20} {
		b.Run(fmt.Sprintf("one of %d", step), func(b *testing.B) {
			c := openControl(b)
			var all, asked []fanfare.Place
			for local := range uint32(20_000) {
				all = append(all, fanfare.NewPlace(5, local+1))
			}
			for i := range uint32(1000) {
				asked = append(asked, fanfare.NewPlace(5, i*step+1))
			}
			if err := c.Commit(people(1, all...)); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				n := 0
				err := c.SubscriberRecords(context.Background(), asked, func(*registry.SubscriberRecord) error { n++; return nil })
				if err != nil || n != 1000 {
					b.Fatal(n, err)
				}
			}
		})
	}
}
