package delivery

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/internal/bench/harness"
	"fanfare.dev/fanfare/internal/bench/loadgen"
	"fanfare.dev/fanfare/internal/bench/report"
)

// urgentPeople is the number of people who can get an urgent message, each by an event
// of their own. It is more than a broadcast has time for.
const urgentPeople = 5000

// urgentConfiguration returns the document with a topic in the urgent lane that uses the
// channel of the broadcast.
func urgentConfiguration() []byte {
	return fmt.Appendf(nil, `service: %s
topics:
  alarm:
    schema: {type: object, required: [no], properties: {no: {type: integer}}}
    lane: urgent
    template: alarm
templates:
  alarm: {subject: "Alarm {{ event.no }}", text: "This is alarm {{ event.no }}. {{ unsubscribe_url }}"}
`, loadgen.Service)
}

func appendUrgentSubscription(dst []byte, i int) []byte {
	return fmt.Appendf(dst, `{"topic":"alarm","channel":"email","to":"alarm%08d@example.net","filter":"event.no == %d"}`+"\n", i, i)
}

// urgentMessages are urgent events that are posted one after the other in every second
// phase.
type urgentMessages struct {
	interval    time.Duration
	phaseLength time.Duration
	posted      []urgentMessage
	phases      phases
}

// For a broadcast to a million: the length of a phase and the time between two urgent
// messages.
const (
	phaseLength    = 2 * time.Second
	urgentInterval = 100 * time.Millisecond
)

// newUrgentMessages returns the messages for a broadcast of that scale. The number of
// phases stays the same; only in the smallest runs messages come faster, so that each
// phase has some.
func newUrgentMessages(scale float64) *urgentMessages {
	part := func(of time.Duration, share float64) time.Duration { return time.Duration(min(1, share) * float64(of)) }
	return &urgentMessages{interval: max(urgentInterval/20, part(urgentInterval, 10*scale)), phaseLength: max(phaseLength/20, part(phaseLength, scale))}
}

// An urgentMessage is one of them.
type urgentMessage struct {
	event    string
	answered time.Time     // when the 202 was read
	after    time.Duration // until its bytes were at the sink; negative: it did not arrive
	stages   fanfare.Stages
}

// slowestShown is the number of slowest messages that the notes describe.
const slowestShown = 5

// post publishes urgent messages in every second phase until ctx ends.
func (a *urgentMessages) post(ctx context.Context, s *harness.Server) error {
	for number := 0; ; number++ {
		if err := a.phases.begin(s); err != nil {
			return err
		}
		over, end := context.WithTimeout(ctx, a.phaseLength)
		err := a.postWithin(over, s, number%2 == 0)
		end()
		if err != nil || ctx.Err() != nil {
			return err
		}
	}
}

// postWithin runs one phase.
func (a *urgentMessages) postWithin(ctx context.Context, s *harness.Server, with bool) error {
	for with && len(a.posted) < urgentPeople && harness.Pause(ctx, a.interval) == nil {
		// This uses the context of the run, since every published message is counted.
		event, err := s.API.Publish(s.Env.Ctx, "alarm", map[string]int{"no": len(a.posted)}, client.PublishOptions{})
		if err != nil {
			return err
		}
		a.posted = append(a.posted, urgentMessage{event: event.ID, answered: time.Now(), after: -1})
	}
	<-ctx.Done()
	return nil
}

// trace reads the times at which each message left the stages.
func (a *urgentMessages) trace(s *harness.Server) error {
	for i := range a.posted {
		b, err := s.API.Event(s.Env.Ctx, a.posted[i].event)
		if err != nil {
			return fmt.Errorf("urgent message %d: %w", i, err)
		}
		a.posted[i].stages = b.Stages
	}
	return nil
}

