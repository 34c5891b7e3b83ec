package dispatch

import (
	"hash/fnv"
	"strconv"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/pipeline/compose"
	"fanfare.dev/fanfare/internal/pipeline/deliver"
	"fanfare.dev/fanfare/internal/schedule/quiethours"
)

// quietTimes finds the quiet hours of recipients while one batch is loaded. Recipients in one time
// zone share the result.
type quietTimes struct {
	topics  func(*mailing) []*catalog.Topic // whose quiet hours apply
	channel *catalog.Channel
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

// of returns the next time at which no message may be sent to a subscriber: until the event may be
// sent at all, and then in quiet hours. A message is sent when neither the topic nor the channel
// is quiet.
func (q *quietTimes) of(m *mailing, zone string, subscriber fanfare.RowID, expires time.Time) deliver.QuietPeriod {
	event := m.event
	if event.NotBefore.After(q.now) {
		return deliver.QuietPeriod{From: q.now, Until: event.NotBefore, Why: fanfare.WaitNotBefore}
	}
	key := quietKey{service: event.Service, topic: event.Topic, zone: zone}
	if event.Run != nil {
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
	until := span.Until.Add(spreadOf(subscriber, span.spread))
	if !expires.IsZero() && until.After(expires) {
		until = expires.Add(time.Second) // so that it is recorded as expired then, and not in the morning
	}
	return deliver.QuietPeriod{From: span.From, Until: until, Why: fanfare.WaitQuiet}
}

func (q *quietTimes) find(m *mailing, zone string) (span quietSpan) {
	settings := []catalog.QuietHours{q.channel.QuietHours}
	for _, topic := range q.topics(m) {
		settings = append(settings, topic.Quiet)
	}
	var all []quiethours.Quiet
	otherwise := ""
	for _, s := range settings {
		if s.IsZero() || q.lane == fanfare.Urgent && !s.Urgent {
			continue
		}
		if compiled, err := s.Compile(); err == nil { // apply has checked stored settings
			all = append(all, compiled)
			otherwise, span.spread = s.Zone, max(span.spread, time.Duration(s.Spread))
		}
	}
	if len(all) > 0 {
		in := compose.TimeZone(zone, otherwise)
		span.Span = quiethours.Next(q.now, in, all...)
		if next := quiethours.Next(span.Until, in, all...); !next.From.IsZero() { // all are sent before the next quiet hours
			span.spread = min(span.spread, next.From.Sub(span.Until)/2)
		}
	}
	return span
}

// spreadOf returns a subscriber's own, constant part of a duration, so that the messages that have
// waited are not all sent in one second.
func spreadOf(subscriber fanfare.RowID, of time.Duration) time.Duration {
	if of <= 0 {
		return 0
	}
	sum := fnv.New64a()
	_, _ = sum.Write(strconv.AppendInt(nil, int64(subscriber), 16))
	return time.Duration(sum.Sum64() % uint64(of))
}

// wholeSecond rounds up to whole seconds, the precision of due times.
func wholeSecond(at time.Time) time.Time {
	if whole := at.Truncate(time.Second); whole.Before(at) {
		return whole.Add(time.Second)
	}
	return at
}
