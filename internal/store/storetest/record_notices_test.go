package storetest_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store/deliveries"
)

func noticeText(e *fanfare.Entry) string {
	return fmt.Sprint(e.Delivery, e.Attempt, e.State, e.Returned, e.Complaint, e.Class, e.Code, e.Text, e.At.UnixNano())
}

// TestNoticesArePlannedInOrderUntilTheyAreSent compares with a list: what was
// marked is told, once, in the order in which it was kept; and what was planned and not
// told is planned again, neither more nor less of it.
func TestNoticesArePlannedInOrderUntilTheyAreSent(t *testing.T) {
	onEachRecord(t, func(t *testing.T, s *deliveries.Store) {
		event := frozenEvent(1, noon, 9)
		freeze(t, s, event)
		position := uint32(0)
		rapid.Check(t, func(rt *rapid.T) {
			ctx, day := context.Background(), fanfare.DayOf(noon)
			var groups, planned [][]string // kept and not told, and those of them that a plan has
			var since []time.Time
			tell := func(t *rapid.T, most int, over bool) {
				plan, err := s.PlanNotices(ctx, day, most)
				if err != nil {
					t.Fatal(err)
				}
				if planned == nil {
					planned = groups[:min(most, len(groups))]
				}
				var got [][]string
				for i := range plan {
					var group []string
					for j := range plan[i].Entries {
						group = append(group, noticeText(&plan[i].Entries[j]))
					}
					got = append(got, group)
					if i > 0 && plan[i].ID <= plan[i-1].ID {
						t.Errorf("%d comes after %d", plan[i].ID, plan[i-1].ID)
					}
				}
				if fmt.Sprint(got) != fmt.Sprint(planned) {
					t.Fatalf("planned are %q, want %q", got, planned)
				}
				if len(plan) == 0 {
					planned = nil
				} else if over {
					if err := s.ToldNotices(ctx, day, plan); err != nil {
						t.Fatal(err)
					}
					groups, since, planned = groups[len(plan):], since[len(plan):], nil
				}
			}
			defer func() {
				for planned != nil || len(groups) > 0 {
					tell(rt, 100, true)
				}
			}()
			rt.Repeat(map[string]func(*rapid.T){
				"keep": func(t *rapid.T) {
					commit := &fanfare.Commit{}
					var group []string
					for range rapid.IntRange(1, 4).Draw(t, "n") {
						position++
						e := fanfare.Entry{Delivery: fanfare.DeliveryRef{Day: day, Manifest: event.Manifests[0].ID, Position: position}, Attempt: uint16(rapid.IntRange(1, 9).Draw(t, "attempt")),
							State: rapid.SampledFrom([]fanfare.State{fanfare.Deferred, fanfare.Accepted, fanfare.Failed, fanfare.Suppressed}).Draw(t, "state"), Code: rapid.IntRange(-1, 599).Draw(t, "code"),
							Text: rapid.SampledFrom([]string{"", "OK", "550 é"}).Draw(t, "text"), Class: rapid.SampledFrom([]fanfare.Class{"", fanfare.ClassInvalid}).Draw(t, "class"),
							At: noon.Add(time.Duration(position)), Told: rapid.Bool().Draw(t, "told"), Address: "ada@example.org", Relay: "mx:25"}
						if commit.Entries = append(commit.Entries, e); e.Told {
							if group == nil {
								since = append(since, e.At)
							}
							group = append(group, noticeText(&e))
						}
					}
					if err := s.Commit(ctx, day, commit); err != nil {
						t.Fatal(err)
					}
					if group != nil {
						groups = append(groups, group)
					}
				},
				"tell":  func(t *rapid.T) { tell(t, rapid.IntRange(1, 5).Draw(t, "most"), true) },
				"crash": func(t *rapid.T) { tell(t, rapid.IntRange(1, 5).Draw(t, "most"), false) },
				"": func(t *rapid.T) {
					entries, oldest, err := s.WaitingNotices(ctx, day)
					want, first := 0, time.Time{}
					for _, group := range groups {
						want += len(group)
					}
					if len(since) > 0 {
						first = since[0]
					}
					if err != nil || entries != int64(want) || !oldest.Equal(first) {
						t.Errorf("%d wait since %v, want %d since %v: %v", entries, oldest, want, first, err)
					}
				},
			})
		})
	})
}

// TestARepeatedBounceIsReportedOnce has a bounce kept again: nothing of it is kept, and
// nothing told.
func TestARepeatedBounceIsReportedOnce(t *testing.T) {
	onEachRecord(t, func(t *testing.T, s *deliveries.Store) {
		event := frozenEvent(1, noon, 9)
		freeze(t, s, event)
		day := fanfare.DayOf(noon)
		ref := fanfare.DeliveryRef{Day: day, Manifest: event.Manifests[0].ID, Position: 3}
		bounce := fanfare.Entry{Delivery: ref, State: fanfare.Failed, Returned: true, Class: fanfare.ClassFull, At: noon, Told: true}
		for _, e := range []fanfare.Entry{bounce, {Delivery: ref, Attempt: 1, State: fanfare.Accepted, At: noon}, bounce, bounce} {
			if err := s.Commit(t.Context(), day, &fanfare.Commit{Entries: []fanfare.Entry{e}}); err != nil {
				t.Fatal(err)
			}
		}
		plan, err := s.PlanNotices(t.Context(), day, 10)
		if err != nil || len(plan) != 1 || len(plan[0].Entries) != 1 || plan[0].Entries[0].Attempt != 2 || !plan[0].Entries[0].Returned || plan[0].Entries[0].Class != fanfare.ClassFull {
			t.Errorf("to be told is %+v: %v", plan, err)
		}
	})
}
