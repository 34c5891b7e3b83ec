package matching

import (
	"encoding/json"

	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/internal/bench/harness"
	"fanfare.dev/fanfare/internal/bench/loadgen"
	"fanfare.dev/fanfare/internal/bench/rawlimit"
	"fanfare.dev/fanfare/internal/bench/report"
)

// runColdStart is B8: from the start of the process to its first answer, with
// price alerts in the store.
func runColdStart(l *harness.Env, r *report.Record) error {
	n := l.Size(1_000_000, 1000)
	goal := matchGoal{2000, 20_000, "ms", ""}
	goal.publish(r, n)
	r.Unit = "ms"
	r.Params["subscriptions"], r.Params["people"] = n, n/loadgen.AlertsOfEach
	q := newPriceAlerts(n, l.Seed, false)
	s, err := l.StartServer("B8")
	if err != nil {
		return err
	}
	if _, err := s.API.Apply(l.Ctx, alertConfiguration(loadgen.Nowhere, "1s"), false); err != nil {
		return err
	}
	took, err := s.Populate(n, q.appendAlert)
	if err != nil {
		return err
	}
	r.AddStage("import", took)
	grown := s.Memory("VmRSS")
	if err := s.Stop(); err != nil {
		return err
	}
	if s, err = l.StartServer("B8"); err != nil {
		return err
	}
	r.Value, r.RSSMiB, r.CPUSeconds = report.Millis(s.Ready), s.Used().PeakMiB, s.Used().CPU.Seconds()
	r.Note("%.2f us a subscription, CPU %.2f us; resident %.0f MiB before the stop, %.0f MiB after the start: %.0f bytes a subscription",
		1000*r.Value/float64(n), 1e6*r.CPUSeconds/float64(n), grown, s.Memory("VmRSS"), s.Memory("VmRSS")*(1<<20)/float64(n))
	var w report.Checks
	if err := checkAlerts(s, q, &w); err != nil {
		return err
	}
	if err := s.Stop(); err != nil {
		return err
	}
	if l.DB == "" {
		var raw rawlimit.RawTime
		if err := l.RunPart(r, "scan", rawlimit.RawSpec{Dir: l.File("B8")}, &raw); err != nil {
			return err
		}
		r.Limit = 1000 * raw.Seconds
		r.Ratio = r.Limit / r.Value
		r.Note("the limit is the time to read all rows of both tables over two connections; the ratio is limit by value")
	}
	return w.Err()
}

// checkAlerts publishes some quotes while the service is paused, and compares the
// matches with those expected.
func checkAlerts(s *harness.Server, q *priceAlerts, w *report.Checks) error {
	const quotes = 20
	if err := s.PauseAll(); err != nil {
		return err
	}
	bare := q.bare(quotes)
	for i := range quotes {
		event, err := s.API.Publish(s.Env.Ctx, "quote", json.RawMessage(q.event(i)), client.PublishOptions{})
		if err != nil {
			return err
		}
		b, _, err := s.WaitManifests(event.ID)
		if err != nil {
			return err
		}
		want := len(bare.answer(i, nil, nil))
		w.Require(b.Matched == int64(want), "quote %d matched %d alerts, expected %d", i, b.Matched, want)
	}
	return nil
}
