package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
)

func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// roundTrip sends n requests and checks that each has its response exactly once.
func roundTrip(t *testing.T, cl *Client, n int) {
	t.Helper()
	ctx := within(t)
	sent := make(chan error, 1)
	go func() {
		for i := range n {
			number, err := cl.SendRequest(ctx, Request{Body: fmt.Appendf(nil, "body %d", i+1), UserData: fmt.Append(nil, i+1)})
			if err == nil && number != uint64(i+1) {
				err = fmt.Errorf("request %d has the number %d", i+1, number)
			}
			if err != nil {
				sent <- err
				return
			}
		}
		sent <- cl.EndCount(ctx, uint64(n))
	}()
	seen := make([]bool, n+1)
	next := uint64(1)
	for r, err := range cl.Responses(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		if r.Number != next || r.Request == 0 || r.Request > uint64(n) || seen[r.Request] {
			t.Fatalf("response %d to request %d is not expected", r.Number, r.Request)
		}
		next++
		seen[r.Request] = true
		if string(r.Body) != fmt.Sprintf("body %d", r.Request) || string(r.UserData) != fmt.Sprint(r.Request) {
			t.Fatalf("response %d has the body %q and the user data %q", r.Number, r.Body, r.UserData)
		}
	}
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	if next != uint64(n)+1 {
		t.Fatalf("%d of %d responses came", next-1, n)
	}
}

func TestEachRequestHasOneResponse(t *testing.T) {
	b := newBroker(t)
	s := b.open()
	roundTrip(t, must(s.Client(t.Context(), "a"))(t), 20_000)
	if err := s.Close(within(t), true); err != nil {
		t.Fatal(err)
	}
	if st := b.of("ses-1", "a"); st.received != 20_000 {
		t.Errorf("%d responses were confirmed", st.received)
	}
}

func TestLostConnectionsLoseAndRepeatNothing(t *testing.T) {
	b := newBroker(t)
	b.dropAt = 4
	b.window = 300
	cl := must(b.open().Client(t.Context(), "a"))(t)
	roundTrip(t, cl, 5_000)
	st := b.of("ses-1", "a")
	b.mu.Lock() // the client can still open connections
	defer b.mu.Unlock()
	if opened := st.opened; opened < 3 {
		t.Errorf("the test has opened only %d connections", opened)
	}
}

func TestFlushWaitsAndReportsRefusedRequests(t *testing.T) {
	b := newBroker(t)
	ctx := within(t)
	var exceptions []Exception
	cl := must(b.open().Client(ctx, "a", OnException(func(e Exception) { exceptions = append(exceptions, e) })))(t)
	for _, r := range []Request{{ID: "x", Body: []byte("1")}, {ID: "x", Body: []byte("1")}, {ID: "x", Body: []byte("2")}, {Body: []byte("3")}} {
		must(cl.SendRequest(ctx, r))(t)
	}
	err := cl.Flush(ctx)
	refused, ok := errors.AsType[*RefusedError](err)
	if !ok || refused.Request != 3 || fanfare.CodeOf(refused) != fanfare.KeyReused {
		t.Errorf("Flush returned %v", err)
	}
	if err := cl.Flush(ctx); err != nil {
		t.Errorf("the second Flush returned %v", err)
	}
	if cl.Repeated() != 1 || len(exceptions) != 2 || exceptions[0].Request != 2 || exceptions[0].Err != nil || exceptions[1].Err == nil {
		t.Errorf("the exceptions are %v", exceptions)
	}
	if b.of("ses-1", "a").requests != 4 {
		t.Error("Flush returned before the requests were kept")
	}
}

func TestALostNoticeOfARefusedRequestComesAgain(t *testing.T) {
	b := newBroker(t)
	b.lose = true
	cl, err := b.open().Client(t.Context(), "one")
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range []string{"a", "a", "b"} {
		if _, err := cl.SendRequest(t.Context(), Request{ID: "order", Body: []byte(body)}); err != nil {
			t.Fatal(err)
		}
	}
	refused, is := errors.AsType[*RefusedError](cl.Flush(t.Context()))
	if !is || refused.Request != 3 || cl.Repeated() != 1 {
		t.Errorf("%v, %d repetitions", refused, cl.Repeated())
	}
}

