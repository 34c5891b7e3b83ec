package pipeline

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/examples/earthquakes"
	"fanfare.dev/fanfare/internal/bench/harness"
	"fanfare.dev/fanfare/internal/bench/loadgen"
	"fanfare.dev/fanfare/internal/bench/rawlimit"
	"fanfare.dev/fanfare/internal/bench/report"
)

// quakeConfiguration returns the document with the rule of the subscriptions of M1.
func quakeConfiguration(relay, retry string) []byte {
	return fmt.Appendf(nil, `service: %s
channels:
  email: {driver: smtp, relay: %q, from: "Alerts <alerts@example.org>", connections: 50, rate: unlimited, retry: [%s]}
topics:
  earthquake:
    schema: {type: object, required: [id, title, mag], properties: {id: {type: string}, title: {type: string}, mag: {type: number}, place: {type: string}, url: {type: string}}}
    rules:
      - {name: strong, when: "event.mag >= sub.min_mag", params: {min_mag: number}}
    template: quake
templates:
  quake:
    subject: "{{ event.title }}"
    text: |
      {{ event.title }}

      You asked for magnitude {{ subscription.params.min_mag }} and above.
      Details: {{ event.url }}
      Leave this list: {{ unsubscribe_url }}
`, loadgen.Service, relay, retry)
}

// An earthquakeBatch has a week of real earthquakes and the magnitudes that people
// subscribe to.
type earthquakeBatch struct {
	lines      []byte
	magnitudes []float64 // of the events
	wishes     []float64 // least magnitude, by person
}

func readQuakes(people int, seed uint64) (b earthquakeBatch, err error) {
	if b.lines, err = fs.ReadFile(earthquakes.Files(), "earthquakes.ndjson"); err != nil {
		return b, err
	}
	for line := range bytes.Lines(b.lines) {
		var e struct {
			Mag float64 `json:"mag"`
		}
		if err := json.Unmarshal(line, &e); err != nil {
			return b, err
		}
		b.magnitudes = append(b.magnitudes, e.Mag)
	}
	random := rand.New(rand.NewPCG(seed, 8))
	for range people {
		b.wishes = append(b.wishes, float64(50+random.IntN(15))/10) // 5.0 to 6.4
	}
	return b, nil
}

// mails returns the number of mails that the batch must lead to: one for each person and
// event of sufficient magnitude.
func (b *earthquakeBatch) mails() (n int) {
	for _, mag := range b.magnitudes {
		for _, wish := range b.wishes {
			if mag >= wish {
				n++
			}
		}
	}
	return n
}

// RunBatchStages is M1.
func RunBatchStages(l *harness.Env, r *report.Record) error {
	people := l.Size(10_000, 200)
	batch, err := readQuakes(people, l.Seed)
	if err != nil {
		return err
	}
	mails := batch.mails()
	r.Unit = "ms"
	r.Params["subscribers"], r.Params["subscriptions"], r.Params["events"], r.Params["mails"] = people, people, len(batch.magnitudes), mails
	lines := l.File("people.ndjson")
	if _, err := loadgen.WriteLines(lines, people, func(dst []byte, i int) []byte {
		dst = append(dst, `{"topic":"earthquake","channel":"email","to":"`...)
		dst = loadgen.Person(i).AppendAddress(dst)
		return fmt.Appendf(dst, `","rule":"strong","params":{"min_mag":%.1f}}`+"\n", batch.wishes[i])
	}); err != nil {
		return err
	}
	mailSink, s, err := l.StartFilled(quakeConfiguration, "M1", lines)
	if err != nil {
		return err
	}
	times, used, err := oneBatch(s, batch.lines, mailSink)
	if err != nil {
		return err
	}
	all := times.all
	harness.RecordUsage(r, used)
	addStages(r, &times)
	var accepted int64
	for i := range all {
		accepted += all[i].Counts[fanfare.Accepted]
	}
	var w report.Checks
	w.Require(accepted == int64(mails), "%d mails are accepted, expected %d", accepted, mails)
	if err := s.Stop(); err != nil {
		return err
	}
	sum, err := mailSink.Finish()
	if err != nil {
		return err
	}
	harness.CheckSink(r, mailSink, sum, mails, &w)
	raw, err := rawlimit.SendRaw(l, mails)
	if err != nil {
		return err
	}
	r.Limit = 1000 * float64(mails) / raw.PerSecond
	if r.Value > 0 {
		r.Ratio = r.Limit / r.Value
	}
	r.Note("value: from the first intake until the last outcome is durable; p50 and p99: the same for one event; the limit is the time in which the raw sender sends as many mails; the ratio is limit by value")
	return w.Err()
}

