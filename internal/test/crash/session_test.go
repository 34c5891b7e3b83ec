//go:build crashsteps

package crash

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/client/session"
	"fanfare.dev/fanfare/client/worker"
	"fanfare.dev/fanfare/internal/test/pgtest"
)

const doubling = `
service: news
workers:
  doubling: {concurrency: 8, timeout: 60s}
`

// The load of one session: so many requests, each so often.
const (
	requestsAtOnce = 10
	requestsEvery  = 80 * time.Millisecond
	taskTakes      = 15 * time.Millisecond
)

// A doubler is a durable session, its client and what both were told.
type doubler struct {
	id   string
	once bool // a request runs at most once

	mu       sync.Mutex
	stored   uint64   // requests whose storage the server has confirmed
	received []string // responses, in order: the request and the result
}

// known returns the numbers of requests and responses that the server may not forget.
func (d *doubler) known() (requests, responses uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.stored, uint64(len(d.received))
}

// send sends requests until stop ends, and then says that there are no more.
func (d *doubler) send(ctx, stop context.Context, cl *session.Client) error {
	for stop.Err() == nil {
		for range requestsAtOnce {
			if _, err := cl.Send(ctx, []byte(strconv.FormatUint(cl.Last()+1, 10))); err != nil {
				return err
			}
		}
		if err := cl.Flush(ctx); err != nil {
			return err
		}
		d.mu.Lock()
		d.stored = cl.Last()
		d.mu.Unlock()
		select {
		case <-stop.Done():
		case <-time.After(requestsEvery):
		}
	}
	return cl.EndCount(ctx, cl.Last())
}

