package sink

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/zeebo/xxh3"
)

// A Summary counts what the sink has received so far. The caller, who knows what was sent,
// decides what was lost and which duplicates are allowed.
type Summary struct {
	Messages   int64 `json:"messages"`   // accepted bodies
	Accepted   int64 `json:"accepted"`   // recipients of those: unique + duplicates
	Unique     int64 `json:"unique"`     // different (event, recipient)
	Duplicates int64 `json:"duplicates"` // repetitions of those

	Rejected4xx        int64 `json:"rejected_4xx"`
	RejectedAbove      int64 `json:"rejected_above"` // among them those above the rate
	BadSignatures      int64 `json:"bad_signatures"`
	Rejected5xx        int64 `json:"rejected_5xx"`
	DroppedBeforeData  int64 `json:"dropped_before_data"`
	DroppedInData      int64 `json:"dropped_in_data"`
	DroppedBeforeReply int64 `json:"dropped_before_reply"` // also in accepted

	Connections int64 `json:"connections"` // since the start
	Bytes       int64 `json:"bytes"`       // of accepted messages, as received

	FirstAt time.Time `json:"first_at,omitzero"` // first accepted message
	LastAt  time.Time `json:"last_at,omitzero"`
	Rate    float64   `json:"rate"` // messages per second between those two

	Over  Timeline      `json:"over"`
	Hosts []HostSummary `json:"hosts,omitempty"` // in the order of the rules; the last is the hosts without a rule
}

// counters are the counters behind a Summary.
type counters struct {
	messages, accepted, unique, bytes          atomic.Int64
	rejected4xx, rejected5xx                   atomic.Int64
	rejectedAbove, badSignatures               atomic.Int64
	beforeData, inData, beforeReply, connected atomic.Int64
	first, last                                atomic.Int64 // Unix nanoseconds; 0: none
	timeline                                   timeline
}

func (t *counters) summary() Summary {
	s := Summary{
		Messages: t.messages.Load(), Accepted: t.accepted.Load(), Unique: t.unique.Load(), Bytes: t.bytes.Load(),
		Rejected4xx: t.rejected4xx.Load(), Rejected5xx: t.rejected5xx.Load(),
		DroppedBeforeData: t.beforeData.Load(), DroppedInData: t.inData.Load(), DroppedBeforeReply: t.beforeReply.Load(),
		RejectedAbove: t.rejectedAbove.Load(), BadSignatures: t.badSignatures.Load(), Connections: t.connected.Load(), Over: t.timeline.summary(),
	}
	s.Duplicates = s.Accepted - s.Unique
	if first := t.first.Load(); first != 0 {
		s.FirstAt, s.LastAt = time.Unix(0, first).UTC(), time.Unix(0, t.last.Load()).UTC()
		if d := s.LastAt.Sub(s.FirstAt).Seconds(); d > 0 {
			s.Rate = float64(s.Messages) / d
		}
	}
	return s
}

const shards = 64

// deliveryCounts counts (event, recipient) pairs by their hash.
type deliveryCounts struct {
	shards [shards]struct {
		sync.Mutex
		counts map[uint64]uint32
		_      [40]byte // one cache line per shard
	}
}

func newCensus() *deliveryCounts {
	c := new(deliveryCounts)
	for i := range c.shards {
		c.shards[i].counts = make(map[uint64]uint32)
	}
	return c
}

// deliveryHash returns the hash of an event and a recipient.
func deliveryHash(event, recipient []byte) uint64 {
	return splitmix64(xxh3.Hash(event)) ^ xxh3.Hash(recipient)
}

// add counts a pair and reports whether it is new.
func (c *deliveryCounts) add(h uint64) bool {
	s := &c.shards[h%shards]
	s.Lock()
	n := s.counts[h]
	s.counts[h] = n + 1
	s.Unlock()
	return n == 0
}

func (c *deliveryCounts) seen(h uint64) int {
	s := &c.shards[h%shards]
	s.Lock()
	defer s.Unlock()
	return int(s.counts[h])
}

// A Timeline counts the accepted messages in steps of time from the first message on. Steps
// without messages may be missing at the end.
type Timeline struct {
	StepMillis int64   `json:"step_ms"`
	Counts     []int64 `json:"counts"`
}

const (
	firstStep = 10 * time.Millisecond
	maxSteps  = 1000 // beyond that, steps become twice as long
)

// timeline counts messages in steps that grow with its length.
type timeline struct {
	mu     sync.Mutex
	start  int64
	step   int64
	counts []int64
}

func (t *timeline) add(now int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.step == 0 {
		t.start, t.step = now, int64(firstStep)
	}
	at := max(0, now-t.start) / t.step // two connections may arrive in reverse order
	for at >= maxSteps {
		t.fold()
		at = (now - t.start) / t.step
	}
	for int64(len(t.counts)) <= at {
		t.counts = append(t.counts, 0)
	}
	t.counts[at]++
}

// fold merges pairs of steps.
func (t *timeline) fold() {
	t.step *= 2
	half := (len(t.counts) + 1) / 2
	for i := range half {
		n := t.counts[2*i]
		if 2*i+1 < len(t.counts) {
			n += t.counts[2*i+1]
		}
		t.counts[i] = n
	}
	t.counts = t.counts[:half]
}

func (t *timeline) summary() Timeline {
	t.mu.Lock()
	defer t.mu.Unlock()
	return Timeline{StepMillis: t.step / int64(time.Millisecond), Counts: append([]int64(nil), t.counts...)}
}
