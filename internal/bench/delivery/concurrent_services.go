package delivery

import (
	"context"
	"fmt"
	"slices"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/internal/bench/harness"
	"fanfare.dev/fanfare/internal/bench/loadgen"
	"fanfare.dev/fanfare/internal/bench/report"
)

// smallRounds is the maximum number of broadcasts of the small service during the large
// ones.
const smallRounds = 5

// forService returns a server whose client works for another service.
func forService(s *harness.Server, name string) *harness.Server {
	other := *s
	other.API = s.API.ForService(name)
	return &other
}

// RunSmallBesideLarge is L9b: the duration of a broadcast of a small service during the
// broadcasts of two large ones.
func RunSmallBesideLarge(l *harness.Env, r *report.Record) error {
	large, small := l.Size(1_000_000, 1000), l.Size(1000, 100)
	r.Unit = "ms"
	r.Params["large"], r.Params["small"], r.Params["connections"], r.Params["sink"] = large, small, loadgen.Connections, l.Sink
	mailSink, err := l.OpenSink(harness.SinkOptions{})
	if err != nil {
		return err
	}
	s, err := l.StartServer("L9b")
	if err != nil {
		return err
	}
	var w report.Checks
	services := map[string]int{"large-a": large, "large-b": large, "small": small}
	for name, people := range services {
		lines, err := l.NotifyPeople(people)
		if err != nil {
			return err
		}
		put, _, err := forService(s, name).Fill(loadgen.Channel{Relay: mailSink.Addr, Retry: "1s"}.Configuration(name), lines)
		if err != nil {
			return err
		}
		w.Require(put.Created == int64(people), "%d of %d subscriptions of %s were created", put.Created, people, name)
	}
	idle, err := sendSmall(forService(s, "small"))
	if err != nil {
		return err
	}
	l.Say("the small broadcast alone: %s ms", report.Figure(idle))
	window := s.OpenWindow(mailSink)
	if err := s.ToggleProfile(); err != nil {
		return err
	}
	var events [2]string
	for i := range events {
		accepted, err := forService(s, largeName(i)).API.Publish(l.Ctx, "news", loadgen.NewsOfTheDay(), client.PublishOptions{})
		if err != nil {
			return err
		}
		events[i] = accepted.ID
	}
	took, err := sendSmallDuring(s, events)
	if err != nil {
		return err
	}
	rates := make([]float64, len(events))
	for i, event := range events {
		b, err := forService(s, largeName(i)).WaitCompleted(event, func(*fanfare.Broadcast) {})
		if err != nil {
			return err
		}
		rates[i] = float64(large) / b.Durable().Seconds()
		w.Require(b.Counts[fanfare.Accepted] == int64(large), "%d of %d of %s are accepted", b.Counts[fanfare.Accepted], large, largeName(i))
	}
	if err := s.ToggleProfile(); err != nil {
		return err
	}
	harness.RecordUsage(r, window.Close())
	if err := s.Stop(); err != nil {
		return err
	}
	sum, err := mailSink.Finish()
	if err != nil {
		return err
	}
	r.AddSeries("all three", sum.Over)
	harness.CheckSink(r, mailSink, sum, 2*large+(len(took)+1)*small, &w)
	r.Value, r.P50Millis, r.P99Millis = report.Percentile(took, 100), report.Percentile(took, 50), report.Percentile(took, 99)
	r.Note("the small broadcast, sent %d times during both large ones: from its event to its last durable outcome %s to %s ms (goal: 2,000); alone on the server %s ms",
		len(took), report.Figure(took[0]), report.Figure(r.Value), report.Figure(idle))
	r.Note("the large broadcasts: %s and %s mails/s, together %s", report.Figure(rates[0]), report.Figure(rates[1]), report.Figure(rates[0]+rates[1]))
	return w.Err()
}

func largeName(i int) string { return fmt.Sprintf("large-%c", 'a'+i) }

// sendSmall sends one broadcast and returns the milliseconds from the acceptance of the
// event to the last durable outcome.
func sendSmall(s *harness.Server) (float64, error) {
	accepted, err := s.API.Publish(s.Env.Ctx, "news", loadgen.NewsOfTheDay(), client.PublishOptions{})
	if err != nil {
		return 0, err
	}
	b, err := s.WaitCompleted(accepted.ID, func(*fanfare.Broadcast) {})
	if err != nil {
		return 0, err
	}
	return report.Millis(b.Durable()), nil
}

// sendSmallDuring sends the small broadcast at once, and again while both large
// broadcasts are in progress. The durations are sorted.
func sendSmallDuring(s *harness.Server, events [2]string) ([]float64, error) {
	var took []float64
	underWay := func(ctx context.Context) (bool, error) {
		for i, event := range events {
			b, err := forService(s, largeName(i)).API.Event(ctx, event)
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
		if busy, err := underWay(s.Env.Ctx); err != nil || !busy && len(took) > 0 {
			slices.Sort(took)
			return took, err
		}
		ms, err := sendSmall(forService(s, "small"))
		if err != nil {
			return nil, err
		}
		took = append(took, ms)
		if err := harness.Pause(s.Env.Ctx, time.Second); err != nil {
			return nil, err
		}
	}
	slices.Sort(took)
	return took, nil
}