// receive reads all responses.
func (d *doubler) receive(ctx context.Context, cl *session.Client) error {
	for r, err := range cl.Responses(ctx) {
		if err != nil {
			return err
		}
		text := string(r.Body)
		if fault, is := errors.AsType[*session.Fault](r.Err()); is {
			text = fault.Code
		}
		d.mu.Lock()
		if next := uint64(len(d.received)) + 1; r.Number != next {
			err = fmt.Errorf("%s: response %d came after response %d", d.id, r.Number, next-1)
		}
		d.received = append(d.received, fmt.Sprint(r.Request, " ", text))
		d.mu.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

// taskRuns counts how often the worker began each request.
type taskRuns struct {
	mu   sync.Mutex
	runs map[[2]uint64]int // by the numbers of the session and of the request
}

func (r *taskRuns) work(_ context.Context, task *worker.Task) ([]byte, error) {
	r.mu.Lock()
	r.runs[[2]uint64{task.Session, task.Request}]++
	r.mu.Unlock()
	<-time.After(taskTakes)
	n, err := strconv.ParseUint(string(task.Body), 10, 64)
	if err != nil {
		return nil, err
	}
	return []byte(strconv.FormatUint(2*n, 10)), nil
}

// A client of a durable session has the server's word that requests are stored, and has received responses. Neither is lost or changed wherever the
// server dies, and a request of a session that runs requests at most once never runs twice.
func TestDurableSessionsKeepWhatWasAcknowledgedWhenTheServerDies(t *testing.T) {
	t.Parallel()
	of := tell(t)
	w := &world{t: of, seed: seedOf(of), server: newServer(of, "fsync", pgtest.Chosen(t))}
	w.server.listenAt = pgtest.Address(of) // the clients and the worker connect again by themselves
	w.limit()
	l := w.server.start()
	w.server.awaitReady(l)
	if _, err := l.client.Apply(t.Context(), []byte(doubling), false); err != nil {
		t.Fatal(err)
	}

	tasks := &taskRuns{runs: map[[2]uint64]int{}}
	working, finish := context.WithCancel(w.given)
	var running, workers sync.WaitGroup
	workers.Go(func() {
		err := worker.Run(working, worker.Options{URL: l.url, Key: l.key, Service: "news", Worker: "doubling", Instance: "one", Logger: slog.New(slog.DiscardHandler)}, tasks.work)
		if err != nil && working.Err() == nil {
			w.fail(fmt.Errorf("the worker: %w", err))
		}
	})
	stop, end := context.WithCancel(w.given)
	defer end()
	doublers := make([]*doubler, 3)
	for i := range doublers {
		d := &doubler{once: i == 2}
		opened, err := session.Open(t.Context(), l.client, session.Options{Worker: "doubling", Kind: session.Durable, AtMostOnce: d.once})
		if err != nil {
			t.Fatal(err)
		}
		d.id = opened.ID()
		cl, err := opened.Client(w.given, "reader")
		if err != nil {
			t.Fatal(err)
		}
		for _, load := range []func() error{
			func() error { return d.send(w.given, stop, cl) },
			func() error { return d.receive(w.given, cl) },
		} {
			running.Go(func() {
				if err := load(); err != nil {
					w.fail(fmt.Errorf("%s: %w", d.id, err))
				}
			})
		}
		doublers[i] = d
	}

	random := w.random(1)
	kills := setting(t, "CRASH_SESSION_KILLS", 8)
	for range kills {
		before := make([]uint64, len(doublers))
		for i, d := range doublers {
			before[i], _ = d.known()
		}
		w.until("the clients have connected again and sent requests", func() bool {
			return !slices.ContainsFunc(doublers, func(d *doubler) bool {
				requests, _ := d.known()
				return requests == before[slices.Index(doublers, d)]
			})
		})
		w.killSoon(random, func() {})
		w.server.start()
		for _, d := range doublers {
			w.compareCounts(d)
		}
	}
	end()
	running.Wait()
	if err := context.Cause(w.given); err != nil {
		t.Fatal(err)
	}
	finish()
	workers.Wait()
	for _, d := range doublers {
		w.compareResponses(d, tasks)
	}
	if of.Failed() {
		return
	}
	t.Logf("%d kills, slowest start %v", kills, w.server.slowest.Round(time.Millisecond))
}

// compareCounts checks that the server counts at least the requests and responses that it has acknowledged.
func (w *world) compareCounts(d *doubler) {
	w.t.Helper()
	requests, responses := d.known()
	var now client.Session
	w.must(func(ctx context.Context, api *client.Client) (err error) {
		now, err = api.Session(ctx, d.id)
		return err
	})
	if now.State != "open" || now.Requests < requests || now.Responses < responses {
		w.t.Errorf("%s is %s with %d requests and %d responses; %d requests were stored and %d responses received", d.id, now.State, now.Requests, now.Responses, requests, responses)
	}
}

// compareResponses compares the stored responses with those that the client received, and both with the requests and with the tasks that ran.
func (w *world) compareResponses(d *doubler, tasks *taskRuns) {
	w.t.Helper()
	var stored []string
	for {
		var page client.ResponsePage
		w.must(func(ctx context.Context, api *client.Client) (err error) {
			page, err = api.Responses(ctx, d.id, "reader", uint64(len(stored))+1, 1000)
			return err
		})
		if len(page.Responses) == 0 {
			break
		}
		for i := range page.Responses {
			r := &page.Responses[i]
			text := r.Text
			if r.Status == "fault" {
				_, text, _ = strings.Cut(text, `"code":"`)
				text, _, _ = strings.Cut(text, `"`)
			}
			stored = append(stored, fmt.Sprint(r.Request, " ", text))
		}
	}
	requests, responses := d.known()
	if uint64(len(stored)) != requests || responses != requests || requests == 0 {
		w.t.Fatalf("%s: %d requests were stored, the client received %d responses, and the server has %d", d.id, requests, responses, len(stored))
	}
	number, err := strconv.ParseUint(strings.TrimPrefix(d.id, "ses-"), 10, 64)
	if err != nil {
		w.t.Fatal(err)
	}
	seen := map[uint64]bool{}
	lost, again := 0, 0
	for i, text := range stored {
		var request uint64
		var result string
		if _, err := fmt.Sscan(text, &request, &result); err != nil || text != d.received[i] {
			w.t.Fatalf("%s: response %d is %q; the client received %q (%v)", d.id, i+1, text, d.received[i], err)
		}
		ran := tasks.runs[[2]uint64{number, request}]
		switch {
		case seen[request]:
			w.t.Errorf("%s: request %d has two responses", d.id, request)
		case d.once && ran > 1:
			w.t.Errorf("%s: request %d ran %d times", d.id, request, ran)
		case d.once && result == "lost":
			lost++
		case result != strconv.FormatUint(2*request, 10) || ran == 0:
			w.t.Errorf("%s: the response to request %d is %s, and it ran %d times", d.id, request, result, ran)
		}
		seen[request] = true
		again += max(0, ran-1)
	}
	w.t.Logf("%s: %d requests stored and answered; %d ran more than once; %d are lost, because they run at most once", d.id, requests, again, lost)
}
