package bench

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
)

const (
	broadcasts = 10
	lookups    = 1000 // of each kind, at full size
)

// indexPatience is how long the history index may take to catch up in a run of
// full size; a smaller run asks at once.
const indexPatience = 5 * time.Minute

// runBroadcastHistory is H1.
func runBroadcastHistory(l *lab, r *Record) error {
	n := l.size(1_000_000, 1000)
	r.Unit = "ms"
	r.Params["people"], r.Params["broadcasts"], r.Params["deliveries"] = n, broadcasts, n*broadcasts
	lines, err := l.notifyPeople(n)
	if err != nil {
		return err
	}
	box, s, err := l.stock(configuration, "H1", lines)
	if err != nil {
		return err
	}
	var w wrong
	var events []string
	started := time.Now()
	for i := range broadcasts {
		b, err := s.broadcast(box, nil)
		if err != nil {
			return err
		}
		events = append(events, b.Event)
		w.unless(b.Counts[fanfare.Accepted] == int64(n), "broadcast %d: %d of %d are accepted", i, b.Counts[fanfare.Accepted], n)
		l.say("broadcast %d of %d: %s mails/s", i+1, broadcasts, figure(float64(n)/b.durable().Seconds()))
	}
	r.stage("ten broadcasts", time.Since(started))
	random := rand.New(rand.NewPCG(l.Seed, 5))
	anybody := func() string { return person(random.IntN(n)).address() }
	anything := func() string { return events[random.IntN(len(events))] }
	err = s.ask(r, &w, questions{
		history: func() (string, int) { return anybody(), broadcasts },
		trace:   func() (string, string) { return anything(), anybody() },
		event:   anything,
	})
	if err != nil {
		return err
	}
	return s.closeHistory(r, box, int64(n*broadcasts), &w)
}

// eventsPerPerson of H2.
const eventsPerPerson = 20

// runSingleHistory is H2.
func runSingleHistory(l *lab, r *Record) error {
	events := l.size(10_000_000, 2000)
	people := max(1, events/eventsPerPerson)
	r.Unit = "ms"
	r.Params["events"], r.Params["people"] = events, people
	lines := l.file("ones.ndjson")
	if _, err := writeLines(lines, people, func(dst []byte, i int) []byte {
		dst = append(dst, `{"topic":"single","channel":"email","rule":"mine","to":"`...)
		dst = person(i).appendAddress(dst)
		dst = append(dst, `","params":{"to":`...)
		dst = strconv.AppendInt(dst, int64(i), 10)
		return append(dst, "}}\n"...)
	}); err != nil {
		return err
	}
	box, s, err := l.stock(singleConfiguration, "H2", lines)
	if err != nil {
		return err
	}
	// Each person has the same number of events, in an order as if by chance.
	recipient := func(i int) int { return int(uint64(i) * 2_654_435_761 % uint64(people)) }
	wanted := make([]int, people)
	for i := range events {
		wanted[recipient(i)]++
	}
	if err := s.toggleProfile(); err != nil {
		return err
	}
	started := time.Now()
	next := 0
	sum, err := s.api.PublishLines(l.ctx, "single", &lineReader{next: func(dst []byte) []byte {
		if next < events {
			dst = fmt.Appendf(dst, `{"id":"e%d","to":%d}`+"\n", next, recipient(next))
			next++
		}
		return dst
	}}, client.PublishOptions{IDPointer: "/id"}, nil, nil)
	if err != nil {
		return err
	}
	published := time.Since(started)
	bar := l.bar("single events", int64(events))
	_, err = s.quiet(func(pending int64) { bar.set(int64(events) - pending) })
	bar.end()
	if err != nil {
		return err
	}
	if err := s.toggleProfile(); err != nil {
		return err
	}
	r.stage("published", published)
	r.stage("published and delivered", time.Since(started))
	r.note("%s events/s from the first byte to the last outcome", figure(float64(events)/time.Since(started).Seconds()))
	var w wrong
	w.unless(sum.Accepted == int64(events), "%d of %d events were accepted", sum.Accepted, events)
	random := rand.New(rand.NewPCG(l.Seed, 6))
	err = s.ask(r, &w, questions{
		history: func() (string, int) { p := random.IntN(people); return person(p).address(), wanted[p] },
		trace: func() (string, string) {
			i := random.IntN(events)
			return fmt.Sprintf("e%d", i), person(recipient(i)).address()
		},
		event: func() string { return fmt.Sprintf("e%d", random.IntN(events)) },
	})
	if err != nil {
		return err
	}
	return s.closeHistory(r, box, int64(events), &w)
}

