package broker

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/session"
	"fanfare.dev/fanfare/internal/session/frame"
)

func TestClientsStopAt4096QueuedRequests(t *testing.T) {
	b := startBroker(t, newMemoryLog(), define(session.Definition{Name: "echo", Concurrency: 1, Prefetch: 1}))
	info := open(t, b, session.Options{Worker: "echo", Resends: -1})
	c := attach(t, b, info.ID, "one", 0)
	sent := 0
	push := func() {
		for sent < int(c.window) {
			n := min(1000, int(c.window)-sent)
			c.send(uint64(sent+1), numbered(sent+1, n)...)
			sent += n
			c.until("accepted", func() bool { return c.accepted == uint64(sent) })
			for c.step(50 * time.Millisecond) {
			}
		}
	}
	push()
	if sent != session.StopQueued {
		t.Errorf("the client stopped at %d requests", sent)
	}
	i := join(t, b, "echo", "a", 1)
	for range 1022 { // with the two tasks at the instance, 3,072 are left
		i.answer(frame.Result{Tag: i.next().Tag})
	}
	c.until("1021 responses", func() bool { return len(c.responses) >= 1021 })
	for c.step(100 * time.Millisecond) {
	}
	if c.window != session.StopQueued && c.window != session.StopQueued+1024 {
		t.Errorf("the window ends at %d", c.window)
	}
	i.answer(frame.Result{Tag: i.next().Tag}, frame.Result{Tag: i.next().Tag})
	c.until("a higher window", func() bool { return c.window >= session.StopQueued+1024 })
	c.send(c.window+1, numbered(1, 1)...)
	c.until("a problem", func() bool { return len(c.problems) == 1 })
}

func TestASlowReaderSlowsOnlyItself(t *testing.T) {
	kinds(t, func(t *testing.T, kind session.Kind) {
		b := startBroker(t, newMemoryLog(), define(session.Definition{Name: "echo", Concurrency: 1}))
		info := open(t, b, session.Options{Worker: "echo", Kind: kind, Resends: -1})
		go join(t, b, "echo", "a", 8).serve()
		slow := attach(t, b, info.ID, "slow", 0) // it never confirms
		sent := 0
		for sent < 100_000 {
			n := min(1000, int(slow.window)-sent)
			if n <= 0 {
				if !slow.step(300 * time.Millisecond) {
					break // its window does not rise any more
				}
				continue
			}
			slow.send(uint64(sent+1), numbered(sent+1, n)...)
			sent += n
			for slow.step(time.Millisecond) {
			}
		}
		if len(slow.responses) > 2*maxSent {
			t.Errorf("%d responses were sent without a confirmation", len(slow.responses))
		}
		quick := attach(t, b, info.ID, "quick", 0)
		flood(quick, 20_000)
		// The slow one receives everything when it confirms.
		for kind == session.Durable && len(slow.responses) < sent {
			slow.confirm()
			slow.until("responses", func() bool { return slow.step(patience) })
		}
		if kind == session.Interactive && sent > maxUnconfirmed+3*session.StopQueued+8*2*maxAutoPrefetch {
			t.Errorf("the slow client could send %d requests", sent)
		}
	})
}

// The connection of a client may break before a frame with exceptions arrives.
func TestExceptionsAreSentAgainAfterALostConnection(t *testing.T) {
	kinds(t, func(t *testing.T, kind session.Kind) {
		b := startBroker(t, newMemoryLog(), define(echo))
		info := open(t, b, session.Options{Worker: "echo", Kind: kind, Resends: -1})
		c := attach(t, b, info.ID, "one", 0)
		one := func(id, body string) frame.Request { return frame.Request{ID: []byte(id), Body: []byte(body)} }
		c.send(1, one("a", "1"), one("a", "1"))
		c.until("accepted", func() bool { return c.accepted == 2 })
		c.send(3, one("b", "2"), one("a", "other"), one("a", "1"))
		c.until("accepted", func() bool { return c.accepted == 5 })
		c.close()
		for _, x := range []struct {
			at   session.Position
			want []uint64
		}{
			{session.Position{Again: true, Accepted: 2}, []uint64{4, 5}},
			{session.Position{Again: true, Accepted: 4}, []uint64{5}},
			{session.Position{Again: true}, []uint64{2, 4, 5}},
			{session.Position{Again: true, Accepted: 5}, nil},
			{session.Position{}, nil}, // another process
		} {
			c := attachAt(t, b, info.ID, "one", x.at)
			c.write(frame.Token(frame.Flush, 0, 1))
			c.until("flushed", func() bool { return len(c.flushed) > 0 })
			var got []uint64
			for _, e := range c.exceptions {
				got = append(got, e.Number)
				if e.Refused != (e.Number == 4) {
					t.Errorf("exception %+v", e)
				}
			}
			if !slices.Equal(got, x.want) {
				t.Errorf("after %+v came the exceptions of %d, want %d", x.at, got, x.want)
			}
			c.close()
		}
	})
}

