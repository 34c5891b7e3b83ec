package sessions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"sync/atomic"
	"time"

	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/client/session"
)

const (
	pacedTick  = time.Millisecond
	maxPending = 1 << 20 // requests without a response
	rampShare  = 10      // the first tenth of a phase is not in its latencies: the slow client comes or goes
)

// pacedSpec is what the process with a steady rate is told.
type pacedSpec struct {
	serverSpec
	Worker   string
	Start    time.Time
	Rate     int // requests per second
	Duration time.Duration
	Phase    time.Duration
	Size     int
}

// paced is the result of the process with a steady rate.
type paced struct {
	Sent       int64
	Responses  int64
	Faults     int64
	Duplicates int64
	Lost       int64
	Phases     []latency // by the time at which the request was due
	Even, Odd  latency   // of all phases, which are numbered from 0
}

// A latency summarizes the time from the moment at which a request is due until its response.
type latency struct {
	Count         int64
	P50, P99, Max time.Duration
}

// PacedPart opens an interactive session and sends requests at a steady rate for a while. The latency of a request begins when
// it is due, so that a stop of the server counts for all requests that were due in it.
func PacedPart(ctx context.Context, spec pacedSpec, _ io.Reader, out *json.Encoder) error {
	s, cl, err := openClient(ctx, spec.serverSpec, spec.Worker, "steady")
	if err != nil {
		return err
	}
	p := pacing{spec: spec, due: make([]atomic.Int64, maxPending)}
	failed := make(chan error, 1)
	go func() { failed <- p.send(ctx, cl) }()
	result, err := p.receive(ctx, cl)
	if err != nil {
		return err
	}
	if err := <-failed; err != nil {
		return err
	}
	result.Sent = p.sent
	for i := range p.due {
		if p.due[i].Load() != 0 {
			result.Lost++
		}
	}
	if err := s.Close(ctx, true); err != nil {
		return err
	}
	return out.Encode(result)
}

// openClient opens an interactive session with one client.
func openClient(ctx context.Context, at serverSpec, worker, name string) (*session.Session, *session.Client, error) {
	c, err := client.New(at.URL, at.Key)
	if err != nil {
		return nil, nil, err
	}
	s, err := session.Open(ctx, c.ForService(at.Service), session.Options{Worker: worker})
	if err != nil {
		return nil, nil, err
	}
	cl, err := s.Client(ctx, name)
	return s, cl, err
}

// pacing is shared by the loops that send and receive.
type pacing struct {
	spec pacedSpec
	sent int64
	due  []atomic.Int64 // nanoseconds after the start plus 1, by request number; 0: no such request waits
}

func (p *pacing) send(ctx context.Context, cl *session.Client) error {
	body := make([]byte, p.spec.Size)
	tick := time.NewTicker(pacedTick)
	defer tick.Stop()
	interval := time.Second / time.Duration(p.spec.Rate)
	total := int64(p.spec.Duration / interval)
	for p.sent < total {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		for now := time.Since(p.spec.Start); p.sent < total; {
			at := time.Duration(p.sent) * interval
			if at > now {
				break
			}
			p.sent++
			if slot := &p.due[p.sent%maxPending]; !slot.CompareAndSwap(0, int64(at)+1) {
				return fmt.Errorf("%d requests have no response", maxPending)
			}
			if n, err := cl.Send(ctx, body); err != nil || n != uint64(p.sent) {
				return errors.Join(err, fmt.Errorf("the number of request %d is %d", p.sent, n))
			}
		}
	}
	return cl.EndCount(ctx, uint64(total))
}