// batchTimes are the events of a batch, and the times at which reads and answers showed
// that the results were durable.
type batchTimes struct {
	all       []fanfare.Broadcast
	accepted  []time.Time // when the line of each event's answer was read
	manifests []time.Time
	outcomes  []time.Time
}

// oneBatch publishes the lines with one request and waits until all deliveries are
// settled.
func oneBatch(s *harness.Server, lines []byte, mailSink *harness.Sink) (times batchTimes, used harness.WindowUsage, err error) {
	window := s.OpenWindow(mailSink)
	watch := s.WatchManifests()
	var ids []string
	_, err = s.API.PublishLines(s.Env.Ctx, "earthquake", bytes.NewReader(lines), client.PublishOptions{IDPointer: "/id"},
		func(a client.Accepted, refused *client.LineError) error {
			if refused != nil {
				return refused.Error.Err()
			}
			ids = append(ids, a.ID)
			times.accepted = append(times.accepted, time.Now())
			return nil
		}, nil)
	if err != nil {
		return times, used, err
	}
	if _, err := s.WaitIdle(func(int64) {}); err != nil {
		return times, used, err
	}
	seen := time.Now()
	used = window.Close()
	if err := watch.End(s); err != nil {
		return times, used, err
	}
	for _, id := range ids {
		b, err := s.API.Event(s.Env.Ctx, id)
		if err != nil {
			return times, used, err
		}
		at, err := watch.DurableAt(b.Stages.Frozen)
		if err != nil {
			return times, used, err
		}
		times.all, times.manifests = append(times.all, b), append(times.manifests, at)
	}
	clock := harness.NewOutcomeClock(times.all, seen)
	for i := range times.all {
		times.outcomes = append(times.outcomes, clock.DurableAt(times.all[i].Stages.Completed))
	}
	return times, used, nil
}

// addStages records the time in each of the four stages: of one event (p50, p99,
// longest), and of the batch from the first event that entered the stage to the last
// that left it. An event leaves a stage when the result is durable; the result of the
// match is in memory.
func addStages(r *report.Record, t *batchTimes) {
	type span struct {
		name     string
		from, to func(i int) time.Time
	}
	received := func(i int) time.Time { return t.all[i].Stages.Received }
	accepted := func(i int) time.Time { return t.accepted[i] }
	kept := func(i int) time.Time { return t.all[i].Stages.Kept }
	matched := func(i int) time.Time { return t.all[i].Stages.Matched }
	manifests := func(i int) time.Time { return t.manifests[i] }
	outcomes := func(i int) time.Time { return t.outcomes[i] }
	measure := func(x span) (each []float64, whole time.Duration) {
		var first, last time.Time
		for i := range t.all {
			if t.all[i].Messages == 0 {
				continue
			}
			from, to := x.from(i), x.to(i)
			each = append(each, report.Millis(to.Sub(from)))
			if first.IsZero() || from.Before(first) {
				first = from
			}
			if to.After(last) {
				last = to
			}
		}
		slices.Sort(each)
		return each, last.Sub(first)
	}
	for _, stage := range []span{
		{"collect, until the 202 is read", received, accepted}, {"match", kept, matched}, {"generate", matched, manifests}, {"deliver", manifests, outcomes},
	} {
		each, whole := measure(stage)
		r.AddStage(stage.name+", the batch", whole)
		r.Note("%s, one event: p50 %s, p99 %s, longest %s ms", stage.name, report.Figure(report.Percentile(each, 50)), report.Figure(report.Percentile(each, 99)), report.Figure(report.Percentile(each, 100)))
	}
	each, whole := measure(span{"", received, outcomes})
	r.Value, r.P50Millis, r.P99Millis = report.Millis(whole), report.Percentile(each, 50), report.Percentile(each, 99)
}
