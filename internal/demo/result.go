package demo

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/internal/sink"
)

// A result is the outcome of a demonstration, from the API and the capture server.
type result struct {
	example    *example
	crowd      crowd
	broadcasts []fanfare.Broadcast
	counted    sink.Summary
	status     client.Status
	memoryMiB  int64

	best    noted
	sample  sample
	history []told
}

// totals are the sums over all events.
type totals struct {
	reached           int // events with at least one recipient
	matched, messages int64
	deliveries        fanfare.Counts
	took              time.Duration   // from the first 202 to the last outcome on disk
	latencies         []time.Duration // sorted times from intake to the last outcome of an event; only events with recipients
}

func (r *result) totals() totals {
	var t totals
	var first, last time.Time
	for _, b := range r.broadcasts {
		t.matched += b.Matched
		t.messages += b.Messages
		for state, n := range b.Counts {
			t.deliveries[state] += n
		}
		if first.IsZero() || b.Stages.Kept.Before(first) {
			first = b.Stages.Kept
		}
		if b.Messages == 0 {
			continue
		}
		t.reached++
		t.latencies = append(t.latencies, b.Stages.Completed.Sub(b.Stages.Received))
		if b.Stages.Completed.After(last) {
			last = b.Stages.Completed
		}
	}
	if t.reached > 0 {
		t.took = last.Sub(first)
	}
	slices.Sort(t.latencies)
	return t
}

// quantile returns the latency that the share q of the events did not exceed.
func (t *totals) quantile(q float64) time.Duration {
	if len(t.latencies) == 0 {
		return 0
	}
	return t.latencies[max(0, int(math.Ceil(q*float64(len(t.latencies))))-1)]
}

// check compares the results of the server with the count of the capture server.
func (r *result) check() error {
	t, c := r.totals(), r.counted
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if t.deliveries[fanfare.Accepted] != t.messages {
		wrong("%d of %d messages were accepted", t.deliveries[fanfare.Accepted], t.messages)
	}
	if c.Unique != t.messages {
		wrong("the capture server counted %d different messages, but expected %d", c.Unique, t.messages)
	}
	if c.Duplicates != 0 {
		wrong("the capture server counted %d duplicates", c.Duplicates)
	}
	if r.status.Parked != 0 {
		wrong("%d work items were parked", r.status.Parked)
	}
	return errors.Join(errs...)
}
