package broker

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"fanfare.dev/fanfare/internal/session"
	"fanfare.dev/fanfare/internal/session/frame"
)

func TestRetryIsSentAgainToAnotherInstance(t *testing.T) {
	kinds(t, func(t *testing.T, kind session.Kind) {
		b := startBroker(t, newMemoryLog(), define(echo))
		info := open(t, b, session.Options{Worker: "echo", Kind: kind, Resends: 3})
		both := []*testInstance{join(t, b, "echo", "a", 1), join(t, b, "echo", "b", 1)}
		c := attach(t, b, info.ID, "one", 0)
		c.send(1, numbered(1, 1)...)
		at := firstOf(t, both, "has the task", func(i *testInstance) bool { return len(i.tasks) > 0 })
		for attempt := uint16(1); attempt <= 4; attempt++ {
			task := both[at].next()
			if task.Attempt != attempt {
				t.Errorf("attempt %d says %d", attempt, task.Attempt)
			}
			both[at].answer(frame.Result{Tag: task.Tag, Status: frame.Retry, Body: []byte(`{"code":"x` + string(rune('0'+attempt)) + `","message":"m"}`)})
			at = 1 - at
		}
		c.until("the response", func() bool { return len(c.responses) == 1 })
		r := c.responses[0]
		if r.Status != frame.Fault || r.Attempts != 4 || !strings.Contains(string(r.Body), "x4") {
			t.Errorf("the response is %+v, want the last fault", r)
		}
		got, _ := b.Session(testService, info.ID)
		if got.Resends != 3 || got.Faults != 1 {
			t.Errorf("%d resends and %d faults, want 3 and 1", got.Resends, got.Faults)
		}
		trace, err := b.Trace(t.Context(), testService, info.ID, "one", 1)
		if err != nil || len(trace.Dispatched) != 4 || trace.Status != "fault" || trace.Response != 1 || trace.Dispatched[0].Instance == trace.Dispatched[1].Instance {
			t.Errorf("the trace is %+v, %v", trace, err)
		}
		for _, d := range trace.Dispatched {
			if d.Outcome != "retry" {
				t.Errorf("the trace has the outcome %q", d.Outcome)
			}
		}
	})
}

func TestFaultIsTheResponseAtOnce(t *testing.T) {
	b := startBroker(t, newMemoryLog(), define(echo))
	info := open(t, b, session.Options{Worker: "echo", Resends: 3})
	i := join(t, b, "echo", "a", 1)
	c := attach(t, b, info.ID, "one", 0)
	c.send(1, numbered(1, 1)...)
	i.answer(frame.Result{Tag: i.next().Tag, Status: frame.Fault, Body: []byte(`{}`)})
	c.until("the response", func() bool { return len(c.responses) == 1 })
	if r := c.responses[0]; r.Status != frame.Fault || r.Attempts != 1 {
		t.Errorf("%+v", r)
	}
}

func TestTasksOfALostInstanceReturnToTheFrontInOrder(t *testing.T) {
	kinds(t, func(t *testing.T, kind session.Kind) {
		b := startBroker(t, newMemoryLog(), define(session.Definition{Name: "echo", Concurrency: 4, Prefetch: 1}))
		info := open(t, b, session.Options{Worker: "echo", Kind: kind, Resends: 1})
		first := join(t, b, "echo", "a", 4)
		c := attach(t, b, info.ID, "one", 0)
		c.send(1, numbered(1, 20)...)
		first.until("8 tasks", func() bool { return len(first.tasks) == 8 })
		first.answer(frame.Result{Tag: first.tasks[2].Tag, Body: []byte("x")})
		first.until("another task", func() bool { return len(first.tasks) == 9 })
		first.kill()
		second := join(t, b, "echo", "b", 20)
		second.until("19 tasks", func() bool { return len(second.tasks) == 19 })
		var numbers []uint64
		for _, task := range second.tasks {
			numbers = append(numbers, task.Request)
		}
		want := []uint64{1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20}
		if !slices.Equal(numbers, want) {
			t.Errorf("the tasks came as %v", numbers)
		}
		if got, _ := b.Session(testService, info.ID); got.Resends != 0 || got.Faults != 0 {
			t.Errorf("the loss was counted: %+v", got)
		}
	})
}

func TestALostTaskThatRunsAtMostOnceIsAFault(t *testing.T) {
	kinds(t, func(t *testing.T, kind session.Kind) {
		b := startBroker(t, newMemoryLog(), define(echo))
		info := open(t, b, session.Options{Worker: "echo", Kind: kind, Resends: 0})
		i := join(t, b, "echo", "a", 1)
		c := attach(t, b, info.ID, "one", 0)
		c.send(1, numbered(1, 1)...)
		i.next()
		i.kill()
		c.until("the response", func() bool { return len(c.responses) == 1 })
		if r := c.responses[0]; r.Status != frame.Fault || !strings.Contains(string(r.Body), `"lost"`) {
			t.Errorf("%+v %s", r, r.Body)
		}
	})
}

