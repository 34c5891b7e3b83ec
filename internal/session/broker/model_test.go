package broker

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fanfare.dev/fanfare/internal/session"
	"fanfare.dev/fanfare/internal/session/frame"
	"fanfare.dev/fanfare/internal/session/sessionlog"
	"fanfare.dev/fanfare/internal/store/storetest"
	"fanfare.dev/fanfare/internal/test/pgtest"
)

// The random test lets clients, instances and brokers die at random moments, and checks the responses against what the requests
// ask for. A request says itself how it behaves: its body has the number of the request and how many faults it produces.

const (
	modelRequests = 400
	modelClients  = 3
	modelRestarts = 20 // of the broker; then the clients can finish, however slow the machine is
)

// plan is the behaviour of a request, computed from its number by the worker, and by the check.
func faultsOf(seed, number uint64) int {
	switch h := (number*2654435761 + seed*97) % 41; {
	case h == 0:
		return 9 // more than any limit of resends
	case h < 4:
		return int(h)
	}
	return 0
}

// A modelWorld outlives its brokers.
type modelWorld struct {
	t      *testing.T
	seed   uint64
	log    session.Log
	broker atomic.Pointer[Broker]
	stop   chan struct{}

	mu    sync.Mutex
	runs  map[string]map[uint64]int // by session and client, then request: how often a worker ran it
	tries map[string]map[uint64]int // how often a worker answered retry
}

// modelInstance runs tasks, answers retry as planned, and dies at random.
func (w *modelWorld) modelInstance(name string, random *rand.Rand) {
	for process := 0; ; process++ { // each has a name of its own, or it would be skipped for a second
		select {
		case <-w.stop:
			return
		default:
		}
		near, far := pipe()
		ctx, cancel := context.WithCancel(context.Background())
		served := make(chan struct{})
		go func() {
			defer close(served)
			_ = w.broker.Load().ServeInstance(ctx, far, testService, "model", fmt.Sprint(name, "-", process), 3)
			_ = far.Close(1000, "")
		}()
		life := 20 + random.IntN(200)
		w.live(near, life, random)
		_ = near.Close(1006, "")
		cancel()
		<-served
		select {
		case <-w.stop:
			return
		case <-time.After(2 * time.Millisecond):
		}
	}
}

func (w *modelWorld) live(conn *pipeEnd, life int, random *rand.Rand) {
	for life > 0 {
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		f, err := conn.Read(ctx)
		cancel()
		if errors.Is(err, context.DeadlineExceeded) {
			select {
			case <-w.stop:
				return
			default:
				continue
			}
		}
		if err != nil {
			return
		}
		h, payload, _ := frame.Parse(f)
		if h.Type != frame.Tasks {
			continue
		}
		out, count := frame.AppendHeader(nil, frame.Header{Type: frame.Results}), uint32(0)
		for range h.Count {
			var task frame.Task
			payload, _ = frame.NextTask(payload, &task)
			if life--; life <= 0 {
				return
			}
			r := frame.Result{Tag: task.Tag, Micros: 900}
			if random.IntN(20) == 0 {
				r.Status = frame.Returned
			} else {
				r.Status, r.Body = w.run(&task)
			}
			out = frame.AppendResult(out, &r)
			count++
			if random.IntN(4) == 0 {
				frame.SetHeader(out, frame.Header{Type: frame.Results, Count: count})
				if conn.Write(context.Background(), out) != nil {
					return
				}
				out, count = frame.AppendHeader(nil, frame.Header{Type: frame.Results}), 0
			}
		}
		frame.SetHeader(out, frame.Header{Type: frame.Results, Count: count})
		if conn.Write(context.Background(), out) != nil {
			return
		}
	}
}

// run is the worker.
func (w *modelWorld) run(task *frame.Task) (frame.Status, []byte) {
	key := fmt.Sprint(task.Session, "/", task.Client)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.runs[key] == nil {
		w.runs[key], w.tries[key] = map[uint64]int{}, map[uint64]int{}
	}
	w.runs[key][task.Request]++
	if w.tries[key][task.Request] < faultsOf(w.seed, task.Request) {
		w.tries[key][task.Request]++
		return frame.Retry, []byte(`{"code":"planned","message":"planned"}`)
	}
	return frame.OK, append([]byte("answer "), task.Body...)
}