// singleConfiguration has a topic whose events are for one person each.
func singleConfiguration(relay, retry string) []byte {
	return fmt.Appendf(nil, `service: %s
channels:
  email: {driver: smtp, relay: %q, from: "Alerts <alerts@example.org>", connections: 50, rate: unlimited, retry: [%s]}
topics:
  single:
    schema:
      type: object
      required: [id, to]
      properties: {id: {type: string}, to: {type: number}}
    rules:
      - {name: mine, when: "event.to == sub.to", params: {to: number}}
    template: single
templates:
  single:
    subject: "Your order {{ event.id }}"
    text: "It is on its way.\n"
`, service, relay, retry)
}

// stock starts a sink and a server with the subscriptions in a file.
func (l *lab) stock(configure func(relay, retry string) []byte, data, lines string) (*post, *server, error) {
	box, err := l.openPost(postSpec{})
	if err != nil {
		return nil, nil, err
	}
	s, err := l.serve(data)
	if err != nil {
		return nil, nil, err
	}
	if _, err := s.api.Apply(l.ctx, configure(box.addr, "1s"), false); err != nil {
		return nil, nil, err
	}
	put, _, err := s.importFile(lines)
	if err == nil && put.Failed > 0 {
		err = fmt.Errorf("%d subscriptions failed: %+v", put.Failed, put.Errors[0])
	}
	return box, s, err
}

// questions are what is asked of the history. Each call picks another.
type questions struct {
	history func() (address string, deliveries int)
	trace   func() (event, address string)
	event   func() string
}

// ask measures the look-ups, after the index has caught up in a run of full size.
func (s *server) ask(r *Record, w *wrong, q questions) error {
	lag, err := s.indexed(r)
	if err != nil {
		return err
	}
	r.note("the history index is %d events behind", lag)
	n := s.lab.size(lookups, 100)
	window := s.openWindow(nil)
	histories, err := measure(n, func() error {
		address, want := q.history()
		got, err := s.api.History(s.lab.ctx, address, 1000)
		w.unless(err != nil || len(got) == want, "the history of %s has %d deliveries, expected %d", address, len(got), want)
		for i := range got {
			w.unless(got[i].State == "accepted" && got[i].Address == address, "in the history of %s: %+v", address, got[i])
		}
		return err
	})
	if err != nil {
		return err
	}
	traces, err := measure(n, func() error {
		event, address := q.trace()
		page, err := s.api.Deliveries(s.lab.ctx, event, client.DeliveryQuery{Recipient: address})
		w.unless(err != nil || len(page.Deliveries) == 1 && page.Deliveries[0].State == "accepted", "trace of %s for %s: %+v", event, address, page)
		return err
	})
	if err != nil {
		return err
	}
	events, err := measure(n, func() error {
		event := q.event()
		b, err := s.api.Event(s.lab.ctx, event)
		w.unless(err != nil || b.State == "completed", "event %s: %+v", event, b)
		return err
	})
	if err != nil {
		return err
	}
	pages, err := measure(n, func() error {
		_, err := s.api.Deliveries(s.lab.ctx, q.event(), client.DeliveryQuery{})
		return err
	})
	if err != nil {
		return err
	}
	r.take(window.close())
	r.Value = percentile(histories, 99)
	r.P50Millis, r.P99Millis = percentile(histories, 50), percentile(histories, 99)
	for _, of := range []struct {
		what string
		all  []float64
	}{{"history of a person", histories}, {"delivery of an event to a person", traces}, {"an event", events}, {"100 deliveries of an event", pages}} {
		r.note("%s: p50 %s, p99 %s, max %s ms", of.what, figure(percentile(of.all, 50)), figure(percentile(of.all, 99)), figure(percentile(of.all, 100)))
	}
	return nil
}

// indexed waits for the history index where the run is of full size.
func (s *server) indexed(r *Record) (lag int64, err error) {
	started := time.Now()
	for {
		if lag, err = s.quiet(func(int64) {}); err != nil || lag == 0 || s.lab.Scale < 1 || time.Since(started) > indexPatience {
			r.stage("waited for the index", time.Since(started))
			return lag, err
		}
		if err := pause(s.lab.ctx, time.Second); err != nil {
			return 0, err
		}
	}
}

// measure asks one question after the other and returns the sorted times in
// milliseconds.
func measure(n int, question func() error) ([]float64, error) {
	var all []float64
	for range n {
		started := time.Now()
		if err := question(); err != nil {
			return nil, err
		}
		all = append(all, millis(time.Since(started)))
	}
	slices.Sort(all)
	return all, nil
}

// closeHistory ends the server and counts at the sink.
func (s *server) closeHistory(r *Record, box *post, mails int64, w *wrong) error {
	if err := s.stop(); err != nil {
		return err
	}
	sum, err := box.end()
	if err != nil {
		return err
	}
	if box.builtin {
		r.Lost, r.Duplicates = mails-sum.Unique, sum.Duplicates
		w.unless(r.Lost == 0 && r.Duplicates == 0, "%d lost, %d duplicates", r.Lost, r.Duplicates)
	}
	return w.err()
}