func TestAStartedRequestIsLostWithTheBroker(t *testing.T) {
	log, defs := newMemoryLog(), define(echo)
	b := startBroker(t, log, defs)
	info := open(t, b, session.Options{Worker: "echo", Kind: session.Durable, Resends: 0})
	i := join(t, b, "echo", "a", 1)
	c := attach(t, b, info.ID, "one", 0)
	c.send(1, numbered(1, 5)...)
	i.until("tasks", func() bool { return len(i.tasks) == 2 }) // one runs, one is prefetched
	log.mu.Lock()
	marks := 0
	for key, e := range log.entries {
		if key.kind == session.StartedEntry {
			marks += int(e.Count)
		}
	}
	log.mu.Unlock()
	if marks != 2 {
		t.Errorf("%d started marks are durable while 2 tasks run", marks)
	}
	second := startBroker(t, log, defs) // the first one does not know
	again := attach(t, second, info.ID, "one", 0)
	again.until("two faults", func() bool { return len(again.responses) == 2 })
	go join(t, second, "echo", "b", 1).serve()
	again.until("all responses", func() bool { return len(again.responses) == 5 })
	for k, r := range again.responses {
		if lost := strings.Contains(string(r.Body), `"lost"`); lost != (k < 2) || r.Request != uint64(k+1) {
			t.Errorf("response %d: %+v %s", k+1, r, r.Body)
		}
	}
	// The first broker notices with its next write.
	c.send(6, numbered(6, 1)...)
	for c.step(patience) {
	}
	if *c.conn.code != session.CloseGoingAway {
		t.Errorf("the old broker closed with %d", *c.conn.code)
	}
	if _, err := b.Session(testService, info.ID); err == nil {
		t.Error("the old broker still has the session")
	}
}

func TestReturnedTasksRunElsewhere(t *testing.T) {
	b := startBroker(t, newMemoryLog(), define(echo))
	info := open(t, b, session.Options{Worker: "echo", Resends: 0})
	i := join(t, b, "echo", "a", 1)
	c := attach(t, b, info.ID, "one", 0)
	c.send(1, numbered(1, 2)...)
	first, second := i.next(), i.next()
	if err := i.conn.Write(t.Context(), frame.Token(frame.Leaving, 0, 0)); err != nil {
		t.Fatal(err)
	}
	i.answer(frame.Result{Tag: second.Tag, Status: frame.Returned}, frame.Result{Tag: first.Tag, Body: []byte("x")})
	go join(t, b, "echo", "b", 1).serve()
	c.until("two responses", func() bool { return len(c.responses) == 2 })
	if r := c.responses[1]; r.Status != frame.OK || r.Request != 2 || r.Attempts != 2 {
		t.Errorf("%+v", r)
	}
}

func TestTimeoutCancelsAndLateResultsAreDropped(t *testing.T) {
	for _, resends := range []int{0, 1} {
		synctest.Test(t, func(t *testing.T) {
			b := startBroker(t, newMemoryLog(), define(session.Definition{Name: "echo", Concurrency: 1, Timeout: time.Hour,
				Actions: map[string]session.Action{"quick": {Timeout: 3 * time.Second}}}))
			info := open(t, b, session.Options{Worker: "echo", Resends: resends})
			i := join(t, b, "echo", "a", 1)
			c := attach(t, b, info.ID, "one", 0)
			begin := time.Now()
			c.send(1, frame.Request{Action: []byte("quick"), Body: []byte("x")})
			task := i.next()
			if task.Timeout != 3000 {
				t.Errorf("the task has %d ms", task.Timeout)
			}
			i.until("the cancel", func() bool { return len(i.cancels) == 1 })
			if i.cancels[0] != task.Tag || time.Since(begin) < 3*time.Second {
				t.Errorf("cancelled %v after %s", i.cancels, time.Since(begin))
			}
			i.answer(frame.Result{Tag: task.Tag, Body: []byte("late")})
			if resends == 1 {
				second := i.next()
				if second.Attempt != 2 {
					t.Errorf("%+v", second)
				}
				i.until("the second cancel", func() bool { return len(i.cancels) == 2 })
			}
			c.until("the response", func() bool { return len(c.responses) == 1 })
			if r := c.responses[0]; r.Status != frame.Fault || !strings.Contains(string(r.Body), `"timeout"`) {
				t.Errorf("%+v %s", r, r.Body)
			}
			synctest.Wait()
			if got, _ := b.Session(testService, info.ID); got.LateResults != 1 {
				t.Errorf("%d late results", got.LateResults)
			}
			i.kill()
			c.close()
		})
	}
}

