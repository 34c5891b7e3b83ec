package matching

import (
	"fmt"

	"fanfare.dev/fanfare/internal/bench/loadgen"
)

// alertConfiguration returns the document of a service of price alerts with the rule of
// B1.
func alertConfiguration(relay, retry string) []byte {
	rule := newPriceAlerts(1, 0, false).definition().Rules[0]
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
`, loadgen.Service, relay, retry, rule.Name, rule.When)
}

// appendAlert appends the line of alert i in the form of the bulk import.
func (q *priceAlerts) appendAlert(dst []byte, i int) []byte {
	_, rule, params := q.condition(i)
	dst = append(dst, `{"topic":"quote","channel":"email","to":"`...)
	dst = loadgen.Person(i / loadgen.AlertsOfEach).AppendAddress(dst)
	return fmt.Appendf(dst, "\",\"rule\":%q,\"params\":%s}\n", rule, params)
}
