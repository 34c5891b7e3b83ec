package topicstate

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"fanfare.dev/fanfare"
)

func lastAt(topic, series uint32, key string, seq fanfare.EventSeq) *fanfare.Last {
	return &fanfare.Last{Of: fanfare.KeyRef{Topic: topic, Series: series, Key: key}, Event: fanfare.EventRef{Day: 1, Seq: seq}, Data: json.RawMessage(fmt.Sprint(seq))}
}

func seqOf(s *States, topic, series uint32, key string) fanfare.EventSeq {
	l, _ := s.Get(fanfare.KeyRef{Topic: topic, Series: series, Key: key})
	return l.Event.Seq
}

func TestPutIgnoresOlderEvents(t *testing.T) {
	s := New()
	s.Put(lastAt(1, 1, "A", 5))
	s.Put(lastAt(1, 1, "A", 3))
	s.Put(lastAt(2, 1, "A", 4))
	if got := seqOf(s, 1, 1, "A"); got != 5 {
		t.Errorf("an older event became the state: %d", got)
	}
	s.Put(lastAt(1, 1, "A", 6))
	if a, b := seqOf(s, 1, 1, "A"), seqOf(s, 2, 1, "A"); a != 6 || b != 4 {
		t.Errorf("states are %d and %d, want 6 and 4", a, b)
	}
}

func TestNewSeriesHasNoStates(t *testing.T) {
	s := New()
	s.Put(lastAt(1, 1, "A", 5))
	if got := seqOf(s, 1, 2, "A"); got != 0 {
		t.Errorf("the new series has %d of the old one", got)
	}
	s.Put(lastAt(1, 2, "B", 6))
	s.Put(lastAt(1, 1, "A", 7)) // of a round that began before
	if a, b := seqOf(s, 1, 1, "A"), seqOf(s, 1, 2, "B"); a != 0 || b != 6 {
		t.Errorf("the old series has %d, the new one %d", a, b)
	}
	s.Put(lastAt(3, 1, "C", 1))
	s.Retain(func() map[uint32]uint32 { return map[uint32]uint32{1: 2, 4: 1} })
	if b, c := seqOf(s, 1, 2, "B"), seqOf(s, 3, 1, "C"); b != 6 || c != 0 {
		t.Errorf("retained are %d and %d, want 6 and none", b, c)
	}
}

func TestFullTopicTakesNoFurtherState(t *testing.T) {
	s := New()
	data := make(json.RawMessage, MaxBytes)
	big := func(key string, seq fanfare.EventSeq, n int) *fanfare.Last {
		l := lastAt(1, 1, key, seq)
		l.Data = data[:n-len(key)]
		return l
	}
	s.Put(big("A", 1, MaxBytes/2))
	s.Put(big("B", 2, MaxBytes/2))
	s.Put(big("C", 3, 10))
	s.Put(big("A", 4, MaxBytes/2)) // replaces its own state
	if got := s.Size(1, 1); got != (Size{Keys: 2, Bytes: MaxBytes, Full: 1}) || seqOf(s, 1, 1, "A") != 4 || seqOf(s, 1, 1, "C") != 0 {
		t.Errorf("%+v, A has %d, C %d", got, seqOf(s, 1, 1, "A"), seqOf(s, 1, 1, "C"))
	}
	s.Put(big("B", 5, MaxBytes/2+1)) // the state of B is outdated
	if got := s.Size(1, 1); got != (Size{Keys: 1, Bytes: MaxBytes / 2, Full: 2}) || seqOf(s, 1, 1, "B") != 0 {
		t.Errorf("%+v, B has %d", got, seqOf(s, 1, 1, "B"))
	}
}

func TestListIsSortedByKey(t *testing.T) {
	s := New()
	for i := range 100 {
		s.Put(lastAt(1, 1, fmt.Sprintf("%02d", i*37%100), fanfare.EventSeq(i+1)))
	}
	var keys []string
	for behind := ""; ; {
		list := s.List(1, 1, behind, 7)
		for _, l := range list {
			keys = append(keys, l.Of.Key)
		}
		if len(list) < 7 {
			break
		}
		behind = keys[len(keys)-1]
	}
	if len(keys) != 100 || !slices.IsSorted(keys) {
		t.Errorf("%d keys: %v", len(keys), keys)
	}
}