// noteSlowest notes the times of the slowest messages.
func (a *urgentMessages) noteSlowest(r *report.Record, broadcast fanfare.Stages) {
	slowest := slices.Clone(a.posted)
	slices.SortFunc(slowest, func(x, y urgentMessage) int { return cmp.Compare(y.after, x.after) })
	for _, of := range slowest[:min(slowestShown, len(slowest))] {
		st := of.stages
		r.Note("an urgent message that arrived %s ms after its 202 and was accepted %s ms after the broadcast: received to accepted %s, to matched %s, to its manifest %s, to its outcome %s ms (timestamps of the server)",
			report.Figure(report.Millis(of.after)), report.Figure(report.Millis(st.Kept.Sub(broadcast.Kept))), report.Figure(report.Millis(st.Kept.Sub(st.Received))), report.Figure(report.Millis(st.Matched.Sub(st.Kept))),
			report.Figure(report.Millis(st.Frozen.Sub(st.Matched))), report.Figure(report.Millis(st.First.Sub(st.Frozen))))
	}
}

// latencies reads from the record of the sink how long after its 202 each message
// arrived, in sorted milliseconds.
func (a *urgentMessages) latencies(record string) (late []float64, err error) {
	came := make(map[int]int64)
	err = loadgen.EachLine(record, func(line []byte) error {
		fields := bytes.Split(line, []byte{'\t'})
		if len(fields) != 4 {
			return fmt.Errorf("the record of the sink has an invalid line: %q", line)
		}
		name, _, _ := bytes.Cut(bytes.TrimPrefix(fields[2], []byte("alarm")), []byte{'@'})
		no, wrongName := strconv.Atoi(string(name))
		at, wrongTime := strconv.ParseInt(string(fields[0]), 10, 64)
		came[no] = at
		return errors.Join(wrongName, wrongTime)
	})
	for no := range a.posted {
		if at, ok := came[no]; ok {
			a.posted[no].after = max(0, time.Unix(0, at).Sub(a.posted[no].answered))
			late = append(late, report.Millis(a.posted[no].after))
		}
	}
	slices.Sort(late)
	return late, err
}

// RunUrgentDuringBroadcast is L9.
func RunUrgentDuringBroadcast(l *harness.Env, r *report.Record) error {
	n := l.Size(1_000_000, 1000)
	r.Unit = "mails/s"
	r.Params["subscriptions"], r.Params["connections"], r.Params["sink"] = n, loadgen.Connections, l.Sink
	lines, err := l.NotifyPeople(n)
	if err != nil {
		return err
	}
	var w report.Checks
	record := l.File("urgent.tsv")
	people := l.File("urgent.ndjson")
	if _, err := loadgen.WriteLines(people, urgentPeople, appendUrgentSubscription); err != nil {
		return err
	}
	a := newUrgentMessages(l.Scale)
	b, p, sum, err := l.SendBroadcast(harness.BroadcastPlan{Data: "L9", Lines: lines, Subscriptions: n, Retry: "1s", Beside: a.post, Sink: harness.SinkOptions{Record: record, Only: "alarm*"},
		Prepare: func(s *harness.Server) error {
			if _, err := s.API.Apply(l.Ctx, urgentConfiguration(), false); err != nil {
				return err
			}
			_, _, err := s.ImportFile(people)
			return err
		},
		Inspect: func(s *harness.Server, _ *harness.SentBroadcast) error {
			_, err := s.WaitIdle(func(int64) {})
			return errors.Join(err, a.trace(s))
		}}, r, &w)
	if err != nil {
		return err
	}
	r.AddSeries("urgent messages in every second phase", sum.Over)
	late, err := a.latencies(record)
	if err != nil {
		return err
	}
	judgeBroadcast(r, b, sum, p, n, len(a.posted), &w)
	w.Require(len(late) == len(a.posted), "%d of %d urgent messages arrived", len(late), len(a.posted))
	judgePhases(r, a.phases.within(b.Stages.Last, sum.FirstAt, sum.Over), a.phaseLength)
	r.P50Millis, r.P99Millis = report.Percentile(late, 50), report.Percentile(late, 99)
	r.Note("%d urgent messages during the broadcast, one every %v in every second phase: from the 202 to the bytes at the sink p50 %s, p99 %s, longest %s ms (goal: p99 50 ms)",
		len(late), a.interval, report.Figure(r.P50Millis), report.Figure(r.P99Millis), report.Figure(report.Percentile(late, 100)))
	a.noteSlowest(r, b.Stages)
	return w.Err()
}
