package storetest_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/people/suppression"
	"fanfare.dev/fanfare/internal/store"
	"fanfare.dev/fanfare/internal/store/control"
	"fanfare.dev/fanfare/internal/store/storetest"
)

// numbersPerCheck is how many numbers of each kind one sequence of operations
// has to itself, so that the databases need not be made anew for each.
const numbersPerCheck = 1 << 13

// A keptControl is the control part of a driver, that is opened again from time
// to time.
type keptControl struct {
	name, place string
	db          store.Database
	*control.Store
}

// controlTrial is one sequence of operations on the stores of all drivers and on
// a model.
type controlTrial struct {
	stores []*keptControl
	first  uint32 // of its numbers; its service, too
	next   uint32 // number that was not given
	model  *controlModel
}

func (tr *controlTrial) number() uint32 {
	tr.next++
	return tr.next - 1
}

// mine tells numbers, and numbers within a partition, that belong to the trial.
func (tr *controlTrial) mine(number int64) bool {
	local := uint32(number) % (1 << 26)
	return local >= tr.first && local < tr.first+numbersPerCheck
}

// someText is one that a database may take for something else.
func someText(t *rapid.T, label string) string {
	return rapid.SampledFrom([]string{"", "a", "A", "é", "世界", "it's", `\N`, `"`, "%_", "\u2028", strings.Repeat("x", 300)}).Draw(t, label)
}

func someJSON(t *rapid.T, label string) []byte {
	return []byte(rapid.SampledFrom([]string{"", `{}`, `{"b":1,"a":[ ]}`, `{"a":"\u0000"}`, `{"é":1e400}`, `{"a":1,"a":2}`}).Draw(t, label))
}

