package sessionlog_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/session"
	"fanfare.dev/fanfare/internal/session/sessionlog"
	"fanfare.dev/fanfare/internal/store"
	"fanfare.dev/fanfare/internal/store/storetest"
	"fanfare.dev/fanfare/internal/test/pgtest"
)

var noon = time.Date(2026, 11, 27, 12, 0, 0, 123456789, time.UTC)

// onEach runs a test on each database.
func onEach(t *testing.T, test func(t *testing.T, db store.Database, l *sessionlog.Log)) {
	t.Helper()
	for name, place := range map[string]func() string{"sqlite": t.TempDir, "postgres": func() string { return pgtest.Prepared(t) }} {
		t.Run(name, func(t *testing.T) {
			db := storetest.OpenAt(t, place())
			test(t, db, sessionlog.New(db))
		})
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// opened stores an open durable session and takes it over.
func opened(t testing.TB, l session.Log) *session.Record {
	t.Helper()
	r := &session.Record{Service: "press", State: session.Open, OpenedAt: noon, Options: session.Options{Worker: "pricing", Kind: session.Durable}}
	must(t, l.Create(t.Context(), r))
	epoch, err := l.TakeOver(t.Context(), r.Number)
	must(t, err)
	r.Epoch = epoch
	return r
}

func ended(t testing.TB, l session.Log, r *session.Record, at time.Time) {
	t.Helper()
	r.State, r.ClosedAt, r.Reason = session.Ended, at, "by a client"
	must(t, l.Update(t.Context(), r))
}

// group is an entry of so many numbers, each of which says which it is.
func group(r *session.Record, client uint32, kind session.EntryKind, first uint64, count int) session.Entry {
	var data []byte
	for i := range count {
		data = binary.LittleEndian.AppendUint64(data, first+uint64(i))
	}
	return session.Entry{Session: r.Number, Client: client, Kind: kind, First: first, Count: uint32(count), High: first + uint64(count) - 1, Data: data}
}

func put(t testing.TB, l session.Log, r *session.Record, entries ...session.Entry) {
	t.Helper()
	must(t, l.Append(t.Context(), &session.Append{Epochs: map[uint64]uint64{r.Number: r.Epoch}, Entries: entries}))
}

// read returns the entries of a client.
func read(t testing.TB, l session.Log, r *session.Record, client uint32, kind session.EntryKind, from, high uint64) (list []session.Entry) {
	t.Helper()
	must(t, l.Entries(t.Context(), r.Number, client, kind, from, high, func(e session.Entry) bool { list = append(list, e); return true }))
	return list
}

// firsts returns the numbers at which entries begin.
func firsts(list []session.Entry) string {
	var text []string
	for i := range list {
		text = append(text, fmt.Sprint(list[i].First))
	}
	return strings.Join(text, " ")
}

// fillFields gives each field of a struct a value of its own.
func fillFields(v reflect.Value, next *int64) {
	for i := range v.NumField() {
		*next++
		switch f := v.Field(i); {
		case f.Type() == reflect.TypeFor[time.Time]():
			f.Set(reflect.ValueOf(noon.Add(time.Duration(*next))))
		case f.Kind() == reflect.Struct:
			fillFields(f, next)
		case f.Kind() == reflect.String:
			f.SetString(fmt.Sprintf("value %d", *next))
		case f.Kind() == reflect.Bool:
			f.SetBool(true)
		case f.CanInt():
			f.SetInt(*next)
		default:
			f.SetUint(uint64(*next))
		}
	}
}

func TestEachFieldOfASessionIsKept(t *testing.T) {
	onEach(t, func(t *testing.T, _ store.Database, l *sessionlog.Log) {
		var want session.Record
		next := int64(0)
		fillFields(reflect.ValueOf(&want).Elem(), &next)
		must(t, l.Create(t.Context(), &want))
		get := func() session.Record {
			t.Helper()
			list, err := l.Sessions(t.Context(), time.Time{})
			if err != nil || len(list) != 1 {
				t.Fatalf("%d sessions, %v", len(list), err)
			}
			return list[0]
		}
		if got := get(); got != want {
			t.Errorf("created %+v\nread    %+v", want, got)
		}
		other := want
		fillFields(reflect.ValueOf(&other).Elem(), &next)
		other.Number, other.Service, other.OpenedAt, other.Epoch = want.Number, want.Service, want.OpenedAt, want.Epoch // do not change
		must(t, l.Update(t.Context(), &other))
		if got := get(); got != other {
			t.Errorf("updated %+v\nread    %+v", other, got)
		}
	})
}

func TestEachFieldOfAClientIsKept(t *testing.T) {
	onEach(t, func(t *testing.T, _ store.Database, l *sessionlog.Log) {
		r := opened(t, l)
		var one, two session.ClientRecord
		next := int64(0)
		fillFields(reflect.ValueOf(&one).Elem(), &next)
		two, one.Number = one, 7
		two.Number = 3
		other := two
		fillFields(reflect.ValueOf(&other).Elem(), &next)
		other.Number, other.Ended, other.IDs = 3, false, true
		a := &session.Append{Epochs: map[uint64]uint64{r.Number: r.Epoch}, Clients: []session.ClientUpdate{{Session: r.Number, Client: one}, {Session: r.Number, Client: two}, {Session: r.Number, Client: other}}}
		must(t, l.Append(t.Context(), a))
		got, err := l.Clients(t.Context(), r.Number)
		if want := []session.ClientRecord{other, one}; err != nil || !slices.Equal(got, want) {
			t.Errorf("got  %+v, %v\nwant %+v", got, err, want)
		}
		one.Received++
		a.Clients = []session.ClientUpdate{{Session: r.Number, Client: one}}
		must(t, l.Append(t.Context(), a))
		if got, err = l.Clients(t.Context(), r.Number); err != nil || got[1] != one {
			t.Errorf("got  %+v, %v\nwant %+v", got, err, one)
		}
	})
}

func TestNumbersOfSessionsAreNeverGivenAgain(t *testing.T) {
	onEach(t, func(t *testing.T, _ store.Database, l *sessionlog.Log) {
		a, b := opened(t, l), opened(t, l)
		ended(t, l, b, noon)
		must(t, l.RemoveEnded(t.Context(), noon.Add(1)))
		if c := opened(t, l); a.Number == 0 || b.Number <= a.Number || c.Number <= b.Number {
			t.Errorf("the numbers are %d, %d, and %d after the second was removed", a.Number, b.Number, c.Number)
		}
	})
}

func TestSessionsAreListedWhileOpenAndAfterTheirEnd(t *testing.T) {
	onEach(t, func(t *testing.T, _ store.Database, l *sessionlog.Log) {
		a, b, c := opened(t, l), opened(t, l), opened(t, l)
		ended(t, l, a, noon.Add(time.Second))
		ended(t, l, b, noon)
		for _, test := range []struct {
			since time.Time
			want  []uint64
		}{
			{time.Time{}, []uint64{c.Number, b.Number, a.Number}},
			{noon, []uint64{c.Number, a.Number}},
			{noon.Add(time.Hour), []uint64{c.Number}},
		} {
			list, err := l.Sessions(t.Context(), test.since)
			var got []uint64
			for i := range list {
				got = append(got, list[i].Number)
			}
			if err != nil || !slices.Equal(got, test.want) {
				t.Errorf("since %v: %v (%v), want %v", test.since, got, err, test.want)
			}
		}
		missing := &session.Record{Number: 99, State: session.Open}
		if err := l.Update(t.Context(), missing); fanfare.CodeOf(err) != fanfare.NotFound {
			t.Errorf("an update of an unknown session: %v", err)
		}
		if _, err := l.TakeOver(t.Context(), 99); fanfare.CodeOf(err) != fanfare.NotFound {
			t.Errorf("a take-over of an unknown session: %v", err)
		}
	})
}

func TestEntriesAreReadFromTheOneThatContainsANumber(t *testing.T) {
	onEach(t, func(t *testing.T, _ store.Database, l *sessionlog.Log) {
		r, other := opened(t, l), opened(t, l)
		high := group(r, 1, session.ResponseEntry, 21, 10)
		high.High = 500
		put(t, l, r, group(r, 1, session.RequestEntry, 11, 10), group(r, 1, session.RequestEntry, 1, 10), group(r, 1, session.RequestEntry, 21, 10), group(r, 1, session.RequestEntry, 41, 10),
			group(r, 2, session.RequestEntry, 5, 10), group(r, 1, session.ResponseEntry, 1, 10), group(r, 1, session.ResponseEntry, 11, 10), high)
		put(t, l, other, group(other, 1, session.RequestEntry, 12, 3))
		for _, test := range []struct {
			client     uint32
			kind       session.EntryKind
			from, high uint64
			want       string
		}{
			{1, session.RequestEntry, 0, 0, "1 11 21 41"},
			{1, session.RequestEntry, 1, 0, "1 11 21 41"},
			{1, session.RequestEntry, 10, 0, "1 11 21 41"},
			{1, session.RequestEntry, 11, 0, "11 21 41"},
			{1, session.RequestEntry, 15, 0, "11 21 41"},
			{1, session.RequestEntry, 30, 0, "21 41"},
			{1, session.RequestEntry, 31, 0, "41"},
			{1, session.RequestEntry, 51, 0, ""},
			{1, session.RequestEntry, 0, 20, "11 21 41"},
			{1, session.RequestEntry, 15, 21, "21 41"},
			{1, session.ResponseEntry, 0, 0, "1 11 21"},
			{1, session.ResponseEntry, 0, 100, "21"},
			{2, session.RequestEntry, 0, 0, "5"},
			{2, session.ResponseEntry, 0, 0, ""},
			{3, session.RequestEntry, 0, 0, ""},
		} {
			got := read(t, l, r, test.client, test.kind, test.from, test.high)
			if firsts(got) != test.want {
				t.Errorf("client %d, kind %d from %d, high %d: %s, want %s", test.client, test.kind, test.from, test.high, firsts(got), test.want)
			}
			for _, e := range got {
				want := group(r, test.client, test.kind, e.First, 10)
				if want.High = e.High; !reflect.DeepEqual(e, want) {
					t.Errorf("got %+v, want %+v", e, want)
				}
			}
		}
		calls := 0
		must(t, l.Entries(t.Context(), r.Number, 1, session.RequestEntry, 0, 0, func(session.Entry) bool { calls++; return calls < 2 }))
		if calls != 2 {
			t.Errorf("%d calls after the second was the last", calls)
		}
	})
}

func TestARepeatedAppendStoresNothingTwice(t *testing.T) {
	onEach(t, func(t *testing.T, _ store.Database, l *sessionlog.Log) {
		r := opened(t, l)
		a := &session.Append{Epochs: map[uint64]uint64{r.Number: r.Epoch}, Entries: []session.Entry{group(r, 1, session.RequestEntry, 1, 10)},
			Clients: []session.ClientUpdate{{Session: r.Number, Client: session.ClientRecord{Number: 1, Name: "desk", Requests: 10}}}}
		must(t, l.Append(t.Context(), a))
		must(t, l.Append(t.Context(), a))
		a.Entries = append(a.Entries, group(r, 1, session.RequestEntry, 11, 10)) // the rest of it is new
		must(t, l.Append(t.Context(), a))
		if got := read(t, l, r, 1, session.RequestEntry, 0, 0); firsts(got) != "1 11" {
			t.Errorf("stored are %s", firsts(got))
		}
		for name, change := range map[string]func(*session.Entry){
			"data":  func(e *session.Entry) { e.Data = append(bytes.Clone(e.Data[:79]), 99) },
			"count": func(e *session.Entry) { e.Count++ },
			"high":  func(e *session.Entry) { e.High++ },
		} {
			differs := group(r, 1, session.RequestEntry, 1, 10)
			change(&differs)
			err := l.Append(t.Context(), &session.Append{Epochs: a.Epochs, Entries: []session.Entry{group(r, 1, session.RequestEntry, 21, 10), differs}})
			if err == nil || errors.Is(err, session.ErrFenced) {
				t.Errorf("another %s under the same key: %v", name, err)
			}
		}
		if got := read(t, l, r, 1, session.RequestEntry, 0, 0); firsts(got) != "1 11" || !bytes.Equal(got[0].Data, a.Entries[0].Data) {
			t.Errorf("after refused appends: %s, %v", firsts(got), got[0].Data)
		}
	})
}

func TestAnAppendOfABrokerThatWasReplacedStoresNothing(t *testing.T) {
	onEach(t, func(t *testing.T, db store.Database, l *sessionlog.Log) {
		mine, lost := opened(t, l), opened(t, l)
		other := sessionlog.New(db)
		epoch, err := other.TakeOver(t.Context(), lost.Number)
		if err != nil || epoch <= lost.Epoch {
			t.Fatalf("the epoch was %d and is %d, %v", lost.Epoch, epoch, err)
		}
		both := map[uint64]uint64{mine.Number: mine.Epoch, lost.Number: lost.Epoch}
		client := []session.ClientUpdate{{Session: lost.Number, Client: session.ClientRecord{Number: 1, Name: "desk"}}}
		for name, a := range map[string]*session.Append{
			"entries": {Epochs: both, Entries: []session.Entry{group(mine, 1, session.RequestEntry, 1, 10), group(lost, 1, session.RequestEntry, 1, 10)}},
			"clients": {Epochs: both, Entries: []session.Entry{group(mine, 1, session.RequestEntry, 1, 10)}, Clients: client},
			"nothing": {Epochs: map[uint64]uint64{lost.Number: lost.Epoch}},
			"removed": {Epochs: map[uint64]uint64{mine.Number: mine.Epoch, 99: 0}, Entries: []session.Entry{group(mine, 1, session.RequestEntry, 1, 10)}},
		} {
			if err := l.Append(t.Context(), a); !errors.Is(err, session.ErrFenced) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if err := l.Append(t.Context(), &session.Append{Entries: []session.Entry{group(mine, 1, session.RequestEntry, 1, 10)}}); err == nil {
			t.Error("an append without the epoch was stored")
		}
		clients, err := l.Clients(t.Context(), lost.Number)
		if got := read(t, l, mine, 1, session.RequestEntry, 0, 0); len(got) > 0 || len(clients) > 0 || err != nil {
			t.Errorf("stored are %s and %v, %v", firsts(got), clients, err)
		}
		lost.Epoch = epoch
		put(t, other, lost, group(lost, 1, session.RequestEntry, 1, 10))
	})
}

// Brokers take a session over from each other while all append what they find missing. Each number must be stored once, in
// the order of the epochs.
func TestATakeOverAndAnAppendDoNotOverlap(t *testing.T) {
	onEach(t, func(t *testing.T, db store.Database, l *sessionlog.Log) {
		r := opened(t, l)
		const brokers, terms = 4, 20
		var all sync.WaitGroup
		var stored atomic.Int64
		for range brokers {
			all.Go(func() {
				l := sessionlog.New(db)
				for range terms {
					epoch, err := l.TakeOver(t.Context(), r.Number)
					if err != nil {
						t.Error(err)
						return
					}
					next := uint64(1)
					err = l.Entries(t.Context(), r.Number, 1, session.RequestEntry, 0, 0, func(e session.Entry) bool { next = e.First + uint64(e.Count); return true })
					for err == nil && rand.IntN(4) > 0 {
						e := session.Entry{Session: r.Number, Client: 1, Kind: session.RequestEntry, First: next, Count: uint32(1 + rand.IntN(5)), High: epoch, Data: binary.LittleEndian.AppendUint64(nil, epoch)}
						if err = l.Append(t.Context(), &session.Append{Epochs: map[uint64]uint64{r.Number: epoch}, Entries: []session.Entry{e}}); err == nil {
							stored.Add(1)
							next += uint64(e.Count)
						}
					}
					if err != nil && !errors.Is(err, session.ErrFenced) {
						t.Error(err)
						return
					}
				}
			})
		}
		all.Wait()
		next, epoch := uint64(1), uint64(0)
		list := read(t, l, r, 1, session.RequestEntry, 0, 0)
		for _, e := range list {
			if e.First != next || e.High < epoch {
				t.Fatalf("entry %d of epoch %d follows %d of epoch %d", e.First, e.High, next, epoch)
			}
			next, epoch = e.First+uint64(e.Count), e.High
		}
		if int64(len(list)) != stored.Load() || len(list) == 0 {
			t.Errorf("%d entries of %d confirmed ones", len(list), stored.Load())
		}
	})
}

func TestAMillionRequestsAreReadInOrder(t *testing.T) {
	onEach(t, func(t *testing.T, _ store.Database, l *sessionlog.Log) {
		r := opened(t, l)
		const total, size = 1_000_000, 500
		for first := uint64(1); first <= total; first += 10 * size {
			var entries []session.Entry
			for i := range uint64(10) {
				entries = append(entries, group(r, 1, session.RequestEntry, first+i*size, size))
			}
			put(t, l, r, entries...)
		}
		next := uint64(1)
		must(t, l.Entries(t.Context(), r.Number, 1, session.RequestEntry, 0, 0, func(e session.Entry) bool {
			for i := range uint64(e.Count) {
				if got := binary.LittleEndian.Uint64(e.Data[i*8:]); got != next {
					t.Fatalf("request %d stands at the place of %d", got, next)
				}
				next++
			}
			return true
		}))
		if next != total+1 {
			t.Errorf("the last request is %d", next-1)
		}
	})
}

// A page ends by bytes and by rows.
func TestLargeAndSmallEntriesAreReadCompletely(t *testing.T) {
	onEach(t, func(t *testing.T, _ store.Database, l *sessionlog.Log) {
		r := opened(t, l)
		var want []int
		next := uint64(1)
		for _, size := range slices.Concat(slices.Repeat([]int{1}, 600), slices.Repeat([]int{3 << 20}, 5), slices.Repeat([]int{100 << 10}, 60), slices.Repeat([]int{0}, 300)) {
			put(t, l, r, session.Entry{Session: r.Number, Client: 1, Kind: session.RequestEntry, First: next, Count: 1, High: next, Data: make([]byte, size)})
			want = append(want, size)
			next++
		}
		var got []int
		for _, e := range read(t, l, r, 1, session.RequestEntry, 1, 0) {
			got = append(got, len(e.Data))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%d entries were read, want %d", len(got), len(want))
		}
	})
}

// rowCounter counts the rows that are read from sessions.
type rowCounter struct {
	store.Database
	rows int
}

func (c *rowCounter) Sessions() store.Part { return countedPart{c.Database.Sessions(), c} }

type countedPart struct {
	store.Part
	c *rowCounter
}

func (p countedPart) Read(ctx context.Context, fn func(store.Session) error) error {
	return p.Part.Read(ctx, func(s store.Session) error { return fn(countedSession{s, p.c}) })
}

type countedSession struct {
	store.Session
	c *rowCounter
}

func (s countedSession) Each(statement string, row func(store.Row) error, args ...any) error {
	return s.Session.Each(statement, func(r store.Row) error { s.c.rows++; return row(r) }, args...)
}

// A page of responses is in one or two entries, and the log has many.
func TestAFewEntriesOfManyAreReadWithFewRows(t *testing.T) {
	onEach(t, func(t *testing.T, db store.Database, _ *sessionlog.Log) {
		c := &rowCounter{Database: db}
		l := sessionlog.New(c)
		r := opened(t, l)
		var entries []session.Entry
		for i := range uint64(1000) {
			entries = append(entries, group(r, 1, session.ResponseEntry, 1+10*i, 10))
		}
		put(t, l, r, entries...)
		for _, want := range []int{1, 2, 5, 40, 400} {
			for _, from := range []uint64{1, 15, 5000} {
				c.rows = 0
				var got []session.Entry
				must(t, l.Entries(t.Context(), r.Number, 1, session.ResponseEntry, from, 0, func(e session.Entry) bool {
					got = append(got, e)
					return len(got) < want
				}))
				begin := int(from-1) / 10
				if !reflect.DeepEqual(got, entries[begin:begin+want]) {
					t.Errorf("%d entries from %d: got %s", want, from, firsts(got))
				}
				if c.rows > 5*want+3 {
					t.Errorf("%d entries from %d took %d rows", want, from, c.rows)
				}
			}
		}
	})
}

func TestAPurgeRemovesWhatItNames(t *testing.T) {
	onEach(t, func(t *testing.T, _ store.Database, l *sessionlog.Log) {
		r, other := opened(t, l), opened(t, l)
		for _, of := range []*session.Record{r, other} {
			for client := range uint32(3) {
				var entries []session.Entry
				for i := range uint64(600) { // more than one transaction removes
					entries = append(entries, group(of, client+1, session.RequestEntry, i*10+1, 10), group(of, client+1, session.ResponseEntry, i*10+1, 10))
				}
				must(t, l.Append(t.Context(), &session.Append{Epochs: map[uint64]uint64{of.Number: of.Epoch}, Entries: entries,
					Clients: []session.ClientUpdate{{Session: of.Number, Client: session.ClientRecord{Number: client + 1, Name: fmt.Sprint(client)}}}}))
			}
		}
		left := func(of *session.Record) (text string) {
			t.Helper()
			for client := range uint32(3) {
				text += fmt.Sprint(len(read(t, l, of, client+1, session.RequestEntry, 0, 0))+len(read(t, l, of, client+1, session.ResponseEntry, 0, 0)), " ")
			}
			clients, err := l.Clients(t.Context(), of.Number)
			must(t, err)
			return text + fmt.Sprint(len(clients))
		}
		must(t, l.PurgeClient(t.Context(), r.Number, 2))
		if got := left(r); got != "1200 0 1200 3" {
			t.Errorf("after the purge of a client: %s", got)
		}
		if err := l.Purge(t.Context(), r.Number); fanfare.CodeOf(err) != fanfare.Conflict {
			t.Errorf("the purge of an open session: %v", err)
		}
		ended(t, l, r, noon)
		must(t, l.Purge(t.Context(), r.Number))
		must(t, l.Purge(t.Context(), r.Number))
		if got := left(r); got != "0 0 0 0" {
			t.Errorf("after the purge: %s", got)
		}
		if got := left(other); got != "1200 1200 1200 3" {
			t.Errorf("the other session has %s", got)
		}
		list, err := l.Sessions(t.Context(), time.Time{})
		if err != nil || len(list) != 2 || list[1].State != session.Purged || list[1].Reason != "by a client" {
			t.Errorf("%+v, %v", list, err)
		}
	})
}

func TestOldSessionsAreRemovedWithTheirEntries(t *testing.T) {
	onEach(t, func(t *testing.T, db store.Database, l *sessionlog.Log) {
		var all []*session.Record
		for i := range 130 { // more than are listed at once
			r := opened(t, l)
			all = append(all, r)
			must(t, l.Append(t.Context(), &session.Append{Epochs: map[uint64]uint64{r.Number: r.Epoch}, Entries: []session.Entry{group(r, 1, session.RequestEntry, 1, 10)},
				Clients: []session.ClientUpdate{{Session: r.Number, Client: session.ClientRecord{Number: 1, Name: "desk"}}}}))
			if i >= 2 {
				ended(t, l, r, noon.Add(time.Duration(i)))
			}
		}
		must(t, l.RemoveEnded(t.Context(), noon.Add(128)))
		list, err := l.Sessions(t.Context(), time.Time{})
		if err != nil || len(list) != 4 {
			t.Errorf("%d sessions are left, %v", len(list), err)
		}
		counts := map[string]int64{}
		must(t, db.Sessions().Read(t.Context(), func(s store.Session) error {
			for _, table := range store.SessionTables() {
				if err := s.Each("count_"+table.Name, func(r store.Row) error { counts[table.Name] = r.Int64(0); return nil }); err != nil {
					return err
				}
			}
			return nil
		}))
		if counts["sessions"] != 4 || counts["session_log"] != 4 || counts["session_clients"] != 4 {
			t.Errorf("left are %v", counts)
		}
		for _, r := range []*session.Record{all[0], all[1], all[128], all[129]} {
			if got := firsts(read(t, l, r, 1, session.RequestEntry, 0, 0)); got != "1" {
				t.Errorf("session %d has the entries %q", r.Number, got)
			}
		}
	})
}

// The database is closed and opened again.
func TestSessionsSurviveARestart(t *testing.T) {
	for name, place := range map[string]string{"sqlite": t.TempDir(), "postgres": pgtest.Prepared(t)} {
		t.Run(name, func(t *testing.T) {
			db := storetest.OpenAt(t, place)
			l := sessionlog.New(db)
			r := opened(t, l)
			put(t, l, r, group(r, 1, session.RequestEntry, 1, 10))
			must(t, db.Close())
			l = sessionlog.New(storetest.OpenAt(t, place))
			if got := read(t, l, r, 1, session.RequestEntry, 0, 0); firsts(got) != "1" {
				t.Errorf("stored are %s", firsts(got))
			}
			if epoch, err := l.TakeOver(t.Context(), r.Number); err != nil || epoch != r.Epoch+1 {
				t.Errorf("the epoch is %d after %d, %v", epoch, r.Epoch, err)
			}
		})
	}
}

type fixed time.Time

func (f fixed) Now() time.Time { return time.Time(f) }

func TestRetentionRemovesSessionsByTheTimeOfTheirEnd(t *testing.T) {
	l := sessionlog.New(storetest.Open(t))
	early, late := opened(t, l), opened(t, l)
	ended(t, l, early, noon)
	ended(t, l, late, noon.Add(time.Minute))
	for _, test := range []struct {
		age  time.Duration
		want int
	}{{0, 2}, {2 * time.Hour, 2}, {time.Hour, 1}, {time.Minute, 0}} {
		retention := sessionlog.Retention{Log: l, Age: test.age, Clock: fixed(noon.Add(time.Hour + time.Second)), Logger: slog.New(slog.DiscardHandler)}
		must(t, retention.Remove(t.Context()))
		list, err := l.Sessions(t.Context(), time.Time{})
		if err != nil || len(list) != test.want {
			t.Errorf("with an age of %v %d are left, want %d (%v)", test.age, len(list), test.want, err)
		}
	}
}

func TestARefusedContextEndsARead(t *testing.T) {
	onEach(t, func(t *testing.T, _ store.Database, l *sessionlog.Log) {
		r := opened(t, l)
		put(t, l, r, group(r, 1, session.RequestEntry, 1, 10))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := l.Entries(ctx, r.Number, 1, session.RequestEntry, 0, 0, func(session.Entry) bool { return true }); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

func TestNumbersThatMayHaveBeenGivenAreSkipped(t *testing.T) {
	onEach(t, func(t *testing.T, _ store.Database, l *sessionlog.Log) {
		must(t, l.SkipNumbers(t.Context())) // the first session may be the one that is lost
		first := opened(t, l)
		must(t, l.SkipNumbers(t.Context()))
		if second := opened(t, l); first.Number < 1000 || second.Number < first.Number+1000 {
			t.Errorf("numbers %d and %d", first.Number, second.Number)
		}
	})
}
