package bench

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
)

// alertsOfEach is how many price alerts a person of an experiment with a server has.
const alertsOfEach = 5

// alertConfiguration is a service of price alerts: the rule of B1.
func alertConfiguration(relay, retry string) []byte {
	rule := newQuotes(1, 0, false).definition().Rules[0]
	return fmt.Appendf(nil, `service: %s
channels:
  email: {driver: smtp, relay: %q, from: "Alerts <alerts@example.org>", connections: 50, rate: unlimited, retry: [%s]}
topics:
  quote:
    schema: {type: object, required: [symbol, price], properties: {id: {type: string}, symbol: {type: string}, price: {type: number}}}
    rules:
      - {name: %s, when: %q, params: {symbol: string, trigger: number}}
    template: quote
templates:
  quote: {subject: "{{ event.symbol }} at {{ event.price }}", text: "{{ event.symbol }} is at {{ event.price }}. {{ unsubscribe_url }}"}
`, service, relay, retry, rule.Name, rule.When)
}

// appendAlert appends the line of alert i as the bulk import takes it.
func (q *quotes) appendAlert(dst []byte, i int) []byte {
	_, rule, params := q.condition(i)
	dst = append(dst, `{"topic":"quote","channel":"email","to":"`...)
	dst = person(i / alertsOfEach).appendAddress(dst)
	return fmt.Appendf(dst, "\",\"rule\":%q,\"params\":%s}\n", rule, params)
}

// A flow is events that were posted at a steady pace.
type flow struct {
	posted  int
	took    time.Duration
	answers []float64 // milliseconds of a request, sorted
}

// flowTick is how often events are posted: what has become due since.
const flowTick = 10 * time.Millisecond

// flow posts events for a while, as many a second, one request after the other so
// that their order is kept. next appends the line of event i.
func (s *server) flow(topic string, perSecond float64, length time.Duration, next func(dst []byte, i int) []byte) (f flow, err error) {
	var body []byte
	started := time.Now()
	for {
		now := time.Since(started)
		due := int(perSecond * min(now, length).Seconds())
		if due == f.posted && now >= length {
			break
		}
		body = body[:0]
		n := due - f.posted
		for range n {
			body = next(body, f.posted)
			f.posted++
		}
		if n > 0 {
			began := time.Now()
			sum, err := s.api.PublishLines(s.lab.ctx, topic, bytes.NewReader(body), client.PublishOptions{IDPointer: "/id"}, nil, nil)
			if err != nil {
				return f, s.failed(err)
			}
			if sum.Accepted != int64(n) {
				return f, s.failed(fmt.Errorf("%d of %d events were taken", sum.Accepted, n))
			}
			f.answers = append(f.answers, millis(time.Since(began)))
		}
		if rest := flowTick - (time.Since(started) - now); rest > 0 {
			if err := pause(s.lab.ctx, rest); err != nil {
				return f, err
			}
		}
	}
	f.took = time.Since(started)
	slices.Sort(f.answers)
	return f, nil
}

// broadcasts looks events up by their senders' ids.
func (s *server) broadcasts(ids []string) ([]fanfare.Broadcast, error) {
	all := make([]fanfare.Broadcast, len(ids))
	for i, id := range ids {
		var err error
		if all[i], err = s.api.Event(s.lab.ctx, id); err != nil {
			return nil, fmt.Errorf("event %s: %w", id, err)
		}
	}
	return all, nil
}
