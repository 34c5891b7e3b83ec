package sessions

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/client/session"
	"fanfare.dev/fanfare/internal/bench/harness"
)

// clientSpec is what the process of the clients is told.
type clientSpec struct {
	serverSpec
	Worker   string
	Kind     string
	Clients  int
	Requests int // of all clients together
	Size     int // of a request, in bytes
	Serial   bool
	Idle     time.Duration // before the first request
}

// sent is the result of the clients.
type sent struct {
	Send       time.Duration // from the first request until the last end of requests
	Total      time.Duration // until the last client is done and closed
	First      time.Duration // until the first response
	Responses  int64
	Faults     int64
	Lost       int64
	Duplicates int64
	Latencies  []time.Duration // of serial requests, sorted
	CPU        time.Duration
}

// ClientPart opens a session, sends requests through its clients and receives all responses.
func ClientPart(ctx context.Context, spec clientSpec, _ io.Reader, out *json.Encoder) error {
	c, err := client.New(spec.URL, spec.Key)
	if err != nil {
		return err
	}
	s, err := session.Open(ctx, c.ForService(spec.Service), session.Options{Worker: spec.Worker, Kind: spec.Kind})
	if err != nil {
		return err
	}
	var list []*session.Client
	for i := range spec.Clients {
		cl, err := s.Client(ctx, fmt.Sprintf("client-%d", i+1))
		if err != nil {
			return err
		}
		list = append(list, cl)
	}
	var result sent
	if spec.Serial {
		result, err = sendSerially(ctx, list[0], spec)
	} else {
		result, err = sendTogether(ctx, list, spec)
	}
	if err != nil {
		return err
	}
	if err := s.Close(ctx, true); err != nil {
		return err
	}
	return out.Encode(result)
}

// sendTogether has all clients send and receive at the same time.
func sendTogether(ctx context.Context, list []*session.Client, spec clientSpec) (sent, error) {
	each := spec.Requests / len(list)
	var mu sync.Mutex
	var result sent
	failed := make(chan error, 2*len(list))
	if err := harness.Pause(ctx, spec.Idle); err != nil {
		return result, err
	}
	cpu := harness.OwnCPU()
	started := time.Now()
	for _, cl := range list {
		go func() {
			body := make([]byte, spec.Size)
			for range each {
				if _, err := cl.Send(ctx, body); err != nil {
					failed <- err
					return
				}
			}
			err := cl.EndCount(ctx, uint64(each))
			mu.Lock()
			result.Send = max(result.Send, time.Since(started))
			mu.Unlock()
			failed <- err
		}()
		go func() { failed <- receive(ctx, cl, each, spec.Size, started, &mu, &result) }()
	}
	for range 2 * len(list) {
		if err := <-failed; err != nil {
			return result, err
		}
	}
	result.Total = time.Since(started)
	result.CPU = harness.OwnCPU() - cpu
	return result, nil
}

// receive reads the responses of one client, closes it, and counts each request's responses.
func receive(ctx context.Context, cl *session.Client, each, size int, started time.Time, mu *sync.Mutex, result *sent) error {
	seen := make([]bool, each+1)
	var one sent
	for r, err := range cl.Responses(ctx) {
		if err != nil {
			return err
		}
		if one.First == 0 {
			one.First = time.Since(started)
		}
		switch {
		case r.Err() != nil:
			one.Faults++
		case len(r.Body) != size:
			return fmt.Errorf("a response has %d bytes instead of %d", len(r.Body), size)
		case r.Request == 0 || r.Request > uint64(each):
			return fmt.Errorf("a response refers to request %d, but the requests are numbered from 1 to %d", r.Request, each)
		case seen[r.Request]:
			one.Duplicates++
		}
		seen[r.Request] = true
		one.Responses++
	}
	if err := cl.Close(ctx); err != nil {
		return err
	}
	mu.Lock()
	defer mu.Unlock()
	if result.First == 0 || one.First < result.First {
		result.First = one.First
	}
	for _, is := range seen[1:] {
		if !is {
			result.Lost++
		}
	}
	result.Responses += one.Responses
	result.Faults += one.Faults
	result.Duplicates += one.Duplicates
	return nil
}

// sendSerially sends each request after the response to the one before.
func sendSerially(ctx context.Context, cl *session.Client, spec clientSpec) (sent, error) {
	var result sent
	body := make([]byte, spec.Size)
	var at time.Time
	next := func() error {
		at = time.Now()
		_, err := cl.Send(ctx, body)
		return err
	}
	if err := harness.Pause(ctx, spec.Idle); err != nil {
		return result, err
	}
	started := time.Now()
	if err := next(); err != nil {
		return result, err
	}
	for r, err := range cl.Responses(ctx) {
		if err != nil {
			return result, err
		}
		if err := r.Err(); err != nil {
			return result, err
		}
		result.Latencies = append(result.Latencies, time.Since(at))
		if len(result.Latencies) == 1 {
			result.First = result.Latencies[0]
		}
		if result.Responses++; result.Responses == int64(spec.Requests) {
			break
		}
		if err := next(); err != nil {
			return result, err
		}
	}
	result.Total = time.Since(started)
	slices.Sort(result.Latencies)
	return result, nil
}