func TestIDsRunOnce(t *testing.T) {
	kinds(t, func(t *testing.T, kind session.Kind) {
		log, defs := newMemoryLog(), define(echo)
		b := startBroker(t, log, defs)
		info := open(t, b, session.Options{Worker: "echo", Kind: kind, Resends: -1})
		go join(t, b, "echo", "a", 1).serve()
		c := attach(t, b, info.ID, "one", 0)
		one := func(id, body string) frame.Request { return frame.Request{ID: []byte(id), Body: []byte(body)} }
		c.send(1, one("a", "1"), one("b", "2"), one("a", "1"), one("a", "other"), one("c", "3"))
		c.until("accepted", func() bool { return c.accepted == 5 && len(c.responses) == 3 })
		check := func(c *testClient, first uint64) {
			t.Helper()
			if len(c.exceptions) != 2 || c.exceptions[0].Number != first || c.exceptions[0].Refused || c.exceptions[1].Number != first+1 || !c.exceptions[1].Refused ||
				!strings.Contains(string(c.exceptions[1].Problem), `\"a\"`) {
				t.Errorf("exceptions %+v", c.exceptions)
			}
		}
		check(c, 3)
		c.write(frame.Token(frame.End, 0, 5))
		c.until("the refusal", func() bool { return len(c.problems) == 1 })
		if !strings.Contains(c.problems[0], "5 accepted") || !strings.Contains(c.problems[0], "accepted 3") {
			t.Errorf("the problem does not name both numbers: %s", c.problems[0])
		}
		c.write(frame.Token(frame.End, 0, 3))
		c.until("done", func() bool { return c.done })
		if kind != session.Durable {
			return
		}
		c.close()
		stopBroker(t, b)
		b = startBroker(t, log, defs)
		other := attach(t, b, info.ID, "two", 0)
		other.send(1, one("a", "1"), one("a", "more"))
		other.until("accepted", func() bool { return other.accepted == 2 })
		check(other, 1)
	})
}

func TestFlushAndMessageLimit(t *testing.T) {
	kinds(t, func(t *testing.T, kind session.Kind) {
		b := startBroker(t, newMemoryLog(), define(session.Definition{Name: "echo", Concurrency: 1, MessageLimit: 10}))
		info := open(t, b, session.Options{Worker: "echo", Kind: kind, Resends: -1})
		c := attach(t, b, info.ID, "one", 0)
		c.send(1, frame.Request{Body: make([]byte, 10)}, frame.Request{Body: make([]byte, 11)})
		c.write(frame.Token(frame.Flush, 0, 77))
		c.until("flushed", func() bool { return len(c.flushed) == 3 })
		if c.flushed[0] != 77 || c.flushed[1] != 2 || c.flushed[2] != 1 {
			t.Errorf("flushed %v", c.flushed)
		}
		if len(c.exceptions) != 1 || c.exceptions[0].Number != 2 || !strings.Contains(string(c.exceptions[0].Problem), "11 bytes") || !strings.Contains(string(c.exceptions[0].Problem), "is 10") {
			t.Errorf("exceptions %+v", c.exceptions)
		}
		i := join(t, b, "echo", "a", 1)
		i.answer(frame.Result{Tag: i.next().Tag, Body: make([]byte, 11)})
		c.until("the response", func() bool { return len(c.responses) == 1 })
		if r := c.responses[0]; r.Status != frame.Fault || !strings.Contains(string(r.Body), "too_large") {
			t.Errorf("%+v %s", r, r.Body)
		}
	})
}

