package report

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fanfare.dev/fanfare"
)

// TestPagesCoverEveryDeliveryOnce reads lists of any size in pages of any size,
// of all deliveries and of one state.
func TestPagesCoverEveryDeliveryOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ref := refOf(0, 5)
		sizes := rapid.SliceOfN(rapid.IntRange(1, 1300), 0, 4).Draw(t, "sizes")
		traces, r := newTraces(map[fanfare.EventRef][]int{ref: sizes})
		traces.Budget = rapid.SampledFrom([]time.Duration{time.Hour, -1}).Draw(t, "budget") // never over, or after the first step
		state := rapid.SampledFrom([]string{"", "accepted", "pending", "failed"}).Draw(t, "state")
		every, failing := rapid.IntRange(1, 9).Draw(t, "every"), rapid.IntRange(1, 4).Draw(t, "failing")
		reason := rapid.SampledFrom([]string{"", "550 5.1.1 … unknown"}).Draw(t, "reason")
		var want []string
		for _, m := range r.manifests[ref] {
			for position := range uint32(m.Members()) {
				delivery := fanfare.DeliveryRef{Day: ref.Day, Manifest: m.ID, Position: position}
				is, why := "pending", ""
				switch {
				case int(position)%failing == 1:
					is = "failed"
					e := fanfare.Entry{Delivery: delivery, Attempt: 1, State: fanfare.Failed, Code: 452, Text: "4.2.2 full", At: noon}
					if position%3 == 0 {
						e.Code, e.Text, why = 550, fmt.Sprintf("5.1.1 <%d@example.org> unknown", position), "550 5.1.1 … unknown"
					}
					r.attempts = append(r.attempts, e)
				case int(position)%every == 0:
					is = "accepted"
					r.attempts = append(r.attempts, fanfare.Entry{Delivery: delivery, Attempt: 1, State: fanfare.Accepted, At: noon})
				}
				if (state == "" || state == is) && (reason == "" || reason == why) {
					want = append(want, delivery.String())
				}
			}
		}
		var got []string
		after := ""
		for {
			limit := rapid.IntRange(1, 2000).Draw(t, "limit")
			found, err := traces.PickDeliveries(context.Background(), ref, &DeliveryPick{State: state, Reason: reason, After: after, Limit: limit})
			page, next := found.List, found.Next
			if err != nil {
				t.Fatal(err)
			}
			if len(page) > limit || next != "" && len(page) < limit && (traces.Budget > 0 || state == "" && reason == "") {
				t.Fatalf("a page of %d has %d deliveries and %q behind it", limit, len(page), next)
			}
			for _, d := range page {
				got = append(got, d.ID)
			}
			if next == "" {
				break
			}
			after = next
		}
		if !slices.Equal(got, want) {
			t.Fatalf("the pages have %d deliveries, want %d", len(got), len(want))
		}
	})
}

func TestDeliveryHasAllDetails(t *testing.T) {
	ref := refOf(0, 5)
	traces, r := newTraces(map[fanfare.EventRef][]int{ref: {2}})
	delivery := fanfare.DeliveryRef{Day: ref.Day, Manifest: r.manifests[ref][0].ID, Position: 1}
	r.attempts = []fanfare.Entry{
		{Delivery: delivery, Attempt: 1, State: fanfare.Deferred, Code: 451, Text: "later", Relay: "relay:25", Address: "old@example.org", At: noon, NextAt: noon.Add(time.Minute)},
		{Delivery: delivery, Attempt: 2, State: fanfare.Accepted, Code: 250, Text: "queued as 17", Relay: "relay:25", Address: "sent@example.org", At: noon.Add(time.Minute)},
	}
	page, _, err := traces.Deliveries(t.Context(), ref, "", 10)
	if err != nil || len(page) != 2 {
		t.Fatalf("%d deliveries, %v", len(page), err)
	}
	d := page[1]
	if d.ID != delivery.String() || d.Event != ref.String() || d.Service != "news" || d.Topic != "story" || d.Channel != "channel-2" || d.Subscriber != "id-1" ||
		!slices.Equal(d.Subscriptions, []string{"sub-1", "sub-2"}) || d.Template != "story@3" || d.Address != "sent@example.org" || d.State != "accepted" || len(d.Attempts) != 2 {
		t.Errorf("delivery %+v", d)
	}
	if a := d.Attempts[0]; a.Number != 1 || a.Status != "deferred" || a.Code != 451 || a.Text != "later" || a.Relay != "relay:25" || !a.At.Equal(noon) || !a.NextAt.Equal(noon.Add(time.Minute)) {
		t.Errorf("attempt %+v", a)
	}
	if p := page[0]; p.State != "pending" || p.Address != "0@example.org" || p.Attempts == nil || len(p.Attempts) != 0 {
		t.Errorf("one that was not tried: %+v", p)
	}
	mine, err := traces.DeliveryOf(t.Context(), ref, "1@example.org")
	if err != nil || len(mine) != 1 || mine[0].ID != delivery.String() {
		t.Errorf("of one recipient: %+v, %v", mine, err)
	}
	if none, err := traces.DeliveryOf(t.Context(), ref, "9@example.org"); err != nil || none == nil || len(none) != 0 {
		t.Errorf("of one who got nothing: %+v, %v", none, err)
	}
}

