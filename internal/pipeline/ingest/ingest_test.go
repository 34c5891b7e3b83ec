package ingest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"fanfare.dev/fanfare"
)

func TestPostCompletesEvents(t *testing.T) {
	bubble(t, func(t *testing.T, c *Ingester, log *memoryLog, clock *testClock) {
		list := events("1", "2")
		list[1].Event.Time = time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
		list[1].Lane = fanfare.Urgent
		list[1].Event.Data = json.RawMessage(`{"text":"<b>&</b>"}`)
		results := post(t, c, list...)
		groups := log.kept()
		if len(groups) != 2 {
			t.Fatalf("%d groups, want one for each of two lanes", len(groups))
		}
		for i, want := range []struct {
			result  int
			lane    fanfare.Lane
			time    time.Time
			data    string
			groupAt int
		}{{1, fanfare.Urgent, list[1].Event.Time, `{"text":"<b>&</b>"}`, 0}, {0, fanfare.Normal, clock.Now(), `{"a":1}`, 1}} {
			got := groups[i].events[0]
			if got.Lane != want.lane || groups[i].lane != want.lane || got.ChangeSeq != 77 || !got.ReceivedAt.Equal(clock.Now()) ||
				!got.Event.Time.Equal(want.time) || string(got.Event.Data) != want.data {
				t.Errorf("kept %+v", got)
			}
			if r := results[want.result]; r.Err != nil || r.Duplicate || r.Ref != got.Ref() || r.Ref.Seq != fanfare.NewEventSeq(groups[i].seq, 0) {
				t.Errorf("answered %+v for %v", r, got.Ref())
			}
		}
	})
}

func TestPostStoresTheValidEvents(t *testing.T) {
	bubble(t, func(t *testing.T, c *Ingester, log *memoryLog, _ *testClock) {
		list := events("good", "topic", "schema", "large", "not json", "lane", "header", "good too")
		list[1].Topic = "unknown"
		list[2].Topic = "strict"
		list[3].Event.Data = json.RawMessage(`"` + strings.Repeat("x", MaxDataBytes) + `"`)
		list[4].Event.Data = json.RawMessage(`{"a":`)
		list[5].Lane = 9
		list[6].Event.Subject = strings.Repeat("s", maxGroupBytes)
		results := post(t, c, list...)
		for i, code := range []fanfare.Code{"", fanfare.NotFound, fanfare.Invalid, fanfare.TooLarge, fanfare.Invalid, fanfare.Invalid, fanfare.TooLarge, ""} {
			if err := results[i].Err; (err == nil) != (code == "") || err != nil && fanfare.CodeOf(err) != code {
				t.Errorf("%q: got %v, want %q", list[i].Event.ID, err, code)
			}
		}
		if groups := log.kept(); len(groups) != 1 || len(groups[0].events) != 2 {
			t.Errorf("kept %d groups", len(groups))
		}
	})
}

// TestMarkupIsNotEscaped: with the HTML escapes of package json, the data would be six times as long.
func TestMarkupIsNotEscaped(t *testing.T) {
	bubble(t, func(t *testing.T, c *Ingester, log *memoryLog, _ *testClock) {
		e := event("markup")
		e.Event.Data = json.RawMessage(`"` + strings.Repeat("<", MaxDataBytes-2) + `"`)
		if r := post(t, c, e); r[0].Err != nil {
			t.Fatal(r[0].Err)
		}
		if n := len(log.kept()[0].group); n > MaxDataBytes+1000 {
			t.Errorf("the group has %d bytes", n)
		}
	})
}

func TestPostFailsBelowTheDiskFloor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &memoryLog{}
		var low error = &fanfare.Error{Code: fanfare.DiskFull, Message: "full"}
		c := Start(Options{Log: log, Topics: fixed{}, Clock: newClock(), Floor: func() error { return low }})
		defer c.Stop()
		if r, err := c.Post(t.Context(), events("a")); r != nil || fanfare.CodeOf(err) != fanfare.DiskFull || len(log.kept()) != 0 {
			t.Errorf("got %v, %v", r, err)
		}
		low = nil
		if r := post(t, c, event("a")); r[0].Err != nil || r[0].Duplicate {
			t.Errorf("with free space again: %+v", r)
		}
	})
}

func TestStopAppendsWaitingEvents(t *testing.T) {
	bubble(t, func(t *testing.T, c *Ingester, log *memoryLog, _ *testClock) {
		hold := make(chan struct{})
		log.set(func(l *memoryLog) { l.hold = hold })
		var posts sync.WaitGroup
		for i := range 20 {
			posts.Go(func() {
				if r, err := c.Post(t.Context(), events(fmt.Sprint(i))); err != nil || r[0].Err != nil {
					t.Errorf("post %d: %v %+v", i, err, r)
				}
			})
		}
		synctest.Wait()
		stopped := make(chan struct{})
		go func() { c.Stop(); close(stopped) }()
		synctest.Wait()
		if _, err := c.Post(t.Context(), events("late")); fanfare.CodeOf(err) != fanfare.Unavailable {
			t.Errorf("after Stop: %v", err)
		}
		select {
		case <-stopped:
			t.Error("stopped before the waiting events were stored")
		default:
		}
		log.set(func(l *memoryLog) { l.hold = nil })
		close(hold)
		<-stopped
		posts.Wait()
		c.Stop()
	})
}