func TestAttachAgainFromAResponse(t *testing.T) {
	kinds(t, func(t *testing.T, kind session.Kind) {
		b := startBroker(t, newMemoryLog(), define(echo))
		info := open(t, b, session.Options{Worker: "echo", Kind: kind, Resends: -1})
		go join(t, b, "echo", "a", 1).serve()
		c := attach(t, b, info.ID, "one", 0)
		c.send(1, numbered(1, 100)...)
		c.end()
		c.until("done", func() bool { return c.done })
		second := attach(t, b, info.ID, "one", 31) // replaces the first
		second.until("done", func() bool { return second.done })
		if len(second.responses) != 70 || second.welcome.Requests != 100 || !second.welcome.Ended {
			t.Errorf("%d responses, welcome %+v", len(second.responses), second.welcome)
		}
		for c.step(patience) {
		}
		if *c.conn.code != session.CloseReplaced {
			t.Errorf("the first connection was closed with %d", *c.conn.code)
		}
		page, err := b.Page(t.Context(), testService, info.ID, "one", 11, 20)
		if err != nil || len(page.Responses) != 20 || page.First != 11 || page.Next != 31 {
			t.Errorf("%d %d %d %v", len(page.Responses), page.First, page.Next, err)
		}
		second.confirm()
		second.close()
		third := attach(t, b, info.ID, "one", 0)
		third.until("done", func() bool { return third.done })
		if len(third.responses) != 0 {
			t.Errorf("%d confirmed responses came again", len(third.responses))
		}
	})
}

func TestPagesHaveEachResponseOnce(t *testing.T) {
	kinds(t, func(t *testing.T, kind session.Kind) {
		b := startBroker(t, newMemoryLog(), define(echo))
		info := open(t, b, session.Options{Worker: "echo", Kind: kind, Resends: -1})
		go join(t, b, "echo", "a", 1).serve()
		c := attach(t, b, info.ID, "one", 0)
		const count = 100
		for first := uint64(1); first < count; first += 10 { // a durable session keeps them in several entries
			c.send(first, numbered(int(first), 10)...)
			c.until("the responses", func() bool { return len(c.responses) == int(first)+9 })
		}
		for _, most := range []int{1, 9, 10, 11, 50, 100, 1000} {
			next := uint64(1)
			for {
				page, err := b.Page(t.Context(), testService, info.ID, "one", next, most)
				if err != nil {
					t.Fatal(err)
				}
				if want := min(most, count+1-int(next)); len(page.Responses) != want || page.Next != next+uint64(want) {
					t.Fatalf("pages of %d: %d responses from %d, the next page begins at %d", most, len(page.Responses), next, page.Next)
				}
				for i, r := range page.Responses {
					if want := c.responses[int(next)-1+i]; r.Request != want.Request || !bytes.Equal(r.Body, want.Body) {
						t.Errorf("pages of %d: response %d is %+v, want %+v", most, int(next)+i, r, want)
					}
				}
				if len(page.Responses) == 0 {
					break
				}
				next = page.Next
			}
		}
	})
}

