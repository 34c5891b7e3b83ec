package status

import (
	"context"
	"sync"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/deliver/channels"
)

// Rates computes rates from samples of counters, which it takes once a second.
type Rates struct {
	recorder Recorder
	channels *channels.Channels

	mu      sync.Mutex
	samples []sample // newest first
}

type sample struct {
	states fanfare.Counts
	taken  map[uint16]int64 // by channel
}

// rateSeconds is the period of a rate.
const rateSeconds = 10

// NewRates returns Rates; Run takes the samples.
func NewRates(r Recorder, c *channels.Channels) *Rates { return &Rates{recorder: r, channels: c} }

// Run takes samples until ctx ends.
func (r *Rates) Run(ctx context.Context) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		now := sample{taken: r.channels.Taken()}
		now.states, _ = r.recorder.Totals()
		r.mu.Lock()
		r.samples = append([]sample{now}, r.samples[:min(len(r.samples), rateSeconds)]...)
		r.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// perSecond returns the rate of a counter over the last seconds.
func (r *Rates) perSecond(last int, counter func(*sample) int64) float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	seconds := min(len(r.samples)-1, last)
	if seconds < 1 {
		return 0
	}
	return float64(counter(&r.samples[0])-counter(&r.samples[seconds])) / float64(seconds)
}

func (r *Rates) of(state fanfare.State) float64 {
	return r.perSecond(rateSeconds, func(s *sample) int64 { return s.states[state] })
}

func (r *Rates) ofChannel(channel uint16, seconds int) float64 {
	return r.perSecond(seconds, func(s *sample) int64 { return s.taken[channel] })
}
