package nodes

import (
	"context"
	"fmt"

	"fanfare.dev/fanfare/internal/bench/harness"
	"fanfare.dev/fanfare/internal/bench/loadgen"
	"fanfare.dev/fanfare/internal/bench/report"
	"fanfare.dev/fanfare/internal/sink"
)

const (
	refusesAbove      = 360 // mails a second
	sharedRate        = 350 // of the channel, in a second
	sharedSeconds     = 60
	sharedConnections = 100 // of each node
)

// RunSharedRate is K3.
func RunSharedRate(l *harness.Env, r *report.Record) error {
	n := l.Size(sharedSeconds*sharedRate, 6*sharedRate)
	r.Unit = "mails/s"
	r.Params["mails"], r.Params["connections of a node"], r.Params["sink"] = n, sharedConnections, "builtin"
	lines, err := l.NotifyPeople(n)
	if err != nil {
		return err
	}
	var w report.Checks
	var c *harness.Cluster
	joined, left := false, false
	b, p, sum, err := l.SendBroadcast(harness.BroadcastPlan{Data: r.ID, Lines: lines, Subscriptions: n, Config: sharedChannel,
		Sink: harness.SinkOptions{Above: refusesAbove, Inject: sink.Inject{Seed: l.Seed, Delay: slowDelay}},
		Start: func() (*harness.Server, error) {
			if c, err = l.StartCluster(r.ID, "lead"); err != nil {
				return nil, err
			}
			return c.Server, c.Join("deliver", "deliver")
		},
		Beside: func(ctx context.Context, s *harness.Server) error {
			if ok, err := awaitShare(ctx, s, 0.2); !ok {
				return err
			}
			if err := c.Join("deliver"); err != nil {
				return err
			}
			joined = true
			if ok, err := awaitShare(ctx, s, 0.6); !ok {
				return err
			}
			left = true
			return c.Nodes[0].Stop()
		}}, r, &w)
	if err != nil {
		return err
	}
	w.Require(joined && left, "the broadcast ended before a node had joined and another one had left")
	checkArrivals(r, &report.Record{}, b, p, sum, n, &w)
	r.Value = float64(n) / b.Durable().Seconds()
	r.SetLimit(sharedRate)
	r.Refused = float64(sum.RejectedAbove) / float64(int64(n)+sum.RejectedAbove)
	r.CPUMicros = report.MicrosPer(b.Server, n)
	r.AddSeries("mails", sum.Over)
	noteCPU(r, "all nodes", b, n)
	r.Note("the next hop refused %s of %s mails, %.3f %%; one of the nodes joined and another one left during the broadcast", report.Thousands(sum.RejectedAbove), report.Thousands(int64(n)+sum.RejectedAbove), 100*r.Refused)
	harness.RecordUsage(r, b.WindowUsage)
	return w.Err()
}

// sharedChannel has a rate below that of the next hop.
func sharedChannel(relay string) []byte {
	return loadgen.Channel{Relay: relay, Retry: "1s, 1s, 2s", Connections: sharedConnections, Rate: fmt.Sprintf("%d/s", sharedRate)}.Configuration(loadgen.Service)
}

// awaitShare waits until a share of the newest broadcast is settled. It returns false if
// ctx ends first.
func awaitShare(ctx context.Context, s *harness.Server, share float64) (bool, error) {
	for {
		newest, err := s.API.Broadcasts(ctx, 1)
		if err == nil && len(newest) > 0 && newest[0].Messages > 0 && float64(newest[0].Counts.Settled()) >= share*float64(newest[0].Messages) {
			return true, nil
		}
		select {
		case <-ctx.Done():
			return false, nil
		default:
		}
		if err != nil {
			return false, err
		}
		_ = harness.Pause(ctx, harness.ShortestPoll*10) // the loop checks ctx
	}
}
