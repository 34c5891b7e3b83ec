package worker

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/session/frame"
	"fanfare.dev/fanfare/internal/session/websocket"
)

// A testBroker hands its connections to the test.
type testBroker struct {
	t        *testing.T
	server   *httptest.Server
	conns    chan *websocket.Conn
	refusal  fanfare.Code // if not empty, connections are refused
	capacity int
	query    chan string
}

func newBroker(t *testing.T, capacity int) *testBroker {
	b := &testBroker{t: t, conns: make(chan *websocket.Conn, 8), capacity: capacity, query: make(chan string, 8)}
	b.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if b.refusal != "" {
			w.WriteHeader(http.StatusNotFound)
			_ = json.NewEncoder(w).Encode(wire.Problem{Member: wire.Member{Code: b.refusal, Detail: "there is no worker echo"}})
			return
		}
		b.query <- r.URL.Path + "?" + r.URL.RawQuery
		conn, err := websocket.Accept(w, r, frame.WorkerProtocol)
		if err != nil {
			t.Error(err)
			return
		}
		welcome, _ := json.Marshal(frame.WorkerWelcome{Worker: "echo", Capacity: b.capacity, MessageLimit: 1 << 20})
		if err := conn.Write(t.Context(), frame.JSON(frame.Welcome, welcome)); err != nil {
			t.Error(err)
		}
		b.conns <- conn
	}))
	t.Cleanup(b.server.Close)
	t.Cleanup(b.server.CloseClientConnections)
	return b
}

// start runs a worker. The channel receives the result of Run.
func (b *testBroker) start(ctx context.Context, fn Func) chan error {
	ended := make(chan error, 1)
	go func() {
		ended <- Run(ctx, Options{URL: b.server.URL, Key: "key", Worker: "echo", Instance: "one", Logger: slog.New(slog.DiscardHandler)}, fn)
	}()
	return ended
}

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func receive[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(60 * time.Second):
		t.Fatal("nothing came for 60 s")
		panic("not reached")
	}
}

func tasks(list ...frame.Task) []byte {
	b := frame.AppendHeader(nil, frame.Header{Type: frame.Tasks, Count: uint32(len(list))})
	for i := range list {
		b = frame.AppendTask(b, &list[i])
	}
	return b
}

func send(t *testing.T, conn *websocket.Conn, data []byte) {
	t.Helper()
	if err := conn.Write(t.Context(), data); err != nil {
		t.Fatal(err)
	}
}

// results reads n results. Frames of other types are passed to other, if it is not nil.
func results(t *testing.T, conn *websocket.Conn, n int, other func(frame.Header)) []frame.Result {
	t.Helper()
	ctx := within(t)
	var list []frame.Result
	for len(list) < n {
		data, err := conn.Read(ctx)
		if err != nil {
			t.Fatalf("after %d results: %v", len(list), err)
		}
		h, rest, err := frame.Parse(data)
		if err != nil {
			t.Fatal(err)
		}
		if h.Type != frame.Results {
			if other == nil {
				t.Fatalf("the instance sent a frame of type %d", h.Type)
			}
			other(h)
			continue
		}
		for range h.Count {
			var r frame.Result
			if rest, err = frame.NextResult(rest, &r); err != nil {
				t.Fatal(err)
			}
			list = append(list, r)
		}
	}
	return list
}

func echo(_ context.Context, task *Task) ([]byte, error) { return task.Body, nil }

func TestEachTaskHasOneResult(t *testing.T) {
	b := newBroker(t, 4)
	b.start(t.Context(), echo)
	conn := receive(t, b.conns)
	if got := receive(t, b.query); got != "/v1/workers/echo/stream?instance=one" {
		t.Errorf("the instance asked for %s", got)
	}
	const count = 20_000
	go func() {
		for first := 0; first < count; first += 1000 {
			var list []frame.Task
			for i := range 1000 {
				list = append(list, frame.Task{Tag: uint64(first + i), Body: fmt.Append(nil, first+i)})
			}
			_ = conn.Write(t.Context(), tasks(list...)) // the reader notices
		}
	}()
	seen := make([]bool, count)
	for _, r := range results(t, conn, count, nil) {
		if r.Tag >= count || seen[r.Tag] || r.Status != frame.OK || string(r.Body) != fmt.Sprint(r.Tag) {
			t.Fatalf("the result %v is not expected", r)
		}
		seen[r.Tag] = true
	}
}

