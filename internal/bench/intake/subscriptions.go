package intake

import (
	"fmt"
	"strings"

	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/internal/bench/harness"
	"fanfare.dev/fanfare/internal/bench/loadgen"
	"fanfare.dev/fanfare/internal/bench/rawlimit"
	"fanfare.dev/fanfare/internal/bench/report"
)

// importResult is the result of one import.
type importResult struct {
	perSecond float64
	harness.WindowUsage
}

// importSized imports n subscriptions whose data has size characters into an empty
// server, and checks their number. cadence may be empty.
func importSized(l *harness.Env, n, size int, cadence string, w *report.Checks) (importResult, error) {
	var out importResult
	lines := l.File(fmt.Sprintf("people-%d.ndjson", size))
	own := ""
	if cadence != "" {
		own = fmt.Sprintf(`,"cadence":%q`, cadence)
	}
	data := `{"note":"` + strings.Repeat("x", max(0, size-len(`{"note":""}`))) + `"}`
	_, err := loadgen.WriteLines(lines, n, func(dst []byte, i int) []byte {
		dst = append(dst, `{"topic":"news","channel":"email","to":"`...)
		dst = loadgen.Person(i).AppendAddress(dst)
		dst = append(dst, `","data":`...)
		dst = append(dst, data...)
		dst = append(dst, own...)
		return append(dst, "}\n"...)
	})
	if err != nil {
		return out, err
	}
	s, err := l.StartServer(fmt.Sprintf("load-%d-%t", size, cadence != ""))
	if err != nil {
		return out, err
	}
	if _, err := s.API.Apply(l.Ctx, plainConfiguration(), false); err != nil {
		return out, err
	}
	window := s.OpenWindow(nil)
	if err := s.ToggleProfile(); err != nil {
		return out, err
	}
	put, took, err := s.ImportFile(lines)
	if err != nil {
		return out, s.WithLog(err)
	}
	if err := s.ToggleProfile(); err != nil {
		return out, err
	}
	out = importResult{float64(n) / took.Seconds(), window.Close()}
	w.Require(put.Created == int64(n) && put.Failed == 0, "%d chars: %d of %d were created, %d failed", size, put.Created, n, put.Failed)
	return out, s.Stop()
}

// plainConfiguration returns the document for subscriptions that never lead to a mail
// and have data of any kind.
func plainConfiguration() []byte {
	return fmt.Appendf(nil, `service: %s
channels:
  email: {driver: smtp, relay: %q, from: "Alerts <alerts@example.org>"}
topics:
  news:
    schema: {type: object, required: [text], properties: {text: {type: string}}}
    template: news
    digest: {template: digest}
templates:
  news: {subject: News, text: "{{ event.text }}"}
  digest: {subject: News, text: "{%% for item in items %%}{{ item.event.text }} {%% endfor %%}"}
`, loadgen.Service, loadgen.Nowhere)
}

// RunSubscriptionSizes is S2.
func RunSubscriptionSizes(l *harness.Env, r *report.Record) error {
	n := l.Size(100_000, 1000)
	r.Unit = "subscriptions/s"
	r.Params["subscriptions"], r.Params["sizes"] = n, "20 200 1000"
	var w report.Checks
	var all harness.WindowUsage
	for _, size := range []int{20, 200, 1000} {
		raw, err := rawlimit.RawRows(l, n, size)
		if err != nil {
			return err
		}
		got, err := importSized(l, n, size, "", &w)
		if err != nil {
			return err
		}
		r.AddPoint(report.Point{At: fmt.Sprintf("%d chars", size), Value: got.perSecond, Limit: raw})
		r.Note("%d chars: %.1f us of CPU for a subscription", size, report.MicrosPer(got.Server, n))
		all.Add(got.WindowUsage)
	}
	harness.RecordUsage(r, all)
	if err := r.UsePoint("200 chars"); err != nil {
		return err
	}
	r.Note("value and limit are those of 200 chars; one NDJSON request each into an empty store; the limit is raw store inserts of rows of that length, %d in a transaction", rawlimit.RowsPerTransaction)
	r.CompareShape(report.Falls)
	return w.Err()
}

// RunSubscriptionKinds is S3.
func RunSubscriptionKinds(l *harness.Env, r *report.Record) error {
	n := l.Size(100_000, 1000)
	r.Unit = "subscriptions/s"
	r.Params["subscriptions"], r.Params["size"] = n, 200
	var w report.Checks
	var all harness.WindowUsage
	raw, err := rawlimit.RawRows(l, n, 200)
	if err != nil {
		return err
	}
	for _, kind := range []struct{ at, cadence string }{{"event-driven", ""}, {"scheduled", "daily 08:00 in Europe/London"}} {
		got, err := importSized(l, n, 200, kind.cadence, &w)
		if err != nil {
			return err
		}
		all.Add(got.WindowUsage)
		r.AddPoint(report.Point{At: kind.at, Value: got.perSecond, Limit: raw})
		r.Note("%s: %.1f us of CPU for a subscription", kind.at, report.MicrosPer(got.Server, n))
	}
	harness.RecordUsage(r, all)
	if err := r.UsePoint("event-driven"); err != nil {
		return err
	}
	r.CompareShape(report.NearlyEqual)
	r.Note("the limit is raw store inserts of rows of 200 chars, %d in a transaction", rawlimit.RowsPerTransaction)
	return w.Err()
}