func TestEndWithAWrongCountLeavesTheStreamOpen(t *testing.T) {
	ctx := within(t)
	cl := must(newBroker(t).open().Client(ctx, "a"))(t)
	must(cl.Send(ctx, []byte("1")))(t)
	if err := cl.EndCount(ctx, 5); fanfare.CodeOf(err) != fanfare.Conflict {
		t.Errorf("EndCount(5) returned %v", err)
	}
	must(cl.Send(ctx, []byte("2")))(t)
	if err := cl.EndCount(ctx, 2); err != nil {
		t.Error(err)
	}
	if _, err := cl.Send(ctx, nil); fanfare.CodeOf(err) != fanfare.Conflict {
		t.Errorf("Send after End returned %v", err)
	}
	if err := cl.End(ctx); err != nil {
		t.Errorf("the second End returned %v", err)
	}
}

func TestAFaultIsAResponse(t *testing.T) {
	ctx := within(t)
	cl := must(newBroker(t).open().Client(ctx, "a"))(t)
	must(cl.Send(ctx, []byte("fault")))(t)
	for r, err := range cl.Responses(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		fault, ok := errors.AsType[*Fault](r.Err())
		if !ok || *fault != (Fault{"fault", "it failed", "somewhere"}) {
			t.Errorf("got %v", r.Err())
		}
		break
	}
}

func TestAClientContinuesAfterItsLastConfirmation(t *testing.T) {
	b := newBroker(t)
	ctx := within(t)
	s := b.open()
	cl := must(s.Client(ctx, "a"))(t)
	for range 10 {
		must(cl.Send(ctx, []byte("x")))(t)
	}
	read := func(cl *Client, n int) (first, last uint64) {
		for r, err := range cl.Responses(ctx) {
			if err != nil {
				t.Fatal(err)
			}
			if first == 0 {
				first = r.Number
			}
			if last = r.Number; last >= uint64(n) {
				break
			}
		}
		return first, last
	}
	if first, last := read(cl, 4); first != 1 || last != 4 {
		t.Errorf("the first loop read %d to %d", first, last)
	}
	if first, last := read(cl, 6); first != 5 || last != 6 {
		t.Errorf("the second loop read %d to %d", first, last)
	}
	if err := cl.Close(ctx); err != nil {
		t.Fatal(err)
	}
	again := must(must(Attach(ctx, s.api, s.ID()))(t).Client(ctx, "a"))(t)
	if first, _ := read(again, 10); first != 6 {
		t.Errorf("the next process begins with %d instead of the one that was not confirmed", first)
	}
	if n := must(again.Send(ctx, nil))(t); n != 11 {
		t.Errorf("the next process sends number %d", n)
	}
	if err := again.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if first, _ := read(must(s.Client(ctx, "a", From(2)))(t), 2); first != 2 {
		t.Errorf("From(2) begins with %d", first)
	}
}

func TestLargeRequestsArrive(t *testing.T) {
	ctx := within(t)
	cl := must(newBroker(t).open().Client(ctx, "a"))(t)
	bodies := [][]byte{bytes.Repeat([]byte("a"), 1<<20), []byte("b"), bytes.Repeat([]byte("c"), 65_536), bytes.Repeat([]byte("d"), 65_520)}
	for _, body := range bodies {
		must(cl.Send(ctx, body))(t)
	}
	if _, err := cl.Send(ctx, make([]byte, 1<<20+1)); fanfare.CodeOf(err) != fanfare.TooLarge || !strings.Contains(err.Error(), "1048576") {
		t.Errorf("got %v", err)
	}
	if err := cl.End(ctx); err != nil {
		t.Fatal(err)
	}
	for r, err := range cl.Responses(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(r.Body, bodies[r.Request-1]) {
			t.Errorf("request %d came back with %d bytes", r.Request, len(r.Body))
		}
	}
}

