package storetest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store/deliveries"
)

func TestAMomentReadsManyOfAKindInTheOrderInWhichTheyAreAskedFor(t *testing.T) {
	onEachRecord(t, func(t *testing.T, s *deliveries.Store) {
		var events []*fanfare.MatchResult
		for stream := range uint64(5) {
			events = append(events, frozenEvent(stream+1, noon, int(stream)+1))
		}
		freeze(t, s, events...)
		day := events[0].Posted.Ref().Day
		if err := s.Commit(t.Context(), day, &fanfare.Commit{Entries: []fanfare.Entry{
			entry(events[2], 0, 1, fanfare.Accepted), entry(events[2], 2, 1, fanfare.Deferred), entry(events[2], 2, 2, fanfare.Failed), entry(events[4], 2, 1, fanfare.Accepted),
		}}); err != nil {
			t.Fatal(err)
		}
		order := []int{4, 2, 2, 0}
		var ids []fanfare.ManifestID
		var seqs []fanfare.EventSeq
		var spans []deliveries.Span
		for _, i := range order {
			ids, seqs = append(ids, events[i].Manifests[0].ID), append(seqs, events[i].Posted.Seq)
			spans = append(spans, deliveries.Span{Manifest: events[i].Manifests[0].ID, From: 0, To: 3})
		}
		var manifests []fanfare.ManifestID
		var posted []fanfare.EventSeq
		var latest []string
		if err := s.Moment(t.Context(), day, func(m *deliveries.Moment) error {
			if err := m.Manifests(ids, func(m *fanfare.Manifest) {
				manifests = append(manifests, m.ID)
				if stream := int(m.ID.Event().Stream()); m.Members() != stream {
					t.Errorf("the manifest of event %d has %d members", stream, m.Members())
				}
			}); err != nil {
				return err
			}
			if err := m.Posted(seqs, func(p *fanfare.AcceptedEvent) {
				posted = append(posted, p.Seq)
				if p.Event.ID != fmt.Sprintf("story-%d", p.Seq.Stream()) {
					t.Errorf("event %v is %s", p.Seq, p.Event.ID)
				}
			}); err != nil {
				return err
			}
			return m.Latest(spans, func(span int, position uint32, attempt uint16, state fanfare.State) {
				latest = append(latest, fmt.Sprint(span, " ", position, " ", attempt, " ", state))
			})
		}); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(manifests, ids) || !slices.Equal(posted, seqs) {
			t.Errorf("read were %x and %v, asked for %x and %v", manifests, posted, ids, seqs)
		}
		want := "0 2 1 accepted, 1 0 1 accepted, 1 2 2 failed, 2 0 1 accepted, 2 2 2 failed"
		if got := strings.Join(latest, ", "); got != want {
			t.Errorf("the newest entries are\n%s, want\n%s", got, want)
		}
	})
}

func TestOfManyTheOneThatIsNotThereIsNamed(t *testing.T) {
	onEachRecord(t, func(t *testing.T, s *deliveries.Store) {
		a, b := frozenEvent(1, noon, 1), frozenEvent(3, noon, 1)
		freeze(t, s, a, b)
		const none = fanfare.EventSeq(0xabc)
		for name, seqs := range map[string][]fanfare.EventSeq{
			"first": {none, a.Posted.Seq, b.Posted.Seq}, "between": {a.Posted.Seq, none, b.Posted.Seq}, "last": {a.Posted.Seq, b.Posted.Seq, none}, "alone": {none},
		} {
			ids := make([]fanfare.ManifestID, len(seqs))
			for i, seq := range seqs {
				ids[i] = fanfare.NewManifestID(seq, 0)
			}
			for kind, read := range map[string]func(*deliveries.Moment) error{
				"manifest": func(m *deliveries.Moment) error { return m.Manifests(ids, func(*fanfare.Manifest) {}) },
				"event":    func(m *deliveries.Moment) error { return m.Posted(seqs, func(*fanfare.AcceptedEvent) {}) },
			} {
				err := s.Moment(t.Context(), fanfare.DayOf(noon), read)
				missing := map[string]string{"manifest": fmt.Sprintf("%x", uint64(fanfare.NewManifestID(none, 0))), "event": "abc"}[kind]
				if fanfare.CodeOf(err) != fanfare.NotFound || !strings.Contains(err.Error(), missing) {
					t.Errorf("%s, %s: %v", kind, name, err)
				}
			}
		}
	})
}

// A restart learns of each open broadcast what was sent of it, of none too much.
func TestOpenBroadcastsAreCountedEachByItself(t *testing.T) {
	onEachRecord(t, func(t *testing.T, s *deliveries.Store) {
		var events []*fanfare.MatchResult
		for stream := range uint64(6) {
			events = append(events, frozenEvent(stream+1, noon, 2, 1))
		}
		freeze(t, s, events...)
		day := fanfare.DayOf(noon)
		over := fanfare.Completion{Seq: events[3].Posted.Seq, Progress: fanfare.Progress{Completed: noon}}
		if err := s.Commit(t.Context(), day, &fanfare.Commit{Entries: []fanfare.Entry{
			entry(events[1], 0, 1, fanfare.Deferred), entry(events[1], 0, 2, fanfare.Accepted), entry(events[1], 1, 1, fanfare.Deferred),
			entry(events[3], 0, 1, fanfare.Accepted), entry(events[4], 0, 1, fanfare.Failed),
		}, Completions: []fanfare.Completion{over}}); err != nil {
			t.Fatal(err)
		}
		var got []string
		err := s.Open(t.Context(), day, func(seq fanfare.EventSeq, messages int64, p fanfare.Progress) {
			got = append(got, fmt.Sprint(seq.Stream(), "/", messages, " ", p.Counts[fanfare.Deferred], p.Counts[fanfare.Accepted], p.Counts[fanfare.Failed], " ", p.Last.Sub(p.First)))
		})
		want := []string{"1/3 0 0 0 0s", "2/3 1 1 0 1m0s", "3/3 0 0 0 0s", "5/3 0 0 1 0s", "6/3 0 0 0 0s"}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("open are %q (%v), want %q", got, err, want)
		}
	})
}