// scriptSubscription appends the JSON of a subscription as NotifyBC's load script posts
// it: confirmed, with its filter, for an address of its own.
func scriptSubscription(dst []byte, p loadgen.Person) []byte {
	dst = append(dst, `{"topic":"news","channel":"email","to":"`...)
	dst = p.AppendAddress(dst)
	return append(dst, `","filter":"`+loadgen.NotifyFilter+`"}`...)
}

// RunScript is N4: the same subscriptions one after the other, 100 at once, and in
// one request.
func RunScript(l *harness.Env, r *report.Record) error {
	const atOnce = 100
	r.Unit = "subscriptions/s"
	r.Params["at_once"] = atOnce
	c, url, err := rawlimit.BareHTTP(l)
	if err != nil {
		return err
	}
	s, err := l.StartServer("N4")
	if err != nil {
		return err
	}
	if _, err := s.API.Apply(l.Ctx, loadgen.Configuration(loadgen.Nowhere, "1s"), false); err != nil {
		return err
	}
	var used harness.WindowUsage
	next := loadgen.Person(0)
	for _, step := range []struct {
		at             string
		n, connections int
	}{
		{"single POSTs", l.Size(10_000, 200), 1},
		{"100 at once", l.Size(100_000, 1000), atOnce},
	} {
		from := next
		h := loadgen.HTTPLoad{URL: url, Path: "/discard", Connections: step.connections,
			Body: func(dst []byte, i int) []byte { return scriptSubscription(dst, from+loadgen.Person(i)) }}
		bare, err := h.Run(l.Ctx, step.n, func(int64) {})
		if err != nil {
			return err
		}
		h.URL, h.Key, h.Path = s.URL, s.Key, "/v1/subscriptions"
		window := s.OpenWindow(nil)
		ours, err := h.Run(l.Ctx, step.n, func(int64) {})
		if err != nil {
			return s.WithLog(err)
		}
		used.Add(window.Close())
		next += loadgen.Person(step.n)
		r.AddPoint(report.Point{At: step.at, Value: ours.PerSecond, Limit: bare.PerSecond, P50Millis: ours.P50, P99Millis: ours.P99})
	}
	if err := c.Wait(); err != nil {
		return err
	}
	var w report.Checks
	if err := scriptInBulk(l, r, s, next, &used, &w); err != nil {
		return err
	}
	harness.RecordUsage(r, used)
	if err := r.UsePoint("100 at once"); err != nil {
		return err
	}
	bulk, single := r.Points[2].Value, r.Points[0].Value
	w.Require(bulk > single || l.Scale < 1, "one bulk request (%s/s) is not faster than row by row (%s/s)", report.Figure(bulk), report.Figure(single))
	r.Note("value, limit and latencies are those of 100 at once, as in NotifyBC's script; the limit of single posts is a bare HTTP handler that stores nothing, the limit of the bulk request one that stores the body")
	return w.Err()
}

// scriptInBulk imports as many subscriptions with one request, and checks the total.
func scriptInBulk(l *harness.Env, r *report.Record, s *harness.Server, from loadgen.Person, used *harness.WindowUsage, w *report.Checks) error {
	n := l.Size(100_000, 1000)
	lines := l.File("script.ndjson")
	_, err := loadgen.WriteLines(lines, n, func(dst []byte, i int) []byte {
		return append(scriptSubscription(dst, from+loadgen.Person(i)), '\n')
	})
	if err != nil {
		return err
	}
	bare, err := bareUpload(l, lines, n)
	if err != nil {
		return err
	}
	window := s.OpenWindow(nil)
	put, took, err := s.ImportFile(lines)
	if err != nil {
		return s.WithLog(err)
	}
	used.Add(window.Close())
	r.AddPoint(report.Point{At: "in bulk", Value: float64(n) / took.Seconds(), Limit: bare})
	w.Require(put.Created == int64(n) && put.Failed == 0, "in bulk %d of %d were created, %d failed", put.Created, n, put.Failed)
	return checkMatchCount(s, from+loadgen.Person(n), w)
}

// checkMatchCount publishes an event that all subscriptions match, while the service is
// paused, and checks the number of matches.
func checkMatchCount(s *harness.Server, people loadgen.Person, w *report.Checks) error {
	if err := s.PauseAll(); err != nil {
		return err
	}
	event, err := s.API.Publish(s.Env.Ctx, "news", loadgen.NewsOfTheDay(), client.PublishOptions{})
	if err != nil {
		return err
	}
	b, _, err := s.WaitManifests(event.ID)
	w.Require(err != nil || b.Matched == int64(people), "%d subscriptions matched, expected %d", b.Matched, people)
	return err
}
