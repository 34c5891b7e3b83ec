package storetest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store/control"
	"fanfare.dev/fanfare/internal/store/storetest"
)

// onEachControl runs a test on the new control part of each driver.
func onEachControl(t *testing.T, test func(t *testing.T, c *control.Store)) {
	t.Helper()
	onEach(t, func(t *testing.T, place string) { test(t, control.New(storetest.OpenAt(t, place))) })
}

// people makes one batch with the subscribers at places.
func subscriberBatch(seq uint64, places ...fanfare.RowID) *control.Batch {
	b := &control.Batch{ChangeSeq: seq, At: 1}
	for _, p := range places {
		b.Subscribers[p.Partition()] = append(b.Subscribers[p.Partition()], control.SubscriberRecord{
			Place: p, Service: 1, Kind: 1, Address: fmt.Sprintf("p%d@example.org", p)})
		b.Subscriptions[p.Partition()] = append(b.Subscriptions[p.Partition()], control.SubscriptionRecord{
			Place: p, Subscriber: p, Topic: 1, Channel: 2, Data: []byte(`{"a":1}`)})
	}
	return b
}

func TestControlFindsExactlyTheWantedRowsInOrder(t *testing.T) {
	onEachControl(t, func(t *testing.T, c *control.Store) {
		var all []fanfare.RowID
		for partition := range 8 {
			for local := range uint32(400) {
				all = append(all, fanfare.NewRowID(partition*9, local*3+1))
			}
		}
		if err := c.Commit(subscriberBatch(1, all...)); err != nil {
			t.Fatal(err)
		}
		rapid.Check(t, func(t *rapid.T) {
			// Runs of different density: looked up one by one, many at once, or scanned.
			var asked []fanfare.RowID
			for range rapid.IntRange(0, 6).Draw(t, "runs") {
				at := fanfare.NewRowID(rapid.IntRange(0, 63).Draw(t, "partition"), rapid.Uint32Range(0, 1300).Draw(t, "local"))
				step := rapid.SampledFrom([]fanfare.RowID{1, 3, 7, 30}).Draw(t, "step")
				for i := range rapid.IntRange(1, 200).Draw(t, "length") {
					asked = append(asked, at+step*fanfare.RowID(i))
				}
			}
			slices.Sort(asked)
			asked = slices.Compact(asked)
			var want, got, owners []fanfare.RowID
			for _, p := range asked {
				if _, ok := slices.BinarySearch(all, p); ok {
					want = append(want, p)
				}
			}
			ctx := context.Background()
			err := errors.Join(
				c.SubscriberRecords(ctx, asked, func(r *control.SubscriberRecord) error { owners = append(owners, r.Place); return nil }),
				c.SubscriptionRecords(ctx, asked, func(r *control.SubscriptionRecord) error { got = append(got, r.Place); return nil }))
			if err != nil || !slices.Equal(got, want) || !slices.Equal(owners, want) {
				t.Fatalf("asked %v: %v\n got %v\nwant %v", asked, err, got, want)
			}
		})
	})
}

func TestControlStopsAtTheVisitorsErrorAndGoesOnAfterwards(t *testing.T) {
	onEachControl(t, func(t *testing.T, c *control.Store) {
		if err := c.Commit(subscriberBatch(1, 1, 2, 3)); err != nil {
			t.Fatal(err)
		}
		stop := errors.New("stop")
		for range 10 {
			if err := c.SubscriberRecords(context.Background(), []fanfare.RowID{1, 2, 3}, func(*control.SubscriberRecord) error { return stop }); !errors.Is(err, stop) {
				t.Fatal(err)
			}
		}
		gone, cancel := context.WithCancel(context.Background())
		cancel()
		if err := c.SubscriberRecords(gone, []fanfare.RowID{1}, func(*control.SubscriberRecord) error { return nil }); !errors.Is(err, context.Canceled) {
			t.Errorf("with an ended context: %v", err)
		}
	})
}