func TestForeignCursorIsRefused(t *testing.T) {
	ref := refOf(0, 5)
	traces, _ := newTraces(map[fanfare.EventRef][]int{ref: {3, 3}, refOf(0, 6): {3}})
	for _, after := range []string{"x", "-", "1-", "-1", "1-1", cursor(fanfare.NewManifestID(refOf(0, 6).Seq, 0), 0), cursor(fanfare.NewManifestID(ref.Seq, 0), 0) + "f00000000", "ffffffffffffffffff-1"} {
		if page, next, err := traces.Deliveries(t.Context(), ref, after, 10); fanfare.CodeOf(err) != fanfare.Invalid {
			t.Errorf("%q: got %d deliveries, %q, %v", after, len(page), next, err)
		}
	}
	behind := cursor(fanfare.NewManifestID(ref.Seq, 63), 7)
	if page, next, err := traces.Deliveries(t.Context(), ref, behind, 10); err != nil || len(page) != 0 || next != "" {
		t.Errorf("behind the end: %d deliveries, %q, %v", len(page), next, err)
	}
}

func TestUnmatchedEventIsQueued(t *testing.T) {
	traces, _ := newTraces(nil)
	ref := refOf(0, 5)
	posted := &fanfare.AcceptedEvent{Service: "news", Topic: "story", Lane: fanfare.Urgent, ReceivedAt: noon.Add(-time.Second), Event: fanfare.Event{ID: "e5", Source: "/s", Data: []byte(`{}`)}}
	traces.Queue = waiting{ref: posted}
	b, err := traces.Broadcast(t.Context(), ref)
	if err != nil || b.State != "queued" || b.Service != "news" || b.Topic != "story" || b.Lane != "urgent" || b.SourceID != "e5" || b.Source != "/s" ||
		b.Event != ref.String() || !b.Stages.Kept.Equal(noon) || !b.Stages.Received.Equal(noon.Add(-time.Second)) {
		t.Errorf("got %+v, %v", b, err)
	}
	if found, err := traces.FindEvent(t.Context(), "news", ref.String()); err != nil || found != ref {
		t.Errorf("found %v, %v", found, err)
	}
	if page, next, err := traces.Deliveries(t.Context(), ref, "", 10); err != nil || page == nil || len(page) != 0 || next != "" {
		t.Errorf("deliveries %v, %q, %v", page, next, err)
	}
	if list, err := traces.DeliveryOf(t.Context(), ref, "1@example.org"); err != nil || len(list) != 0 {
		t.Errorf("deliveries %v, %v", list, err)
	}
	if _, err := traces.Broadcast(t.Context(), refOf(0, 6)); fanfare.CodeOf(err) != fanfare.NotFound {
		t.Errorf("an event that nobody knows: %v", err)
	}
}

// passing is the queue at the moment at which an event goes from it to the store.
type passing struct {
	to *record
	b  *fanfare.Broadcast
}

func (p passing) Queued(_ context.Context, ref fanfare.EventRef) (*fanfare.AcceptedEvent, time.Time, error) {
	p.to.broadcasts[ref] = p.b
	return nil, time.Time{}, nil
}

