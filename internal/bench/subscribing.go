package bench

import (
	"fmt"
	"strings"

	"fanfare.dev/fanfare/client"
)

// loaded is what one import came to.
type loaded struct {
	perSecond float64
	toll
}

// load imports n subscriptions whose own data has size characters into an empty
// server, and checks the total. With a cadence, "" for none, they are scheduled.
func (l *lab) load(n, size int, cadence string, w *wrong) (loaded, error) {
	var out loaded
	lines := l.file(fmt.Sprintf("people-%d.ndjson", size))
	own := ""
	if cadence != "" {
		own = fmt.Sprintf(`,"cadence":%q`, cadence)
	}
	data := `{"note":"` + strings.Repeat("x", max(0, size-len(`{"note":""}`))) + `"}`
	_, err := writeLines(lines, n, func(dst []byte, i int) []byte {
		dst = append(dst, `{"topic":"news","channel":"email","to":"`...)
		dst = person(i).appendAddress(dst)
		dst = append(dst, `","data":`...)
		dst = append(dst, data...)
		dst = append(dst, own...)
		return append(dst, "}\n"...)
	})
	if err != nil {
		return out, err
	}
	s, err := l.serve(fmt.Sprintf("load-%d-%t", size, cadence != ""))
	if err != nil {
		return out, err
	}
	if _, err := s.api.Apply(l.ctx, plainConfiguration(), false); err != nil {
		return out, err
	}
	window := s.openWindow(nil)
	if err := s.toggleProfile(); err != nil {
		return out, err
	}
	put, took, err := s.importFile(lines)
	if err != nil {
		return out, s.failed(err)
	}
	if err := s.toggleProfile(); err != nil {
		return out, err
	}
	out = loaded{float64(n) / took.Seconds(), window.close()}
	w.unless(put.Created == int64(n) && put.Failed == 0, "%d chars: %d of %d were created, %d failed", size, put.Created, n, put.Failed)
	return out, s.stop()
}

// plainConfiguration is for subscriptions that no mail follows from, with own
// data of any kind.
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
`, service, nowhere)
}

// runSubscriptionSizes is S2.
func runSubscriptionSizes(l *lab, r *Record) error {
	n := l.size(100_000, 1000)
	r.Unit = "subscriptions/s"
	r.Params["subscriptions"], r.Params["sizes"] = n, "20 200 1000"
	var w wrong
	var all toll
	for _, size := range []int{20, 200, 1000} {
		raw, err := l.rawRows(n, size)
		if err != nil {
			return err
		}
		got, err := l.load(n, size, "", &w)
		if err != nil {
			return err
		}
		r.point(Point{At: fmt.Sprintf("%d chars", size), Value: got.perSecond, Limit: raw})
		r.note("%d chars: %.1f us CPU a subscription", size, micro(got.server, n))
		all.add(got.toll)
	}
	r.take(all)
	if err := r.stand("200 chars"); err != nil {
		return err
	}
	r.note("value and limit are those of 200 chars; one NDJSON request each, into an empty store; the limit is raw store inserts of rows that long, %d in a transaction", rowsPerTransaction)
	r.judgeShape(falls)
	return w.err()
}

// runSubscriptionKinds is S3.
func runSubscriptionKinds(l *lab, r *Record) error {
	n := l.size(100_000, 1000)
	r.Unit = "subscriptions/s"
	r.Params["subscriptions"], r.Params["size"] = n, 200
	var w wrong
	var all toll
	raw, err := l.rawRows(n, 200)
	if err != nil {
		return err
	}
	for _, kind := range []struct{ at, cadence string }{{"event-driven", ""}, {"scheduled", "daily 08:00 in Europe/London"}} {
		got, err := l.load(n, 200, kind.cadence, &w)
		if err != nil {
			return err
		}
		all.add(got.toll)
		r.point(Point{At: kind.at, Value: got.perSecond, Limit: raw})
		r.note("%s: %.1f us CPU a subscription", kind.at, micro(got.server, n))
	}
	r.take(all)
	if err := r.stand("event-driven"); err != nil {
		return err
	}
	r.judgeShape(nearlyEqual)
	r.note("the limit is raw store inserts of rows of 200 chars, %d in a transaction", rowsPerTransaction)
	return w.err()
}

// scriptSubscription is what NotifyBC's load script posts, in our words: a
// confirmed subscription with its filter, for an address of its own.
func scriptSubscription(dst []byte, p person) []byte {
	dst = append(dst, `{"topic":"news","channel":"email","to":"`...)
	dst = p.appendAddress(dst)
	return append(dst, `","filter":"`+notifyFilter+`"}`...)
}

