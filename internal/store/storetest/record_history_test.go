package storetest_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
	"fanfare.dev/fanfare/internal/store/deliveries"
	"fanfare.dev/fanfare/internal/store/storetest"
)

// past is a record with the naive answer to what it is asked.
type past struct {
	*deliveries.Store
	db     store.Database
	day    store.Part
	t      *testing.T
	random *rand.Rand
	stream uint64
	events map[fanfare.RowID][]fanfare.EventSeq // of a person
	ids    map[string][]fanfare.EventSeq
	refs   map[string][]fanfare.EventSeq // of messages
	labels map[string][]fanfare.EventSeq // of messages of clients of GOV.UK Notify
}

// onEachPast runs a test on the new record of each driver, with the same chance.
func onEachPast(t *testing.T, seed uint64, test func(t *testing.T, p *past)) {
	t.Helper()
	onEach(t, func(t *testing.T, place string) {
		db := storetest.OpenAt(t, place)
		test(t, &past{
			Store: deliveries.New(db), db: db, day: partOf(t, db, fanfare.DayOf(noon)), t: t, random: rand.New(rand.NewPCG(seed, 0)),
			events: map[fanfare.RowID][]fanfare.EventSeq{}, ids: map[string][]fanfare.EventSeq{}, refs: map[string][]fanfare.EventSeq{}, labels: map[string][]fanfare.EventSeq{},
		})
	})
}

// invent makes an event for random people: sections for two channels, manifests
// of one partition or of several.
func (p *past) invent(people int) *fanfare.MatchResult {
	p.stream++
	f := frozenEvent(p.stream, noon)
	f.Posted.Event.ID = fmt.Sprintf("story-%d", p.stream/2) // some come twice
	p.ids[f.Posted.Event.ID] = append(p.ids[f.Posted.Event.ID], f.Posted.Seq)
	if p.random.IntN(3) == 0 {
		reference := fmt.Sprintf("order-%d", p.random.IntN(20))
		f.Posted.Direct = &fanfare.Direct{Reference: reference}
		p.refs[reference] = append(p.refs[reference], f.Posted.Seq)
		if p.stream%2 == 0 {
			origin := &fanfare.NotifyOrigin{Key: []string{"live", "team", "test"}[p.stream/2%3], SMS: p.stream%4 == 0}
			f.Posted.Direct.Notify = origin
			label := deliveries.NotifyLabel(origin.Key, origin.SMS)
			p.labels[label] = append(p.labels[label], f.Posted.Seq)
		}
	}
	var sections []fanfare.Section
	wanted := map[fanfare.RowID]bool{}
	for channel := range 1 + p.random.IntN(2) {
		members := map[fanfare.RowID]bool{}
		for range p.random.IntN(people + 1) {
			members[fanfare.NewRowID(p.random.IntN(4), uint32(p.random.IntN(people)))] = true
		}
		section := fanfare.Section{Channel: uint16(channel + 1)}
		for _, place := range slices.Sorted(maps.Keys(members)) {
			section.Members.Add(place, place)
			wanted[place] = true
		}
		if section.Members.Len() > 0 {
			sections = append(sections, section)
		}
	}
	for place := range wanted {
		p.events[place] = append(p.events[place], f.Posted.Seq)
	}
	// Cut at random partitions, as generation does by size.
	for first := 0; first < 4; {
		behind := first + 1 + p.random.IntN(4-first)
		m := fanfare.Manifest{ID: fanfare.NewManifestID(f.Posted.Seq, first)}
		for _, section := range sections {
			part := fanfare.Section{Channel: section.Channel}
			for member := range section.Members.All() {
				if at := member.Subscriber.Partition(); at >= first && at < behind {
					part.Members.Add(member.Subscriber, member.Subscriptions...)
				}
			}
			if part.Members.Len() > 0 {
				m.Sections = append(m.Sections, part)
			}
		}
		if len(m.Sections) > 0 {
			f.Manifests = append(f.Manifests, m)
			f.Messages += int64(m.Members())
		}
		first = behind
	}
	return f
}

func (p *past) index() {
	p.t.Helper()
	if _, err := p.IndexHistory(p.t.Context(), fanfare.DayOf(noon)); err != nil {
		p.t.Fatal(err)
	}
	for merged := true; merged; {
		var err error
		if merged, err = p.MergeHistory(p.t.Context(), fanfare.DayOf(noon)); err != nil {
			p.t.Fatal(err)
		}
	}
}

