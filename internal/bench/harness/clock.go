package harness

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/bench/report"
)

// The server stamps the stages of a broadcast when a transaction begins, since a
// row cannot hold the time of its own commit. The clocks in this file therefore
// stop when a read through the API first shows the rows: SQLite and PostgreSQL
// show a row only after its commit is durable.

// A Completion is a broadcast whose deliveries are all settled, with the times at
// which a read first showed how far it was.
type Completion struct {
	fanfare.Broadcast
	ManifestsAt time.Time // when its manifests were durable
	FirstAt     time.Time // when its first outcome was durable
	DurableAt   time.Time // when its last outcome was durable
}

// Durable is the time from the acceptance of the event to its last durable outcome.
func (c *Completion) Durable() time.Duration { return c.DurableAt.Sub(c.Stages.Kept) }

// Limits of the pause between two reads of a broadcast.
const (
	ShortestPoll = 2 * time.Millisecond
	longestPoll  = 50 * time.Millisecond
)

// PollPause returns how long to wait until the next read: a twentieth of the time
// that has passed, and a quarter of the time that is left, so that the reads cost
// little and the end is seen within a few milliseconds.
func PollPause(elapsed time.Duration, settled, total int64) time.Duration {
	wait := elapsed / 20
	if settled > 0 && total >= settled {
		left := time.Duration(float64(elapsed) * float64(total-settled) / float64(settled))
		wait = min(max(wait, longestPoll), left/4)
	}
	return min(max(wait, ShortestPoll), longestPoll)
}

// WaitCompleted waits until every delivery of an event is settled and the last outcome
// is durable.
func (s *Server) WaitCompleted(event string, progress func(*fanfare.Broadcast)) (Completion, error) {
	var still StallDetector
	var c Completion
	began := time.Now()
	for {
		b, err := s.API.Event(s.Env.Ctx, event)
		now := time.Now()
		switch {
		case err != nil && fanfare.CodeOf(err) != fanfare.NotFound: // until it is matched
			return c, err
		case err == nil:
			c.Broadcast = b
			setFirst(&c.ManifestsAt, now)
			if b.Counts.Settled() > 0 || b.State == "completed" {
				setFirst(&c.FirstAt, now)
			}
			if b.State == "completed" {
				c.DurableAt = now
				return c, nil
			}
			progress(&b)
		}
		if err := still.Check(b.Counts.Settled()); err != nil {
			return c, s.WithLog(err)
		}
		if err := Pause(s.Env.Ctx, PollPause(now.Sub(began), b.Counts.Settled(), b.Messages)); err != nil {
			return c, err
		}
	}
}

// setFirst sets a time that is not set yet.
func setFirst(t *time.Time, now time.Time) {
	if t.IsZero() {
		*t = now
	}
}

// WaitManifests waits until the manifests of an event can be read, and returns the time
// of that read.
func (s *Server) WaitManifests(event string) (fanfare.Broadcast, time.Time, error) {
	var still StallDetector
	for {
		b, err := s.API.Event(s.Env.Ctx, event)
		now := time.Now()
		if err != nil && fanfare.CodeOf(err) != fanfare.NotFound { // until it is matched
			return b, now, err
		}
		if err == nil && !b.Stages.Frozen.IsZero() {
			return b, now, nil
		}
		if err := still.Check(b.Matched); err != nil {
			return b, now, s.WithLog(err)
		}
		if err := Pause(s.Env.Ctx, ShortestPoll); err != nil {
			return b, now, err
		}
	}
}

// A manifestWatch observes from outside when the manifests of events become
// durable. It reads the newest broadcast over and over. A lane commits its
// manifests one transaction after the other, and a transaction is stamped when it
// begins; so once a stamp can be read, all earlier ones of the lane are durable.
// It is for events of one lane.
type ManifestWatch struct {
	stop  context.CancelFunc
	ended chan struct{}

	mu   sync.Mutex
	seen []sighting
	err  error
}

