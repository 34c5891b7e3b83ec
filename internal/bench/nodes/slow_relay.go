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
	receivers       = 2000                   // of D6: each gets many messages, so that their connections are used again
)

// RunSlowRelay is K2.
func RunSlowRelay(l *harness.Env, r *report.Record) error {
	r.Unit = "mails/s"
	return runSlow(l, r, func(plan *harness.BroadcastPlan, n int) (err error) {
		plan.Lines, err = l.NotifyPeople(n)
		return err
	})
}

// RunSlowReceivers is D6.
func RunSlowReceivers(l *harness.Env, r *report.Record) error {
	r.Unit = "posts/s"
	return runSlow(l, r, func(plan *harness.BroadcastPlan, n int) error {
		plan.Sink.Web = true
		plan.Config = func(string) []byte { return slowChannel(loadgen.Channel{Driver: "driver: webhook, allow_http: true"}) }
		plan.LinesFor = func(p *harness.Sink) (string, error) {
			path := l.File("receivers.ndjson")
			_, err := loadgen.WriteLines(path, n, func(dst []byte, i int) []byte {
				return fmt.Appendf(dst, `{"topic":"news","channel":"email","to":"http://127.0.%d.%d:%s/p%d","filter":%q}`+"\n", 1+i%receivers/200, 1+i%200, p.Port, i, loadgen.NotifyFilter)
			})
			return path, err
		}
		return nil
	})
}

// runSlow sends broadcasts to a next hop or to receivers that answer slowly, through one
// to three nodes. prepare completes the plan of a broadcast to n people.
func runSlow(l *harness.Env, r *report.Record, prepare func(plan *harness.BroadcastPlan, n int) error) error {
	r.Params["connections of a node"], r.Params["seconds"], r.Params["sink"] = slowConnections, slowSeconds, "builtin"
	most := float64(slowConnections) / slowDelay.Seconds() // of a node
	var w report.Checks
	var used harness.WindowUsage
	at := ""
	for nodes := 1; nodes <= mostDelivering; nodes++ {
		y := delivering(nodes)
		y.args = []string{"--allow-networks", "127.0.0.0/8"}
		at = y.at
		n := l.Size(int(slowSeconds*most)*nodes, 1000*nodes)
		l.Say("%s", y.at)
		plan := harness.BroadcastPlan{Data: y.name(r.ID), Subscriptions: n,
			Config: func(relay string) []byte { return slowChannel(loadgen.Channel{Relay: relay}) },
			Sink:   harness.SinkOptions{Inject: sink.Inject{Seed: l.Seed, Delay: slowDelay}},
			Start:  func() (*harness.Server, error) { return y.start(l, r.ID) }}
		if err := prepare(&plan, n); err != nil {
			return err
		}
		var aside report.Record
		b, p, sum, err := l.SendBroadcast(plan, &aside, &w)
		if err != nil {
			return err
		}
		checkArrivals(r, &aside, b, p, sum, n, &w)
		point := report.Point{At: y.at, Value: float64(n) / b.Durable().Seconds(), CPUMicros: report.MicrosPer(b.Server, n)}
		if len(r.Points) > 0 {
			point.Limit = float64(nodes) * r.Points[0].Value
		}
		r.AddPoint(point)
		r.AddSeries(y.at, sum.Over)
		r.CPUMicros = point.CPUMicros
		noteCPU(r, y.at, b, n)
		used.Add(b.WindowUsage)
	}
	r.Note("the reply to each message takes %v: a node with %d connections can send at most %s messages/s; the limit is the rate of one node times the number of nodes", slowDelay, slowConnections, report.Figure(most))
	harness.RecordUsage(r, used)
	return report.FirstError(r.UsePoint(at), w)
}

// slowChannel returns the document with a channel that has many connections, none of
// which is reserved for other lanes.
func slowChannel(c loadgen.Channel) []byte {
	c.Retry, c.Connections, c.Reserve = "1s", slowConnections, "{urgent: 0%, normal: 0%}"
	return c.Configuration(loadgen.Service)
}

// checkArrivals checks that each of n people got one mail, and adds what is wrong to the
// record.
func checkArrivals(r, aside *report.Record, b *harness.SentBroadcast, p *harness.Sink, sum sink.Summary, n int, w *report.Checks) {
	w.Require(b.Counts[fanfare.Accepted] == int64(n), "%d of %d deliveries are accepted", b.Counts[fanfare.Accepted], n)
	harness.CheckSink(aside, p, sum, n, w)
	r.Lost, r.Duplicates = r.Lost+aside.Lost, r.Duplicates+aside.Duplicates
}
