package delivery

import (
	"fmt"
	"os"
	"strings"
	"time"

	"fanfare.dev/fanfare/internal/bench/harness"
	"fanfare.dev/fanfare/internal/bench/loadgen"
	"fanfare.dev/fanfare/internal/bench/rawlimit"
	"fanfare.dev/fanfare/internal/bench/report"
	"fanfare.dev/fanfare/internal/sink"
)

// sharedContent returns the document of a service whose mails have the same content for
// all, without a rate.
func sharedContent(multicast int) func(relay string) []byte {
	return sharedContentAtRate("unlimited", multicast, loadgen.Connections, "{urgent: 5%, normal: 5%}")
}

// sharedContentAtRate is sharedContent with a rate, a number of connections, and a
// reserve for other lanes.
func sharedContentAtRate(rate string, multicast, connections int, reserve string) func(relay string) []byte {
	return func(relay string) []byte {
		return fmt.Appendf(nil, `service: %s
channels:
  email: {driver: smtp, relay: %q, %s, connections: %d, reserve: %s, rate: %s, retry: [1s], multicast: %d}
topics:
  news:
    schema: {type: object, required: [title, description], properties: {title: {type: string}, description: {type: string}, link: {type: string}}}
    template: news
templates:
  news:
    subject: "{{ event.title }}"
    text: %q
`, loadgen.Service, relay, loadgen.SenderField, connections, reserve, rate, multicast, "{{ event.title }}\n\n{{ event.description }}\n"+loadgen.PlainLines(500))
	}
}

// RunMulticast is D4.
func RunMulticast(l *harness.Env, r *report.Record) error {
	n := l.Size(200_000, 1000)
	l.Sink = "builtin" // which counts recipients
	r.Unit = "recipients/s"
	r.Params["recipients"], r.Params["connections"], r.Params["sink"] = n, loadgen.Connections, l.Sink
	lines, err := l.NotifyPeople(n)
	if err != nil {
		return err
	}
	mail := l.File("news.eml")
	if err := os.WriteFile(mail, readyMail(), 0o600); err != nil {
		return err
	}
	var w report.Checks
	var used harness.WindowUsage
	var at string
	for _, many := range []int{1, 2, 4, 10, 100} {
		at = fmt.Sprint(many, " at once")
		raw, err := rawlimit.SendRawMail(l, mail, n, many)
		if err != nil {
			return err
		}
		var aside report.Record
		b, p, sum, err := l.SendBroadcast(harness.BroadcastPlan{Data: fmt.Sprint("D4-", many), Lines: lines, Subscriptions: n, Config: sharedContent(many)}, &aside, &w)
		if err != nil {
			return err
		}
		harness.CheckSink(&aside, p, sum, n, &w)
		used.Add(b.WindowUsage)
		r.Lost, r.Duplicates = r.Lost+aside.Lost, r.Duplicates+aside.Duplicates
		r.AddPoint(report.Point{At: at, Value: float64(n) / b.Durable().Seconds(), Limit: raw.PerSecond})
		r.Note("%s: %s messages; CPU for a recipient: server %.2f us, sink %.2f us, raw sender %.2f us", at, report.Thousands(sum.Messages), report.MicrosPer(b.Server, n), report.MicrosPer(b.Sink, n), raw.Sender)
	}
	r.CompareShape(report.Rises)
	harness.RecordUsage(r, used)
	r.Note("the limit is a raw sender of one prepared mail to as many recipients in a transaction; it records nothing")
	return report.FirstError(r.UsePoint(at), w)
}

// RunMulticastAtRate is D4r.
func RunMulticastAtRate(l *harness.Env, r *report.Record) error {
	const multicast = 100
	n := l.Size(1000, 100)
	l.Sink = "builtin"
	r.Unit = "recipients/s"
	r.Params["recipients"], r.Params["multicast"], r.Params["sink"] = n, multicast, l.Sink
	lines, err := l.NotifyPeople(n)
	if err != nil {
		return err
	}
	var w report.Checks
	var used harness.WindowUsage
	var at string
	for _, perSecond := range []int{30, 600, 3000, 0} {
		for _, over := range []int{1, 8} {
			for _, delay := range []time.Duration{0, 400 * time.Millisecond} {
				rate, group := "unlimited", min(multicast, n)
				if perSecond > 0 {
					rate, group = fmt.Sprintf("%d/s", perSecond), min(group, perSecond)
				}
				at = fmt.Sprintf("%s, %d connections, %v", rate, over, delay)
				var aside report.Record
				b, p, sum, err := l.SendBroadcast(harness.BroadcastPlan{Data: fmt.Sprintf("D4r-%d-%d-%d", perSecond, over, delay.Milliseconds()), Lines: lines, Subscriptions: n,
					Config: sharedContentAtRate(rate, multicast, over, "{urgent: 0%, normal: 0%}"), Sink: harness.SinkOptions{Inject: sink.Inject{Seed: l.Seed, Delay: delay}}}, &aside, &w)
				if err != nil {
					return err
				}
				harness.CheckSink(&aside, p, sum, n, &w)
				used.Add(b.WindowUsage)
				r.Lost, r.Duplicates = r.Lost+aside.Lost, r.Duplicates+aside.Duplicates
				groups := (n + group - 1) / group
				allowed := delay * time.Duration((groups+over-1)/over)
				if perSecond > 0 { // the first group leaves at once, and the last is answered after the delay
					took := func(n int) time.Duration { return time.Duration(n) * time.Second / time.Duration(perSecond) }
					allowed = max(allowed, took(n), took(n-group)+delay)
				}
				point := report.Point{At: at, Value: float64(n) / b.Durable().Seconds()}
				if allowed > 0 {
					point.Limit = float64(n) / allowed.Seconds()
				}
				r.AddPoint(point)
				r.Note("%s: %s messages (%d full ones are needed) in %.2f s; the rate, the connections and the delay allow %.2f s", at, report.Thousands(sum.Messages), groups, b.Durable().Seconds(), allowed.Seconds())
				w.Require(float64(sum.Messages) <= 1.2*float64(groups)+1 || l.Scale < 1, "%s: %d messages were sent, %d full ones are enough", at, sum.Messages, groups)
			}
		}
	}
	harness.RecordUsage(r, used)
	r.Note("the limit is the lower of the rate and of full messages by connections and delay; no connection is reserved for other lanes")
	return report.FirstError(r.UsePoint(at), w)
}

// readyMail returns a mail that is similar to that of the server.
func readyMail() []byte {
	news := loadgen.NewsOfTheDay()
	return fmt.Appendf(nil, "From: Alerts <alerts@example.org>\r\nTo: undisclosed-recipients:;\r\nSubject: %s\r\nDate: Fri, 20 Nov 2026 09:30:00 +0000\r\n"+
		"Message-ID: <evt-20777-64.0123456789abcdef@example.org>\r\nAuto-Submitted: auto-generated\r\nX-Fanfare-Event: evt-20777-64\r\nMIME-Version: 1.0\r\n"+
		"Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 7bit\r\n\r\n%s\r\n\r\n%s\r\n%s\r\n", news.Title, news.Title, news.Description, strings.ReplaceAll(loadgen.PlainLines(500), "\n", "\r\n"))
}
