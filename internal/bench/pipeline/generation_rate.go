package pipeline

import (
	"bytes"
	"cmp"
	"fmt"
	"time"

	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/internal/bench/harness"
	"fanfare.dev/fanfare/internal/bench/loadgen"
	"fanfare.dev/fanfare/internal/bench/rawlimit"
	"fanfare.dev/fanfare/internal/bench/report"
)

// G1 and G2: people in groups of equal size. An event names groups; all rules have the
// same condition.
const (
	generated     = 10_000 // notifications that G1 splits into batches
	manyGenerated = 1_000_000
	generateRules = 8
	ofEachRule    = 2500
	callParts     = 32 // groups of the people in G1
)

// generateConfiguration returns the document of a service whose events name the groups
// that they are for.
func generateConfiguration(rules int) func(relay, retry string) []byte {
	return func(relay, retry string) []byte {
		text := fmt.Appendf(nil, `service: %s
channels:
  email: {driver: smtp, relay: %q, from: "Alerts <alerts@example.org>", connections: 50, rate: unlimited, retry: [%s]}
templates:
  call: {subject: "{{ event.id }}", text: "{{ event.id }}. {{ unsubscribe_url }}"}
topics:
  call:
    schema: {type: object, required: [id, parts], properties: {id: {type: string}, parts: {type: array, items: {type: string}}}}
    template: call
    rules:
`, loadgen.Service, relay, retry)
		for i := range rules {
			text = fmt.Appendf(text, "      - {name: rule%d, when: sub.part in event.parts, params: {part: string}}\n", i)
		}
		return text
	}
}

// writeGroups writes the file of n people in groups of a size, with the rules in turn.
func writeGroups(l *harness.Env, n, ofPart, rules int) (path string, err error) {
	path = l.File(fmt.Sprintf("called-%d.ndjson", n))
	_, err = loadgen.WriteLines(path, n, func(dst []byte, i int) []byte {
		dst = append(dst, `{"topic":"call","channel":"email","to":"`...)
		dst = loadgen.Person(i).AppendAddress(dst)
		return fmt.Appendf(dst, `","rule":"rule%d","params":{"part":"p%d"}}`+"\n", i%rules, i/ofPart)
	})
	return path, err
}

// A generationServer is a paused server, so that it makes notifications and sends none.
type generationServer struct {
	*harness.Server
	mailSink *harness.Sink
	ofPart   int
	made     int64 // notifications so far
	calls    int
}

func openGenerator(l *harness.Env, name string, people, ofPart, rules int) (*generationServer, error) {
	return openGeneratorWith(l, generateConfiguration(rules), name, people, ofPart, rules)
}

func openGeneratorWith(l *harness.Env, configure func(relay, retry string) []byte, name string, people, ofPart, rules int) (*generationServer, error) {
	lines, err := writeGroups(l, people, ofPart, rules)
	if err != nil {
		return nil, err
	}
	mailSink, s, err := l.StartFilled(configure, name, lines)
	if err != nil {
		return nil, err
	}
	return &generationServer{Server: s, mailSink: mailSink, ofPart: ofPart}, s.PauseAll()
}

// generate publishes events in one request, each for a number of groups. It returns the
// time from the intake of the first event until the manifests of the last one were
// durable.
func (g *generationServer) generate(events, parts int) (took time.Duration, used harness.WindowUsage, err error) {
	var body []byte
	for i := range events {
		body = fmt.Appendf(body, `{"id":"call-%d","parts":[`, g.calls)
		for k := range parts {
			body = fmt.Appendf(body, `"p%d",`, i*parts+k)
		}
		body = append(body[:len(body)-1], "]}\n"...)
		g.calls, g.made = g.calls+1, g.made+int64(parts*g.ofPart)
	}
	var first, last string
	window := g.OpenWindow(g.mailSink)
	_, err = g.API.PublishLines(g.Env.Ctx, "call", bytes.NewReader(body), client.PublishOptions{IDPointer: "/id"}, func(a client.Accepted, refused *client.LineError) error {
		if refused != nil {
			return refused.Error.Err()
		}
		first, last = cmp.Or(first, a.ID), a.ID
		return nil
	}, nil)
	if err != nil {
		return 0, used, err
	}
	_, ended, err := g.WaitManifests(last)
	if err != nil {
		return 0, used, err
	}
	used = window.Close()
	begun, err := g.API.Event(g.Env.Ctx, first)
	return ended.Sub(begun.Stages.Received), used, err
}

// waiting returns how many notifications wait. The server counts them a moment after
// their manifests are durable.
func (g *generationServer) waiting() (n int64, err error) {
	var still harness.StallDetector
	for {
		status, err := g.API.Status(g.Env.Ctx)
		if n = status.Deliveries.Pending; err != nil || n >= g.made {
			return n, err
		}
		if err := still.Check(n); err != nil {
			return n, err
		}
		if err := harness.Pause(g.Env.Ctx, 10*time.Millisecond); err != nil {
			return n, err
		}
	}
}