func TestPurgeDuringWork(t *testing.T) {
	kinds(t, func(t *testing.T, kind session.Kind) {
		log := newMemoryLog()
		b := startBroker(t, log, define(session.Definition{Name: "echo", Concurrency: 4}))
		info := open(t, b, session.Options{Worker: "echo", Kind: kind, Resends: 0})
		i := join(t, b, "echo", "a", 4)
		c, other := attach(t, b, info.ID, "one", 0), attach(t, b, info.ID, "two", 0)
		c.send(1, numbered(1, 3)...)
		i.until("tasks", func() bool { return len(i.tasks) == 3 })
		c.write(frame.Token(frame.Close, 1, 0))
		i.until("cancels", func() bool { return len(i.cancels) == 3 })
		for c.step(patience) {
		}
		if got, _ := b.Session(testService, info.ID); len(got.Clients) != 1 || got.Running != 0 || got.Queued != 0 {
			t.Errorf("%+v", got)
		}
		other.send(1, numbered(1, 3)...)
		i.until("tasks", func() bool { return len(i.tasks) == 6 })
		if err := b.End(t.Context(), testService, info.ID, true, "test"); err != nil {
			t.Fatal(err)
		}
		i.until("cancels", func() bool { return len(i.cancels) == 6 })
		for other.step(patience) {
		}
		if *other.conn.code != session.CloseEnded || len(other.problems) != 1 {
			t.Errorf("closed with %d, %q", *other.conn.code, other.problems)
		}
		i.answer(frame.Result{Tag: i.tasks[4].Tag, Body: []byte("late")})
		got, err := b.Session(testService, info.ID)
		if err != nil || got.State != session.Purged || log.rows(info.Number) != 0 {
			t.Errorf("%+v %v, %d rows", got, err, log.rows(info.Number))
		}
		near, far := pipe()
		if err := b.ServeClient(t.Context(), far, testService, info.ID, "one", session.Position{}); fanfare.CodeOf(err) != fanfare.Conflict {
			t.Errorf("an ended session was served: %v", err)
		}
		if f, err := near.Read(t.Context()); err != nil || frame.Type(f[0]) != frame.Closed {
			t.Errorf("%v %v", f, err)
		}
	})
}

func TestOpenChecksNamesAndOptions(t *testing.T) {
	b := startBroker(t, newMemoryLog(), define(echo))
	first := open(t, b, session.Options{Worker: "echo", Name: "pool", Resends: -1})
	if again := open(t, b, session.Options{Worker: "echo", Name: "pool", Resends: -1}); again.ID != first.ID {
		t.Errorf("%s and %s", first.ID, again.ID)
	}
	for _, c := range []struct {
		o    session.Options
		code fanfare.Code
	}{
		{session.Options{Worker: "echo", Name: "pool", Resends: 1}, fanfare.Conflict},
		{session.Options{Worker: "unknown"}, fanfare.NotFound},
		{session.Options{Worker: "echo", Priority: 101}, fanfare.Invalid},
		{session.Options{Worker: "echo", Kind: "other"}, fanfare.Invalid},
		{session.Options{Worker: "echo", MinInstances: 3, MaxInstances: 2}, fanfare.Invalid},
		{session.Options{Worker: "echo", Resends: 101}, fanfare.Invalid},
	} {
		if _, err := b.Open(t.Context(), testService, c.o); fanfare.CodeOf(err) != c.code {
			t.Errorf("%+v: %v", c.o, err)
		}
	}
	if err := b.End(t.Context(), testService, first.ID, false, "test"); err != nil {
		t.Fatal(err)
	}
	if again := open(t, b, session.Options{Worker: "echo", Name: "pool", Resends: 1}); again.ID == first.ID {
		t.Error("an ended session was opened again")
	}
	for _, id := range []string{"ses-99", "ses-01", "x", ""} {
		if _, err := b.Session(testService, id); fanfare.CodeOf(err) != fanfare.NotFound {
			t.Errorf("%q: %v", id, err)
		}
	}
	if _, err := b.Session("other", first.ID); fanfare.CodeOf(err) != fanfare.NotFound {
		t.Errorf("another service sees the session: %v", err)
	}
}

func TestSessionsEndAtTheirTimeouts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := startBroker(t, newMemoryLog(), define(echo))
		idle := open(t, b, session.Options{Worker: "echo", IdleTimeout: time.Minute})
		total := open(t, b, session.Options{Worker: "echo", IdleTimeout: time.Minute, TotalTimeout: 10 * time.Minute})
		c := attach(t, b, total.ID, "one", 0)
		state := func(id string) session.State {
			got, err := b.Session(testService, id)
			if err != nil {
				t.Error(err)
			}
			return got.State
		}
		<-time.After(58 * time.Second)
		if state(idle.ID) != session.Open {
			t.Error("the session ended early")
		}
		<-time.After(4 * time.Second)
		if state(idle.ID) != session.Ended || state(total.ID) != session.Open {
			t.Errorf("the states are %s and %s", state(idle.ID), state(total.ID))
		}
		<-time.After(10 * time.Minute)
		if state(total.ID) != session.Ended {
			t.Error("the session with a total timeout is open")
		}
		for c.step(time.Second) {
		}
		if len(c.problems) != 1 || !strings.Contains(c.problems[0], "total timeout") {
			t.Errorf("%q", c.problems)
		}
		c.close()
	})
}