// A sighting is the first read that showed a stamp.
type sighting struct{ stamp, at time.Time }

// WatchManifests starts a watch. It runs until End is called or the run ends.
func (s *Server) WatchManifests() *ManifestWatch {
	ctx, stop := context.WithCancel(s.Env.Ctx)
	w := &ManifestWatch{stop: stop, ended: make(chan struct{})}
	go func() {
		defer close(w.ended)
		for ctx.Err() == nil {
			if err := w.look(ctx, s); err != nil {
				w.err = err
				return
			}
			_ = Pause(ctx, ShortestPoll) // the end is seen by the loop
		}
	}()
	return w
}

// look reads the newest broadcast once.
func (w *ManifestWatch) look(ctx context.Context, s *Server) error {
	newest, err := s.API.Broadcasts(ctx, 1)
	now := time.Now()
	if err != nil || len(newest) == 0 {
		if ctx.Err() != nil {
			return nil // the end of the watch cut the read off
		}
		return err
	}
	stamp := newest[0].Stages.Frozen
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.seen) == 0 || stamp.After(w.seen[len(w.seen)-1].stamp) {
		w.seen = append(w.seen, sighting{stamp, now})
	}
	return nil
}

// End ends the watch after everything has been matched. It looks once more, so
// that the last transaction is seen.
func (w *ManifestWatch) End(s *Server) error {
	w.stop()
	<-w.ended
	if w.err != nil {
		return fmt.Errorf("watch the manifests: %w", w.err)
	}
	return w.look(s.Env.Ctx, s)
}

// DurableAt returns when the transaction with a stamp was seen to be durable.
func (w *ManifestWatch) DurableAt(stamp time.Time) (time.Time, error) {
	i, _ := slices.BinarySearchFunc(w.seen, stamp, func(s sighting, stamp time.Time) int { return s.stamp.Compare(stamp) })
	if i == len(w.seen) {
		return time.Time{}, fmt.Errorf("no query has returned the manifests of %v", stamp)
	}
	return w.seen[i].at, nil
}

// UntilManifests returns how long events took from their intake until their
// manifests were durable, in sorted milliseconds.
func (w *ManifestWatch) UntilManifests(all []fanfare.Broadcast) ([]float64, error) {
	took := make([]float64, len(all))
	for i := range all {
		at, err := w.DurableAt(all[i].Stages.Frozen)
		if err != nil {
			return nil, fmt.Errorf("event %s: %w", all[i].Event, err)
		}
		took[i] = report.Millis(at.Sub(all[i].Stages.Received))
	}
	slices.Sort(took)
	return took, nil
}

// OutcomeClock says when the outcomes of many events were durable, of which nobody
// could read each in time. The recorder commits outcomes one transaction after the
// other and stamps a transaction when it begins, so that the next stamp is a time
// at which the outcomes before it are durable. After the last stamp it is the time
// of a read that showed all.
type OutcomeClock struct {
	stamps []time.Time
	seen   time.Time
}

// NewOutcomeClock makes the clock of events that a read at the time seen showed to
// be completed.
func NewOutcomeClock(all []fanfare.Broadcast, seen time.Time) *OutcomeClock {
	c := &OutcomeClock{seen: seen}
	for i := range all {
		st := &all[i].Stages
		for _, stamp := range []time.Time{st.First, st.Last, st.Completed} {
			if !stamp.IsZero() {
				c.stamps = append(c.stamps, stamp)
			}
		}
	}
	slices.SortFunc(c.stamps, time.Time.Compare)
	return c
}

// DurableAt returns a time at which the outcomes with a stamp were durable.
func (c *OutcomeClock) DurableAt(stamp time.Time) time.Time {
	i, _ := slices.BinarySearchFunc(c.stamps, stamp, func(s, stamp time.Time) int {
		if s.After(stamp) {
			return 1
		}
		return -1
	})
	if i == len(c.stamps) || c.stamps[i].After(c.seen) {
		return c.seen
	}
	return c.stamps[i]
}