// end checks the number of waiting notifications and stops the server.
func (g *generationServer) end(w *report.Checks) error {
	wait, err := g.waiting()
	if err != nil {
		return err
	}
	w.Require(wait == g.made, "%d notifications wait, expected %d", wait, g.made)
	if err := g.Stop(); err != nil {
		return err
	}
	sum, err := g.mailSink.Finish()
	w.Require(sum.Messages == 0, "%d mails arrived although the service was paused", sum.Messages)
	return err
}

// RunGenerationBatches is G1.
func RunGenerationBatches(l *harness.Env, r *report.Record) error {
	ofPart := l.Size(generated/callParts, 10)
	n, groups := ofPart*callParts, l.Size(manyGenerated/generated, 10)
	r.Unit = "notifications/s"
	r.Params["notifications"], r.Params["people"] = n, n*groups
	g, err := openGenerator(l, "G1", n*groups, ofPart, 1)
	if err != nil {
		return err
	}
	var used harness.WindowUsage
	point := func(in, events, parts, times int) (at string, err error) {
		made := g.made
		var all time.Duration
		for range times {
			took, toll, err := g.generate(events, parts)
			if err != nil {
				return "", err
			}
			all += took
			used.Add(toll)
		}
		made = g.made - made
		at = fmt.Sprintf("%s in %d", report.Thousands(made/int64(times)), in)
		r.AddPoint(report.Point{At: at, Value: float64(made) / max(all.Seconds(), 1e-6)})
		return at, nil
	}
	for batches := 1; batches <= callParts; batches *= 2 {
		if _, err := point(batches, batches, callParts/batches, l.Size(20, 2)); err != nil {
			return err
		}
	}
	r.CompareShape(report.Falls)
	if _, err := point(1, 1, groups*callParts, 1); err != nil {
		return err
	}
	if err := g.ToggleProfile(); err != nil {
		return err
	}
	inRow, err := point(groups, groups, callParts, l.Size(3, 1))
	if err != nil {
		return err
	}
	if err := g.ToggleProfile(); err != nil {
		return err
	}
	var w report.Checks
	if err := g.end(&w); err != nil {
		return err
	}
	harness.RecordUsage(r, used)
	r.CPUMicros = 1e6 * r.CPUSeconds / float64(g.made)
	r.Note("a notification is a member of a manifest; value: from the intake of the first event until the manifests of the last one can be read, while the service is paused; %.2f us of server CPU for a notification, over all points", 1e6*r.CPUSeconds/float64(g.made))
	return report.FirstError(g.rows(r, inRow, n*groups), w)
}

// rows makes a point the value of the record, and measures raw inserts of one row for
// each notification as its limit.
func (g *generationServer) rows(r *report.Record, point string, n int) error {
	const rowBytes = 40 // event, subscriber, subscription, channel, template
	if err := r.UsePoint(point); err != nil {
		return err
	}
	raw, err := rawlimit.RawRows(g.Env, n, rowBytes)
	if raw > 0 {
		r.SetLimit(raw)
		r.Note("the limit is raw inserts into SQLite of one row of %d bytes for each notification, %d in a transaction", rowBytes, rawlimit.RowsPerTransaction)
	}
	return err
}

// RunGenerationThreads is G2.
func RunGenerationThreads(l *harness.Env, r *report.Record) error {
	people := l.Size(generateRules*ofEachRule, 320)
	r.Unit = "notifications/s"
	r.Params["rules"], r.Params["notifications"] = generateRules, people
	var used harness.WindowUsage
	var w report.Checks
	var at string
	times := l.Size(200, 4)
	for _, threads := range []int{1, 2, 4, 0} {
		if at = fmt.Sprintf("%d threads", threads); threads == 0 {
			at = "automatic"
		}
		l.Threads = threads
		g, err := openGenerator(l, fmt.Sprintf("G2-%d", threads), people, people, generateRules)
		l.Threads = 0
		if err != nil {
			return err
		}
		var all time.Duration
		for range times {
			took, toll, err := g.generate(1, 1)
			if err != nil {
				return err
			}
			all += took
			used.Add(toll)
		}
		r.AddPoint(report.Point{At: at, Value: float64(g.made) / max(all.Seconds(), 1e-6)})
		if err := g.end(&w); err != nil {
			return err
		}
	}
	harness.RecordUsage(r, used)
	r.Note("threads are those of the whole server (GOMAXPROCS), because one goroutine makes the notifications of a lane; each point has %d events, one after the other", times)
	return report.FirstError(r.UsePoint(at), w)
}