// modelClient sends its requests, reconnects at random, and returns the responses that it received by number.
func (w *modelWorld) modelClient(id, name string, random *rand.Rand) map[uint64]frame.Response {
	got := map[uint64]frame.Response{}
	received := uint64(0)
	for deadline := time.Now().Add(3 * time.Minute); time.Now().Before(deadline); {
		near, far := pipe()
		ctx, cancel := context.WithCancel(context.Background())
		served := make(chan struct{})
		go func() {
			defer close(served)
			_ = w.broker.Load().ServeClient(ctx, far, testService, id, name, session.Position{From: received + 1})
			_ = far.Close(1000, "")
		}()
		done := w.converse(near, id, got, &received, random)
		_ = near.Close(1006, "")
		cancel()
		<-served
		if done {
			return got
		}
		<-time.After(time.Millisecond)
	}
	w.t.Errorf("client %s of %s: not done after three minutes: %d responses; %s", name, id, len(got), w.state(id))
	return got
}

func (w *modelWorld) converse(conn *pipeEnd, id string, got map[uint64]frame.Response, received *uint64, random *rand.Rand) bool {
	life := 10 + random.IntN(150)
	sent, window, ended := uint64(0), uint64(0), false
	for {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		f, err := conn.Read(ctx)
		cancel()
		if errors.Is(err, context.DeadlineExceeded) {
			w.t.Errorf("nothing came for a minute: %d sent, window %d, ended %v, %d responses; %s", sent, window, ended, len(got), w.state(id))
			return true
		}
		if err != nil {
			return false
		}
		h, payload, _ := frame.Parse(f)
		switch h.Type {
		case frame.Welcome:
			var v frame.ClientWelcome
			if err := json.Unmarshal(payload, &v); err != nil {
				w.t.Error(err)
			}
			sent, window, ended = v.Requests, v.Window, v.Ended
		case frame.Window:
			window = h.First
		case frame.Responses:
			if h.First != *received+1 {
				w.t.Errorf("responses begin with %d, want %d", h.First, *received+1)
				return true
			}
			for range h.Count {
				var r frame.Response
				payload, _ = frame.NextResponse(payload, &r)
				*received++
				got[*received] = r
			}
			if conn.Write(context.Background(), frame.Token(frame.Received, 0, *received)) != nil {
				return false
			}
		case frame.Done:
			if len(got) != modelRequests {
				w.t.Errorf("done with %d responses, want %d", len(got), modelRequests)
			}
			return true
		case frame.Closed, frame.Problem:
			return false
		}
		if life--; life <= 0 {
			return false
		}
		if sent < modelRequests && sent < window {
			n := min(uint64(1+random.IntN(40)), modelRequests-sent, window-sent)
			first := sent + 1
			if random.IntN(3) == 0 && sent > 3 { // also some that were sent before
				first -= 3
			}
			b := frame.Token(frame.Requests, uint32(sent+n-first+1), first)
			for k := first; k <= sent+n; k++ {
				b = frame.AppendRequest(b, &frame.Request{Body: binary.LittleEndian.AppendUint64(nil, k), UserData: []byte("data")})
			}
			sent += n
			if conn.Write(context.Background(), b) != nil {
				return false
			}
		} else if sent == modelRequests && !ended {
			ended = true
			if conn.Write(context.Background(), frame.Token(frame.End, 0, modelRequests)) != nil {
				return false
			}
		}
	}
}

// state describes a session and its worker, for the message of a test that has waited too long.
func (w *modelWorld) state(id string) string {
	b := w.broker.Load()
	info, err := b.Session(testService, id)
	return fmt.Sprintf("the session is %+v, %v, the workers are %+v", info, err, b.Workers(testService))
}

// check compares the responses of a client with its requests.
func (w *modelWorld) check(info session.Info, number uint32, got map[uint64]frame.Response) {
	key := fmt.Sprint(info.Number, "/", number)
	w.mu.Lock()
	runs := w.runs[key]
	w.mu.Unlock()
	limit := info.Options.Resends
	answered := map[uint64]bool{}
	for k := uint64(1); k <= uint64(len(got)); k++ {
		r, has := got[k]
		if !has {
			w.t.Errorf("%s: the response %d is missing", key, k)
			continue
		}
		if answered[r.Request] || r.Request < 1 || r.Request > modelRequests || string(r.UserData) != "data" {
			w.t.Errorf("%s: the response %d is for the request %d, which is answered already or unknown", key, k, r.Request)
		}
		answered[r.Request] = true
		var f frame.FaultBody
		_ = json.Unmarshal(r.Body, &f)
		planned := faultsOf(w.seed, r.Request)
		switch {
		case r.Status == frame.OK && string(r.Body) != "answer "+string(binary.LittleEndian.AppendUint64(nil, r.Request)):
			w.t.Errorf("%s: the request %d was answered with %q", key, r.Request, r.Body)
		case r.Status == frame.OK && limit == 0 && planned > 0:
			w.t.Errorf("%s: the request %d has a result although its only run failed", key, r.Request)
		case r.Status == frame.Fault && f.Code == "lost" && limit > 0:
			w.t.Errorf("%s: the request %d was lost, although it may run again", key, r.Request)
		case r.Status == frame.Fault && f.Code == "planned" && planned <= limit && limit > 0:
			w.t.Errorf("%s: the request %d failed after %d planned faults: %d resends are allowed", key, r.Request, planned, limit)
		case r.Status == frame.Fault && f.Code != "planned" && f.Code != "lost":
			w.t.Errorf("%s: the request %d has the fault %s", key, r.Request, r.Body)
		}
		if limit == 0 && runs[r.Request] > 1 {
			w.t.Errorf("%s: the request %d ran %d times", key, r.Request, runs[r.Request])
		}
	}
	if len(answered) != modelRequests {
		w.t.Errorf("%s: %d requests are answered, want %d", key, len(answered), modelRequests)
	}
}

