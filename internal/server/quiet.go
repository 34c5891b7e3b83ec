package server

import (
	"hash/fnv"
	"strconv"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/deliver"
	"fanfare.dev/fanfare/internal/registry"
	"fanfare.dev/fanfare/internal/schedule/quiethours"
)

// quietTimes finds when people must not be written to, while one batch is loaded:
// people in one time zone share the answer.
type quietTimes struct {
	topics  func(*mailing) []*registry.Topic // whose quiet hours count
	channel *registry.Channel
	lane    fanfare.Lane
	now     time.Time
	known   map[quietKey]quietSpan
}

type quietKey struct {
	service, topic, zone string
	template             uint32 // of a run, which has no topic
}

type quietSpan struct {
	quiethours.Span
	spread time.Duration
}

// of returns the next time at which a subscriber is not to be written to: until the
// event may leave at all, and in quiet hours. Topic and channel count both: a
// message leaves when neither is quiet.
func (q *quietTimes) of(m *mailing, zone string, who fanfare.RowID, expires time.Time) deliver.QuietPeriod {
	posted := m.posted
	if posted.NotBefore.After(q.now) {
		return deliver.QuietPeriod{From: q.now, Until: posted.NotBefore, Why: fanfare.WaitNotBefore}
	}
	key := quietKey{service: posted.Service, topic: posted.Topic, zone: zone}
	if posted.Run != nil {
		key.template = m.template
	}
	span, known := q.known[key]
	if !known {
		span = q.find(m, zone)
		if q.known == nil {
			q.known = map[quietKey]quietSpan{}
		}
		q.known[key] = span
	}
	if span.From.IsZero() {
		return deliver.QuietPeriod{}
	}
	until := span.Until.Add(share(who, span.spread))
	if !expires.IsZero() && until.After(expires) {
		until = expires.Add(time.Second) // it is told then, and not in the morning
	}
	return deliver.QuietPeriod{From: span.From, Until: until, Why: fanfare.WaitQuiet}
}

func (q *quietTimes) find(m *mailing, zone string) (span quietSpan) {
	settings := []registry.QuietHours{q.channel.QuietHours}
	for _, topic := range q.topics(m) {
		settings = append(settings, topic.Quiet)
	}
	var all []quiethours.Quiet
	otherwise := ""
	for _, s := range settings {
		if s.IsZero() || q.lane == fanfare.Urgent && !s.Urgent {
			continue
		}
		if compiled, err := s.Compile(); err == nil { // what is kept was checked
			all = append(all, compiled)
			otherwise, span.spread = s.Zone, max(span.spread, time.Duration(s.Spread))
		}
	}
	if len(all) > 0 {
		in := locate(zone, otherwise)
		span.Span = quiethours.Next(q.now, in, all...)
		if next := quiethours.Next(span.Until, in, all...); !next.From.IsZero() { // all of it comes before it is quiet again
			span.spread = min(span.spread, next.From.Sub(span.Until)/2)
		}
	}
	return span
}

// locate finds a time zone, or else another one, or else UTC.
func locate(name, otherwise string) *time.Location {
	for _, name := range []string{name, otherwise} {
		if name == "" || name == time.Local.String() { // of the server's own nobody can be sure
			continue
		}
		if zone, err := time.LoadLocation(name); err == nil {
			return zone
		}
	}
	return time.UTC
}

// share is a person's own part of a time, the same whenever it is asked for, so
// that what has waited does not leave in one second.
func share(who fanfare.RowID, of time.Duration) time.Duration {
	if of <= 0 {
		return 0
	}
	sum := fnv.New64a()
	_, _ = sum.Write(strconv.AppendInt(nil, int64(who), 16))
	return time.Duration(sum.Sum64() % uint64(of))
}

// wholeSecond rounds up to what a due time can be.
func wholeSecond(at time.Time) time.Time {
	if whole := at.Truncate(time.Second); whole.Before(at) {
		return whole.Add(time.Second)
	}
	return at
}
