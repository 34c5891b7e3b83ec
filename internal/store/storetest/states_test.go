package storetest_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store/control"
	"fanfare.dev/fanfare/internal/store/deliveries"
	"fanfare.dev/fanfare/internal/store/storetest"
)

// keyed makes an event that becomes the state of a key.
func keyed(stream uint64, topic, series uint32, key string) *fanfare.MatchResult {
	f := frozenEvent(stream, noon, 1)
	f.Posted.Event.Data = json.RawMessage(fmt.Sprintf(`{"key":%q,"n":%d}`, key, stream))
	f.Key = &fanfare.KeyRef{Topic: topic, Series: series, Key: key}
	return f
}

func lastOf(f *fanfare.MatchResult) fanfare.Last {
	return fanfare.Last{Of: *f.Key, Event: f.Posted.Ref(), At: f.Posted.ReceivedAt, Data: f.Posted.Event.Data}
}

// statesOf reads all states of a day, or some.
func statesOf(t interface {
	Helper()
	Fatal(...any)
}, s *deliveries.Store, of fanfare.Day, keys ...fanfare.KeyRef) (list []fanfare.Last) {
	t.Helper()
	visit := func(l *fanfare.Last) error { list = append(list, *l); return nil }
	var err error
	if len(keys) > 0 {
		err = s.StatesOf(context.Background(), of, keys, visit)
	} else {
		err = s.States(context.Background(), of, visit)
	}
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func sameStates(a, b []fanfare.Last) bool {
	return slices.EqualFunc(a, b, func(a, b fanfare.Last) bool {
		return a.Of == b.Of && a.Event == b.Event && a.At.Equal(b.At) && string(a.Data) == string(b.Data)
	})
}

func TestAStateIsFrozenWithItsEventAndOnlyForward(t *testing.T) {
	onEachRecord(t, func(t *testing.T, s *deliveries.Store) {
		first, second, late := keyed(5, 1, 0, "A"), keyed(9, 1, 0, "A"), keyed(7, 1, 0, "A")
		other, foreign, none := keyed(6, 1, 0, "B"), keyed(8, 2, 3, "A"), frozenEvent(10, noon, 1)
		freeze(t, s, first, other)
		if got, want := statesOf(t, s, today), []fanfare.Last{lastOf(first), lastOf(other)}; !sameStates(got, want) {
			t.Fatalf("%v, want %v", got, want)
		}
		freeze(t, s, late, second, foreign, none) // in one transaction, the last of a key counts
		want := []fanfare.Last{lastOf(second), lastOf(other), lastOf(foreign)}
		if got := statesOf(t, s, today); !sameStates(got, want) {
			t.Fatalf("%v, want %v", got, want)
		}
		freeze(t, s, keyed(8, 2, 3, "Z"), keyed(11, 1, 1, "B")) // an event that is there leaves no state; a key of a new series has one
		want[1] = lastOf(keyed(11, 1, 1, "B"))
		if got := statesOf(t, s, today); !sameStates(got, want) {
			t.Fatalf("%v, want %v", got, want)
		}
		if got := statesOf(t, s, today, fanfare.KeyRef{Topic: 2, Key: "A"}, fanfare.KeyRef{Topic: 2, Key: "gone"}); !sameStates(got, want[2:]) {
			t.Fatalf("of one key: %v", got)
		}
	})
}

func TestStatesThatAreKeptElsewhereLeaveTheirDayUnlessTheyAdvanced(t *testing.T) {
	onEach(t, func(t *testing.T, place string) {
		db := storetest.OpenAt(t, place)
		s, c := deliveries.New(db), control.New(db)
		freeze(t, s, keyed(5, 1, 0, "A"), keyed(6, 1, 0, "B"))
		kept := statesOf(t, s, today)
		if err := c.KeepStates(t.Context(), kept); err != nil {
			t.Fatal(err)
		}
		freeze(t, s, keyed(7, 1, 0, "A"))
		if err := s.DropStates(t.Context(), today, kept); err != nil {
			t.Fatal(err)
		}
		if got := statesOf(t, s, today); !sameStates(got, []fanfare.Last{lastOf(keyed(7, 1, 0, "A"))}) {
			t.Fatalf("the day has %v, want what advanced alone", got)
		}
		list := func() (list []fanfare.Last) {
			if err := c.States(t.Context(), func(l *fanfare.Last) error { list = append(list, *l); return nil }); err != nil {
				t.Fatal(err)
			}
			return list
		}
		if got := list(); !sameStates(got, kept) {
			t.Fatalf("kept elsewhere: %v, want %v", got, kept)
		}
		// An older one changes nothing, a newer one does; a series goes as a whole.
		if err := c.KeepStates(t.Context(), []fanfare.Last{lastOf(keyed(4, 1, 0, "A")), lastOf(keyed(8, 1, 0, "B"))}); err != nil {
			t.Fatal(err)
		}
		if got := list(); !sameStates(got, []fanfare.Last{kept[0], lastOf(keyed(8, 1, 0, "B"))}) {
			t.Fatalf("after an older and a newer one: %v", got)
		}
		if err := c.KeepStates(t.Context(), []fanfare.Last{lastOf(keyed(9, 1, 2, "B"))}); err != nil {
			t.Fatal(err)
		}
		if err := c.DropStates(t.Context(), 1, 0); err != nil {
			t.Fatal(err)
		}
		if got := list(); !sameStates(got, []fanfare.Last{lastOf(keyed(9, 1, 2, "B"))}) {
			t.Fatalf("without the old series: %v", got)
		}
	})
}

func TestTheStatesOfADayAreThoseOfAModel(t *testing.T) {
	onEachRecord(t, func(t *testing.T, s *deliveries.Store) {
		stream, topics := uint64(0), uint32(0)
		rapid.Check(t, func(t *rapid.T) {
			topics += 2 // the checks share a day
			model := map[fanfare.KeyRef]fanfare.Last{}
			for range rapid.IntRange(1, 6).Draw(t, "groups") {
				var group []*fanfare.MatchResult
				for range rapid.IntRange(1, 8).Draw(t, "events") {
					stream++
					f := keyed(stream, topics+rapid.Uint32Range(0, 1).Draw(t, "topic"), 0, rapid.SampledFrom([]string{"", "a", "B", "ä", "a b"}).Draw(t, "key"))
					group = append(group, f)
				}
				group = rapid.Permutation(group).Draw(t, "order")
				for _, f := range group {
					if known, ok := model[*f.Key]; !ok || known.Event.Seq < f.Posted.Seq {
						model[*f.Key] = lastOf(f)
					}
				}
				if _, err := s.Freeze(context.Background(), group, noon.Add(time.Minute)); err != nil {
					t.Fatal(err)
				}
			}
			want := slices.SortedFunc(maps.Values(model), func(a, b fanfare.Last) int {
				return cmp.Or(cmp.Compare(a.Of.Topic, b.Of.Topic), cmp.Compare(a.Of.Key, b.Of.Key))
			})
			got := slices.DeleteFunc(statesOf(t, s, today), func(l fanfare.Last) bool { return l.Of.Topic < topics })
			if !sameStates(got, want) {
				t.Fatalf("%v, want %v", got, want)
			}
		})
	})
}
