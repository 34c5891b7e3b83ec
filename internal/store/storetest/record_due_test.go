package storetest_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store/deliveries"
)

func dueText(d fanfare.Due) string {
	return fmt.Sprint(d.At.Unix(), d.Channel, d.Lane, d.Slice.Manifest, d.Slice.Positions, d.Slice.Attempt, d.Why, d.Destination)
}

// TestDueWorkComesWhenItsTimeHasCome compares with a list: what is due, in which
// order, what is removed, what is hastened, and when the next is due.
func TestDueWorkComesWhenItsTimeHasCome(t *testing.T) {
	onEachRecord(t, func(t *testing.T, s *deliveries.Store) {
		events := []*fanfare.MatchResult{frozenEvent(1, noon, 9), frozenEvent(2, noon, 9)}
		freeze(t, s, events...)
		rapid.Check(t, func(rt *rapid.T) {
			ctx, day := context.Background(), fanfare.DayOf(noon)
			defer func() {
				all, err := s.DueBy(ctx, day, noon.Add(time.Hour), 10_000)
				if err == nil {
					err = s.RemoveDue(ctx, day, all)
				}
				if err != nil {
					rt.Fatal(err)
				}
			}()
			var model []fanfare.Due
			next := map[fanfare.ManifestID]uint32{}
			now := noon
			rt.Repeat(map[string]func(*rapid.T){
				"defer": func(t *rapid.T) {
					commit := &fanfare.Commit{}
					for range rapid.IntRange(1, 5).Draw(t, "n") {
						manifest := rapid.SampledFrom(events).Draw(t, "event").Manifests[0].ID
						first := next[manifest]
						positions := []uint32{first}
						for range rapid.IntRange(0, 2).Draw(t, "more") {
							positions = append(positions, positions[len(positions)-1]+uint32(rapid.IntRange(1, 300).Draw(t, "gap")))
						}
						next[manifest] = positions[len(positions)-1] + 1
						commit.Dues = append(commit.Dues, fanfare.Due{
							At: now.Truncate(time.Second).Add(time.Duration(rapid.IntRange(0, 10).Draw(t, "seconds")) * time.Second), Channel: uint16(rapid.IntRange(1, 65535).Draw(t, "channel")),
							Lane:  rapid.SampledFrom(fanfare.Lanes[:]).Draw(t, "lane"),
							Slice: fanfare.RecipientRange{Manifest: manifest, Positions: positions, Attempt: uint16(rapid.IntRange(2, 9).Draw(t, "attempt"))},
						})
						if rapid.Bool().Draw(t, "put off") {
							due := &commit.Dues[len(commit.Dues)-1]
							due.Channel, due.Slice.Positions = uint16(rapid.IntRange(1, 2).Draw(t, "of the channels")), positions[:1]
							due.Why = rapid.SampledFrom([]fanfare.Wait{fanfare.WaitNotBefore, fanfare.WaitQuiet, fanfare.WaitDestinationLimit, fanfare.WaitDestinationSuspended}).Draw(t, "why")
							if due.Why >= fanfare.WaitDestinationLimit {
								due.Destination = rapid.SampledFrom([]string{"a.example", "Б.example"}).Draw(t, "destination")
							}
						}
					}
					if err := s.Commit(ctx, day, commit); err != nil {
						t.Fatal(err)
					}
					model = append(model, commit.Dues...)
				},
				"release": func(t *rapid.T) {
					now = now.Add(time.Duration(rapid.IntRange(0, 3000).Draw(t, "pass")) * time.Millisecond)
					limit := rapid.IntRange(1, 6).Draw(t, "limit")
					got, err := s.DueBy(ctx, day, now, limit)
					if err != nil {
						t.Fatal(err)
					}
					var ripe []fanfare.Due
					for _, d := range model {
						if !d.At.After(now) {
							ripe = append(ripe, d)
						}
					}
					slices.SortFunc(ripe, func(a, b fanfare.Due) int {
						return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Slice.Manifest, b.Slice.Manifest), cmp.Compare(a.Slice.Positions[0], b.Slice.Positions[0]))
					})
					ripe = ripe[:min(limit, len(ripe))]
					if len(got) != len(ripe) {
						t.Fatalf("%d pieces are due, want %d", len(got), len(ripe))
					}
					for i := range got {
						if dueText(got[i]) != dueText(ripe[i]) {
							t.Fatalf("piece %d is %s, want %s", i, dueText(got[i]), dueText(ripe[i]))
						}
					}
					if rapid.Bool().Draw(t, "handed on") {
						if err := s.RemoveDue(ctx, day, got); err != nil {
							t.Fatal(err)
						}
						model = slices.DeleteFunc(model, func(d fanfare.Due) bool {
							return slices.ContainsFunc(got, func(g fanfare.Due) bool { return dueText(g) == dueText(d) })
						})
					}
				},
				"hasten": func(t *rapid.T) {
					event := rapid.SampledFrom(events).Draw(t, "event")
					if err := s.HastenDue(ctx, event.Posted.Ref()); err != nil {
						t.Fatal(err)
					}
					for i := range model {
						if model[i].Slice.Manifest == event.Manifests[0].ID {
							hastened(&model[i])
						}
					}
				},
				"resume a destination": func(t *rapid.T) {
					channel, name := uint16(rapid.IntRange(1, 2).Draw(t, "channel")), rapid.SampledFrom([]string{"a.example", "Б.example"}).Draw(t, "name")
					if err := s.HastenDestination(ctx, day, channel, name); err != nil {
						t.Fatal(err)
					}
					for i := range model {
						if model[i].Channel == channel && model[i].Destination == name {
							hastened(&model[i])
						}
					}
				},
				"": func(t *rapid.T) {
					var want time.Time
					for _, d := range model {
						if want.IsZero() || d.At.Before(want) {
							want = d.At
						}
					}
					if got, err := s.NextDue(ctx, day); err != nil || !got.Equal(want) {
						t.Fatalf("the next is due at %v (%v), want %v", got, err, want)
					}
					if got, want := waitsOf(t, s, events), waitsIn(model, events); !slices.Equal(got, want) {
						t.Fatalf("what waits is told as\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
					}
				},
			})
		})
	})
}

