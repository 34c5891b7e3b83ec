package broker

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"fanfare.dev/fanfare/internal/session"
	"fanfare.dev/fanfare/internal/session/frame"
)

// bodyOf returns the body of a request: other bytes for each client and request.
func bodyOf(client int, request uint64) []byte {
	random := rand.New(rand.NewPCG(uint64(client), request)) // #nosec G404 -- a test needs reproducible bytes
	b := make([]byte, []int{0, 10, 9000, 30_000, 150_000}[random.IntN(5)]+random.IntN(1000))
	_, _ = rand.NewChaCha8([32]byte{byte(client), byte(request)}).Read(b) // it never fails
	return b
}

// TestBodiesAreUnchangedAlthoughMemoryIsUsedAgain sends requests of many sizes, whose frames are freed in another order than
// they came: tasks are returned, and run again with status retry.
func TestBodiesAreUnchangedAlthoughMemoryIsUsedAgain(t *testing.T) {
	for _, kind := range []session.Kind{session.Interactive, session.Durable} {
		t.Run(string(kind), func(t *testing.T) {
			b := startBroker(t, newMemoryLog(), define(session.Definition{Name: "echo", Concurrency: 3, MessageLimit: 1 << 20}))
			const clients, each = 4, 150
			for k := range 2 {
				i := join(t, b, "echo", fmt.Sprint("instance-", k), 3)
				go returnSome(i, rand.New(rand.NewPCG(7, uint64(k)))) // #nosec G404 -- as above
			}
			info := open(t, b, session.Options{Worker: "echo", Kind: kind, Resends: 100})
			var all sync.WaitGroup
			for k := range clients {
				c := attach(t, b, info.ID, fmt.Sprint("client-", k), 0)
				all.Go(func() { exchange(c, k, each) })
			}
			all.Wait()
		})
	}
}

// returnSome answers tasks with their bodies, later ones before earlier ones; some it returns or asks to run again.
func returnSome(i *testInstance, random *rand.Rand) {
	for i.step(patience) {
		for len(i.tasks) > 0 {
			n := random.IntN(len(i.tasks))
			task := i.tasks[n]
			i.tasks = append(i.tasks[:n], i.tasks[n+1:]...)
			r := frame.Result{Tag: task.Tag, Micros: 100, Body: task.Body}
			switch random.IntN(8) {
			case 0:
				r.Status, r.Body = frame.Returned, nil
			case 1:
				r.Status, r.Body = frame.Retry, []byte(`{"code":"again","message":"again"}`)
			}
			out := frame.AppendResult(frame.Token(frame.Results, 1, 0), &r)
			if i.conn.Write(context.Background(), out) != nil {
				return
			}
		}
	}
}

// exchange sends requests and checks their responses.
func exchange(c *testClient, client int, each uint64) {
	seen := map[uint64]bool{}
	for sent := uint64(0); len(seen) < int(each); {
		for ; sent < min(each, c.window) && sent < uint64(len(seen))+12; sent += 3 {
			var batch []frame.Request
			for n := sent + 1; n <= min(sent+3, each, c.window); n++ {
				batch = append(batch, frame.Request{Body: bodyOf(client, n), UserData: fmt.Appendf(nil, "data %d of %d", n, client), Action: []byte("act")})
			}
			if sent+uint64(len(batch)) < min(sent+3, each) { // the window ends here
				break
			}
			c.send(sent+1, batch...)
		}
		if !c.step(patience) {
			c.t.Errorf("nothing came after %d responses", len(seen))
			return
		}
		for _, r := range c.responses {
			if !bytes.Equal(r.Body, bodyOf(client, r.Request)) || string(r.UserData) != fmt.Sprintf("data %d of %d", r.Request, client) || r.Status != frame.OK {
				c.t.Errorf("the response to request %d of client %d has changed", r.Request, client)
			}
			if seen[r.Request] {
				c.t.Errorf("request %d has two responses", r.Request)
			}
			seen[r.Request] = true
		}
		if len(c.responses) > 0 {
			c.responses = nil
			c.confirm()
		}
	}
}

// A heldConn is a connection whose writes of responses wait.
type heldConn struct {
	*pipeEnd
	held chan []byte   // the frame that is being written
	goOn chan struct{} // ends the write
}

func (h *heldConn) Write(ctx context.Context, f []byte) error {
	if frame.Type(f[0]) == frame.Responses {
		h.held <- f
		<-h.goOn
	}
	return h.pipeEnd.Write(ctx, f)
}

// TestAFrameIsNotUsedAgainWhileItIsWritten has a client confirm responses before they have left. Its memory must not have the
// responses of others.
func TestAFrameIsNotUsedAgainWhileItIsWritten(t *testing.T) {
	b := startBroker(t, newMemoryLog(), define(session.Definition{Name: "echo", Concurrency: 3, MessageLimit: 1 << 20}))
	go join(t, b, "echo", "instance", 1).serve()
	info := open(t, b, session.Options{Worker: "echo", Kind: session.Interactive})
	near, far := pipe()
	slow := &heldConn{far, make(chan []byte), make(chan struct{})}
	served := make(chan error, 1)
	go func() { served <- b.ServeClient(t.Context(), slow, testService, info.ID, "slow", session.Position{}) }()
	c := &testClient{t: t, conn: near, next: 1}
	if _, err := near.Read(t.Context()); err != nil { // the welcome
		t.Fatal(err)
	}
	want := bytes.Repeat([]byte("slow"), 10_000)
	c.send(1, frame.Request{Body: want})
	f := <-slow.held
	c.write(frame.Token(frame.Received, 0, 1))
	other := attach(t, b, info.ID, "other", 0)
	for n := range uint64(20) {
		other.send(n+1, frame.Request{Body: bytes.Repeat([]byte("else"), 10_000)})
		for other.next < n+2 {
			if !other.step(patience) {
				t.Fatal("nothing came")
			}
		}
		other.confirm()
	}
	var r frame.Response
	if _, err := frame.NextResponse(f[frame.HeaderSize:], &r); err != nil || !bytes.Equal(r.Body, want) {
		t.Errorf("the frame has changed while it was written: %v", err)
	}
	close(slow.goOn)
	_ = near.Close(1000, "")
	<-served
}
