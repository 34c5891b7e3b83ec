package bench

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
	"fanfare.dev/fanfare/internal/sink"
)

// quakeConfiguration has the rule that the people of M1 subscribe to.
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
`, service, relay, retry)
}

// A quakeBatch is a week of real earthquakes and what people wait for.
type quakeBatch struct {
	lines      []byte
	magnitudes []float64 // of the events
	wishes     []float64 // least magnitude, by person
}

func readQuakes(people int, seed uint64) (b quakeBatch, err error) {
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

// mails is how many there must be: one for each person and event that is strong
// enough.
func (b *quakeBatch) mails() (n int) {
	for _, mag := range b.magnitudes {
		for _, wish := range b.wishes {
			if mag >= wish {
				n++
			}
		}
	}
	return n
}

// runBatchStages is M1.
func runBatchStages(l *lab, r *Record) error {
	people := l.size(10_000, 200)
	batch, err := readQuakes(people, l.Seed)
	if err != nil {
		return err
	}
	mails := batch.mails()
	r.Unit = "ms"
	r.Params["subscribers"], r.Params["subscriptions"], r.Params["events"], r.Params["mails"] = people, people, len(batch.magnitudes), mails
	lines := l.file("people.ndjson")
	if _, err := writeLines(lines, people, func(dst []byte, i int) []byte {
		dst = append(dst, `{"topic":"earthquake","channel":"email","to":"`...)
		dst = person(i).appendAddress(dst)
		return fmt.Appendf(dst, `","rule":"strong","params":{"min_mag":%.1f}}`+"\n", batch.wishes[i])
	}); err != nil {
		return err
	}
	box, s, err := l.stock(quakeConfiguration, "M1", lines)
	if err != nil {
		return err
	}
	times, used, err := s.oneBatch(batch.lines, box)
	if err != nil {
		return err
	}
	all := times.all
	r.take(used)
	r.stages(&times)
	var accepted int64
	for i := range all {
		accepted += all[i].Counts[fanfare.Accepted]
	}
	var w wrong
	w.unless(accepted == int64(mails), "%d mails are accepted, the batch demands %d", accepted, mails)
	if err := s.stop(); err != nil {
		return err
	}
	sum, err := box.end()
	if err != nil {
		return err
	}
	r.account(box, sum, mails, &w)
	raw, err := l.blast(mails)
	if err != nil {
		return err
	}
	r.Limit = 1000 * float64(mails) / raw.perSecond
	if r.Value > 0 {
		r.Ratio = r.Limit / r.Value
	}
	r.note("value: from the first intake until the last outcome is durable; p50 and p99: the same of one event; the limit is the time in which the raw sender sends as many mails, the ratio is limit by value")
	return w.err()
}

// batchTimes are the events of a batch and the times at which reads and answers
// showed that what follows from them was durable.
type batchTimes struct {
	all       []fanfare.Broadcast
	accepted  []time.Time // when the line of each event's answer was read
	manifests []time.Time
	outcomes  []time.Time
}

// oneBatch publishes the lines with one request and waits until all is settled.
func (s *server) oneBatch(lines []byte, box *post) (times batchTimes, used toll, err error) {
	window := s.openWindow(box)
	watch := s.watchManifests()
	var ids []string
	_, err = s.api.PublishLines(s.lab.ctx, "earthquake", bytes.NewReader(lines), client.PublishOptions{IDPointer: "/id"},
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
	if _, err := s.quiet(func(int64) {}); err != nil {
		return times, used, err
	}
	seen := time.Now()
	used = window.close()
	if err := watch.end(s); err != nil {
		return times, used, err
	}
	for _, id := range ids {
		b, err := s.api.Event(s.lab.ctx, id)
		if err != nil {
			return times, used, err
		}
		at, err := watch.durableAt(b.Stages.Frozen)
		if err != nil {
			return times, used, err
		}
		times.all, times.manifests = append(times.all, b), append(times.manifests, at)
	}
	clock := newOutcomeClock(times.all, seen)
	for i := range times.all {
		times.outcomes = append(times.outcomes, clock.durableAt(times.all[i].Stages.Completed))
	}
	return times, used, nil
}

// stages fills in how long the batch was in each of the four stages: of one event
// (p50, p99, longest), and of the batch from the first event that entered it to
// the last that left it. An event has left a stage when the result is durable, but
// for the match, whose result is in memory.
func (r *Record) stages(t *batchTimes) {
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
			each = append(each, millis(to.Sub(from)))
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
		r.stage(stage.name+", the batch", whole)
		r.note("%s, one event: p50 %s, p99 %s, longest %s ms", stage.name, figure(percentile(each, 50)), figure(percentile(each, 99)), figure(percentile(each, 100)))
	}
	each, whole := measure(span{"", received, outcomes})
	r.Value, r.P50Millis, r.P99Millis = millis(whole), percentile(each, 50), percentile(each, 99)
}

// account holds what came to the sink against what must have.
func (r *Record) account(p *post, sum sink.Summary, mails int, w *wrong) {
	switch {
	case p.builtin:
		r.Lost, r.Duplicates = int64(mails)-sum.Unique, sum.Duplicates
	case p.child != nil:
		r.Lost = int64(mails) - sum.Messages
		r.note("this sink counts mails and not recipients: lost is a difference of totals, duplicates are not seen")
	default:
		r.note("nothing is known of what came to the sink at %s", p.addr)
	}
	w.unless(r.Lost == 0, "%d lost", r.Lost)
	w.unless(r.Duplicates == 0, "%d duplicates", r.Duplicates)
}