func TestTheFunctionSeesTheTask(t *testing.T) {
	b := newBroker(t, 1)
	b.start(t.Context(), func(ctx context.Context, task *Task) ([]byte, error) {
		_, limited := ctx.Deadline()
		return fmt.Appendf(nil, "%d %d %d %d %s %s %t", task.Session, task.Request, task.Client, task.Attempt, task.Action, task.Body, limited), nil
	})
	conn := receive(t, b.conns)
	send(t, conn, tasks(frame.Task{Tag: 9, Session: 1, Request: 2, Client: 3, Attempt: 4, Timeout: 60_000, Action: []byte("sum"), Body: []byte("x")},
		frame.Task{Tag: 10, Body: []byte("y")}))
	list := results(t, conn, 2, nil)
	if string(list[0].Body) != "1 2 3 4 sum x true" || string(list[1].Body) != "0 0 0 0  y false" {
		t.Errorf("the function saw %q and %q", list[0].Body, list[1].Body)
	}
}

func TestErrorsBecomeFaults(t *testing.T) {
	b := newBroker(t, 1)
	b.start(t.Context(), func(_ context.Context, task *Task) ([]byte, error) {
		switch string(task.Body) {
		case "error":
			return nil, errors.New("no such trade")
		case "fault":
			return nil, fmt.Errorf("wrapped: %w", &Fault{"unknown_trade", "no such trade", "trade 7"})
		case "retry":
			return nil, Retry(errors.New("the database is away"))
		case "large":
			return make([]byte, 1<<20+1), nil
		}
		panic("what now")
	})
	conn := receive(t, b.conns)
	for _, tc := range []struct {
		body   string
		status frame.Status
		code   string
		text   string
	}{
		{"error", frame.Fault, "fault", "no such trade"},
		{"fault", frame.Fault, "unknown_trade", "no such trade"},
		{"retry", frame.Retry, "fault", "the database is away"},
		{"large", frame.Fault, "too_large", "1048576"},
		{"panic", frame.Fault, "panic", "what now"},
	} {
		send(t, conn, tasks(frame.Task{Tag: 5, Body: []byte(tc.body)}))
		r := results(t, conn, 1, nil)[0]
		var fault frame.FaultBody
		if err := json.Unmarshal(r.Body, &fault); err != nil {
			t.Fatal(err)
		}
		if r.Status != tc.status || fault.Code != tc.code || !strings.Contains(fault.Message, tc.text) {
			t.Errorf("%s gives the status %d and %v", tc.body, r.Status, fault)
		}
		if tc.body == "panic" && !strings.Contains(fault.Detail, "worker_test.go") {
			t.Errorf("the stack of a panic is missing: %s", fault.Detail)
		}
	}
}

