package matching

import (
	"fmt"
	"slices"
	"time"

	"fanfare.dev/fanfare/internal/bench/harness"
	"fanfare.dev/fanfare/internal/bench/loadgen"
	"fanfare.dev/fanfare/internal/bench/report"
	"fanfare.dev/fanfare/internal/sink"
)

// Sizes of the stock case in a cluster.
const (
	nextHopDelay    = 250 * time.Millisecond
	nodeConnections = 500
	mostNodes       = 3
)

// RunMinutesOnNodes is K4: the stock case with as many times its people as nodes deliver.
func RunMinutesOnNodes(l *harness.Env, r *report.Record) error {
	r.Unit = "mails/s"
	each := l.Size(1_000_000, 5000)
	r.Params["subscriptions of a node"], r.Params["symbols"], r.Params["connections of a node"] = each, marketSymbols, nodeConnections
	var w report.Checks
	var used harness.WindowUsage
	at := ""
	for nodes := 1; nodes <= mostNodes; nodes++ {
		at = fmt.Sprintf("lead + %d deliver", nodes)
		l.Say("%s", at)
		point, usage, err := runOnNodes(l, r, nodes, each*nodes, &w)
		if err != nil {
			return err
		}
		point.At = at
		if len(r.Points) > 0 {
			point.Limit = float64(nodes) * r.Points[0].Value
		}
		r.AddPoint(point)
		used.Add(usage)
	}
	r.Note("the reply to each email takes %v: a node with %d connections can send at most %s mails/s; the limit is the rate of one node times the number of nodes", nextHopDelay, nodeConnections, report.Figure(nodeConnections/nextHopDelay.Seconds()))
	harness.RecordUsage(r, used)
	return report.FirstError(r.UsePoint(at), w)
}

// runOnNodes runs the minutes of quotes through a leader and further nodes that deliver.
func runOnNodes(l *harness.Env, r *report.Record, nodes, n int, w *report.Checks) (point report.Point, used harness.WindowUsage, err error) {
	m := newStockMarket(n, l.Seed)
	lines := l.File(fmt.Sprintf("alerts-%d.ndjson", nodes))
	if _, err := loadgen.WriteLines(lines, n, m.lines()); err != nil {
		return point, used, err
	}
	mailSink, err := l.OpenSink(harness.SinkOptions{Inject: sink.Inject{Seed: l.Seed, Delay: nextHopDelay}})
	if err != nil {
		return point, used, err
	}
	c, err := l.StartCluster(fmt.Sprintf("%s-%d", r.ID, nodes), "lead")
	if err != nil {
		return point, used, err
	}
	if err := c.Join(slices.Repeat([]string{"deliver"}, nodes)...); err != nil {
		return point, used, err
	}
	channel := fmt.Sprintf("connections: %d, retry: [1s], reserve: {urgent: 0%%, normal: 0%%}", nodeConnections)
	if err := c.FillCompletely(stockDocument(mailSink.Addr, channel), lines); err != nil {
		return point, used, err
	}
	window := c.OpenWindow(mailSink)
	done, err := runMinutes(c.Server, m, func(round int, took time.Duration) { l.Say("minute %d: %v", round, took.Round(time.Millisecond)) })
	if err != nil {
		return point, used, c.WithLog(err)
	}
	used = window.Close()
	if err := c.Stop(); err != nil {
		return point, used, err
	}
	sum, err := mailSink.Finish()
	if err != nil {
		return point, used, err
	}
	var aside report.Record
	harness.CheckSink(&aside, mailSink, sum, int(m.told), w)
	r.Lost, r.Duplicates = r.Lost+aside.Lost, r.Duplicates+aside.Duplicates
	return report.Point{Value: done.rate(), P50Millis: report.Percentile(done.quotes, 50), P99Millis: report.Percentile(done.quotes, 99), CPUMicros: report.MicrosPer(used.Server, int(done.mails))}, used, nil
}