// check asks for people and ids: all of them, or some by chance.
func (p *past) check(when string, some int) {
	p.t.Helper()
	places := make([]fanfare.RowID, 0, len(p.events))
	for place := range p.events {
		places = append(places, place)
	}
	ids := make([]string, 0, len(p.ids))
	for id := range p.ids {
		ids = append(ids, id)
	}
	if some > 0 {
		slices.Sort(places)
		slices.Sort(ids)
		p.random.Shuffle(len(places), func(i, j int) { places[i], places[j] = places[j], places[i] })
		p.random.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
		places, ids = places[:min(some, len(places))], ids[:min(some, len(ids))]
	}
	for _, place := range append(places, fanfare.NewRowID(3, 1<<20)) { // the last has none
		got, err := p.History(p.t.Context(), fanfare.DayOf(noon), place)
		if err != nil {
			p.t.Fatal(err)
		}
		want := slices.Clone(p.events[place])
		slices.Sort(want)
		slices.Reverse(want)
		if !slices.Equal(got, want) {
			p.t.Fatalf("%s: person %x has events %v, want %v", when, place, got, want)
		}
	}
	for i := range 21 { // the last is of no message
		reference := fmt.Sprintf("order-%d", i)
		want := slices.Clone(p.refs[reference])
		slices.Reverse(want)
		if got, err := p.FindReference(p.t.Context(), fanfare.DayOf(noon), "news", reference); err != nil || !slices.Equal(got, want) {
			p.t.Fatalf("%s: messages with reference %s are %v (%v), want %v", when, reference, got, err, want)
		}
	}
	if got, err := p.FindReference(p.t.Context(), fanfare.DayOf(noon), "sport", "order-1"); err != nil || len(got) > 0 {
		p.t.Fatalf("%s: another service has %v, %v", when, got, err)
	}
	for _, key := range []string{"live", "team", "test", "other"} {
		labels := []string{deliveries.NotifyLabel(key, false), deliveries.NotifyLabel(key, true)}
		want := slices.Concat(p.labels[labels[0]], p.labels[labels[1]])
		slices.Sort(want)
		slices.Reverse(want)
		if n, err := p.CountNotify(p.t.Context(), fanfare.DayOf(noon), "news", labels); err != nil || n != len(want) {
			p.t.Fatalf("%s: %d messages with a key of type %s (%v), want %d", when, n, key, err, len(want))
		}
		var got []fanfare.EventSeq
		for before := fanfare.EventSeq(0); ; {
			page, err := p.LatestNotify(p.t.Context(), fanfare.DayOf(noon), "news", labels, before, 7)
			if err != nil {
				p.t.Fatal(err)
			}
			if got = append(got, page...); len(page) < 7 {
				break
			}
			before = page[6]
		}
		if !slices.Equal(got, want) {
			p.t.Fatalf("%s: messages with a key of type %s are %v, want %v", when, key, got, want)
		}
		if got, err := p.LatestNotify(p.t.Context(), fanfare.DayOf(noon), "sport", labels, 0, 7); err != nil || len(got) > 0 {
			p.t.Fatalf("%s: another service has %v, %v", when, got, err)
		}
	}
	for _, id := range append(ids, "unknown") {
		var want fanfare.EventSeq
		for _, seq := range p.ids[id] {
			want = max(want, seq)
		}
		if got, err := p.FindEvent(p.t.Context(), fanfare.DayOf(noon), "news", id); err != nil || got != want {
			p.t.Fatalf("%s: event %q is %v (%v), want %v", when, id, got, err, want)
		}
	}
}

// TestHistoryIsCompleteHoweverFarTheRunsAre freezes, indexes and merges at
// random moments, and asks in between.
func TestHistoryIsCompleteHoweverFarTheRunsAre(t *testing.T) {
	onEachPast(t, 1, func(t *testing.T, p *past) {
		for round := range 24 {
			for range p.random.IntN(12) {
				freeze(t, p.Store, p.invent(5))
			}
			if p.stream == 0 {
				continue
			}
			p.check(fmt.Sprintf("round %d before indexing", round), 2)
			if p.random.IntN(3) > 0 {
				p.index()
				p.check(fmt.Sprintf("round %d after indexing", round), 2)
			}
		}
		p.index()
		p.check("in the end", 0)
		if lag, err := p.HistoryLag(t.Context(), fanfare.DayOf(noon)); err != nil || lag != 0 {
			t.Errorf("%d events are in no run (%v)", lag, err)
		}
	})
}

// TestAnEventThatIsFrozenLateIsInTheHistory is about lanes: an urgent event is
// frozen and in a run while one of bulk that came before it is not matched yet.
func TestAnEventThatIsFrozenLateIsInTheHistory(t *testing.T) {
	onEachPast(t, 2, func(t *testing.T, p *past) {
		var late []*fanfare.MatchResult
		for round := range 10 {
			for range 4 {
				if f := p.invent(3); p.random.IntN(2) == 0 {
					late = append(late, f)
				} else {
					freeze(t, p.Store, f)
				}
			}
			if round == 0 {
				freeze(t, p.Store, p.invent(3))
			}
			if _, err := p.IndexHistory(t.Context(), fanfare.DayOf(noon)); err != nil {
				t.Fatal(err)
			}
		}
		p.random.Shuffle(len(late), func(i, j int) { late[i], late[j] = late[j], late[i] })
		for i, f := range late {
			freeze(t, p.Store, f)
			if lag, err := p.HistoryLag(t.Context(), fanfare.DayOf(noon)); err != nil || lag == 0 {
				t.Fatalf("%d events are in no run (%v) when one was frozen late", lag, err)
			}
			if i == len(late)/2 {
				p.index()
			}
		}
		p.check("with late ones in no run", 0)
		p.index()
		p.check("with all in runs", 0)
	})
}
