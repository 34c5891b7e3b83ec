package bench

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Of L4: content changes at a steady pace, for ten people each.
const (
	changePace    = 500 // a second
	changeLength  = 20 * time.Second
	changedFor    = 10
	changedGroups = 100
	longestWindow = 5 * time.Second
)

// runGenerations is L4.
func runGenerations(l *lab, r *Record) error {
	length := max(2*time.Second, time.Duration(min(1, l.Scale)*float64(changeLength)))
	r.Unit = "us CPU/event"
	r.Params["events"], r.Params["per_second"], r.Params["notifications_of_an_event"] = int(changePace*length.Seconds()), changePace, changedFor
	var used toll
	var w wrong
	var at string
	for _, at = range []string{"per_change", "5s", "1s", "continuous"} {
		how := func(relay, retry string) []byte {
			return bytes.Replace(generateConfiguration(1)(relay, retry), []byte("    template: call\n"), []byte("    template: call\n    generation: "+at+"\n"), 1)
		}
		g, err := l.openGeneratorWith(how, "L4-"+at, changedFor*changedGroups, changedFor, 1)
		if err != nil {
			return err
		}
		first := 0
		changes := func(length time.Duration) (flow, error) {
			from := first
			f, err := g.flow("call", changePace, length, func(dst []byte, i int) []byte {
				g.made += changedFor
				return fmt.Appendf(dst, `{"id":"call-%d","parts":["p%d"]}`+"\n", from+i, i%changedGroups)
			})
			first += f.posted
			return f, err
		}
		window := g.openWindow(g.box)
		f, err := changes(length)
		if err != nil {
			return err
		}
		if err := pause(l.ctx, longestWindow); err != nil { // the last window; asking would take time of the server
			return err
		}
		if _, _, err := g.manifestsDurable(fmt.Sprint("call-", first-1)); err != nil {
			return err
		}
		toll := window.close()
		used.add(toll)
		// The times come from a second, shorter flow: watching the manifests takes CPU.
		from, watch := first, g.watchManifests()
		timed, err := changes(length / 2)
		if err != nil {
			return err
		}
		if _, _, err := g.manifestsDurable(fmt.Sprint("call-", first-1)); err != nil {
			return err
		}
		if err := watch.end(g.server); err != nil {
			return err
		}
		var some []string
		for i := range min(lookedAt/4, timed.posted) {
			some = append(some, fmt.Sprint("call-", from+i*timed.posted/min(lookedAt/4, timed.posted)))
		}
		all, err := g.broadcasts(some)
		if err != nil {
			return err
		}
		took, err := watch.untilManifests(all)
		if err != nil {
			return err
		}
		var moments []time.Time
		for i := range all {
			moments = append(moments, all[i].Stages.Frozen)
		}
		slices.SortFunc(moments, time.Time.Compare)
		r.point(Point{At: at, Value: micro(toll.server, f.posted), P50Millis: percentile(took, 50), P99Millis: percentile(took, 99)})
		r.note("%s: %d events that were looked up were made in %d transactions; p99 of a request with those of a hundredth of a second %s ms", at, len(all), len(slices.Compact(moments)), figure(percentile(f.answers, 99)))
		if err := g.end(&w); err != nil {
			return err
		}
	}
	r.take(used)
	r.note("value: CPU of the server for an event, with its intake, match and %d notifications, while nothing leaves; p50 and p99: from its intake until its manifests are durable, of half as many events that follow", changedFor)
	return cmp.Or(r.stand(at), w.err())
}