// hastened makes d due at once, without a reason to wait. It does not change one that waits for
// an attempt and was due at once already.
func hastened(d *fanfare.Due) {
	if d.At.Unix() > 0 {
		d.At, d.Why, d.Destination = time.Unix(0, 0), fanfare.WaitNone, ""
	}
}

// waitsOf are the answers of a record about what was put off, sorted.
func waitsOf(t *rapid.T, s *deliveries.Store, events []*fanfare.MatchResult) (lines []string) {
	ctx, day := context.Background(), fanfare.DayOf(noon)
	for _, f := range events {
		manifest := f.Manifests[0].ID
		err := s.Waits(ctx, day, manifest, 0, 1<<30, func(position uint32, w fanfare.Waiting) {
			lines = append(lines, words("member", manifest, position, w.For, w.Until.Unix(), w.Destination))
		})
		if err != nil {
			t.Fatal(err)
		}
		waits, err := s.EventWaits(ctx, f.Posted.Ref())
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range waits {
			lines = append(lines, words("event", manifest, w.For, w.Messages, w.Until.Unix(), w.Last.Unix()))
		}
	}
	for channel := range uint16(3) {
		waits, err := s.DestinationWaits(ctx, day, channel)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range waits {
			lines = append(lines, words("destination", channel, w.Destination, w.Messages, w.Until.Unix()))
		}
	}
	slices.Sort(lines)
	return lines
}