// TestEventsOfAKeyFollowEachOther has lanes that match and commit rounds concurrently. Commits fail,
// with and without effect, and failed events come again. Each committed event of a key must have
// been compared with the event committed before it, so that each crossing is found once.
func TestEventsOfAKeyFollowEachOther(t *testing.T) {
	type event struct {
		seq    fanfare.EventSeq
		key    string
		before fanfare.EventSeq // with which it was compared
		late   bool
	}
	type lane struct {
		round *Round
		list  []*event
	}
	failed := errors.New("the commit failed")
	rapid.Check(t, func(t *rapid.T) {
		s := New()
		kept := map[fanfare.EventSeq]bool{}    // in the store
		store := map[string]fanfare.EventSeq{} // the states there
		chain := map[string][]*event{}         // by key, as they became states there
		waiting, next := []*event{}, fanfare.EventSeq(1)
		lanes := make([]lane, 3)
		match := func(l *lane, e *event) {
			last, known := l.round.Last(fanfare.KeyRef{Topic: 1, Key: e.key})
			e.before, e.late = 0, known && last.Event.Seq >= e.seq
			if !e.late {
				e.before = last.Event.Seq
				l.round.Advance(lastAt(1, 0, e.key, e.seq))
			}
		}
		commit := func(l *lane) (fresh []*event) {
			for _, e := range l.list {
				if kept[e.seq] {
					continue
				}
				kept[e.seq] = true
				fresh = append(fresh, e)
				if !e.late {
					one := *e
					chain[e.key] = append(chain[e.key], &one)
					store[e.key] = max(store[e.key], e.seq)
				}
			}
			return fresh
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			l := &lanes[rapid.IntRange(0, len(lanes)-1).Draw(t, "lane")]
			if l.round == nil {
				l.round = s.Round()
			}
			if rapid.IntRange(0, 2).Draw(t, "step") > 0 {
				e := &event{seq: next, key: rapid.SampledFrom([]string{"A", "B"}).Draw(t, "key")}
				if len(waiting) > 0 && rapid.Bool().Draw(t, "again") {
					e, waiting = waiting[0], waiting[1:]
				} else {
					next++
				}
				match(l, e)
				l.list = append(l.list, e)
				continue
			}
			outcome := rapid.SampledFrom([]string{"committed", "committed", "failed", "unknown"}).Draw(t, "outcome")
			err := l.round.Commit(func(uncertain []Uncertain) error {
				for _, d := range uncertain {
					for _, k := range d.Keys {
						if store[k.Key] > 0 {
							s.Put(lastAt(1, 0, k.Key, store[k.Key]))
						}
					}
				}
				return nil
			}, func(changed []fanfare.KeyRef) error {
				for _, e := range l.list {
					if !e.late && slices.ContainsFunc(changed, func(k fanfare.KeyRef) bool { return k.Key == e.key }) {
						match(l, e)
					}
				}
				return nil
			}, func() error {
				if outcome == "committed" {
					for _, e := range commit(l) {
						if !e.late {
							s.Put(lastAt(1, 0, e.key, e.seq))
						}
					}
					return nil
				}
				if outcome == "unknown" {
					commit(l)
				}
				var keys []fanfare.KeyRef
				for _, e := range l.list {
					keys = append(keys, fanfare.KeyRef{Topic: 1, Key: e.key})
				}
				l.round.MarkUncertain(1, keys)
				return failed
			})
			if err != nil {
				waiting = append(waiting, l.list...)
			}
			*l = lane{}
		}
		for key, list := range chain {
			before := fanfare.EventSeq(0)
			for _, e := range list {
				if e.before != before || e.seq <= before {
					t.Fatalf("of %s, %d was compared with %d, and committed after %d", key, e.seq, e.before, before)
				}
				before = e.seq
			}
		}
	})
}