func TestEventMatchedDuringTheLookupIsFound(t *testing.T) {
	ref := refOf(0, 5)
	traces, r := newTraces(map[fanfare.EventRef][]int{ref: {3}})
	traces.Queue = passing{r, r.broadcasts[ref]}
	delete(r.broadcasts, ref)
	if b, err := traces.Broadcast(t.Context(), ref); err != nil || b.Event != ref.String() {
		t.Errorf("got %+v, %v", b, err)
	}
}

func TestEventIsFoundByItsOwnIDInItsService(t *testing.T) {
	traces, r := newTraces(map[fanfare.EventRef][]int{refOf(0, 5): {1}, refOf(-3, 2): {1}})
	for _, b := range r.broadcasts {
		b.SourceID = "same"
	}
	r.days = slices.Insert(r.days, 1, r.days[0]-1) // removed since it was listed
	for _, c := range []struct {
		service, id string
		want        fanfare.EventRef
	}{
		{"news", "same", refOf(0, 5)},
		{"news", refOf(-3, 2).String(), refOf(-3, 2)},
		{"", refOf(-3, 2).String(), refOf(-3, 2)},
		{"weather", "same", fanfare.EventRef{}},
		{"weather", refOf(0, 5).String(), fanfare.EventRef{}},
		{"news", "other", fanfare.EventRef{}},
	} {
		got, err := traces.FindEvent(t.Context(), c.service, c.id)
		if c.want == (fanfare.EventRef{}) {
			if fanfare.CodeOf(err) != fanfare.NotFound {
				t.Errorf("%q in %q: got %v, %v", c.id, c.service, got, err)
			}
		} else if err != nil || got != c.want {
			t.Errorf("%q in %q: got %v, %v, want %v", c.id, c.service, got, err, c.want)
		}
	}
}

func TestRunningBroadcastHasTheCountsOfTheRecorder(t *testing.T) {
	ref := refOf(0, 5)
	traces, _ := newTraces(map[fanfare.EventRef][]int{ref: {4}})
	progress := fanfare.Progress{Counts: fanfare.Counts{fanfare.Pending: 3, fanfare.Accepted: 1}, First: noon, Last: noon.Add(time.Second)}
	traces.Progress = counts{ref: progress}
	b, err := traces.Broadcast(t.Context(), ref)
	if err != nil || b.Counts != progress.Counts || !b.Stages.First.Equal(noon) || !b.Stages.Last.Equal(noon.Add(time.Second)) {
		t.Errorf("got %+v, %v", b, err)
	}
	if list, err := pageList(traces.Broadcasts(t.Context(), Pick{Limit: 10})); err != nil || len(list) != 1 || list[0].Counts != progress.Counts {
		t.Errorf("list %+v, %v", list, err)
	}
}

// TestBroadcastIsConsistent has the recorder know nothing of a broadcast that was
// not completed when the store was asked for it.
func TestBroadcastIsConsistent(t *testing.T) {
	ref := refOf(0, 5)
	done := fanfare.Counts{fanfare.Accepted: 4}
	for name, c := range map[string]struct {
		completes func(*fanfare.Broadcast)
		state     string
		counts    fanfare.Counts
		running   int // how many a list of those that run has
	}{
		"it is about to begin":   {nil, "running", fanfare.Counts{fanfare.Pending: 4}, 1},
		"it was completed since": {func(b *fanfare.Broadcast) { b.State, b.Counts, b.Stages.Completed = "completed", done, noon }, "completed", done, 0},
	} {
		t.Run(name, func(t *testing.T) {
			traces, r := newTraces(map[fanfare.EventRef][]int{ref: {4}})
			r.completes = c.completes
			if b, err := traces.Broadcast(t.Context(), ref); err != nil || b.Counts != c.counts || b.State != c.state {
				t.Errorf("got %+v, %v", b, err)
			}
			for state, n := range map[string]int{"": 1, "running": c.running} {
				traces, r := newTraces(map[fanfare.EventRef][]int{ref: {4}})
				r.completes, r.looks = c.completes, 1 // the list was the first
				list, err := pageList(traces.Broadcasts(t.Context(), Pick{State: state, Limit: 10}))
				if err != nil || len(list) != n || n > 0 && (list[0].Counts != c.counts || list[0].State != c.state) {
					t.Errorf("listed with the state %q: %+v, %v", state, list, err)
				}
			}
		})
	}
}

