package intake

import (
	"time"

	"fanfare.dev/fanfare/internal/bench/harness"
	"fanfare.dev/fanfare/internal/bench/loadgen"
	"fanfare.dev/fanfare/internal/bench/report"
)

// RunIdle is R1: the start, the memory and the CPU time of a server that has nothing to
// do.
func RunIdle(l *harness.Env, r *report.Record) error {
	n := l.Size(1_000_000, 1000)
	r.Unit = "ms"
	r.Params["subscriptions"] = n
	idle := max(200*time.Millisecond, min(3*time.Second, time.Duration(float64(3*time.Second)*l.Scale)))
	var s *harness.Server
	start := func(name string) (resident float64, err error) {
		if s, err = l.StartServer("R1"); err != nil {
			return 0, err
		}
		r.AddStage("start to ready, "+name, s.Ready)
		if err := harness.Pause(l.Ctx, idle); err != nil {
			return 0, err
		}
		return s.Memory("VmRSS"), nil
	}
	if _, err := start("no folder yet"); err != nil {
		return err
	}
	if err := s.Stop(); err != nil {
		return err
	}
	empty, err := start("empty")
	if err != nil {
		return err
	}
	lines, err := l.NotifyPeople(n)
	if err != nil {
		return err
	}
	put, took, err := s.FillFor(loadgen.Nowhere, lines)
	if err != nil {
		return err
	}
	r.AddStage("import", took)
	if err := s.Stop(); err != nil {
		return err
	}
	full, err := start("with subscriptions")
	if err != nil {
		return err
	}
	before := s.Used()
	if err := harness.Pause(l.Ctx, idle); err != nil {
		return err
	}
	r.Value = report.Millis(s.Ready)
	r.RSSMiB = empty
	r.Note("resident memory when idle: %.0f MiB empty, %.0f MiB with %s subscriptions", empty, full, report.Thousands(int64(n)))
	r.Note("idle with subscriptions the server takes %.2f %% of one CPU", 100*s.Used().CPUSince(before).Seconds()/idle.Seconds())
	var w report.Checks
	w.Require(put.Created == int64(n), "%d of %d subscriptions were created", put.Created, n)
	p := loadgen.Person(n - 1)
	_, err = s.API.History(l.Ctx, p.Address(), 1)
	w.Require(err == nil, "after the restart, %s: %v", p.Address(), err)
	return w.Err()
}