func TestASessionThatHasEndedEndsAllCalls(t *testing.T) {
	b := newBroker(t)
	ctx := within(t)
	cl := must(b.open().Client(ctx, "a"))(t)
	must(cl.Send(ctx, nil))(t)
	if err := cl.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	b.mu.Lock()
	b.gone = true
	b.mu.Unlock()
	b.drop(b.of("ses-1", "a"))
	var last error
	for _, err := range cl.Responses(ctx) {
		last = err
	}
	if fanfare.CodeOf(last) != fanfare.NotFound {
		t.Errorf("the loop ended with %v", last)
	}
	for _, err := range []error{cl.Flush(ctx), cl.End(ctx), cl.Close(ctx)} {
		if fanfare.CodeOf(err) != fanfare.NotFound {
			t.Errorf("got %v", err)
		}
	}
}

func TestANewerProcessReplacesAClient(t *testing.T) {
	ctx := within(t)
	s := newBroker(t).open()
	old := must(s.Client(ctx, "a"))(t)
	must(s.Client(ctx, "a"))(t)
	for _, err := range old.Responses(ctx) {
		if fanfare.CodeOf(err) != fanfare.Conflict {
			t.Errorf("got %v", err)
		}
	}
}

func TestOneLoopAtATimeReadsResponses(t *testing.T) {
	ctx := within(t)
	cl := must(newBroker(t).open().Client(ctx, "a"))(t)
	must(cl.Send(ctx, nil))(t)
	for range cl.Responses(ctx) {
		for _, err := range cl.Responses(ctx) {
			if fanfare.CodeOf(err) != fanfare.Conflict {
				t.Errorf("got %v", err)
			}
		}
		break
	}
}

func TestTheContextEndsWaiting(t *testing.T) {
	b := newBroker(t)
	b.window = 0
	cl := must(b.open().Client(t.Context(), "a"))(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := cl.Send(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("Send returned %v", err)
	}
	for _, err := range cl.Responses(ctx) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("Responses returned %v", err)
		}
	}
}

func TestAPoolUsesItsSessionsInTurn(t *testing.T) {
	b := newBroker(t)
	ctx := within(t)
	c := must(client.New(b.server.URL, "key"))(t)
	p := must(OpenPool(ctx, c, 3, Options{Worker: "echo"}))(t)
	pc := must(p.Client(ctx, "a"))(t)
	open := map[Sent]bool{}
	perSession := map[string]int{}
	for range 3000 {
		sent := must(pc.SendRequest(ctx, Request{Body: []byte("x")}))(t)
		open[sent] = true
		perSession[sent.Session]++
	}
	if err := pc.End(ctx); err != nil {
		t.Fatal(err)
	}
	for r, err := range pc.Responses(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		if sent := (Sent{r.Session, r.Request}); !open[sent] {
			t.Fatalf("%v is not expected", sent)
		} else {
			delete(open, sent)
		}
	}
	if len(open) != 0 || len(perSession) != 3 || perSession["ses-1"] != 1000 {
		t.Errorf("%d responses are missing; by session: %v", len(open), perSession)
	}
	if err := p.Close(ctx, false); err != nil {
		t.Error(err)
	}
}

func TestPurgeWaitsForTheBroker(t *testing.T) {
	ctx := within(t)
	cl := must(newBroker(t).open().Client(ctx, "a"))(t)
	if err := cl.Purge(ctx); err != nil {
		t.Error(err)
	}
}

func TestAnUnreachableServerIsAnError(t *testing.T) {
	b := newBroker(t)
	s := b.open()
	b.server.CloseClientConnections()
	b.server.Close()
	_, err := s.Client(t.Context(), "a")
	if _, ok := errors.AsType[*client.Unreachable](err); !ok {
		t.Errorf("got %v", err)
	}
}
