package pipeline

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/internal/bench/harness"
	"fanfare.dev/fanfare/internal/bench/loadgen"
	"fanfare.dev/fanfare/internal/bench/report"
)

const (
	broadcasts = 10
	lookups    = 1000 // of each kind, at full size
)

// indexPatience is how long the history index may take to catch up in a run of full
// size. A smaller run does not wait.
const indexPatience = 5 * time.Minute

// RunBroadcastHistory is H1.
func RunBroadcastHistory(l *harness.Env, r *report.Record) error {
	n := l.Size(1_000_000, 1000)
	r.Unit = "ms"
	r.Params["people"], r.Params["broadcasts"], r.Params["deliveries"] = n, broadcasts, n*broadcasts
	lines, err := l.NotifyPeople(n)
	if err != nil {
		return err
	}
	mailSink, s, err := l.StartFilled(loadgen.Configuration, "H1", lines)
	if err != nil {
		return err
	}
	var w report.Checks
	var events []string
	started := time.Now()
	for i := range broadcasts {
		b, err := s.Broadcast(mailSink, nil)
		if err != nil {
			return err
		}
		events = append(events, b.Event)
		w.Require(b.Counts[fanfare.Accepted] == int64(n), "broadcast %d: %d of %d deliveries are accepted", i, b.Counts[fanfare.Accepted], n)
		l.Say("broadcast %d of %d: %s mails/s", i+1, broadcasts, report.Figure(float64(n)/b.Durable().Seconds()))
	}
	r.AddStage("ten broadcasts", time.Since(started))
	random := rand.New(rand.NewPCG(l.Seed, 5))
	anybody := func() string { return loadgen.Person(random.IntN(n)).Address() }
	anything := func() string { return events[random.IntN(len(events))] }
	err = ask(s, r, &w, questions{
		history: func() (string, int) { return anybody(), broadcasts },
		trace:   func() (string, string) { return anything(), anybody() },
		event:   anything,
	})
	if err != nil {
		return err
	}
	return closeHistory(s, r, mailSink, int64(n*broadcasts), &w)
}

// eventsPerPerson is the number of events for each person in H2.
const eventsPerPerson = 20

