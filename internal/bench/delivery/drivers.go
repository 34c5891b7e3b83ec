package delivery

import (
	"fmt"
	"os"

	"fanfare.dev/fanfare/internal/bench/harness"
	"fanfare.dev/fanfare/internal/bench/loadgen"
	"fanfare.dev/fanfare/internal/bench/report"
)

// RunDrivers is D2.
func RunDrivers(l *harness.Env, r *report.Record) error {
	n := l.Size(5000, 200)
	r.Unit = "messages/s"
	r.Params["messages"], r.Params["connections"] = n, 1
	mails, err := l.NotifyPeople(n)
	if err != nil {
		return err
	}
	var w report.Checks
	var used harness.WindowUsage
	folder := l.File("mails")
	for _, c := range []struct{ at, driver string }{
		{"file", fmt.Sprintf("driver: file, path: %q, %s", folder, loadgen.SenderField)}, {"http", "driver: webhook, allow_http: true"}, {"smtp", ""},
	} {
		var aside report.Record
		how := harness.BroadcastPlan{Data: "D2-" + c.at, Lines: mails, Subscriptions: n, Sink: harness.SinkOptions{Web: true}, Args: []string{"--allow-networks", "127.0.0.0/8"}}
		how.Config = func(relay string) []byte {
			return loadgen.Channel{Relay: relay, Driver: c.driver, Retry: "1s", Connections: 1}.Configuration(loadgen.Service)
		}
		if c.at == "http" {
			how.LinesFor = func(p *harness.Sink) (string, error) { return postedPeople(l, n, p.Port) }
		}
		b, p, sum, err := l.SendBroadcast(how, &aside, &w)
		if err != nil {
			return err
		}
		used.Add(b.WindowUsage)
		r.AddPoint(report.Point{At: c.at, Value: float64(n) / b.Durable().Seconds()})
		if c.at != "file" {
			harness.CheckSink(&aside, p, sum, n, &w)
			continue
		}
		files, err := os.ReadDir(folder)
		if err != nil {
			return err
		}
		w.Require(len(files) == n, "%d files, expected %d", len(files), n)
	}
	r.CompareShape(report.Falls)
	r.Note("files that wait at the same time are synced together before they count; while other processes use the file system, each file is synced separately")
	harness.RecordUsage(r, used)
	return report.FirstError(r.UsePoint("smtp"), w)
}

// postedPeople writes the file of n people who each have a URL at one receiver.
func postedPeople(l *harness.Env, n int, port string) (path string, err error) {
	path = l.File("posted.ndjson")
	_, err = loadgen.WriteLines(path, n, func(dst []byte, i int) []byte {
		return fmt.Appendf(dst, `{"topic":"news","channel":"email","to":"http://127.0.0.1:%s/p%d","filter":%q}`+"\n", port, i, loadgen.NotifyFilter)
	})
	return path, err
}

// RunConnections is D5.
func RunConnections(l *harness.Env, r *report.Record) error {
	n := l.Size(50_000, 500)
	r.Unit = "mails/s"
	r.Params["mails"], r.Params["sink"] = n, l.Sink
	lines, err := l.NotifyPeople(n)
	if err != nil {
		return err
	}
	var w report.Checks
	var used harness.WindowUsage
	var at string
	for _, many := range []int{1, 2, 4, 8} {
		at = fmt.Sprintf("%d connections", many)
		var aside report.Record
		b, p, sum, err := l.SendBroadcast(harness.BroadcastPlan{Data: fmt.Sprintf("D5-%d", many), Lines: lines, Subscriptions: n, Config: func(relay string) []byte {
			return loadgen.Channel{Relay: relay, Retry: "1s", Connections: many}.Configuration(loadgen.Service)
		}}, &aside, &w)
		if err != nil {
			return err
		}
		harness.CheckSink(&aside, p, sum, n, &w)
		used.Add(b.WindowUsage)
		r.AddPoint(report.Point{At: at, Value: float64(n) / b.Durable().Seconds()})
	}
	r.CompareShape(report.Rises)
	harness.RecordUsage(r, used)
	return report.FirstError(r.UsePoint(at), w)
}
