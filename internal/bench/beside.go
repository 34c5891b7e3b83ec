package bench

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
)

// alarmPeople is how many people there are to be told something urgent, each by an
// event of his own: more than a broadcast has time for.
const alarmPeople = 5000

// alarmConfiguration is a topic of urgent news that goes by the channel of the
// broadcast.
func alarmConfiguration() []byte {
	return fmt.Appendf(nil, `service: %s
topics:
  alarm:
    schema: {type: object, required: [no], properties: {no: {type: integer}}}
    lane: urgent
    template: alarm
templates:
  alarm: {subject: "Alarm {{ event.no }}", text: "This is alarm {{ event.no }}. {{ unsubscribe_url }}"}
`, service)
}

func appendAlarm(dst []byte, i int) []byte {
	return fmt.Appendf(dst, `{"topic":"alarm","channel":"email","to":"alarm%08d@example.net","filter":"event.no == %d"}`+"\n", i, i)
}

// alarms are urgent events, posted one after the other in every other turn.
type alarms struct {
	gap    time.Duration
	turn   time.Duration
	posted []alarm
	turns  turns
}

// Of a broadcast to a million: how long a turn is, and the gap between two alarms.
const (
	turnAmid = 2 * time.Second
	alarmGap = 100 * time.Millisecond
)

// newAlarms are those for a share of it: the turns are as many, and what an alarm
// costs is to be seen in each, so that only in the smallest alarms come faster.
func newAlarms(scale float64) *alarms {
	part := func(of time.Duration, share float64) time.Duration { return time.Duration(min(1, share) * float64(of)) }
	return &alarms{gap: max(alarmGap/20, part(alarmGap, 10*scale)), turn: max(turnAmid/20, part(turnAmid, scale))}
}

// An alarm is one of them.
type alarm struct {
	event    string
	answered time.Time     // when the 202 was read
	after    time.Duration // from then to its bytes at the sink; below zero: it did not come
	stages   fanfare.Stages
}

// slowestShown is of how many alarms it is told where their time went.
const slowestShown = 5

// post publishes alarms, a turn with and a turn without, until ctx ends.
func (a *alarms) post(ctx context.Context, s *server) error {
	for turn := 0; ; turn++ {
		if err := a.turns.mark(s); err != nil {
			return err
		}
		over, end := context.WithTimeout(ctx, a.turn)
		err := a.postWithin(over, s, turn%2 == 0)
		end()
		if err != nil || ctx.Err() != nil {
			return err
		}
	}
}

// postWithin is one turn.
func (a *alarms) postWithin(ctx context.Context, s *server, with bool) error {
	for with && len(a.posted) < alarmPeople && pause(ctx, a.gap) == nil {
		// Under the context of the run: what is posted is counted.
		event, err := s.api.Publish(s.lab.ctx, "alarm", map[string]int{"no": len(a.posted)}, client.PublishOptions{})
		if err != nil {
			return err
		}
		a.posted = append(a.posted, alarm{event: event.ID, answered: time.Now(), after: -1})
	}
	<-ctx.Done()
	return nil
}

// trace reads what the server says of when each alarm passed its stages.
func (a *alarms) trace(s *server) error {
	for i := range a.posted {
		b, err := s.api.Event(s.lab.ctx, a.posted[i].event)
		if err != nil {
			return fmt.Errorf("alarm %d: %w", i, err)
		}
		a.posted[i].stages = b.Stages
	}
	return nil
}

// tellSlowest notes where the time of the slowest alarms went, and when that was.
func (a *alarms) tellSlowest(r *Record, broadcast fanfare.Stages) {
	slowest := slices.Clone(a.posted)
	slices.SortFunc(slowest, func(x, y alarm) int { return cmp.Compare(y.after, x.after) })
	for _, of := range slowest[:min(slowestShown, len(slowest))] {
		st := of.stages
		r.note("an alarm that came %s ms after its 202, kept %s ms after the broadcast: received to kept %s, to matched %s, to frozen %s, to its outcome %s ms",
			figure(millis(of.after)), figure(millis(st.Kept.Sub(broadcast.Kept))), figure(millis(st.Kept.Sub(st.Received))), figure(millis(st.Matched.Sub(st.Kept))),
			figure(millis(st.Frozen.Sub(st.Matched))), figure(millis(st.First.Sub(st.Frozen))))
	}
}

// latencies reads from the record of the sink how long after its 202 each alarm
// came, in sorted milliseconds.
func (a *alarms) latencies(record string) (late []float64, err error) {
	came := make(map[int]int64)
	err = eachLine(record, func(line []byte) error {
		fields := bytes.Split(line, []byte{'\t'})
		if len(fields) != 4 {
			return fmt.Errorf("a strange line in the record of the sink: %q", line)
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
			late = append(late, millis(a.posted[no].after))
		}
	}
	slices.Sort(late)
	return late, err
}

// runUrgentAmid is L9.
func runUrgentAmid(l *lab, r *Record) error {
	n := l.size(1_000_000, 1000)
	r.Unit = "mails/s"
	r.Params["subscriptions"], r.Params["connections"], r.Params["sink"] = n, connections, l.Sink
	lines, err := l.notifyPeople(n)
	if err != nil {
		return err
	}
	var w wrong
	record := l.file("alarms.tsv")
	people := l.file("alarms.ndjson")
	if _, err := writeLines(people, alarmPeople, appendAlarm); err != nil {
		return err
	}
	a := newAlarms(l.Scale)
	b, p, sum, err := l.send(plan{data: "L9", lines: lines, subs: n, retry: "1s", amid: a.post, post: postSpec{record: record, only: "alarm*"},
		prepare: func(s *server) error {
			if _, err := s.api.Apply(l.ctx, alarmConfiguration(), false); err != nil {
				return err
			}
			_, _, err := s.importFile(people)
			return err
		},
		inspect: func(s *server, _ *sending) error {
			_, err := s.quiet(func(int64) {})
			return errors.Join(err, a.trace(s))
		}}, r, &w)
	if err != nil {
		return err
	}
	r.over("urgent messages in every other turn", sum.Over)
	late, err := a.latencies(record)
	if err != nil {
		return err
	}
	r.judge(b, sum, p, n, len(a.posted), &w)
	w.unless(len(late) == len(a.posted), "%d of %d urgent messages came", len(late), len(a.posted))
	r.judgeTurns(a.turns.within(b.Stages.Last, sum.FirstAt, sum.Over), a.turn)
	r.P50Millis, r.P99Millis = percentile(late, 50), percentile(late, 99)
	r.note("%d urgent messages while the broadcast was under way, one every %v in every other turn: 202 to bytes at the sink p50 %s, p99 %s, longest %s ms (goal: p99 50 ms)",
		len(late), a.gap, figure(r.P50Millis), figure(r.P99Millis), figure(percentile(late, 100)))
	a.tellSlowest(r, b.Stages)
	return w.err()
}