// RunSingleHistory is H2.
func RunSingleHistory(l *harness.Env, r *report.Record) error {
	events := l.Size(10_000_000, 2000)
	people := max(1, events/eventsPerPerson)
	r.Unit = "ms"
	r.Params["events"], r.Params["people"] = events, people
	lines := l.File("ones.ndjson")
	if _, err := loadgen.WriteLines(lines, people, func(dst []byte, i int) []byte {
		dst = append(dst, `{"topic":"single","channel":"email","rule":"mine","to":"`...)
		dst = loadgen.Person(i).AppendAddress(dst)
		dst = append(dst, `","params":{"to":`...)
		dst = strconv.AppendInt(dst, int64(i), 10)
		return append(dst, "}}\n"...)
	}); err != nil {
		return err
	}
	mailSink, s, err := l.StartFilled(singleConfiguration, "H2", lines)
	if err != nil {
		return err
	}
	// Each person has the same number of events, in an order as if by chance.
	recipient := func(i int) int { return int(uint64(i) * 2_654_435_761 % uint64(people)) }
	wanted := make([]int, people)
	for i := range events {
		wanted[recipient(i)]++
	}
	if err := s.ToggleProfile(); err != nil {
		return err
	}
	started := time.Now()
	next := 0
	sum, err := s.API.PublishLines(l.Ctx, "single", &loadgen.LineReader{Next: func(dst []byte) []byte {
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
	bar := l.Progress("single events", int64(events))
	_, err = s.WaitIdle(func(pending int64) { bar.Set(int64(events) - pending) })
	bar.End()
	if err != nil {
		return err
	}
	if err := s.ToggleProfile(); err != nil {
		return err
	}
	r.AddStage("published", published)
	r.AddStage("published and delivered", time.Since(started))
	r.Note("%s events/s from the first byte to the last outcome", report.Figure(float64(events)/time.Since(started).Seconds()))
	var w report.Checks
	w.Require(sum.Accepted == int64(events), "%d of %d events were accepted", sum.Accepted, events)
	random := rand.New(rand.NewPCG(l.Seed, 6))
	err = ask(s, r, &w, questions{
		history: func() (string, int) { p := random.IntN(people); return loadgen.Person(p).Address(), wanted[p] },
		trace: func() (string, string) {
			i := random.IntN(events)
			return fmt.Sprintf("e%d", i), loadgen.Person(recipient(i)).Address()
		},
		event: func() string { return fmt.Sprintf("e%d", random.IntN(events)) },
	})
	if err != nil {
		return err
	}
	return closeHistory(s, r, mailSink, int64(events), &w)
}

// singleConfiguration returns the document of a topic whose events match one person
// each.
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
`, loadgen.Service, relay, retry)
}

// questions choose what is looked up. Each call returns another choice.
type questions struct {
	history func() (address string, deliveries int)
	trace   func() (event, address string)
	event   func() string
}

// ask measures the look-ups. In a run of full size it first waits for the index.
func ask(s *harness.Server, r *report.Record, w *report.Checks, q questions) error {
	lag, err := indexed(s, r)
	if err != nil {
		return err
	}
	r.Note("the history index is %d events behind", lag)
	n := s.Env.Size(lookups, 100)
	window := s.OpenWindow(nil)
	histories, err := measure(n, func() error {
		address, want := q.history()
		got, err := s.API.History(s.Env.Ctx, address, 1000)
		w.Require(err != nil || len(got) == want, "the history of %s has %d deliveries, expected %d", address, len(got), want)
		for i := range got {
			w.Require(got[i].State == "accepted" && got[i].Address == address, "in the history of %s: %+v", address, got[i])
		}
		return err
	})
	if err != nil {
		return err
	}
	traces, err := measure(n, func() error {
		event, address := q.trace()
		page, err := s.API.Deliveries(s.Env.Ctx, event, client.DeliveryQuery{Recipient: address})
		w.Require(err != nil || len(page.Deliveries) == 1 && page.Deliveries[0].State == "accepted", "trace of %s for %s: %+v", event, address, page)
		return err
	})
	if err != nil {
		return err
	}
	events, err := measure(n, func() error {
		event := q.event()
		b, err := s.API.Event(s.Env.Ctx, event)
		w.Require(err != nil || b.State == "completed", "event %s: %+v", event, b)
		return err
	})
	if err != nil {
		return err
	}
	pages, err := measure(n, func() error {
		_, err := s.API.Deliveries(s.Env.Ctx, q.event(), client.DeliveryQuery{})
		return err
	})
	if err != nil {
		return err
	}
	harness.RecordUsage(r, window.Close())
	r.Value = report.Percentile(histories, 99)
	r.P50Millis, r.P99Millis = report.Percentile(histories, 50), report.Percentile(histories, 99)
	for _, of := range []struct {
		what string
		all  []float64
	}{{"history of a person", histories}, {"delivery of an event to a person", traces}, {"an event", events}, {"100 deliveries of an event", pages}} {
		r.Note("%s: p50 %s, p99 %s, max %s ms", of.what, report.Figure(report.Percentile(of.all, 50)), report.Figure(report.Percentile(of.all, 99)), report.Figure(report.Percentile(of.all, 100)))
	}
	return nil
}

// indexed waits for the history index in a run of full size.
func indexed(s *harness.Server, r *report.Record) (lag int64, err error) {
	started := time.Now()
	for {
		if lag, err = s.WaitIdle(func(int64) {}); err != nil || lag == 0 || s.Env.Scale < 1 || time.Since(started) > indexPatience {
			r.AddStage("waited for the index", time.Since(started))
			return lag, err
		}
		if err := harness.Pause(s.Env.Ctx, time.Second); err != nil {
			return 0, err
		}
	}
}

// measure calls question n times and returns the sorted durations in milliseconds.
func measure(n int, question func() error) ([]float64, error) {
	var all []float64
	for range n {
		started := time.Now()
		if err := question(); err != nil {
			return nil, err
		}
		all = append(all, report.Millis(time.Since(started)))
	}
	slices.Sort(all)
	return all, nil
}

// closeHistory stops the server and counts the mails at the sink.
func closeHistory(s *harness.Server, r *report.Record, mailSink *harness.Sink, mails int64, w *report.Checks) error {
	if err := s.Stop(); err != nil {
		return err
	}
	sum, err := mailSink.Finish()
	if err != nil {
		return err
	}
	if mailSink.Builtin {
		r.Lost, r.Duplicates = mails-sum.Unique, sum.Duplicates
		w.Require(r.Lost == 0 && r.Duplicates == 0, "%d lost, %d duplicates", r.Lost, r.Duplicates)
	}
	return w.Err()
}