// batch invents one. Rows are new, or known ones that change.
func (tr *controlTrial) batch(t *rapid.T) *control.Batch {
	some := func(label string, most int) []struct{} {
		return make([]struct{}, rapid.IntRange(0, most).Draw(t, label))
	}
	b := &control.Batch{At: rapid.Int64Min(1).Draw(t, "at"), SecureDelete: rapid.IntRange(0, 9).Draw(t, "securely") == 0}
	if rapid.Bool().Draw(t, "subscriptions change") {
		b.ChangeSeq = tr.model.seq + uint64(rapid.IntRange(1, 3).Draw(t, "seq"))
	}
	for range some("config", 3) {
		number := tr.first + uint32(rapid.IntRange(0, 3).Draw(t, "number"))
		b.Config = append(b.Config, control.ConfigRecord{Kind: rapid.SampledFrom([]string{"service", "topic", "Channel"}).Draw(t, "kind"), Number: number, Service: tr.first,
			Name: someText(t, "name"), Body: append([]byte(`{}`), someJSON(t, "body")...), Deleted: rapid.Bool().Draw(t, "deleted")})
	}
	for range some("filters", 3) {
		b.Filters = append(b.Filters, control.FilterRecord{Number: tr.number(), Text: someText(t, "filter")})
	}
	partition := rapid.IntRange(0, fanfare.Partitions-1).Draw(t, "partition")
	for range some("people", 70) {
		p := fanfare.NewRowID(partition, tr.number())
		b.Subscribers[partition] = append(b.Subscribers[partition], control.SubscriberRecord{Place: p, Service: tr.first, Kind: 1,
			ID: someText(t, "id"), Address: someText(t, "address"), Locale: "en", Attributes: someJSON(t, "attributes")})
		b.Subscriptions[partition] = append(b.Subscriptions[partition], control.SubscriptionRecord{Place: p, Subscriber: p, Topic: 1, Channel: 65535,
			ID: someText(t, "id"), Filter: uint32(rapid.IntRange(0, 2).Draw(t, "filter")), Params: someJSON(t, "params"), Data: someJSON(t, "data"), Title: someText(t, "title"),
			Slot: rapid.SampledFrom([]uint16{0, 0, 1, 65535}).Draw(t, "slot")})
	}
	known := slices.Sorted(maps.Keys(tr.model.subscribers))
	for range some("changes", 3) {
		if len(known) == 0 {
			break
		}
		p := rapid.SampledFrom(known).Draw(t, "known")
		b.SubscriberUpdates = append(b.SubscriberUpdates, &control.SubscriberRecord{Place: p, Service: tr.first + 1, Kind: 2, ID: someText(t, "id"), Address: someText(t, "address"),
			TimeZone: someText(t, "zone"), Attributes: someJSON(t, "attributes"), Subscriber: p + 1, RowsJSON: someJSON(t, "parts"), Flags: control.SubscriberFlags(rapid.IntRange(0, 3).Draw(t, "flags"))})
		ends := &control.SubscriptionRecord{Place: p, Subscriber: 9, Topic: 9, Channel: 3, Rule: 7, ID: someText(t, "id"), Params: someJSON(t, "params")}
		if rapid.Bool().Draw(t, "ends") {
			ends.Ended, ends.EndedAt, ends.EndedSeq, ends.Reason = true, b.At, tr.model.seq+1, someText(t, "reason")
		}
		switch rapid.IntRange(0, 2).Draw(t, "pauses") {
		case 1:
			ends.Paused, ends.PausedAt, ends.PausedSeq = true, b.At, tr.model.seq+1
		case 2:
			ends.PausedAt, ends.PausedSeq, ends.ResumedSeq = b.At, tr.model.seq+1, tr.model.seq+2
		}
		if rapid.Bool().Draw(t, "moves") {
			ends.Slot, ends.PastSlots = rapid.Uint16().Draw(t, "slot"), []byte(`[1,65535]`)
		}
		b.SubscriptionUpdates = append(b.SubscriptionUpdates, ends)
	}
	for range some("deeds", 70) {
		b.Audit = append(b.Audit, audit.Entry{ID: int64(tr.number()), Actor: audit.Actor{KeyID: "key-1", KeyName: someText(t, "key"), Request: "r"},
			Operation: audit.Operation{Service: someText(t, "service"), Action: "put", Kind: "topic", Name: someText(t, "name")}, Detail: someJSON(t, "detail")})
	}
	if lines := slices.Sorted(maps.Keys(tr.model.audit)); len(lines) > 0 {
		if rapid.Bool().Draw(t, "rename") {
			b.RenamedAuditEntries = map[int64]string{rapid.SampledFrom(lines).Draw(t, "line"): someText(t, "new name")}
		}
		if rapid.IntRange(0, 4).Draw(t, "trim") == 0 {
			b.AuditBefore = rapid.SampledFrom(lines).Draw(t, "before")
		}
	}
	for range some("suppressions", 2) {
		b.Suppressions = append(b.Suppressions, suppression.Record{Service: tr.first, Kind: 1, At: b.At, Reason: someText(t, "why"),
			Hash: suppression.Hash{byte(rapid.IntRange(0, 2).Draw(t, "whom"))}, Lifted: rapid.Bool().Draw(t, "lifted")})
	}
	for range some("erasures", 2) {
		e := control.ErasureRecord{Place: fanfare.NewRowID(1, tr.first+uint32(rapid.IntRange(0, 2).Draw(t, "whom")))}
		if rapid.Bool().Draw(t, "begun") {
			e.Body = append([]byte(`{}`), someJSON(t, "erasure")...)
		}
		b.Erasures = append(b.Erasures, e)
	}
	if numbers := slices.Sorted(maps.Keys(tr.model.filters)); len(numbers) > 0 && rapid.Bool().Draw(t, "empty a filter") {
		b.ErasedFilters = []uint32{rapid.SampledFrom(numbers).Draw(t, "filter")}
	}
	return b
}