func TestInteractiveSessionsAreLostWithTheirBroker(t *testing.T) {
	log, defs := newMemoryLog(), define(echo)
	first := startBroker(t, log, defs)
	info := open(t, first, session.Options{Worker: "echo", Resends: -1})
	second := startBroker(t, log, defs)
	if got, err := second.Session(testService, info.ID); err != nil || got.State != session.Lost {
		t.Errorf("%+v %v", got, err)
	}
}

func TestLongQueuesStayInTheLog(t *testing.T) {
	log, defs := newMemoryLog(), define(session.Definition{Name: "echo", Concurrency: 1})
	b := startBroker(t, log, defs)
	info := open(t, b, session.Options{Worker: "echo", Kind: session.Durable, Resends: -1})
	c := attach(t, b, info.ID, "one", 0)
	const n = 3 * maxQueuedRequests
	sent := 0
	for sent < n {
		for sent < n && sent < int(c.window) {
			k := min(4000, n-sent, int(c.window)-sent)
			c.send(uint64(sent+1), numbered(sent+1, k)...)
			sent += k
		}
		if sent < n {
			c.until("a frame", func() bool { return c.step(patience) })
		}
	}
	c.end()
	c.until("ended", func() bool { return len(c.ended) == 1 })
	s, _, err := b.find(testService, info.ID)
	if err != nil {
		t.Fatal(err)
	}
	s.p.mu.Lock()
	inMemory := s.queuedRecords
	s.p.mu.Unlock()
	if inMemory > maxQueuedRequests+maxUncommitted {
		t.Errorf("%d requests are in memory", inMemory)
	}
	for k := range 2 {
		go join(t, b, "echo", fmt.Sprint(k), 4).serve()
	}
	for !c.done {
		c.until("a frame", func() bool { return c.step(patience) })
		c.confirm()
	}
	seen := make([]bool, n+1)
	for _, r := range c.responses {
		if seen[r.Request] {
			t.Fatalf("the request %d was answered twice", r.Request)
		}
		seen[r.Request] = true
	}
	if len(c.responses) != n {
		t.Errorf("%d responses", len(c.responses))
	}
}

func TestTraceOfADurableRequest(t *testing.T) {
	log, defs := newMemoryLog(), define(echo)
	b := startBroker(t, log, defs)
	info := open(t, b, session.Options{Worker: "echo", Kind: session.Durable, Resends: 3})
	i := join(t, b, "echo", "a", 1)
	c := attach(t, b, info.ID, "one", 0)
	c.send(1, numbered(1, 5)...)
	task := i.next()
	if got, err := b.Trace(t.Context(), testService, info.ID, "one", task.Request); err != nil || got.Status != "running" || len(got.Dispatched) != 1 || got.Dispatched[0].Instance != "a" {
		t.Errorf("%+v %v", got, err)
	}
	if got, err := b.Trace(t.Context(), testService, info.ID, "one", 5); err != nil || got.Status != "queued" {
		t.Errorf("%+v %v", got, err)
	}
	i.answer(frame.Result{Tag: task.Tag, Status: frame.Retry, Body: []byte("{}")})
	go i.serve()
	c.until("the responses", func() bool { return len(c.responses) == 4 })
	for _, broker := range []func() *Broker{func() *Broker { return b }, func() *Broker { stopBroker(t, b); return startBroker(t, log, defs) }} {
		b = broker()
		got, err := b.Trace(t.Context(), testService, info.ID, "one", 3)
		if err != nil || got.Status != "ok" || len(got.Dispatched) == 0 || got.Response == 0 || got.AnsweredAt.Before(got.QueuedAt) {
			t.Errorf("%+v %v", got, err)
		}
	}
	if _, err := b.Trace(t.Context(), testService, info.ID, "one", 6); fanfare.CodeOf(err) != fanfare.NotFound {
		t.Errorf("a request that was not sent: %v", err)
	}
}