// waitsIn are the same answers of a list.
func waitsIn(model []fanfare.Due, events []*fanfare.MatchResult) (lines []string) {
	type group struct {
		messages    int64
		first, last int64
	}
	groups := map[string]*group{}
	count := func(key string, d *fanfare.Due) {
		g := groups[key]
		if g == nil {
			g = &group{first: d.At.Unix(), last: d.At.Unix()}
			groups[key] = g
		}
		g.messages++
		g.first, g.last = min(g.first, d.At.Unix()), max(g.last, d.At.Unix())
	}
	for i := range model {
		d := &model[i]
		if d.Why == fanfare.WaitNone {
			continue
		}
		lines = append(lines, words("member", d.Slice.Manifest, d.Slice.Positions[0], d.Why, d.At.Unix(), d.Destination))
		count(words("event", d.Slice.Manifest, d.Why), d)
		if d.Destination != "" {
			count(words("destination", d.Channel, d.Destination), d)
		}
	}
	for key, g := range groups {
		if strings.HasPrefix(key, "event") {
			lines = append(lines, words(key, g.messages, g.first, g.last))
		} else {
			lines = append(lines, words(key, g.messages, g.first))
		}
	}
	slices.Sort(lines)
	return lines
}

// words are values in a line.
func words(values ...any) string { return strings.TrimSpace(fmt.Sprintln(values...)) }

func TestHeldBatchesComeBackInOrderUntilTheyAreRemoved(t *testing.T) {
	onEachRecord(t, func(t *testing.T, s *deliveries.Store) {
		day := fanfare.DayOf(noon)
		var want []string
		for i := range 3 {
			batch := fanfare.Batch{Day: day, Channel: uint16(i), Lane: fanfare.Bulk, Slices: []fanfare.RecipientRange{
				{Manifest: 64, From: 0, To: 1000, Attempt: 1}, {Manifest: 128, Positions: []uint32{0, 7}, Attempt: 3}}}
			if err := s.Hold(t.Context(), &batch); err != nil {
				t.Fatal(err)
			}
			want = append(want, fmt.Sprint(batch))
		}
		check := func(want []string) []int64 {
			t.Helper()
			batches, ids, err := s.Held(t.Context(), day)
			if err != nil || len(batches) != len(want) || len(ids) != len(want) {
				t.Fatalf("%d batches and %d ids (%v), want %d", len(batches), len(ids), err, len(want))
			}
			for i := range want {
				if fmt.Sprint(batches[i]) != want[i] {
					t.Errorf("batch %d is %v, want %s", i, batches[i], want[i])
				}
			}
			return ids
		}
		ids := check(want)
		if err := s.RemoveHeld(t.Context(), day, ids[:2]); err != nil {
			t.Fatal(err)
		}
		check(want[2:])
	})
}

func TestParkedWorkIsListedFoundByItsIDAndForgotten(t *testing.T) {
	onEachRecord(t, func(t *testing.T, s *deliveries.Store) {
		day := fanfare.DayOf(noon)
		seq := fanfare.NewEventSeq(77, 3)
		at := noon.Add(123 * time.Millisecond)
		for i := range 20 {
			p := fanfare.Parked{Kind: "batch", Reason: fmt.Sprintf("reason %d", i), Failures: 5, Members: i, At: at}
			if err := s.Park(t.Context(), day, seq, p, []byte{byte(i)}); err != nil {
				t.Fatal(err)
			}
		}
		parked, payloads, err := s.Parked(t.Context(), day)
		if err != nil || len(parked) != 20 || len(payloads) != 20 {
			t.Fatalf("%d parked with %d payloads (%v)", len(parked), len(payloads), err)
		}
		seen := map[string]bool{}
		for i, p := range parked {
			if p.Kind != "batch" || p.Reason != fmt.Sprintf("reason %d", i) || p.Failures != 5 || p.Members != i || !p.At.Equal(at) ||
				p.Event != (fanfare.EventRef{Day: day, Seq: seq}).String() || payloads[i][0] != byte(i) {
				t.Errorf("parked %+v with %v", p, payloads[i])
			}
			if !strings.HasPrefix(p.ID, "prk-"+day.String()+"-") || seen[p.ID] {
				t.Errorf("the id is %s, seen before: %v", p.ID, seen[p.ID])
			}
			seen[p.ID] = true
		}
		if err := s.Unpark(t.Context(), parked[17].ID); err != nil {
			t.Fatal(err)
		}
		left, _, err := s.Parked(t.Context(), day)
		if err != nil || len(left) != 19 || slices.ContainsFunc(left, func(p fanfare.Parked) bool { return p.ID == parked[17].ID }) {
			t.Errorf("%d are left (%v)", len(left), err)
		}
		for _, id := range []string{"", "prk-", "prk-20261120", "prk-20261120-", "prk-20261120-zz", "prk-2026112x-1", "evt-20261120-1", "prk-20261120-1 or so", "prk-20991231-1"} {
			if err := s.Unpark(t.Context(), id); fanfare.CodeOf(err) != fanfare.NotFound {
				t.Errorf("%q: got %v, want not found", id, err)
			}
		}
	})
}

