package report

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"fanfare.dev/fanfare"
)

// past has four events on each of three days: every other one is of topic odd,
// every third of lane urgent; the last of each day has two manifests.
func past(t *testing.T) (*Traces, *record) {
	t.Helper()
	sizes := map[fanfare.EventRef][]int{}
	for days := range 3 {
		for stream := range uint64(4) {
			sizes[refOf(days, uint64(days)*10+stream+1)] = []int{int(stream) + 1}
		}
	}
	traces, r := newTraces(sizes)
	n := 0
	for _, ref := range slices.Backward(r.refs()) {
		b := r.broadcasts[ref]
		b.Topic, b.Lane, b.State = []string{"even", "odd"}[n%2], "normal", []string{"completed", "running"}[n%2]
		if n%3 == 0 {
			b.Lane, b.Kind = "urgent", fanfare.KindMessage
		}
		b.Stages.Kept = ref.Day.Time().Add(time.Duration(n) * time.Hour)
		n++
	}
	return traces, r
}

// paged reads a list page by page.
func paged(t *testing.T, p Pick, page func(context.Context, Pick) (ids []string, next string, err error)) []string {
	t.Helper()
	var all []string
	for {
		ids, next, err := page(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		if len(ids) > p.Limit {
			t.Errorf("%d on a page of %d", len(ids), p.Limit)
		}
		if all = append(all, ids...); next == "" {
			return all
		}
		p.After = next
	}
}

func TestPagesOfBroadcastsKeepTheOrder(t *testing.T) {
	traces, r := past(t)
	refs := r.refs()
	list := func(ctx context.Context, p Pick) (ids []string, next string, err error) {
		page, err := traces.Broadcasts(ctx, p)
		for _, b := range page.List {
			ids = append(ids, b.Event)
		}
		return ids, page.Next, err
	}
	middle := r.broadcasts[refs[5]].Stages.Kept
	for name, test := range map[string]struct {
		pick  Pick
		wants func(*fanfare.Broadcast) bool
	}{
		"all":      {Pick{}, func(*fanfare.Broadcast) bool { return true }},
		"by topic": {Pick{Topic: "odd"}, func(b *fanfare.Broadcast) bool { return b.Topic == "odd" }},
		"by kind":  {Pick{Kind: fanfare.KindMessage}, func(b *fanfare.Broadcast) bool { return b.Lane == "urgent" }},
		"by lane":  {Pick{Lane: "urgent"}, func(b *fanfare.Broadcast) bool { return b.Lane == "urgent" }},
		"by state": {Pick{State: "running"}, func(b *fanfare.Broadcast) bool { return b.State == "running" }},
		"since":    {Pick{Since: middle}, func(b *fanfare.Broadcast) bool { return !b.Stages.Kept.Before(middle) }},
		"until":    {Pick{Until: middle}, func(b *fanfare.Broadcast) bool { return b.Stages.Kept.Before(middle) }},
		"between": {Pick{Since: middle, Until: middle.Add(3 * time.Hour), Topic: "odd"}, func(b *fanfare.Broadcast) bool {
			return !b.Stages.Kept.Before(middle) && b.Stages.Kept.Before(middle.Add(3*time.Hour)) && b.Topic == "odd"
		}},
		"of another service": {Pick{Service: "weather"}, func(*fanfare.Broadcast) bool { return false }},
	} {
		var want []string
		for _, ref := range refs {
			if test.wants(r.broadcasts[ref]) {
				want = append(want, ref.String())
			}
		}
		for limit := 1; limit <= len(refs)+1; limit++ {
			p := test.pick
			p.Limit = limit
			for _, traces.Budget = range []time.Duration{0, -1} { // -1: each search is over after its first step
				if got := paged(t, p, list); !slices.Equal(got, want) {
					t.Errorf("%s by %d, budget %v: %v, want %v", name, limit, traces.Budget, got, want)
				}
			}
		}
	}
}

func TestNewBroadcastsAppearOnNoLaterPage(t *testing.T) {
	traces, r := past(t)
	first, err := traces.Broadcasts(t.Context(), Pick{Limit: 3})
	if err != nil || len(first.List) != 3 {
		t.Fatal(len(first.List), err)
	}
	late := refOf(2, 99)
	r.broadcasts[late] = &fanfare.Broadcast{Event: late.String(), Service: "news"}
	second, err := pageList(traces.Broadcasts(t.Context(), Pick{Limit: 100, After: first.Next}))
	if err != nil || len(second) != 9 || slices.ContainsFunc(second, func(b fanfare.Broadcast) bool { return b.Event == late.String() }) {
		t.Errorf("%d more, %v", len(second), err)
	}
}

func TestPagesOfAHistoryKeepTheOrder(t *testing.T) {
	traces, r := past(t)
	places := []fanfare.RowID{fanfare.NewRowID(0, 1), fanfare.NewRowID(0, 2)} // one person with two addresses
	list := func(ctx context.Context, p Pick) (ids []string, next string, err error) {
		page, err := traces.History(ctx, places, p)
		for _, d := range page.List {
			ids = append(ids, d.ID)
		}
		return ids, page.Next, err
	}
	whole, _, err := list(t.Context(), Pick{Limit: 1000})
	if err != nil || len(whole) < 12 {
		t.Fatal(len(whole), err)
	}
	seen := map[string]bool{}
	for _, id := range whole {
		if seen[id] {
			t.Errorf("%s stands twice", id)
		}
		seen[id] = true
	}
	middle := r.broadcasts[r.refs()[5]].Stages.Kept
	for limit := 1; limit <= len(whole)+1; limit++ {
		if got := paged(t, Pick{Limit: limit}, list); !slices.Equal(got, whole) {
			t.Errorf("by %d: %v, want %v", limit, got, whole)
		}
		for name, p := range map[string]Pick{"topic": {Topic: "odd"}, "since": {Since: middle}, "until": {Until: middle}, "channel": {Channel: "none"}, "state": {State: "pending"}} {
			p.Limit = 1000
			want, _, _ := list(t.Context(), p)
			if p.Channel != "" && len(want) > 0 || name != "channel" && (len(want) == 0 || name != "state" && len(want) == len(whole)) {
				t.Errorf("by %s: %d of %d", name, len(want), len(whole))
			}
			p.Limit = limit
			for _, traces.Budget = range []time.Duration{0, -1} {
				if got := paged(t, p, list); !slices.Equal(got, want) {
					t.Errorf("by %s, %d on a page, budget %v: %v, want %v", name, limit, traces.Budget, got, want)
				}
			}
			traces.Budget = 0
		}
	}
}

func TestDeliveryIsFoundByItsID(t *testing.T) {
	traces, r := past(t)
	ref := r.refs()[0]
	m := r.manifests[ref][0]
	for position := range uint32(m.Members()) {
		want := fanfare.DeliveryRef{Day: ref.Day, Manifest: m.ID, Position: position}
		if d, err := traces.Delivery(t.Context(), want); err != nil || d.ID != want.String() || d.Event != ref.String() {
			t.Errorf("%s: %+v %v", want, d, err)
		}
	}
	for name, none := range map[string]fanfare.DeliveryRef{
		"beyond the last":  {Day: ref.Day, Manifest: m.ID, Position: uint32(m.Members())},
		"another manifest": {Day: ref.Day, Manifest: m.ID + 1, Position: 0},
		"another event":    {Day: ref.Day, Manifest: fanfare.NewManifestID(fanfare.NewEventSeq(7777, 0), 0), Position: 0},
		"another day":      {Day: ref.Day + 7, Manifest: m.ID, Position: 0},
	} {
		if d, err := traces.Delivery(t.Context(), none); fanfare.CodeOf(err) != fanfare.NotFound {
			t.Errorf("%s: %s", name, fmt.Sprint(d, err))
		}
	}
}