func TestAtMostCapacityTasksRunAtTheSameTime(t *testing.T) {
	b := newBroker(t, 3)
	var now, most atomic.Int32
	b.start(t.Context(), func(context.Context, *Task) ([]byte, error) {
		n := now.Add(1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		<-time.After(time.Millisecond)
		now.Add(-1)
		return nil, nil
	})
	conn := receive(t, b.conns)
	var list []frame.Task
	for i := range 60 {
		list = append(list, frame.Task{Tag: uint64(i)})
	}
	send(t, conn, tasks(list...))
	results(t, conn, 60, nil)
	if most.Load() != 3 {
		t.Errorf("%d tasks ran at the same time", most.Load())
	}
}

func TestCancelEndsRunningAndWaitingTasks(t *testing.T) {
	b := newBroker(t, 1)
	started := make(chan uint64, 8)
	b.start(t.Context(), func(ctx context.Context, task *Task) ([]byte, error) {
		started <- task.Request
		if task.Request == 1 {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return nil, ctx.Err()
	})
	conn := receive(t, b.conns)
	send(t, conn, tasks(frame.Task{Tag: 11, Request: 1}, frame.Task{Tag: 12, Request: 2}, frame.Task{Tag: 13, Request: 3}))
	receive(t, started)
	cancel := frame.AppendHeader(nil, frame.Header{Type: frame.Cancel, Count: 3})
	for _, tag := range []uint64{12, 11, 99} {
		cancel = binary.LittleEndian.AppendUint64(cancel, tag)
	}
	send(t, conn, cancel)
	list := results(t, conn, 3, nil)
	if list[0].Tag != 11 || list[0].Status != frame.Fault || !bytes.Contains(list[0].Body, []byte("canceled")) {
		t.Errorf("the running task gave %v", list[0])
	}
	if list[1].Tag != 12 || list[1].Status != frame.Returned {
		t.Errorf("the waiting task gave %v", list[1])
	}
	if list[2].Tag != 13 || list[2].Status != frame.OK {
		t.Errorf("the next task gave %v", list[2])
	}
}

func TestTheContextEndsWithTheTimeout(t *testing.T) {
	b := newBroker(t, 1)
	b.start(t.Context(), func(ctx context.Context, _ *Task) ([]byte, error) {
		child, cancel := context.WithCancel(ctx)
		defer cancel()
		<-child.Done()
		return nil, ctx.Err()
	})
	conn := receive(t, b.conns)
	send(t, conn, tasks(frame.Task{Tag: 1, Timeout: 20}))
	if r := results(t, conn, 1, nil)[0]; !bytes.Contains(r.Body, []byte("deadline")) {
		t.Errorf("got %s", r.Body)
	}
}

// leave checks that the running task is finished and that the waiting ones are returned.
func leave(t *testing.T, ask func(stop context.CancelFunc, conn *websocket.Conn)) {
	b := newBroker(t, 1)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	started, release := make(chan bool, 8), make(chan bool)
	ended := b.start(ctx, func(ctx context.Context, _ *Task) ([]byte, error) {
		started <- true
		<-release
		return []byte("finished"), ctx.Err()
	})
	conn := receive(t, b.conns)
	send(t, conn, tasks(frame.Task{Tag: 1}, frame.Task{Tag: 2}, frame.Task{Tag: 3}))
	receive(t, started)
	ask(stop, conn)
	left := false
	list := results(t, conn, 2, func(h frame.Header) { left = left || h.Type == frame.Leaving })
	if !left || list[0].Status != frame.Returned || list[1].Status != frame.Returned || list[0].Tag != 2 || list[1].Tag != 3 {
		t.Errorf("the instance left: %t, and returned %v", left, list)
	}
	send(t, conn, tasks(frame.Task{Tag: 4})) // was on its way
	if r := results(t, conn, 1, nil)[0]; r.Tag != 4 || r.Status != frame.Returned {
		t.Errorf("a late task gave %v", r)
	}
	close(release)
	if r := results(t, conn, 1, nil)[0]; r.Tag != 1 || r.Status != frame.OK || string(r.Body) != "finished" {
		t.Errorf("the running task gave %v", r)
	}
	_, err := conn.Read(t.Context())
	if end, ok := errors.AsType[*websocket.End](err); !ok || end.Code != 1000 {
		t.Errorf("the connection ended with %v", err)
	}
	if err := receive(t, ended); err != nil {
		t.Errorf("Run returned %v", err)
	}
}

func TestTheEndOfTheContextLetsRunningTasksFinish(t *testing.T) {
	leave(t, func(stop context.CancelFunc, _ *websocket.Conn) { stop() })
}

func TestDrainLetsRunningTasksFinish(t *testing.T) {
	leave(t, func(_ context.CancelFunc, conn *websocket.Conn) {
		send(t, conn, frame.JSON(frame.Drain, []byte(`{"code":"unavailable","detail":"fewer instances are needed"}`)))
	})
}

func TestALostConnectionIsReplacedAndItsTasksAreDropped(t *testing.T) {
	b := newBroker(t, 1)
	started, release := make(chan error, 8), make(chan bool)
	b.start(t.Context(), func(ctx context.Context, task *Task) ([]byte, error) {
		if task.Request == 1 {
			started <- nil
			<-ctx.Done()
			started <- ctx.Err()
			<-release // it ignores its context
		}
		return nil, nil
	})
	conn := receive(t, b.conns)
	send(t, conn, tasks(frame.Task{Tag: 1, Request: 1}, frame.Task{Tag: 2, Request: 2}))
	receive(t, started)
	go func() { _ = conn.Close(1001, "the broker stops") }()
	if err := receive(t, started); !errors.Is(err, context.Canceled) {
		t.Errorf("the context of the task ended with %v", err)
	}
	next := receive(t, b.conns)
	send(t, next, tasks(frame.Task{Tag: 7, Request: 3}))
	close(release) // the capacity is free only now
	if list := results(t, next, 1, nil); list[0].Tag != 7 {
		t.Errorf("the new connection has the result %v", list[0])
	}
}

func TestAnErrorThatLastsEndsRun(t *testing.T) {
	b := newBroker(t, 1)
	b.refusal = fanfare.NotFound
	if err := receive(t, b.start(t.Context(), echo)); fanfare.CodeOf(err) != fanfare.NotFound {
		t.Errorf("Run returned %v", err)
	}
	b = newBroker(t, 1)
	ended := b.start(t.Context(), echo)
	_ = receive(t, b.conns).Close(4001, "")
	if err := receive(t, ended); fanfare.CodeOf(err) != fanfare.Conflict {
		t.Errorf("a replaced instance returned %v", err)
	}
}

func TestTheEnvironmentCompletesTheOptions(t *testing.T) {
	for name, value := range map[string]string{"URL": "http://h:1", "KEY": "k", "SERVICE": "s", "WORKER": "w", "INSTANCE": "i"} {
		t.Setenv("FANFARE_"+name, value)
	}
	o := Options{Worker: "own"}
	if err := o.complete(); err != nil {
		t.Fatal(err)
	}
	if o.URL != "http://h:1" || o.Key != "k" || o.Service != "s" || o.Worker != "own" || o.Instance != "i" {
		t.Errorf("got %+v", o)
	}
	t.Setenv("FANFARE_WORKER", "")
	if err := (&Options{}).complete(); fanfare.CodeOf(err) != fanfare.Invalid {
		t.Errorf("a missing name gives %v", err)
	}
}

// BenchmarkTinyTasks measures what a task costs the instance and the test together.
func BenchmarkTinyTasks(b *testing.B) {
	conns := make(chan *websocket.Conn, 1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := websocket.Accept(w, r, frame.WorkerProtocol)
		if err != nil {
			b.Error(err)
			return
		}
		_ = conn.Write(b.Context(), frame.JSON(frame.Welcome, []byte(`{"capacity":1}`)))
		conns <- conn
	}))
	defer s.Close()
	ctx, stop := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, Options{URL: s.URL, Worker: "echo"}, echo) }()
	conn := <-conns
	const size = 1000
	var list []frame.Task
	for i := range size {
		list = append(list, frame.Task{Tag: uint64(i), Body: []byte("1234")})
	}
	data := tasks(list...)
	b.ReportAllocs()
	b.ResetTimer()
	go func() {
		for range b.N / size {
			_ = conn.Write(b.Context(), data)
		}
	}()
	for left := b.N / size * size; left > 0; {
		got, err := conn.Read(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		h, _, err := frame.Parse(got)
		if err != nil {
			b.Fatal(err)
		}
		left -= int(h.Count)
	}
	b.StopTimer()
	stop()
	go func() { _, _ = conn.Read(context.Background()) }()
	<-ended
}

