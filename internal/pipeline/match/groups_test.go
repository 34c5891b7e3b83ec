package match

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/bus"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/pipeline/eventgroup"
)

// testIntake is a bus with groups of events in its bulk lane, and the queue that reads them.
type testIntake struct {
	t      *testing.T
	hops   *bus.Bus
	groups *groupQueue
	kept   int
}

// sameForAll is the generation of all topics.
type sameForAll catalog.Generation

func (g sameForAll) Generation(string, string) catalog.Generation { return catalog.Generation(g) }

func newTestIntake(t *testing.T) *testIntake {
	t.Helper()
	hops, err := bus.Open(t.Context(), bus.Options{Dir: t.TempDir(), Lease: time.Minute, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := hops.Close(); err != nil {
			t.Error(err)
		}
	})
	queue, err := hops.Events(t.Context(), fanfare.Bulk)
	if err != nil {
		t.Fatal(err)
	}
	in := &testIntake{t: t, hops: hops, groups: newGroupQueue(queue, fanfare.Bulk, Options{Bus: hops, Clock: clock.System{}, Logger: slog.New(slog.DiscardHandler)})}
	in.groups.unreadable = func(_ *bus.Lease, err error) { t.Error(err) }
	in.groups.generations = sameForAll{}
	return in
}

// keep appends a group with an event of each service that is named.
func (in *testIntake) keep(data json.RawMessage, services ...string) {
	in.t.Helper()
	events := make([]*fanfare.AcceptedEvent, len(services))
	for i, service := range services {
		events[i] = &fanfare.AcceptedEvent{Service: service, Topic: "story", Event: fanfare.Event{Data: data}}
	}
	in.append(events)
}

// keepOf appends a group with an event of each topic that is named.
func (in *testIntake) keepOf(topics ...string) {
	in.t.Helper()
	events := make([]*fanfare.AcceptedEvent, len(topics))
	for i, topic := range topics {
		events[i] = &fanfare.AcceptedEvent{Service: "news", Topic: topic}
	}
	in.append(events)
}

func (in *testIntake) append(events []*fanfare.AcceptedEvent) {
	in.t.Helper()
	for _, e := range events {
		in.kept++
		e.Seq = fanfare.EventSeq(in.kept)
	}
	group, err := eventgroup.Encode(events...)
	if err == nil {
		_, err = in.hops.AppendEvents(in.t.Context(), fanfare.Bulk, group)
	}
	if err != nil {
		in.t.Fatal(err)
	}
}

// awaitAhead returns when so many groups are read ahead.
func (in *testIntake) awaitAhead(n int) {
	in.t.Helper()
	limit, cancel := context.WithTimeout(in.t.Context(), 2*time.Minute)
	defer cancel()
	for in.groups.held < n {
		lease, err := in.groups.queue.Next(limit)
		if err != nil {
			in.t.Fatalf("%d groups came in time, want %d: %v", in.groups.held, n, err)
		}
		in.groups.take(lease)
	}
}

func (in *testIntake) next() (piece, []*fanfare.AcceptedEvent) {
	in.t.Helper()
	p, ok := in.groups.next(in.t.Context())
	if !ok {
		in.t.Fatal("nothing is next")
	}
	events, err := eventgroup.DecodeShare(&p.Share, p.lease.Data, p.lease.Seq)
	if err != nil || len(events) != p.Events {
		in.t.Fatalf("%d events of %s, want %d: %v", len(events), p.Service, p.Events, err)
	}
	return p, events
}

func TestServicesTakeTurns(t *testing.T) {
	in := newTestIntake(t)
	for range 300 {
		in.keep(nil, slices.Repeat([]string{"large"}, turnEvents)...)
	}
	in.keep(nil, "large", "small", "large")
	in.keep(nil, "other")
	in.awaitAhead(302)
	var order []string
	for range 4 {
		p, _ := in.next()
		order = append(order, p.Service)
	}
	if want := []string{"large", "small", "other", "large"}; !slices.Equal(order, want) {
		t.Errorf("matched in the order %v, want %v", order, want)
	}
}

func TestServiceIsChargedForLargeResults(t *testing.T) {
	in := newTestIntake(t)
	for range 20 {
		in.keep(nil, "wide")
		in.keep(nil, "narrow")
	}
	in.awaitAhead(40)
	count := map[string]int{}
	for range 11 {
		p, _ := in.next()
		if count[p.Service]++; p.Service == "wide" {
			in.groups.charge("wide", 1_000_000)
		}
	}
	if count["wide"] != 1 || count["narrow"] != 10 {
		t.Errorf("matched %v, want one of a million members and what the others have meanwhile", count)
	}
}

