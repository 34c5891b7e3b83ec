package main

import (
	"fmt"
	"time"

	"fanfare.dev/fanfare/internal/cli/terminal"

	"fanfare.dev/fanfare/client"
)

// contradictionText says how often the matching index was wrong.
func contradictionText(m *client.MatchCheck) string {
	if m.Contradictions == 0 {
		return "no contradiction"
	}
	return terminal.Amount(m.Contradictions, "CONTRADICTION", "CONTRADICTIONS") + ": this is a bug in Fanfare, please report it"
}

// quarantinedText names a condition about which the matching index was wrong.
func quarantinedText(q *client.QuarantinedCondition) string {
	of := q.Service + "/" + q.Topic
	if q.Subscription != "" {
		return of + " subscription " + q.Subscription
	}
	return of + " filter " + q.Filter
}

// printQuarantined lists the conditions that are evaluated without the matching index.
func (c *cli) printQuarantined(m *client.MatchCheck) {
	if m == nil || len(m.Quarantined) == 0 {
		return
	}
	fmt.Fprintln(c.out, "\nQUARANTINED: the matching index gave wrong results for these conditions. Until they are changed, they are evaluated without the index")
	for _, q := range m.Quarantined {
		fmt.Fprintf(c.out, "%s\n  since %s, at event %s: index: %s, evaluator: %s\n", quarantinedText(&q), q.Since.Local().Format(time.DateTime), q.Event, q.Index, q.Evaluator)
	}
}