func (tr *controlTrial) operations() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"commit": func(t *rapid.T) {
			b := tr.batch(t)
			tr.model.commit(b)
			for _, s := range tr.stores {
				if err := s.Commit(b); err != nil {
					t.Fatalf("%s: %v", s.name, err)
				}
			}
		},
		"fail": func(t *rapid.T) { // at a number that is there already
			b := tr.batch(t)
			switch places := slices.Sorted(maps.Keys(tr.model.subscribers)); {
			case len(places) > 0 && rapid.Bool().Draw(t, "at a person"):
				p := rapid.SampledFrom(places).Draw(t, "place")
				b.Subscribers[p.Partition()] = append(b.Subscribers[p.Partition()], control.SubscriberRecord{Place: p, Service: tr.first, Kind: 1})
			case len(tr.model.filters) > 0:
				numbers := slices.Sorted(maps.Keys(tr.model.filters))
				b.Filters = append(b.Filters, control.FilterRecord{Number: numbers[0], Text: "another"})
			default:
				return
			}
			for _, s := range tr.stores {
				if err := s.Commit(b); err == nil {
					t.Fatalf("%s took a number twice", s.name)
				}
			}
		},
		"ask": tr.ask,
	}
}

// ask compares what is told.
func (tr *controlTrial) ask(t *rapid.T) {
	given := int64(tr.next - tr.first)
	local := func(label string) uint32 { return tr.first + uint32(rapid.Int64Range(0, given).Draw(t, label)) }
	q := &controlQuestions{from: int64(local("from")), to: int64(local("to")), limit: rapid.IntRange(1, 200).Draw(t, "limit")}
	places := slices.Sorted(maps.Keys(tr.model.subscribers))
	for _, p := range places {
		if rapid.IntRange(0, 2).Draw(t, "asked for") > 0 {
			q.places = append(q.places, p)
		}
	}
	q.places = append(q.places, fanfare.NewRowID(rapid.IntRange(0, 63).Draw(t, "partition"), tr.next)) // has nobody
	slices.Sort(q.places)
	first := fanfare.NewRowID(0, tr.first)
	if len(places) > 0 {
		first = rapid.SampledFrom(places).Draw(t, "scan from")
	}
	q.scanned = control.Range{First: first, Last: fanfare.NewRowID(first.Partition(), tr.next)}
	want := tr.model.answers(q)
	for _, s := range tr.stores {
		got, err := controlAnswers(s.Store, q)
		if err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		sameAnswers(t, s.name, got, want)
	}
}

// sameAnswers names the first answer in which two differ.
func sameAnswers(t *rapid.T, name string, got, want answerLines) {
	for i := range max(len(got), len(want)) {
		if a, b := answerAt(got, i), answerAt(want, i); a != b {
			t.Fatalf("%s, answer %d:\n got %s\nwant %s", name, i, a, b)
		}
	}
}

func answerAt(lines answerLines, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "none"
}

// TestEveryDatabaseAgreesWithTheControlModel is
// TestEveryDatabaseAnswersAsTheModel for people and configuration.
func TestEveryDatabaseAgreesWithTheControlModel(t *testing.T) {
	var stores []*keptControl
	for _, name := range slices.Sorted(maps.Keys(drivers)) {
		place := drivers[name](t)
		db := storetest.OpenAt(t, place)
		stores = append(stores, &keptControl{name, place, db, control.New(db)})
	}
	first, seq := uint32(numbersPerCheck), uint64(0)
	rapid.Check(t, func(rt *rapid.T) {
		tr := &controlTrial{stores: stores, first: first, next: first, model: newControlModel(seq)}
		first += numbersPerCheck
		for _, s := range stores { // the lines of the audit are everybody's
			if err := s.Commit(&control.Batch{AuditBefore: int64(tr.first)}); err != nil {
				rt.Fatal(err)
			}
		}
		defer func() { seq = tr.model.seq }()
		rt.Repeat(tr.operations())
		for _, s := range stores {
			if err := s.db.Close(); err != nil {
				rt.Fatal(err)
			}
			s.db = storetest.OpenAt(t, s.place)
			s.Store = control.New(s.db)
			got, err := loaded(s.Store, tr.first, tr.mine)
			if err != nil {
				rt.Fatalf("%s: %v", s.name, err)
			}
			sameAnswers(rt, s.name, got, tr.model.everything())
		}
		tr.ask(rt)
	})
}

