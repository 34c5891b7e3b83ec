package dispatch

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/deliver"
	"fanfare.dev/fanfare/internal/render"
)

func TestDigestOmitsEndedSubscriptions(t *testing.T) {
	member := &fanfare.Member{Subscriptions: []fanfare.RowID{3, 5, 9}, Items: []fanfare.Item{{Number: 0, Subscription: 5}, {Number: 2, Subscription: 3}, {Number: 2, Subscription: 9}, {Number: 7, Subscription: 3}}}
	for _, c := range []struct {
		live []fanfare.RowID
		want string
	}{
		{[]fanfare.RowID{3, 5, 9}, "[{0 [1]} {2 [0 2]} {7 [0]}]"},
		{[]fanfare.RowID{5, 9}, "[{0 [0]} {2 [1]}]"},
		{[]fanfare.RowID{3}, "[{2 [0]} {7 [0]}]"},
		{[]fanfare.RowID{9}, "[{2 [0]}]"},
		{nil, "[]"},
	} {
		var live []render.Subscription
		for _, place := range c.live {
			live = append(live, render.Subscription{Row: place})
		}
		if got := fmt.Sprint(itemsOf(member, live)); got != c.want {
			t.Errorf("with %v it is %s, want %s", c.live, got, c.want)
		}
	}
}

func TestDigestIsWrittenAgainWhenASubscriptionEnds(t *testing.T) {
	for _, c := range []struct {
		of     []fanfare.RowID
		ofEach bool
		live   []fanfare.RowID
		want   deliver.Decision
	}{
		{nil, false, nil, deliver.Go},
		{[]fanfare.RowID{1, 2}, false, []fanfare.RowID{2}, deliver.Go},
		{[]fanfare.RowID{1, 2}, false, nil, deliver.Suppress},
		{[]fanfare.RowID{1, 2}, true, []fanfare.RowID{1, 2}, deliver.Go},
		{[]fanfare.RowID{1, 2}, true, []fanfare.RowID{2}, deliver.Reload},
		{[]fanfare.RowID{1, 2}, true, nil, deliver.Suppress},
	} {
		live := func(place fanfare.RowID) bool { return slices.Contains(c.live, place) }
		if got, _ := checkSubscriptions(&deliver.Job{Subscriptions: c.of, RequiresAll: c.ofEach}, live); got != c.want {
			t.Errorf("%+v: decided %d", c, got)
		}
	}
}

// fakeItems has an event for any number, and counts the reads.
type fakeItems struct {
	reads int
	size  int
	read  []uint32
}

func (k *fakeItems) Items(_ context.Context, _ fanfare.EventRef, numbers []uint32, visit func(fanfare.RunItem) error) error {
	k.reads++
	if !slices.IsSorted(numbers) {
		return fmt.Errorf("%v are not in order", numbers)
	}
	k.read = append(k.read, numbers...)
	for _, n := range numbers {
		event := fanfare.Event{ID: fmt.Sprint(n), Data: make([]byte, k.size)}
		if err := visit(fanfare.RunItem{Number: n, Posted: &fanfare.AcceptedEvent{Topic: "t", Event: event}}); err != nil {
			return err
		}
	}
	return nil
}

func TestItemsAreReadOnceAndBounded(t *testing.T) {
	members := func(run fanfare.EventSeq, items ...[]uint32) (all []openMember) {
		for _, numbers := range items {
			p := openMember{ref: fanfare.DeliveryRef{Manifest: fanfare.NewManifestID(run, 0)}}
			for _, n := range numbers {
				p.member.Items = append(p.member.Items, fanfare.Item{Number: n})
			}
			all = append(all, p)
		}
		return all
	}
	run := fanfare.NewEventSeq(1, 1)
	store := &fakeItems{size: 10}
	r := &runItems{store: store, run: fanfare.EventRef{Seq: run}}
	all := append(members(run, []uint32{4, 2}, []uint32{2, 9}), members(fanfare.NewEventSeq(2, 1), []uint32{30})...)
	for i := range all[:2] {
		if err := r.fetch(t.Context(), all[i:]); err != nil {
			t.Fatal(err)
		}
	}
	if !reflect.DeepEqual(store.read, []uint32{2, 4, 9}) || store.reads != 1 {
		t.Errorf("%v were read, in %d times", store.read, store.reads)
	}
	if item := r.digest(&fanfare.Run{}).Item(9); item == nil || item.Event.ID != "9" || item.Topic != "t" {
		t.Errorf("item 9 is %+v", item)
	}
	store = &fakeItems{size: maxItemBytes / 2}
	r = &runItems{store: store, run: fanfare.EventRef{Seq: run}}
	for n := range uint32(12) {
		one := members(run, []uint32{n, n + 1})
		if err := r.fetch(t.Context(), one); err != nil {
			t.Fatal(err)
		}
		if r.lacks(&one[0]) || r.bytes > 2*maxItemBytes {
			t.Fatalf("member %d lacks an item, or %d bytes are kept", n, r.bytes)
		}
	}
}