func TestTheTimeOfAPrefetchedTaskBeginsWhenItRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := startBroker(t, newMemoryLog(), define(session.Definition{Name: "echo", Concurrency: 1, Timeout: 5 * time.Second}))
		info := open(t, b, session.Options{Worker: "echo", Resends: 0})
		i := join(t, b, "echo", "a", 1)
		c := attach(t, b, info.ID, "one", 0)
		c.send(1, numbered(1, 2)...)
		first, second := i.next(), i.next()
		<-time.After(4 * time.Second)
		i.answer(frame.Result{Tag: first.Tag, Micros: 4_000_000})
		<-time.After(4 * time.Second)
		i.answer(frame.Result{Tag: second.Tag, Micros: 4_000_000})
		c.until("two responses", func() bool { return len(c.responses) == 2 })
		if r := c.responses[1]; r.Status != frame.OK {
			t.Errorf("%+v %s", r, r.Body)
		}
		i.kill()
		c.close()
	})
}

func TestALostInstanceIsSkippedAfterItConnectsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := startBroker(t, newMemoryLog(), define(echo))
		info := open(t, b, session.Options{Worker: "echo", Resends: 3})
		c := attach(t, b, info.ID, "one", 0)
		c.send(1, numbered(1, 1)...)
		for _, want := range []time.Duration{0, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second} {
			begin := time.Now()
			i := join(t, b, "echo", "a", 1)
			i.next()
			if got := time.Since(begin); got < want || got > want+time.Second/2 {
				t.Errorf("the instance was skipped for %s, want %s", got, want)
			}
			i.kill()
		}
		i := join(t, b, "echo", "a", 1)
		i.answer(frame.Result{Tag: i.next().Tag, Body: []byte("x")})
		c.until("the response", func() bool { return len(c.responses) == 1 })
		i.kill()
		c.send(2, numbered(2, 1)...)
		begin := time.Now()
		i = join(t, b, "echo", "a", 1)
		if i.next(); time.Since(begin) > 2*time.Second {
			t.Errorf("a successful task did not end the doubling: %s", time.Since(begin))
		}
		i.kill()
		c.close()
	})
}

func TestNewVersionDrainsOneInstanceAfterTheOther(t *testing.T) {
	defs := define(session.Definition{Name: "echo", Concurrency: 1, Version: "1"})
	b := startBroker(t, newMemoryLog(), defs)
	both := []*testInstance{join(t, b, "echo", "a", 1), join(t, b, "echo", "b", 1)}
	defs.set(session.Definition{Service: testService, Name: "echo", Concurrency: 1, Version: "2"})
	b.DefinitionsChanged()
	first := firstOf(t, both, "is drained", func(i *testInstance) bool { return i.drained })
	if both[1-first].step(100*time.Millisecond) && both[1-first].drained {
		t.Error("both instances were drained at once")
	}
	both[first].kill()
	_ = join(t, b, "echo", "c", 1)
	b.DefinitionsChanged()
	both[1-first].until("drain", func() bool { return both[1-first].drained })
}

func TestSkippedAndInvalidFramesCloseTheConnection(t *testing.T) {
	b := startBroker(t, newMemoryLog(), define(echo))
	info := open(t, b, session.Options{Worker: "echo", Resends: -1})
	for name, f := range map[string][]byte{
		"short":    {1, 2, 3},
		"type":     frame.Token(99, 0, 0),
		"gap":      frame.AppendRequest(frame.Token(frame.Requests, 1, 7), &frame.Request{}),
		"zero":     frame.AppendRequest(frame.Token(frame.Requests, 1, 0), &frame.Request{}),
		"cut":      frame.Token(frame.Requests, 1, 1),
		"more":     append(frame.AppendRequest(frame.Token(frame.Requests, 1, 1), &frame.Request{}), 1),
		"received": frame.Token(frame.Received, 0, 5),
	} {
		c := attach(t, b, info.ID, name, 0)
		c.write(f)
		for c.step(patience) {
		}
		if len(c.problems) != 1 || *c.conn.code != session.CloseInvalid {
			t.Errorf("%s: %q, closed with %d", name, c.problems, *c.conn.code)
		}
	}
	for name, f := range map[string][]byte{"short": {1}, "type": frame.Token(1, 0, 0), "cut": frame.Token(frame.Results, 1, 0),
		"long": append(binary.LittleEndian.AppendUint64(nil, 128), make([]byte, 20)...)} {
		i := join(t, b, "echo", name, 1)
		if err := i.conn.Write(t.Context(), f); err != nil {
			t.Fatal(err)
		}
		for i.step(patience) {
		}
		if i.problem == "" || *i.conn.code != session.CloseInvalid {
			t.Errorf("%s: %q, closed with %d", name, i.problem, *i.conn.code)
		}
	}
}