func TestRandomKillsLoseNothing(t *testing.T) {
	rounds := 6
	if n, err := strconv.Atoi(os.Getenv("FANFARE_SESSION_ROUNDS")); err == nil {
		rounds = n
	}
	for seed := range uint64(rounds) {
		restarts := seed%2 == 0
		t.Run(fmt.Sprint("memory ", seed), func(t *testing.T) {
			log := newMemoryLog()
			flaky := rand.New(rand.NewPCG(seed, 99)) // #nosec G404 -- a test needs reproducible numbers
			log.away = func() bool { return flaky.IntN(10) == 0 }
			randomKills(t, seed, restarts, log)
		})
	}
	t.Run("sqlite", func(t *testing.T) { randomKills(t, 1000, true, sessionlog.New(storetest.OpenAt(t, t.TempDir()))) })
	t.Run("postgres", func(t *testing.T) {
		randomKills(t, 1002, true, sessionlog.New(storetest.OpenAt(t, pgtest.Prepared(t))))
	})
}

func randomKills(t *testing.T, seed uint64, restarts bool, log session.Log) {
	w := &modelWorld{t: t, seed: seed, log: log, stop: make(chan struct{}), runs: map[string]map[uint64]int{}, tries: map[string]map[uint64]int{}}
	defs := define(session.Definition{Name: "model", Concurrency: 3})
	w.broker.Store(startBroker(t, w.log, defs))
	var infos []session.Info
	for _, limit := range []int{0, 3} {
		infos = append(infos, open(t, w.broker.Load(), session.Options{Worker: "model", Kind: session.Durable, Resends: limit}))
		if !restarts {
			infos = append(infos, open(t, w.broker.Load(), session.Options{Worker: "model", Kind: session.Interactive, Resends: limit}))
		}
	}
	var instances, clients sync.WaitGroup
	for k := range 4 {
		random := rand.New(rand.NewPCG(seed, uint64(k))) // #nosec G404 -- a test needs reproducible numbers
		instances.Go(func() { w.modelInstance(fmt.Sprint("instance-", k), random) })
	}
	results := make([][]map[uint64]frame.Response, len(infos))
	for n, info := range infos {
		results[n] = make([]map[uint64]frame.Response, modelClients)
		for k := range modelClients {
			random := rand.New(rand.NewPCG(seed, uint64(100*n+k+1000))) // #nosec G404 -- a test needs reproducible numbers
			clients.Go(func() { results[n][k] = w.modelClient(info.ID, fmt.Sprint("client-", k), random) })
		}
	}
	finished := make(chan struct{})
	go func() { clients.Wait(); close(finished) }()
	random := rand.New(rand.NewPCG(seed, 5)) // #nosec G404 -- a test needs reproducible numbers
	for n := 0; restarts && n < modelRestarts; n++ {
		select {
		case <-finished:
			n = modelRestarts
		case <-time.After(time.Duration(10+random.IntN(80)) * time.Millisecond):
			old := w.broker.Load()
			if random.IntN(2) == 0 { // the old broker does not know that it has been replaced
				w.broker.Store(startBroker(t, w.log, defs))
				stopBroker(t, old)
			} else {
				stopBroker(t, old)
				w.broker.Store(startBroker(t, w.log, defs))
			}
		}
	}
	<-finished
	close(w.stop)
	instances.Wait()
	for n, info := range infos {
		now, err := w.broker.Load().Session(testService, info.ID)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range now.Clients {
			var k int
			_, _ = fmt.Sscanf(c.Name, "client-%d", &k)
			w.check(info, c.Number, results[n][k])
		}
		if len(now.Clients) != modelClients {
			t.Errorf("%d clients", len(now.Clients))
		}
	}
}
