package bench

import (
	"fmt"
	"os"
)

// runWays is D2.
func runWays(l *lab, r *Record) error {
	n := l.size(5000, 200)
	r.Unit = "messages/s"
	r.Params["messages"], r.Params["connections"] = n, 1
	mails, err := l.notifyPeople(n)
	if err != nil {
		return err
	}
	var w wrong
	var used toll
	folder := l.file("mails")
	for _, c := range []struct{ at, driver string }{
		{"file", fmt.Sprintf("driver: file, path: %q, %s", folder, senderField)}, {"http", "driver: webhook, allow_http: true"}, {"smtp", ""},
	} {
		var aside Record
		how := plan{data: "D2-" + c.at, lines: mails, subs: n, post: postSpec{web: true}, args: []string{"--allow-networks", "127.0.0.0/8"}}
		how.config = func(relay string) []byte {
			return way{relay: relay, driver: c.driver, retry: "1s", connections: 1}.configuration(service)
		}
		if c.at == "http" {
			how.linesFor = func(p *post) (string, error) { return l.postedPeople(n, p.port) }
		}
		b, p, sum, err := l.send(how, &aside, &w)
		if err != nil {
			return err
		}
		used.add(b.toll)
		r.point(Point{At: c.at, Value: float64(n) / b.durable().Seconds()})
		if c.at != "file" {
			aside.account(p, sum, n, &w)
			continue
		}
		files, err := os.ReadDir(folder)
		if err != nil {
			return err
		}
		w.unless(len(files) == n, "%d files of %d", len(files), n)
	}
	r.judgeShape(falls)
	r.note("files that wait together are durable together before they count: the disk is waited for with each group, or with each file while its file system is busy with others'")
	r.take(used)
	return errorsOf(r.stand("smtp"), w)
}

// postedPeople makes the file of n people who have a URL each at one receiver.
func (l *lab) postedPeople(n int, port string) (path string, err error) {
	path = l.file("posted.ndjson")
	_, err = writeLines(path, n, func(dst []byte, i int) []byte {
		return fmt.Appendf(dst, `{"topic":"news","channel":"email","to":"http://127.0.0.1:%s/p%d","filter":%q}`+"\n", port, i, notifyFilter)
	})
	return path, err
}

// runConnections is D5.
func runConnections(l *lab, r *Record) error {
	n := l.size(50_000, 500)
	r.Unit = "mails/s"
	r.Params["mails"], r.Params["sink"] = n, l.Sink
	lines, err := l.notifyPeople(n)
	if err != nil {
		return err
	}
	var w wrong
	var used toll
	var at string
	for _, many := range []int{1, 2, 4, 8} {
		at = fmt.Sprintf("%d connections", many)
		var aside Record
		b, p, sum, err := l.send(plan{data: fmt.Sprintf("D5-%d", many), lines: lines, subs: n, config: func(relay string) []byte {
			return way{relay: relay, retry: "1s", connections: many}.configuration(service)
		}}, &aside, &w)
		if err != nil {
			return err
		}
		aside.account(p, sum, n, &w)
		used.add(b.toll)
		r.point(Point{At: at, Value: float64(n) / b.durable().Seconds()})
	}
	r.judgeShape(rises)
	r.take(used)
	return errorsOf(r.stand(at), w)
}
