package broker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/session"
	"fanfare.dev/fanfare/internal/session/frame"
	"fanfare.dev/fanfare/internal/store"
)

// A memoryLog is a log in memory. It outlives brokers, as a database does.
type memoryLog struct {
	mu       sync.Mutex
	records  map[uint64]*session.Record
	entries  map[entryKey]session.Entry
	order    map[streamKey][]uint64 // First of the entries
	clients  map[uint64]map[uint32]session.ClientRecord
	away     func() bool // whether a call fails
	appended int
}

type streamKey struct {
	session uint64
	client  uint32
	kind    session.EntryKind
}

type entryKey struct {
	streamKey
	first uint64
}

func newMemoryLog() *memoryLog {
	return &memoryLog{records: map[uint64]*session.Record{}, entries: map[entryKey]session.Entry{}, order: map[streamKey][]uint64{}, clients: map[uint64]map[uint32]session.ClientRecord{}, away: func() bool { return false }}
}

func (l *memoryLog) Create(_ context.Context, r *session.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	r.Number = uint64(len(l.records)) + 1
	stored := *r
	l.records[r.Number] = &stored
	return nil
}

func (l *memoryLog) Update(_ context.Context, r *session.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	epoch := l.records[r.Number].Epoch
	*l.records[r.Number] = *r
	l.records[r.Number].Epoch = epoch
	return nil
}

func (l *memoryLog) Sessions(_ context.Context, since time.Time) ([]session.Record, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []session.Record
	for _, r := range l.records {
		if r.State == session.Open || r.ClosedAt.After(since) {
			all = append(all, *r)
		}
	}
	slices.SortFunc(all, func(x, y session.Record) int { return cmp.Compare(x.Number, y.Number) })
	return all, nil
}

func (l *memoryLog) TakeOver(_ context.Context, number uint64) (uint64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.records[number].Epoch++
	return l.records[number].Epoch, nil
}

func (l *memoryLog) Append(ctx context.Context, a *session.Append) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.away() {
		return fmt.Errorf("append: %w", store.ErrAway)
	}
	for number, epoch := range a.Epochs {
		if l.records[number].Epoch != epoch {
			return session.ErrFenced
		}
	}
	for _, e := range a.Entries {
		e.Data = slices.Clone(e.Data)
		key := entryKey{streamKey{e.Session, e.Client, e.Kind}, e.First}
		if _, known := l.entries[key]; !known {
			l.order[key.streamKey] = append(l.order[key.streamKey], e.First)
		}
		l.entries[key] = e
	}
	for _, u := range a.Clients {
		if l.clients[u.Session] == nil {
			l.clients[u.Session] = map[uint32]session.ClientRecord{}
		}
		l.clients[u.Session][u.Client.Number] = u.Client
	}
	l.appended++
	return nil
}

func (l *memoryLog) Clients(_ context.Context, number uint64) ([]session.ClientRecord, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []session.ClientRecord
	for _, c := range l.clients[number] {
		all = append(all, c)
	}
	slices.SortFunc(all, func(x, y session.ClientRecord) int { return cmp.Compare(x.Number, y.Number) })
	return all, nil
}

func (l *memoryLog) Entries(_ context.Context, number uint64, client uint32, kind session.EntryKind, from, high uint64, fn func(session.Entry) bool) error {
	l.mu.Lock()
	key := streamKey{number, client, kind}
	var found []session.Entry
	for _, first := range l.order[key] {
		e := l.entries[entryKey{key, first}]
		if first+uint64(e.Count) > from && e.High >= high {
			found = append(found, e)
			if len(found) == 64 {
				break
			}
		}
	}
	more := len(found) == 64
	l.mu.Unlock()
	slices.SortFunc(found, func(x, y session.Entry) int { return cmp.Compare(x.First, y.First) })
	for _, e := range found {
		e.Data = slices.Clone(e.Data)
		if !fn(e) {
			return nil
		}
	}
	if more {
		last := found[len(found)-1]
		return l.Entries(context.Background(), number, client, kind, last.First+uint64(last.Count), high, fn)
	}
	return nil
}

func (l *memoryLog) PurgeClient(_ context.Context, number uint64, client uint32) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.purge(number, client)
	return nil
}

func (l *memoryLog) purge(number uint64, client uint32) {
	for key := range l.entries {
		if key.session == number && key.client == client {
			delete(l.entries, key)
			delete(l.order, key.streamKey)
		}
	}
	delete(l.clients[number], client)
}

func (l *memoryLog) Purge(_ context.Context, number uint64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for client := range l.clients[number] {
		l.purge(number, client)
	}
	l.records[number].State = session.Purged
	return nil
}

func (l *memoryLog) RemoveEnded(context.Context, time.Time) error { return nil }

// rows is the number of entries of a session.
func (l *memoryLog) rows(number uint64) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key := range l.entries {
		if key.session == number {
			n++
		}
	}
	return n + len(l.clients[number])
}

// A pipeEnd is one end of a connection in memory.
type pipeEnd struct {
	in, out chan []byte
	done    chan struct{}
	once    *sync.Once
	code    *int
}

var errPipe = errors.New("the connection is closed")

func pipe() (near, far *pipeEnd) {
	a, b, done, once, code := make(chan []byte, 16), make(chan []byte, 16), make(chan struct{}), &sync.Once{}, new(int)
	return &pipeEnd{a, b, done, once, code}, &pipeEnd{b, a, done, once, code}
}

func (p *pipeEnd) Read(ctx context.Context) ([]byte, error) {
	select { // what was sent before the end is read
	case f := <-p.in:
		return f, nil
	default:
	}
	select {
	case f := <-p.in:
		return f, nil
	case <-p.done:
		select {
		case f := <-p.in:
			return f, nil
		default:
			return nil, errPipe
		}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *pipeEnd) Write(ctx context.Context, f []byte) error {
	select {
	case p.out <- append(frame.Buffer(len(f)), f...): // the broker uses the memory of both again
		return nil
	case <-p.done:
		return errPipe
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *pipeEnd) Close(code int, _ string) error {
	p.once.Do(func() { *p.code = code; close(p.done) })
	return nil
}

const testService = "acme"

// workers are the definitions of a test.
type workers struct {
	mu   sync.Mutex
	defs map[string]session.Definition
}

func (w *workers) set(d session.Definition) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.defs[d.Name] = d
}

func (w *workers) get(service, name string) (session.Definition, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	d, known := w.defs[name]
	return d, known && service == testService
}

func define(defs ...session.Definition) *workers {
	w := &workers{defs: map[string]session.Definition{}}
	for _, d := range defs {
		d.Service = testService
		w.defs[d.Name] = d
	}
	return w
}

func startBroker(t testing.TB, log session.Log, w *workers) *Broker {
	t.Helper()
	b, err := New(t.Context(), Options{Log: log, Definition: w.get, Clock: clock.System{}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stopBroker(t, b) })
	return b
}

func stopBroker(t testing.TB, b *Broker) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	err := b.Stop(ctx)
	if err == nil {
		err = ctx.Err() // Stop has waited for a connection that did not end
	}
	if err != nil {
		t.Error("the broker did not stop as intended:", err)
	}
}

func open(t testing.TB, b *Broker, o session.Options) session.Info {
	t.Helper()
	info, err := b.Open(t.Context(), testService, o)
	if err != nil {
		t.Fatal(err)
	}
	return info
}