func (p *pacing) receive(ctx context.Context, cl *session.Client) (result paced, err error) {
	spec := &p.spec
	phases := make([]latencies, (spec.Duration+spec.Phase-1)/spec.Phase)
	for r, err := range cl.Responses(ctx) {
		if err != nil {
			return result, err
		}
		now := time.Since(spec.Start)
		result.Responses++
		if r.Err() != nil {
			result.Faults++
		}
		if len(r.Body) != spec.Size {
			return result, fmt.Errorf("a response has %d bytes instead of %d", len(r.Body), spec.Size)
		}
		due := time.Duration(p.due[r.Request%maxPending].Swap(0) - 1)
		if due < 0 {
			result.Duplicates++
			continue
		}
		if due%spec.Phase >= spec.Phase/rampShare {
			phases[due/spec.Phase].add(now - due)
		}
	}
	var both [2]latencies
	for i := range phases {
		result.Phases = append(result.Phases, phases[i].summary())
		both[i%2].merge(&phases[i])
	}
	result.Even, result.Odd = both[0].summary(), both[1].summary()
	return result, nil
}

// latencies counts durations in steps of a thirtieth of their value, in microseconds.
type latencies struct {
	counts [32 * 60]int64
	all    int64
	most   time.Duration
}

const latencyBits = 5

// latencyStep returns the step of a duration.
func latencyStep(d time.Duration) int {
	us := uint64(max(0, d.Microseconds())) // #nosec G115 -- not negative
	shift := max(0, bits.Len64(us)-latencyBits-1)
	return shift<<latencyBits + int(us>>shift) // #nosec G115 -- below 64
}

// latencyOf returns the largest duration of a step.
func latencyOf(step int) time.Duration {
	shift := max(0, step>>latencyBits-1)
	return time.Duration((step-shift<<latencyBits+1)<<shift-1) * time.Microsecond
}

func (l *latencies) add(d time.Duration) {
	l.counts[latencyStep(d)]++
	l.all++
	l.most = max(l.most, d)
}

func (l *latencies) merge(o *latencies) {
	for i, n := range o.counts {
		l.counts[i] += n
	}
	l.all += o.all
	l.most = max(l.most, o.most)
}

// quantile returns the duration that a share of all durations does not exceed.
func (l *latencies) quantile(share float64) time.Duration {
	left := int64(float64(l.all) * share)
	for i, n := range l.counts {
		if left -= n; left < 0 {
			return min(latencyOf(i), l.most)
		}
	}
	return l.most
}

func (l *latencies) summary() latency {
	return latency{l.all, l.quantile(0.5), l.quantile(0.99), l.most}
}

// slowSpec is what the process of the slow reader is told.
type slowSpec struct {
	serverSpec
	Worker string
	Rate   int // responses per second that it reads
	Size   int
}

// slowly is what the slow reader has done.
type slowly struct {
	Sent, Read int64
	Open       time.Duration // in which it was connected
	Blocked    time.Duration // in which it could not send
}

// SlowPart opens an interactive session, sends requests as fast as it may, and reads the responses slowly, until its input
// ends.
func SlowPart(ctx context.Context, spec slowSpec, in io.Reader, out *json.Encoder) error {
	s, cl, err := openClient(ctx, spec.serverSpec, spec.Worker, "slow")
	if err != nil {
		return err
	}
	working, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, in) // an error is an end, too
		stop()
	}()
	var result slowly
	opened := time.Now()
	failed := make(chan error, 1)
	go func() {
		body := make([]byte, spec.Size)
		for {
			began := time.Now()
			_, err := cl.Send(working, body)
			if took := time.Since(began); took > pacedTick {
				result.Blocked += took
			}
			if err != nil {
				failed <- err
				return
			}
			result.Sent++
		}
	}()
	tick := time.NewTicker(time.Second / time.Duration(spec.Rate))
	defer tick.Stop()
	for _, err := range cl.Responses(working) {
		if err != nil {
			break // the end of working, or the sender says it, too
		}
		result.Read++
		select {
		case <-tick.C:
			continue
		case <-working.Done():
		}
		break
	}
	err = <-failed
	result.Open = time.Since(opened)
	if working.Err() == nil || ctx.Err() != nil {
		return err
	}
	if err := s.Close(ctx, true); err != nil {
		return err
	}
	return out.Encode(result)
}