func TestPostFailsWhenTooManyEventsWait(t *testing.T) {
	bubble(t, func(t *testing.T, c *Ingester, log *memoryLog, _ *testClock) {
		hold := make(chan struct{})
		log.set(func(l *memoryLog) { l.hold = hold })
		var posts sync.WaitGroup
		posts.Go(func() { post(t, c, event("under way")) })
		synctest.Wait()
		posts.Go(func() { post(t, c, events("a", "b", "c")...) })
		synctest.Wait()
		waiting := func() (count, bytes *int, unlock func()) {
			c.mu.Lock()
			return &c.count, &c.bytes, c.mu.Unlock
		}
		count, size, unlock := waiting()
		if *count != 3 || *size < 3*100 || *size > 3*1000 {
			t.Errorf("%d events and %d bytes are counted as waiting", *count, *size)
		}
		for _, limit := range []struct {
			now  *int
			most int
		}{{count, maxWaiting}, {size, maxWaitingBytes}} {
			before := *limit.now
			*limit.now = limit.most
			unlock()
			if _, err := c.Post(t.Context(), events("too much")); fanfare.CodeOf(err) != fanfare.Unavailable {
				t.Errorf("got %v", err)
			}
			_, _, unlock = waiting()
			*limit.now = before
		}
		unlock()
		close(hold)
		posts.Wait()
		count, size, unlock = waiting()
		defer unlock()
		if *count != 0 || *size != 0 {
			t.Errorf("%d events and %d bytes are counted when nothing waits", *count, *size)
		}
	})
}

func TestInvalidAudienceIsRejected(t *testing.T) {
	c := Start(Options{Log: &memoryLog{}, Topics: fixed{}, Clock: newClock(), Floor: noFloor})
	defer c.Stop()
	posted := func(id, filter string) fanfare.AcceptedEvent {
		return fanfare.AcceptedEvent{Service: "news", Topic: "story", Event: fanfare.Event{ID: id, Source: "/"}, Audience: &fanfare.AudienceFilter{Filter: filter}}
	}
	results, err := c.Post(t.Context(), []fanfare.AcceptedEvent{posted("1", "wrong"), posted("2", "true")})
	if err != nil || fanfare.CodeOf(results[0].Err) != fanfare.Invalid || results[1].Err != nil {
		t.Errorf("got %+v, %v", results, err)
	}
}

func TestUrgentEventsHaveAReserve(t *testing.T) {
	bubble(t, func(t *testing.T, c *Ingester, log *memoryLog, _ *testClock) {
		hold := make(chan struct{})
		log.set(func(l *memoryLog) { l.hold = hold })
		var posts sync.WaitGroup
		posts.Go(func() { post(t, c, event("under way")) })
		synctest.Wait()
		c.mu.Lock()
		c.count += maxWaiting - maxWaiting/urgentReserve
		c.mu.Unlock()
		if _, err := c.Post(t.Context(), events("too much")); fanfare.CodeOf(err) != fanfare.Unavailable {
			t.Errorf("the reserve for urgent events was used by another lane: %v", err)
		}
		urgent := event("urgent")
		urgent.Lane = fanfare.Urgent
		posts.Go(func() { post(t, c, urgent) })
		synctest.Wait()
		c.mu.Lock()
		c.count -= maxWaiting - maxWaiting/urgentReserve
		c.mu.Unlock()
		close(hold)
		posts.Wait()
	})
}

// direct returns a message with an id to one person.
func direct(id string) fanfare.AcceptedEvent {
	return fanfare.AcceptedEvent{Service: "news", Lane: fanfare.Urgent, Event: fanfare.Event{ID: id, Source: "/test", Data: json.RawMessage(`{"a":1}`)},
		Direct: &fanfare.Direct{Channel: 3, Template: 9, Recipients: []fanfare.Recipient{{Subscriber: 7, Data: json.RawMessage(`{"b":2}`)}}}}
}

func TestDirectSendNeedsNoTopic(t *testing.T) {
	bubble(t, func(t *testing.T, c *Ingester, log *memoryLog, _ *testClock) {
		if r := post(t, c, direct("1"))[0]; r.Err != nil || r.Duplicate {
			t.Fatalf("got %+v", r)
		}
		kept := log.kept()[0].events[0]
		if want := direct("1"); !reflect.DeepEqual(kept.Direct, want.Direct) || kept.Lane != fanfare.Urgent {
			t.Errorf("kept %+v in lane %s", kept.Direct, kept.Lane)
		}
	})
}

func TestDirectSendsHaveIDsOfTheirOwn(t *testing.T) {
	bubble(t, func(t *testing.T, c *Ingester, log *memoryLog, _ *testClock) {
		message := direct("1")
		if _, known := c.Known(&message); known {
			t.Error("known before it was sent")
		}
		first := post(t, c, event("1"), direct("1"), direct("1"))
		if first[0].Duplicate || first[1].Duplicate || !first[2].Duplicate || first[2].Ref != first[1].Ref || first[0].Ref == first[1].Ref {
			t.Fatalf("got %+v", first)
		}
		if ref, known := c.Known(&message); !known || ref != first[1].Ref {
			t.Errorf("known as %v, %v", ref, known)
		}
		again := newRecentIDs()
		for _, g := range log.kept() { // as a restart does
			for _, p := range g.events {
				again.add(identify(p), p.Ref(), p.ReceivedAt)
			}
		}
		if ref, known := again.find(identify(&message)); !known || ref != first[1].Ref {
			t.Errorf("after a restart known as %v, %v", ref, known)
		}
	})
}
