package nodes

import (
	"fmt"
	"slices"
	"strings"

	"fanfare.dev/fanfare/internal/bench/harness"
	"fanfare.dev/fanfare/internal/bench/loadgen"
	"fanfare.dev/fanfare/internal/bench/report"
)

// A layout is a way to run servers. Without roles, it is one server outside a cluster.
type layout struct {
	at    string
	roles []string // of each node; the first leads
	args  []string // further arguments of all nodes
}

// oneServer is what the layouts of a cluster are compared with.
var oneServer = layout{at: "1 server"}

// allRoles is a cluster of n nodes, each with all roles.
func allRoles(n int) layout {
	at := fmt.Sprintf("%d nodes", n)
	if n == 1 {
		at = "1 node"
	}
	return layout{at: at, roles: slices.Repeat([]string{"all"}, n)}
}

// delivering is a leader that delivers nothing itself, and n nodes that deliver for it.
func delivering(n int) layout {
	return layout{at: fmt.Sprintf("lead + %d deliver", n), roles: append([]string{"lead"}, slices.Repeat([]string{"deliver"}, n)...)}
}

// name is the name of the layout in file names.
func (y layout) name(id string) string {
	return id + "-" + strings.ToLower(strings.NewReplacer(" ", "-", "+", "and").Replace(y.at))
}

// start starts the servers. It returns the leader.
func (y layout) start(l *harness.Env, id string) (*harness.Server, error) {
	if len(y.roles) == 0 {
		return l.StartWithNATS(y.name(id))
	}
	c, err := l.StartCluster(y.name(id), y.roles[0], y.args...)
	if err != nil {
		return nil, err
	}
	return c.Server, c.Join(y.roles[1:]...)
}

// RunLinks is K1.
func RunLinks(l *harness.Env, r *report.Record) error {
	return runLayouts(l, r, l.Size(1_000_000, 1000), []layout{
		oneServer,
		allRoles(1),
		delivering(1),
		allRoles(3),
		delivering(3),
		delivering(2),
	})
}

// RunTwo is N2.
func RunTwo(l *harness.Env, r *report.Record) error {
	return runLayouts(l, r, l.Size(100_000, 1000), []layout{oneServer, allRoles(2)})
}

// RunThree is N3.
func RunThree(l *harness.Env, r *report.Record) error {
	return runLayouts(l, r, l.Size(1_000_000, 1000), []layout{oneServer, allRoles(2), allRoles(3)})
}

// runLayouts sends the broadcast of N1 to n people through each layout. The first one is
// the limit of the others, and the last one is the result.
func runLayouts(l *harness.Env, r *report.Record, n int, all []layout) error {
	r.Unit = "mails/s"
	r.Params["subscriptions"], r.Params["connections of a node"], r.Params["sink"] = n, loadgen.Connections, l.Sink
	lines, err := l.NotifyPeople(n)
	if err != nil {
		return err
	}
	var w report.Checks
	var used harness.WindowUsage
	for _, y := range all {
		l.Say("%s", y.at)
		var aside report.Record
		b, p, sum, err := l.SendBroadcast(harness.BroadcastPlan{Data: y.name(r.ID), Lines: lines, Subscriptions: n, Retry: "1s",
			Start: func() (*harness.Server, error) { return y.start(l, r.ID) }}, &aside, &w)
		if err != nil {
			return err
		}
		checkArrivals(r, &aside, b, p, sum, n, &w)
		point := report.Point{At: y.at, Value: float64(n) / b.Durable().Seconds(), CPUMicros: report.MicrosPer(b.Server, n)}
		if len(r.Points) > 0 {
			point.Limit = r.Points[0].Value
		}
		r.AddPoint(point)
		r.CPUMicros = point.CPUMicros
		noteCPU(r, y.at, b, n)
		used.Add(b.WindowUsage)
	}
	r.Note("the limit is one server outside a cluster with the same PostgreSQL and a NATS server in another process; all processes share the cores of this machine: compare the CPU time of the leader")
	harness.RecordUsage(r, used)
	return report.FirstError(r.UsePoint(all[len(all)-1].at), w)
}

// noteCPU records the CPU time of each process for a message.
func noteCPU(r *report.Record, at string, b *harness.SentBroadcast, n int) {
	text := fmt.Sprintf("%s: %s %s; CPU for a message: server or leader %.1f us", at, report.Figure(float64(n)/b.Durable().Seconds()), r.Unit, report.MicrosPer(b.Server, n))
	for i, cpu := range b.Nodes {
		text += fmt.Sprintf(", node-%d %.1f us", i+2, report.MicrosPer(cpu, n))
	}
	r.Note("%s, NATS %.2f us, sink %.1f us; %.1f outcomes in a commit", text, report.MicrosPer(b.NATS, n), report.MicrosPer(b.Sink, n), float64(n)/max(1, b.Commits))
}
