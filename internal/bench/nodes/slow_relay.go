package nodes

import (
	"fmt"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/bench/harness"
	"fanfare.dev/fanfare/internal/bench/loadgen"
	"fanfare.dev/fanfare/internal/bench/report"
	"fanfare.dev/fanfare/internal/sink"
)

const (
	slowDelay       = 250 * time.Millisecond // of the next hop
	slowConnections = 500                    // of each node
	slowSeconds     = 20                     // how long each number of nodes sends
	mostDelivering  = 3                      // nodes
)

// RunSlowRelay is K2.
func RunSlowRelay(l *harness.Env, r *report.Record) error {
	r.Unit = "mails/s"
	r.Params["connections of a node"], r.Params["seconds"], r.Params["sink"] = slowConnections, slowSeconds, "builtin"
	most := float64(slowConnections) / slowDelay.Seconds() // of a node
	var w report.Checks
	var used harness.WindowUsage
	at := ""
	for nodes := 1; nodes <= mostDelivering; nodes++ {
		y := layout{fmt.Sprintf("lead + %d deliver", nodes), append([]string{"lead"}, deliverers(nodes)...)}
		at = y.at
		n := l.Size(int(slowSeconds*most)*nodes, 1000*nodes)
		l.Say("%s", y.at)
		lines, err := l.NotifyPeople(n)
		if err != nil {
			return err
		}
		var aside report.Record
		b, p, sum, err := l.SendBroadcast(harness.BroadcastPlan{Data: y.name(r.ID), Lines: lines, Subscriptions: n, Config: slowChannel,
			Sink:  harness.SinkOptions{Inject: sink.Inject{Seed: l.Seed, Delay: slowDelay}},
			Start: func() (*harness.Server, error) { return y.start(l, r.ID) }}, &aside, &w)
		if err != nil {
			return err
		}
		checkArrivals(r, &aside, b, p, sum, n, &w)
		point := report.Point{At: y.at, Value: float64(n) / b.Durable().Seconds(), CPUMicros: report.MicrosPer(b.Server, n)}
		if len(r.Points) > 0 {
			point.Limit = float64(nodes) * r.Points[0].Value
		}
		r.AddPoint(point)
		r.CPUMicros = point.CPUMicros
		noteCPU(r, y.at, b, n)
		used.Add(b.WindowUsage)
	}
	r.Note("the next hop answers after %v: a node with %d connections can send at most %s mails/s; the limit is the rate of one node times the number of nodes", slowDelay, slowConnections, report.Figure(most))
	harness.RecordUsage(r, used)
	return report.FirstError(r.UsePoint(at), w)
}

// deliverers returns the roles of n nodes that deliver.
func deliverers(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = "deliver"
	}
	return all
}

// slowChannel reserves no connections for other lanes.
func slowChannel(relay string) []byte {
	return loadgen.Channel{Relay: relay, Retry: "1s", Connections: slowConnections, Reserve: "{urgent: 0%, normal: 0%}"}.Configuration(loadgen.Service)
}

// checkArrivals checks that each of n people got one mail, and adds what is wrong to the
// record.
func checkArrivals(r, aside *report.Record, b *harness.SentBroadcast, p *harness.Sink, sum sink.Summary, n int, w *report.Checks) {
	w.Require(b.Counts[fanfare.Accepted] == int64(n), "%d of %d deliveries are accepted", b.Counts[fanfare.Accepted], n)
	harness.CheckSink(aside, p, sum, n, w)
	r.Lost, r.Duplicates = r.Lost+aside.Lost, r.Duplicates+aside.Duplicates
}