func TestABodyStaysUntilItsFunctionReturns(t *testing.T) {
	b := newBroker(t, 2)
	ctx, stop := context.WithCancel(t.Context())
	goOn := make(chan struct{})
	ended := b.start(ctx, func(_ context.Context, task *Task) ([]byte, error) {
		if task.Action == "wait" {
			<-goOn
		}
		return task.Body, nil
	})
	conn := receive(t, b.conns)
	large := func(v byte) []byte { return bytes.Repeat([]byte{v}, 60_000) }
	// The memory of the first frame may not be used for the later ones, since one of its tasks still runs.
	send(t, conn, tasks(frame.Task{Tag: 1, Attempt: 1, Action: []byte("wait"), Body: large(1)}, frame.Task{Tag: 2, Attempt: 1, Body: large(2)}))
	got := results(t, conn, 1, nil)
	for n := range byte(20) {
		send(t, conn, tasks(frame.Task{Tag: uint64(n) + 3, Attempt: 1, Body: large(n + 3)}))
		got = append(got, results(t, conn, 1, nil)...)
	}
	close(goOn)
	got = append(got, results(t, conn, 1, nil)...)
	for _, r := range got {
		if !bytes.Equal(r.Body, large(byte(r.Tag))) {
			t.Errorf("the result of task %d has changed", r.Tag)
		}
	}
	if len(got) != 22 || got[21].Tag != 1 {
		t.Errorf("%d results, the last one of task %d", len(got), got[len(got)-1].Tag)
	}
	stop()
	if err := receive(t, ended); err != nil {
		t.Error(err)
	}
}
