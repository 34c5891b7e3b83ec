package pipeline

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"time"

	"fanfare.dev/fanfare/internal/bench/harness"
	"fanfare.dev/fanfare/internal/bench/report"
)

// L4: content changes at a steady rate, for ten people each.
const (
	changePace    = 500 // a second
	changeLength  = 20 * time.Second
	changedFor    = 10
	changedGroups = 100
	longestWindow = 5 * time.Second
	timedEvents   = 1000 // events whose times are read, over all settings
)

// RunGenerations is L4.
func RunGenerations(l *harness.Env, r *report.Record) error {
	length := max(2*time.Second, time.Duration(min(1, l.Scale)*float64(changeLength)))
	r.Unit = "us CPU/event"
	r.Params["events"], r.Params["per_second"], r.Params["notifications_of_an_event"] = int(changePace*length.Seconds()), changePace, changedFor
	var used harness.WindowUsage
	var w report.Checks
	var at string
	for _, at = range []string{"per_change", "5s", "1s", "continuous"} {
		how := func(relay, retry string) []byte {
			return bytes.Replace(generateConfiguration(1)(relay, retry), []byte("    template: call\n"), []byte("    template: call\n    generation: "+at+"\n"), 1)
		}
		g, err := openGeneratorWith(l, how, "L4-"+at, changedFor*changedGroups, changedFor, 1)
		if err != nil {
			return err
		}
		first := 0
		changes := func(length time.Duration) (harness.SteadyRun, error) {
			from := first
			f, err := g.PublishSteadily("call", changePace, length, func(dst []byte, i int) []byte {
				g.made += changedFor
				return fmt.Appendf(dst, `{"id":"call-%d","parts":["p%d"]}`+"\n", from+i, i%changedGroups)
			})
			first += f.Posted
			return f, err
		}
		window := g.OpenWindow(g.mailSink)
		f, err := changes(length)
		if err != nil {
			return err
		}
		if err := harness.Pause(l.Ctx, longestWindow); err != nil { // for the last window; reading would take CPU time of the server
			return err
		}
		if _, _, err := g.WaitManifests(fmt.Sprint("call-", first-1)); err != nil {
			return err
		}
		toll := window.Close()
		used.Add(toll)
		// The times come from a second, shorter flow: watching the manifests takes CPU.
		from, watch := first, g.WatchManifests()
		timed, err := changes(length / 2)
		if err != nil {
			return err
		}
		if _, _, err := g.WaitManifests(fmt.Sprint("call-", first-1)); err != nil {
			return err
		}
		if err := watch.End(g.Server); err != nil {
			return err
		}
		var some []string
		for i := range min(timedEvents/4, timed.Posted) {
			some = append(some, fmt.Sprint("call-", from+i*timed.Posted/min(timedEvents/4, timed.Posted)))
		}
		all, err := g.Events(some)
		if err != nil {
			return err
		}
		took, err := watch.UntilManifests(all)
		if err != nil {
			return err
		}
		var moments []time.Time
		for i := range all {
			moments = append(moments, all[i].Stages.Frozen)
		}
		slices.SortFunc(moments, time.Time.Compare)
		r.AddPoint(report.Point{At: at, Value: report.MicrosPer(toll.Server, f.Posted), P50Millis: report.Percentile(took, 50), P99Millis: report.Percentile(took, 99)})
		r.Note("%s: the manifests of %d sampled events were made in %d transactions; p99 of a request with the events of 10 ms %s ms", at, len(all), len(slices.Compact(moments)), report.Figure(report.Percentile(f.Answers, 99)))
		if err := g.end(&w); err != nil {
			return err
		}
	}
	harness.RecordUsage(r, used)
	r.Note("value: server CPU for an event with its intake, its match and %d notifications, while the service is paused; p50 and p99: from the intake until the manifests are durable, measured in a second flow with half as many events", changedFor)
	return cmp.Or(r.UsePoint(at), w.Err())
}