// runScript is N4: the same subscriptions one after the other, 100 at once, and in
// one request.
func runScript(l *lab, r *Record) error {
	const atOnce = 100
	r.Unit = "subscriptions/s"
	r.Params["at_once"] = atOnce
	c, url, err := l.bareHTTP()
	if err != nil {
		return err
	}
	s, err := l.serve("N4")
	if err != nil {
		return err
	}
	if _, err := s.api.Apply(l.ctx, configuration(nowhere, "1s"), false); err != nil {
		return err
	}
	var used toll
	next := person(0)
	for _, step := range []struct {
		at             string
		n, connections int
	}{
		{"single POSTs", l.size(10_000, 200), 1},
		{"100 at once", l.size(100_000, 1000), atOnce},
	} {
		from := next
		h := hammer{url: url, path: "/discard", connections: step.connections,
			body: func(dst []byte, i int) []byte { return scriptSubscription(dst, from+person(i)) }}
		bare, err := h.strike(l.ctx, step.n, func(int64) {})
		if err != nil {
			return err
		}
		h.url, h.key, h.path = s.url, s.key, "/v1/subscriptions"
		window := s.openWindow(nil)
		ours, err := h.strike(l.ctx, step.n, func(int64) {})
		if err != nil {
			return s.failed(err)
		}
		used.add(window.close())
		next += person(step.n)
		r.point(Point{At: step.at, Value: ours.perSecond, Limit: bare.perSecond, P50Millis: ours.p50, P99Millis: ours.p99})
	}
	if err := c.wait(); err != nil {
		return err
	}
	var w wrong
	if err := l.scriptInBulk(r, s, next, &used, &w); err != nil {
		return err
	}
	r.take(used)
	if err := r.stand("100 at once"); err != nil {
		return err
	}
	bulk, single := r.Points[2].Value, r.Points[0].Value
	w.unless(bulk > single, "one bulk request (%s/s) is not faster than row by row (%s/s)", figure(bulk), figure(single))
	r.note("value, limit and latencies are those of 100 at once, as their script does it; the limit of posts is a bare HTTP handler that keeps nothing, that of the bulk request one that keeps the body")
	return w.err()
}

// scriptInBulk puts as many again with one request, and checks the total.
func (l *lab) scriptInBulk(r *Record, s *server, from person, used *toll, w *wrong) error {
	n := l.size(100_000, 1000)
	lines := l.file("script.ndjson")
	_, err := writeLines(lines, n, func(dst []byte, i int) []byte {
		return append(scriptSubscription(dst, from+person(i)), '\n')
	})
	if err != nil {
		return err
	}
	bare, err := l.bareUpload(lines, n)
	if err != nil {
		return err
	}
	window := s.openWindow(nil)
	put, took, err := s.importFile(lines)
	if err != nil {
		return s.failed(err)
	}
	used.add(window.close())
	r.point(Point{At: "in bulk", Value: float64(n) / took.Seconds(), Limit: bare})
	w.unless(put.Created == int64(n) && put.Failed == 0, "in bulk %d of %d were created, %d failed", put.Created, n, put.Failed)
	return s.everybodyIsThere(from+person(n), w)
}

// everybodyIsThere publishes what all want, while nothing may leave, and holds the
// number of matches against the number of subscriptions.
func (s *server) everybodyIsThere(people person, w *wrong) error {
	if err := s.pauseAll(); err != nil {
		return err
	}
	event, err := s.api.Publish(s.lab.ctx, "news", newsOfTheDay(), client.PublishOptions{})
	if err != nil {
		return err
	}
	b, _, err := s.manifestsDurable(event.ID)
	w.unless(err != nil || b.Matched == int64(people), "%d subscriptions want what all %d want", b.Matched, people)
	return err
}
