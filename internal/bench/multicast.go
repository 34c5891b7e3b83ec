package bench

import (
	"fmt"
	"os"
	"strings"
)

// impersonal is a service whose mails say the same to all, and may leave for so many at
// once.
func impersonal(multicast int) func(relay string) []byte {
	return func(relay string) []byte {
		return fmt.Appendf(nil, `service: %s
channels:
  email: {driver: smtp, relay: %q, %s, connections: %d, rate: unlimited, retry: [1s], multicast: %d}
topics:
  news:
    schema: {type: object, required: [title, description], properties: {title: {type: string}, description: {type: string}, link: {type: string}}}
    template: news
templates:
  news:
    subject: "{{ event.title }}"
    text: %q
`, service, relay, senderField, connections, multicast, "{{ event.title }}\n\n{{ event.description }}\n"+plainLines(500))
	}
}

// runMulticast is D4.
func runMulticast(l *lab, r *Record) error {
	n := l.size(200_000, 1000)
	l.Sink = "builtin" // which counts recipients
	r.Unit = "recipients/s"
	r.Params["recipients"], r.Params["connections"], r.Params["sink"] = n, connections, l.Sink
	lines, err := l.notifyPeople(n)
	if err != nil {
		return err
	}
	mail := l.file("news.eml")
	if err := os.WriteFile(mail, readyMail(), 0o600); err != nil {
		return err
	}
	var w wrong
	var used toll
	var at string
	for _, many := range []int{1, 2, 4, 10, 100} {
		at = fmt.Sprint(many, " at once")
		raw, err := l.blastOf(mail, n, many)
		if err != nil {
			return err
		}
		var aside Record
		b, p, sum, err := l.send(plan{data: fmt.Sprint("D4-", many), lines: lines, subs: n, config: impersonal(many)}, &aside, &w)
		if err != nil {
			return err
		}
		aside.account(p, sum, n, &w)
		used.add(b.toll)
		r.Lost, r.Duplicates = r.Lost+aside.Lost, r.Duplicates+aside.Duplicates
		r.point(Point{At: at, Value: float64(n) / b.durable().Seconds(), Limit: raw.perSecond})
		r.note("%s: %s messages, CPU a recipient %.2f us of the server, %.2f us of the sink, %.2f us of the raw sender", at, thousands(sum.Messages), micro(b.server, n), micro(b.sink, n), raw.sender)
	}
	r.judgeShape(rises)
	r.take(used)
	r.note("the limit is a raw sender of one mail that is ready, to as many recipients at once, which keeps nothing")
	return errorsOf(r.stand(at), w)
}

// readyMail is about what the server makes of it.
func readyMail() []byte {
	news := newsOfTheDay()
	return fmt.Appendf(nil, "From: Alerts <alerts@example.org>\r\nTo: undisclosed-recipients:;\r\nSubject: %s\r\nDate: Fri, 20 Nov 2026 09:30:00 +0000\r\n"+
		"Message-ID: <evt-20777-64.0123456789abcdef@example.org>\r\nAuto-Submitted: auto-generated\r\nX-Fanfare-Event: evt-20777-64\r\nMIME-Version: 1.0\r\n"+
		"Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 7bit\r\n\r\n%s\r\n\r\n%s\r\n%s\r\n", news.Title, news.Title, news.Description, strings.ReplaceAll(plainLines(500), "\n", "\r\n"))
}
