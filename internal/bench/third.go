package bench

import (
	"context"
	"fmt"
	"slices"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
)

// smallRounds is how often the small service publishes while the large ones are busy.
const smallRounds = 5

// as returns the server as another service sees it.
func (s *server) as(name string) *server {
	other := *s
	other.api = s.api.ForService(name)
	return &other
}

// runThird is L9b: two services with a broadcast each under way, and how long that of
// a third, small one takes.
func runThird(l *lab, r *Record) error {
	large, small := l.size(1_000_000, 1000), l.size(1000, 100)
	r.Unit = "ms"
	r.Params["large"], r.Params["small"], r.Params["connections"], r.Params["sink"] = large, small, connections, l.Sink
	box, err := l.openPost(postSpec{})
	if err != nil {
		return err
	}
	s, err := l.serve("L9b")
	if err != nil {
		return err
	}
	var w wrong
	services := map[string]int{"large-a": large, "large-b": large, "small": small}
	for name, people := range services {
		lines, err := l.notifyPeople(people)
		if err != nil {
			return err
		}
		put, _, err := s.as(name).fillWith(way{relay: box.addr, retry: "1s"}.configuration(name), lines)
		if err != nil {
			return err
		}
		w.unless(put.Created == int64(people), "%d of %d subscriptions of %s were created", put.Created, people, name)
	}
	idle, err := s.as("small").small()
	if err != nil {
		return err
	}
	l.say("the small one alone: %s ms", figure(idle))
	window := s.openWindow(box)
	if err := s.toggleProfile(); err != nil {
		return err
	}
	var events [2]string
	for i := range events {
		accepted, err := s.as(largeName(i)).api.Publish(l.ctx, "news", newsOfTheDay(), client.PublishOptions{})
		if err != nil {
			return err
		}
		events[i] = accepted.ID
	}
	took, err := s.smallAmid(events)
	if err != nil {
		return err
	}
	rates := make([]float64, len(events))
	for i, event := range events {
		b, err := s.as(largeName(i)).completed(event, func(*fanfare.Broadcast) {})
		if err != nil {
			return err
		}
		rates[i] = float64(large) / b.durable().Seconds()
		w.unless(b.Counts[fanfare.Accepted] == int64(large), "%d of %d of %s are accepted", b.Counts[fanfare.Accepted], large, largeName(i))
	}
	if err := s.toggleProfile(); err != nil {
		return err
	}
	r.take(window.close())
	if err := s.stop(); err != nil {
		return err
	}
	sum, err := box.end()
	if err != nil {
		return err
	}
	r.over("all three", sum.Over)
	r.account(box, sum, 2*large+(len(took)+1)*small, &w)
	r.Value, r.P50Millis, r.P99Millis = percentile(took, 100), percentile(took, 50), percentile(took, 99)
	r.note("the small broadcast, %d times while both large ones were under way: from its event to its last outcome %s to %s ms (goal: 2,000); alone on the server %s ms",
		len(took), figure(took[0]), figure(r.Value), figure(idle))
	r.note("the large ones: %s and %s mails/s each, %s together", figure(rates[0]), figure(rates[1]), figure(rates[0]+rates[1]))
	return w.err()
}

func largeName(i int) string { return fmt.Sprintf("large-%c", 'a'+i) }

// small broadcasts once and returns the milliseconds from the kept event to the last
// durable outcome.
func (s *server) small() (float64, error) {
	accepted, err := s.api.Publish(s.lab.ctx, "news", newsOfTheDay(), client.PublishOptions{})
	if err != nil {
		return 0, err
	}
	b, err := s.completed(accepted.ID, func(*fanfare.Broadcast) {})
	if err != nil {
		return 0, err
	}
	return millis(b.durable()), nil
}

// smallAmid has the small service broadcast at once, and again for as long as both
// large events are under way. The times are sorted.
func (s *server) smallAmid(events [2]string) ([]float64, error) {
	var took []float64
	underWay := func(ctx context.Context) (bool, error) {
		for i, event := range events {
			b, err := s.as(largeName(i)).api.Event(ctx, event)
			if fanfare.CodeOf(err) == fanfare.NotFound { // not matched yet
				continue
			}
			if err != nil || b.State == "completed" {
				return false, err
			}
		}
		return true, nil
	}
	for range smallRounds {
		if busy, err := underWay(s.lab.ctx); err != nil || !busy && len(took) > 0 {
			slices.Sort(took)
			return took, err
		}
		ms, err := s.as("small").small()
		if err != nil {
			return nil, err
		}
		took = append(took, ms)
		if err := pause(s.lab.ctx, time.Second); err != nil {
			return nil, err
		}
	}
	slices.Sort(took)
	return took, nil
}
