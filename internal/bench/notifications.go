package bench

import (
	"bytes"
	"cmp"
	"fmt"
	"time"

	"fanfare.dev/fanfare/client"
)

// Of G1 and G2: people in parts of an equal size, which events name, by rules that say
// the same.
const (
	generated     = 10_000 // notifications that G1 cuts into batches
	manyGenerated = 1_000_000
	generateRules = 8
	ofEachRule    = 2500
	callParts     = 32 // that G1's notifications are cut into
)

// generateConfiguration is a service whose events say which parts they are for.
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
`, service, relay, retry)
		for i := range rules {
			text = fmt.Appendf(text, "      - {name: rule%d, when: sub.part in event.parts, params: {part: string}}\n", i)
		}
		return text
	}
}

// called makes the file of n people in parts of so many, whose rules take turns.
func (l *lab) called(n, ofPart, rules int) (path string, err error) {
	path = l.file(fmt.Sprintf("called-%d.ndjson", n))
	_, err = writeLines(path, n, func(dst []byte, i int) []byte {
		dst = append(dst, `{"topic":"call","channel":"email","to":"`...)
		dst = person(i).appendAddress(dst)
		return fmt.Appendf(dst, `","rule":"rule%d","params":{"part":"p%d"}}`+"\n", i%rules, i/ofPart)
	})
	return path, err
}

// A generator has a server make notifications of which nothing leaves.
type generator struct {
	*server
	box    *post
	ofPart int
	made   int64 // notifications so far
	calls  int
}

func (l *lab) openGenerator(name string, people, ofPart, rules int) (*generator, error) {
	return l.openGeneratorWith(generateConfiguration(rules), name, people, ofPart, rules)
}

func (l *lab) openGeneratorWith(configure func(relay, retry string) []byte, name string, people, ofPart, rules int) (*generator, error) {
	lines, err := l.called(people, ofPart, rules)
	if err != nil {
		return nil, err
	}
	box, s, err := l.stock(configure, name, lines)
	if err != nil {
		return nil, err
	}
	return &generator{server: s, box: box, ofPart: ofPart}, s.pauseAll()
}

// generate publishes events in one request, each for so many parts, one upon the other.
// It returns how long it took from the intake of the first until the manifests of the
// last were durable.
func (g *generator) generate(events, parts int) (took time.Duration, used toll, err error) {
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
	window := g.openWindow(g.box)
	_, err = g.api.PublishLines(g.lab.ctx, "call", bytes.NewReader(body), client.PublishOptions{IDPointer: "/id"}, func(a client.Accepted, refused *client.LineError) error {
		if refused != nil {
			return refused.Error.Err()
		}
		first, last = cmp.Or(first, a.ID), a.ID
		return nil
	}, nil)
	if err != nil {
		return 0, used, err
	}
	_, ended, err := g.manifestsDurable(last)
	if err != nil {
		return 0, used, err
	}
	used = window.close()
	begun, err := g.api.Event(g.lab.ctx, first)
	return ended.Sub(begun.Stages.Received), used, err
}

// waiting is how many notifications wait when all that were called for should. They are
// counted a moment after they are frozen.
func (g *generator) waiting() (n int64, err error) {
	var still stall
	for {
		status, err := g.api.Status(g.lab.ctx)
		if n = status.Deliveries.Pending; err != nil || n >= g.made {
			return n, err
		}
		if err := still.moved(n); err != nil {
			return n, err
		}
		if err := pause(g.lab.ctx, 10*time.Millisecond); err != nil {
			return n, err
		}
	}
}

// end holds what waits against what was called for, and ends the server.
func (g *generator) end(w *wrong) error {
	wait, err := g.waiting()
	if err != nil {
		return err
	}
	w.unless(wait == g.made, "%d notifications wait, and %d were called for", wait, g.made)
	if err := g.stop(); err != nil {
		return err
	}
	sum, err := g.box.end()
	w.unless(sum.Messages == 0, "%d mails came, though all was paused", sum.Messages)
	return err
}

// runGenerationBatches is G1.
func runGenerationBatches(l *lab, r *Record) error {
	ofPart := l.size(generated/callParts, 10)
	n, groups := ofPart*callParts, l.size(manyGenerated/generated, 10)
	r.Unit = "notifications/s"
	r.Params["notifications"], r.Params["people"] = n, n*groups
	g, err := l.openGenerator("G1", n*groups, ofPart, 1)
	if err != nil {
		return err
	}
	var used toll
	point := func(in, events, parts, times int) (at string, err error) {
		made := g.made
		var all time.Duration
		for range times {
			took, toll, err := g.generate(events, parts)
			if err != nil {
				return "", err
			}
			all += took
			used.add(toll)
		}
		made = g.made - made
		at = fmt.Sprintf("%s in %d", thousands(made/int64(times)), in)
		r.point(Point{At: at, Value: float64(made) / max(all.Seconds(), 1e-6)})
		return at, nil
	}
	for batches := 1; batches <= callParts; batches *= 2 {
		if _, err := point(batches, batches, callParts/batches, l.size(20, 2)); err != nil {
			return err
		}
	}
	r.judgeShape(falls)
	if _, err := point(1, 1, groups*callParts, 1); err != nil {
		return err
	}
	if err := g.toggleProfile(); err != nil {
		return err
	}
	inRow, err := point(groups, groups, callParts, l.size(3, 1))
	if err != nil {
		return err
	}
	if err := g.toggleProfile(); err != nil {
		return err
	}
	var w wrong
	if err := g.end(&w); err != nil {
		return err
	}
	r.take(used)
	r.CPUMicros = 1e6 * r.CPUSeconds / float64(g.made)
	r.note("a notification is a member of a manifest; value: from the intake of the first event until the manifests of the last can be read, while all is paused; CPU %.2f us a notification, of all points", 1e6*r.CPUSeconds/float64(g.made))
	return errorsOf(g.rows(r, inRow, n*groups), w)
}

// rows makes a point the value, and has a row for each of n notifications inserted by
// itself as its limit.
func (g *generator) rows(r *Record, stands string, n int) error {
	const rowBytes = 40 // event, subscriber, subscription, channel, template
	if err := r.stand(stands); err != nil {
		return err
	}
	raw, err := g.lab.rawRows(n, rowBytes)
	if raw > 0 {
		r.limit(raw)
		r.note("the limit is a row for each notification of %d bytes, inserted raw into SQLite, %d to a transaction", rowBytes, rowsPerTransaction)
	}
	return err
}

// runGenerationThreads is G2.
func runGenerationThreads(l *lab, r *Record) error {
	people := l.size(generateRules*ofEachRule, 320)
	r.Unit = "notifications/s"
	r.Params["rules"], r.Params["notifications"] = generateRules, people
	var used toll
	var w wrong
	var at string
	times := l.size(200, 4)
	for _, threads := range []int{1, 2, 4, 0} {
		if at = fmt.Sprintf("%d threads", threads); threads == 0 {
			at = "automatic"
		}
		l.threads = threads
		g, err := l.openGenerator(fmt.Sprintf("G2-%d", threads), people, people, generateRules)
		l.threads = 0
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
			used.add(toll)
		}
		r.point(Point{At: at, Value: float64(g.made) / max(all.Seconds(), 1e-6)})
		if err := g.end(&w); err != nil {
			return err
		}
	}
	r.take(used)
	r.note("threads are those that run at once in the whole server (GOMAXPROCS): there is no setting for generators alone, as one makes the notifications of a lane; each point %d events, one after the other", times)
	return errorsOf(r.stand(at), w)
}
