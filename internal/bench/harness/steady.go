package harness

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/internal/bench/report"
)

// A SteadyRun is the result of posting events at a steady rate.
type SteadyRun struct {
	Posted  int
	Took    time.Duration
	Answers []float64 // milliseconds of a request, sorted
}

// steadyInterval is the time between two requests, each with the events that have become
// due.
const steadyInterval = 10 * time.Millisecond

// PublishSteadily posts perSecond events a second for a while, one request after the
// other, so that their order is kept. next appends the line of event i.
func (s *Server) PublishSteadily(topic string, perSecond float64, length time.Duration, next func(dst []byte, i int) []byte) (f SteadyRun, err error) {
	var body []byte
	started := time.Now()
	for {
		now := time.Since(started)
		due := int(perSecond * min(now, length).Seconds())
		if due == f.Posted && now >= length {
			break
		}
		body = body[:0]
		n := due - f.Posted
		for range n {
			body = next(body, f.Posted)
			f.Posted++
		}
		if n > 0 {
			began := time.Now()
			sum, err := s.API.PublishLines(s.Env.Ctx, topic, bytes.NewReader(body), client.PublishOptions{IDPointer: "/id"}, nil, nil)
			if err != nil {
				return f, s.WithLog(err)
			}
			if sum.Accepted != int64(n) {
				return f, s.WithLog(fmt.Errorf("%d of %d events were accepted", sum.Accepted, n))
			}
			f.Answers = append(f.Answers, report.Millis(time.Since(began)))
		}
		if rest := steadyInterval - (time.Since(started) - now); rest > 0 {
			if err := Pause(s.Env.Ctx, rest); err != nil {
				return f, err
			}
		}
	}
	f.Took = time.Since(started)
	slices.Sort(f.Answers)
	return f, nil
}

// Events reads events by the ids of their sender.
func (s *Server) Events(ids []string) ([]fanfare.Broadcast, error) {
	all := make([]fanfare.Broadcast, len(ids))
	for i, id := range ids {
		var err error
		if all[i], err = s.API.Event(s.Env.Ctx, id); err != nil {
			return nil, fmt.Errorf("event %s: %w", id, err)
		}
	}
	return all, nil
}