// A change sequence is that of the last transaction that was kept, and a
// transaction that was not leaves the one before.
func TestTheChangeSequenceIsThatOfTheLastBatchThatWasKept(t *testing.T) {
	onEach(t, func(t *testing.T, place string) {
		kept := func() (seq uint64) {
			db := storetest.OpenAt(t, place)
			ignore := control.Loader{
				ChangeSeq: func(s uint64) { seq = s }, Config: func(*control.ConfigRecord) error { return nil }, Filter: func(*control.FilterRecord) error { return nil },
				Subscriber: func(*control.SubscriberRecord) error { return nil }, Subscription: func(*control.SubscriptionRecord) error { return nil },
			}
			if err := control.New(db).Load(context.Background(), ignore); err != nil {
				t.Fatal(err)
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			return seq
		}
		if seq := kept(); seq != 0 {
			t.Errorf("a new database is at %d", seq)
		}
		filter := []control.FilterRecord{{Number: 1, Text: "true"}}
		for _, b := range []struct {
			batch control.Batch
			good  bool
			want  uint64
		}{
			{control.Batch{ChangeSeq: 7, Filters: filter}, true, 7},
			{control.Batch{ChangeSeq: 8, Filters: filter}, false, 7},
			{control.Batch{}, true, 7},
			{control.Batch{ChangeSeq: 1 << 62}, true, 1 << 62},
		} {
			db := storetest.OpenAt(t, place)
			if err := control.New(db).Commit(&b.batch); (err == nil) != b.good {
				t.Errorf("batch %d: %v", b.batch.ChangeSeq, err)
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			if seq := kept(); seq != b.want {
				t.Errorf("after batch %d the sequence is %d, want %d", b.batch.ChangeSeq, seq, b.want)
			}
		}
	})
}

// More than one statement reads, up to where the visitor has enough.
func TestAScanOfManyReadsOnWithoutLossOrRepeat(t *testing.T) {
	const n = 2500
	onEach(t, func(t *testing.T, place string) {
		s := control.New(storetest.OpenAt(t, place))
		b := &control.Batch{ChangeSeq: 1, At: 1}
		for i := range uint32(n) {
			p := fanfare.NewRowID(5, 2*i+1)
			b.Subscribers[5] = append(b.Subscribers[5], control.SubscriberRecord{Place: p, Service: 1, Kind: 1})
			b.Subscriptions[5] = append(b.Subscriptions[5], control.SubscriptionRecord{Place: p, Subscriber: p, Topic: 1, Channel: 1})
			b.Audit = append(b.Audit, audit.Entry{ID: int64(2*i + 1)})
		}
		if err := s.Commit(b); err != nil {
			t.Fatal(err)
		}
		everybody := control.Range{First: 1, Last: ^fanfare.RowID(0)}
		for _, enough := range []int{1, 999, 1000, 1001, 2000, n - 1, n, n + 1} {
			var people, wishes []fanfare.RowID
			var lines []int64
			note := func(list *[]fanfare.RowID, p fanfare.RowID) error {
				if *list = append(*list, p); len(*list) == enough {
					return errOurs
				}
				return nil
			}
			for _, err := range []error{
				s.ScanSubscribers(t.Context(), everybody, func(r *control.SubscriberRecord) error { return note(&people, r.Place) }),
				s.ScanSubscriptions(t.Context(), everybody, func(r *control.SubscriptionRecord) error { return note(&wishes, r.Place) }),
			} {
				if want := enough <= n; errors.Is(err, errOurs) != want || !want && err != nil {
					t.Errorf("the visitor of %d gets %v", enough, err)
				}
			}
			if err := s.AuditEntries(t.Context(), 0, 1<<62, func(r *audit.Entry) bool {
				lines = append(lines, r.ID)
				return len(lines) < enough
			}); err != nil {
				t.Error(err)
			}
			want := min(enough, n)
			if len(people) != want || len(wishes) != want || len(lines) != want {
				t.Errorf("of %d that are enough come %d people, %d wishes, %d lines", enough, len(people), len(wishes), len(lines))
			}
			for i := range min(len(people), len(wishes), len(lines)) {
				if p := fanfare.NewRowID(5, uint32(2*i+1)); people[i] != p || wishes[i] != p || lines[i] != int64(2*(n-i)-1) {
					t.Fatalf("at %d come %d, %d and line %d", i, people[i], wishes[i], lines[i])
				}
			}
		}
	})
}
