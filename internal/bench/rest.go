package bench

import "time"

// runRest is R1: what a server takes that has nothing to do.
func runRest(l *lab, r *Record) error {
	n := l.size(1_000_000, 1000)
	r.Unit = "ms"
	r.Params["subscriptions"] = n
	idle := max(200*time.Millisecond, min(3*time.Second, time.Duration(float64(3*time.Second)*l.Scale)))
	var s *server
	start := func(name string) (resident float64, err error) {
		if s, err = l.serve("R1"); err != nil {
			return 0, err
		}
		r.stage("start to ready, "+name, s.ready)
		if err := pause(l.ctx, idle); err != nil {
			return 0, err
		}
		return s.memory("VmRSS"), nil
	}
	if _, err := start("no folder yet"); err != nil {
		return err
	}
	if err := s.stop(); err != nil {
		return err
	}
	empty, err := start("empty")
	if err != nil {
		return err
	}
	lines, err := l.notifyPeople(n)
	if err != nil {
		return err
	}
	put, took, err := s.fill(nowhere, lines)
	if err != nil {
		return err
	}
	r.stage("import", took)
	if err := s.stop(); err != nil {
		return err
	}
	full, err := start("with subscriptions")
	if err != nil {
		return err
	}
	before := s.now()
	if err := pause(l.ctx, idle); err != nil {
		return err
	}
	r.Value = millis(s.ready)
	r.RSSMiB = empty
	r.note("resident when idle: %.0f MiB empty, %.0f MiB with %s subscriptions", empty, full, thousands(int64(n)))
	r.note("idle with them it takes %.2f %% of one CPU", 100*s.now().since(before).Seconds()/idle.Seconds())
	var w wrong
	w.unless(put.Created == int64(n), "%d of %d were created", put.Created, n)
	p := person(n - 1)
	_, err = s.api.History(l.ctx, p.address(), 1)
	w.unless(err == nil, "after the restart, %s: %v", p.address(), err)
	return w.err()
}