// TestDataBeyondTheLimitIsReadAgain has more data than the queue keeps in memory.
func TestDataBeyondTheLimitIsReadAgain(t *testing.T) {
	in := newTestIntake(t)
	data := append(append([]byte{'"'}, bytes.Repeat([]byte{'x'}, 250<<10)...), '"')
	const n = 140
	for range n {
		in.keep(data, "news")
	}
	in.awaitAhead(n)
	if in.groups.bytes > maxGroupBytes {
		t.Errorf("%d bytes are in memory, %d may be", in.groups.bytes, maxGroupBytes)
	}
	for i := range n {
		p, events := in.next()
		if events[0].Seq != fanfare.EventSeq(i+1) || !bytes.Equal(events[0].Event.Data, data) {
			t.Fatalf("event %d has sequence %d and %d bytes", i+1, events[0].Seq, len(events[0].Event.Data))
		}
		if err := in.groups.frozen(p); err != nil {
			t.Fatal(err)
		}
	}
	if in.groups.bytes != 0 || in.groups.held != 0 {
		t.Errorf("%d bytes of %d groups are still counted", in.groups.bytes, in.groups.held)
	}
}

// TestDataOfADelayedServiceIsBounded has two services in each group. The events of the service
// that is far behind are read again.
func TestDataOfADelayedServiceIsBounded(t *testing.T) {
	in := newTestIntake(t)
	data := append(append([]byte{'"'}, bytes.Repeat([]byte{'x'}, 125<<10)...), '"')
	const n = 200
	for range n {
		in.keep(data, "wide", "narrow")
	}
	in.awaitAhead(n)
	count := map[string]int{}
	for range 2 * n {
		p, _ := in.next()
		if count[p.Service]++; count["wide"] == 1 {
			in.groups.charge("wide", 10_000_000)
		}
		if err := in.groups.frozen(p); err != nil {
			t.Fatal(err)
		}
		if most := maxGroupBytes + 2*len(data) + 1000; in.groups.bytes > most {
			t.Fatalf("%d bytes are in memory after %v, %d may be", in.groups.bytes, count, most)
		}
	}
	if in.groups.bytes != 0 || in.groups.held != 0 {
		t.Errorf("%d bytes of %d groups are still counted", in.groups.bytes, in.groups.held)
	}
}

// TestGroupIsAcknowledgedWhenAllItsEventsAreFrozen has rounds that fail at random. A group that
// was given back comes again as a whole, the events of a service stay in order, and no group is
// left.
func TestGroupIsAcknowledgedWhenAllItsEventsAreFrozen(t *testing.T) {
	in := newTestIntake(t)
	random := rand.New(rand.NewPCG(6, 17))
	services := []string{"a", "b", "c", "d"}
	for range 200 {
		group := make([]string, 1+random.IntN(6))
		for i := range group {
			group[i] = services[random.IntN(len(services))]
		}
		in.keep(nil, group...)
	}
	frozen, newest := map[fanfare.EventSeq]bool{}, map[string]fanfare.EventSeq{}
	failed := 0
	limit, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	for len(frozen) < in.kept {
		if err := in.groups.await(limit); err != nil {
			t.Fatalf("%d of %d events were frozen: %v", len(frozen), in.kept, err)
		}
		p, ok := in.groups.next(limit)
		if !ok {
			continue
		}
		events, err := eventgroup.DecodeShare(&p.Share, p.lease.Data, p.lease.Seq)
		if err != nil {
			t.Fatal(err)
		}
		if failed < 20 && random.IntN(5) == 0 {
			failed++
			in.groups.finish(p.group)
			if err := p.lease.Later(0); err != nil {
				t.Fatal(err)
			}
			continue
		}
		for _, e := range events {
			if failed == 0 && e.Seq < newest[p.Service] {
				t.Errorf("event %d of %s comes behind %d", e.Seq, p.Service, newest[p.Service])
			}
			newest[p.Service] = max(newest[p.Service], e.Seq)
			frozen[e.Seq] = true
		}
		if err := in.groups.frozen(p); err != nil {
			t.Fatal(err)
		}
	}
	for in.groups.held > 0 { // what came again because another part of it had failed
		if err := in.groups.await(limit); err != nil {
			t.Fatalf("%d groups are left: %v", in.groups.held, err)
		}
		if p, ok := in.groups.next(limit); ok {
			if err := in.groups.frozen(p); err != nil {
				t.Fatal(err)
			}
		}
	}
	for {
		backlog, err := in.hops.Backlog(limit)
		if err != nil {
			t.Fatalf("%+v is on the bus: %v", backlog, err)
		}
		if backlog.EventGroups == 0 {
			return
		}
		if lease, err := in.groups.queue.Poll(); err == nil && lease != nil {
			in.groups.take(lease)
			for p, ok := in.groups.next(limit); ok; p, ok = in.groups.next(limit) {
				_ = in.groups.frozen(p)
			}
		}
	}
}