func TestHistoryIsSortedAcrossDays(t *testing.T) {
	sizes := map[fanfare.EventRef][]int{}
	var all []fanfare.EventRef
	for days := range 3 {
		for stream := range uint64(4) {
			ref := refOf(days, uint64(days)*10+stream+1)
			sizes[ref] = []int{int(stream) + 1}
			all = append(all, ref)
		}
	}
	slices.Reverse(all)
	traces, r := newTraces(sizes)
	r.days = slices.Insert(r.days, 1, 1) // removed since it was listed
	r.broadcasts[refOf(1, 14)].Service = "weather"
	person := fanfare.NewRowID(0, 1) // in all but the first of each day
	var want []string
	for _, ref := range all {
		if sizes[ref][0] > 1 && r.broadcasts[ref].Service == "news" {
			want = append(want, ref.String())
		}
	}
	for limit := 1; limit < len(want)+3; limit++ {
		found, err := traces.History(t.Context(), []fanfare.RowID{person}, Pick{Service: "news", Limit: limit})
		list, next := found.List, found.Next
		if err != nil {
			t.Fatal(err)
		}
		if (next != "") != (limit < len(want)) {
			t.Errorf("after %d of %d the list goes on at %q", limit, len(want), next)
		}
		var got []string
		for _, d := range list {
			got = append(got, d.Event)
		}
		if !slices.Equal(got, want[:min(limit, len(want))]) {
			t.Errorf("the newest %d are %v, want %v", limit, got, want[:min(limit, len(want))])
		}
		listed, err := pageList(traces.Broadcasts(t.Context(), Pick{Service: "news", Limit: limit}))
		if err != nil || len(listed) != min(limit, 11) {
			t.Errorf("a list of %d has %d broadcasts, %v", limit, len(listed), err)
		}
	}
}

func TestOnlyARunningBroadcastHasAnEstimate(t *testing.T) {
	ref := refOf(0, 5)
	traces, r := newTraces(map[fanfare.EventRef][]int{ref: {4}})
	traces.Progress = counts{ref: {Counts: fanfare.Counts{fanfare.Pending: 3, fanfare.Accepted: 1}}}
	for state, want := range map[string]bool{"running": true, "paused": false, "cancelled": false} {
		r.broadcasts[ref].State = state
		if b, err := traces.Broadcast(t.Context(), ref); err != nil || b.PerSecond == 0 || b.End.IsZero() == want {
			t.Errorf("%s: %v/s, ends %v (%v)", state, b.PerSecond, b.End, err)
		}
	}
}

// More failed deliveries than one read of the index returns, with and without gaps, over two manifests.
func TestPagesOfFailedDeliveriesAreComplete(t *testing.T) {
	for _, gap := range []uint32{1, 2} {
		ref := refOf(0, 5)
		traces, r := newTraces(map[fanfare.EventRef][]int{ref: {3 * chunk, 2*chunk + 1}})
		traces.Budget = time.Hour
		var want []string
		for _, m := range r.manifests[ref] {
			for position := uint32(0); position < uint32(m.Members()); position += gap {
				delivery := fanfare.DeliveryRef{Day: ref.Day, Manifest: m.ID, Position: position}
				r.attempts = append(r.attempts, fanfare.Entry{Delivery: delivery, Attempt: 1, State: fanfare.Failed, Code: 550, At: noon})
				want = append(want, delivery.String())
			}
		}
		for _, limit := range []int{chunk - 1, chunk, chunk + 1, len(want), len(want) + 1} {
			var got []string
			for after, more := "", true; more; {
				page, err := traces.PickDeliveries(t.Context(), ref, &DeliveryPick{State: "failed", After: after, Limit: limit})
				if err != nil || len(page.List) > limit {
					t.Fatal(len(page.List), err)
				}
				for _, d := range page.List {
					got = append(got, d.ID)
				}
				after, more = page.Next, page.Next != ""
			}
			if !slices.Equal(got, want) {
				t.Errorf("every %d failed, %d on a page: the pages have %d deliveries, want %d", gap, limit, len(got), len(want))
			}
		}
	}
}
