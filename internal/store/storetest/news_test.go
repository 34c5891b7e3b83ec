package storetest_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/store/control"
)

// TestNewsArePlannedInTheirOrderUntilTheyAreTold compares with a list: what came with a
// commit is told, once, in the order in which it was kept; and what was planned and not
// told is planned again, neither more nor less of it.
func TestNewsArePlannedInTheirOrderUntilTheyAreTold(t *testing.T) {
	onEachControl(t, func(t *testing.T, c *control.Store) {
		number := 0
		rapid.Check(t, func(rt *rapid.T) {
			var kept, planned []string // not told yet, and what of it a plan has
			var groups []int64         // when each that waits was kept
			tell := func(t *rapid.T, most int, over bool) {
				plan, err := c.PlanNotices(t.Context(), most)
				if err != nil {
					t.Fatal(err)
				}
				var got []string
				for i := range plan {
					for j := range plan[i].Notices {
						got = append(got, fmt.Sprint(plan[i].Notices[j]))
					}
				}
				if planned == nil {
					planned = kept[:min(len(got), len(kept))]
					if len(plan) != min(most, len(groups)) {
						t.Fatalf("%d groups are planned, %d wait", len(plan), len(groups))
					}
				}
				if fmt.Sprint(got) != fmt.Sprint(planned) {
					t.Fatalf("planned are %q, want %q", got, planned)
				}
				if len(plan) == 0 {
					planned = nil
				} else if over {
					if err := c.DeleteNotices(t.Context(), plan); err != nil {
						t.Fatal(err)
					}
					kept, groups, planned = kept[len(got):], groups[len(plan):], nil
				}
			}
			defer func() {
				for planned != nil || len(kept) > 0 {
					tell(rt, 100, true)
				}
			}()
			rt.Repeat(map[string]func(*rapid.T){
				"keep": func(t *rapid.T) {
					number++
					b := &control.Batch{At: int64(number)}
					for i := range rapid.SampledFrom([]int{0, 1, 3}).Draw(t, "n") {
						b.Notices = append(b.Notices, control.Notice{Kind: control.NoticeUnsubscribed, Source: people.SourceMail, Reason: "often", At: int64(number), Service: 3,
							Subscription: fanfare.RowID(number), Topic: uint32(i), Channel: 9, Subscriber: 1<<32 - 1, Fields: []string{"ü"}, Until: 1<<62 + 1, AllServices: true})
						kept = append(kept, fmt.Sprint(b.Notices[i]))
						if i == 0 {
							groups = append(groups, b.At)
						}
					}
					if err := c.Commit(b); err != nil {
						t.Fatal(err)
					}
				},
				"tell":  func(t *rapid.T) { tell(t, rapid.IntRange(1, 5).Draw(t, "most"), true) },
				"crash": func(t *rapid.T) { tell(t, rapid.IntRange(1, 5).Draw(t, "most"), false) },
				"": func(t *rapid.T) {
					waiting, oldest, err := c.WaitingNotices(t.Context())
					first := time.Time{}
					if len(groups) > 0 {
						first = time.Unix(0, groups[0]).UTC()
					}
					if err != nil || waiting != int64(len(kept)) || !oldest.Equal(first) {
						t.Errorf("%d wait since %v, want %d since %v: %v", waiting, oldest, len(kept), first, err)
					}
				},
			})
		})
	})
}