func TestSwitchesAreSetReplacedAndRemoved(t *testing.T) {
	onEachRecord(t, func(t *testing.T, s *deliveries.Store) {
		a, b := frozenEvent(1, noon, 1), frozenEvent(2, noon, 1)
		freeze(t, s, a, b)
		day := a.Posted.Ref().Day
		set := func(at time.Time, switches ...fanfare.Switch) {
			t.Helper()
			if err := s.SetSwitches(t.Context(), day, switches, at); err != nil {
				t.Fatal(err)
			}
		}
		set(noon, fanfare.Switch{Event: a.Posted.Ref(), State: fanfare.SwitchPaused, Reason: "one"},
			fanfare.Switch{Event: a.Posted.Ref(), Channel: 7, State: fanfare.SwitchCancelled, Reason: "two"},
			fanfare.Switch{Event: b.Posted.Ref(), State: fanfare.SwitchPaused, Reason: "three"})
		set(noon.Add(time.Second), fanfare.Switch{Event: a.Posted.Ref(), State: fanfare.SwitchCancelled, Reason: "four"}, fanfare.Switch{Event: b.Posted.Ref()})
		got := map[string]bool{}
		err := s.Switches(t.Context(), day, func(sw fanfare.Switch, since time.Time) {
			got[fmt.Sprint(sw.Event, sw.Channel, sw.State, sw.Reason, since.Sub(noon))] = true
		})
		want := []string{fmt.Sprint(a.Posted.Ref(), 0, "cancelled", "four", time.Second), fmt.Sprint(a.Posted.Ref(), 7, "cancelled", "two", 0*time.Second)}
		if err != nil || len(got) != len(want) || !got[want[0]] || !got[want[1]] {
			t.Errorf("got %v (%v), want %v", got, err, want)
		}
		for event, state := range map[*fanfare.MatchResult]string{a: "cancelled", b: "running"} {
			if broadcast, err := s.Broadcast(t.Context(), event.Posted.Ref()); err != nil || broadcast.State != state {
				t.Errorf("broadcast %+v (%v), want it %s", broadcast, err, state)
			}
		}
	})
}

func TestReholdTakesThePlaceOfAllThatIsHeld(t *testing.T) {
	onEachRecord(t, func(t *testing.T, s *deliveries.Store) {
		freeze(t, s, frozenEvent(5, noon, 3))
		day := fanfare.DayOf(noon)
		for _, from := range []uint32{0, 1} {
			if err := s.Hold(t.Context(), &fanfare.Batch{Day: day, Slices: []fanfare.RecipientRange{{From: from, To: from + 1, Attempt: 1}}}); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 { // it may be repeated
			if err := s.Rehold(t.Context(), day, []fanfare.Batch{{Day: day, Slices: []fanfare.RecipientRange{{From: 7, To: 9, Attempt: 2}}}}); err != nil {
				t.Fatal(err)
			}
			held, ids, err := s.Held(t.Context(), day)
			if err != nil || len(held) != 1 || len(ids) != 1 || held[0].Slices[0].From != 7 || held[0].Slices[0].Attempt != 2 {
				t.Errorf("held are %+v, %v", held, err)
			}
		}
	})
}
