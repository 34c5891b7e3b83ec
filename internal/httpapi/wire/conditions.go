package wire

import "time"

// A ConditionReport says what the conditions of a service cost to which no index
// leads.
type ConditionReport struct {
	Topics     []TopicLoad          `json:"topics" doc:"by name"`
	Conditions []UnindexedCondition `json:"conditions" doc:"the most expensive first"`
	More       int                  `json:"more,omitempty" doc:"number of further conditions"`
}

// A TopicLoad is what an event of a topic takes.
type TopicLoad struct {
	Topic         string `json:"topic"`
	Subscriptions int    `json:"subscriptions" doc:"all that are active"`
	Unindexed     int    `json:"unindexed" doc:"conditions to which no index leads: different filters, and rules"`
	NsPerEvent    int64  `json:"ns_per_event" doc:"about how long an event takes for these"`
	BudgetNs      int64  `json:"budget_ns" doc:"how long it may: matching_budget of the service"`
	Over          bool   `json:"over,omitempty" doc:"it takes longer, since the budget was lowered or a rule or the schema was changed; nothing is taken away, and nothing more is let in"`
	Events        int64  `json:"events" doc:"that were matched since the server started"`
}

// An UnindexedCondition is a condition that the index cannot look up: every event of its topic
// is held against it.
type UnindexedCondition struct {
	Topic         string `json:"topic"`
	Filter        string `json:"filter,omitempty"`
	Rule          string `json:"rule,omitempty" doc:"in place of a filter: the rule, with all of its subscriptions to which no index leads"`
	Subscriptions int    `json:"subscriptions" doc:"that have it"`
	NsPerEvent    int64  `json:"ns_per_event" doc:"about how long an event takes for it"`
	Reason        string `json:"reason" doc:"reason why the index does not cover it"`
	Tried         int    `json:"tried,omitempty" doc:"recent events that the filter was tried on for this report"`
	Met           int    `json:"met,omitempty" doc:"how many of these met it"`
}

// A DryRun says for whom an event would be, were it published now.
type DryRun struct {
	Topic    string          `json:"topic"`
	Matched  int             `json:"matched" doc:"subscriptions that want it, and are in its audience"`
	Outside  int             `json:"outside,omitempty" doc:"those that want it and are not in its audience"`
	Messages int             `json:"messages" doc:"that would be sent: one to each address over each channel"`
	Hold     string          `json:"hold,omitempty" doc:"why it would wait for approval"`
	Channels []DryRunChannel `json:"channels" doc:"by name"`
	Gathered []DryRunDigest  `json:"gathered,omitempty" doc:"who would be told later, in digests; the next due first"`
	Rules    []DryRunRule    `json:"rules" doc:"in the topic's order"`
	Sample   []DryRunHit     `json:"sample" doc:"some of the subscriptions, from all over; none for a key that may not look people up"`
}

// A DryRunChannel is how many messages would leave over a channel.
type DryRunChannel struct {
	Channel  string `json:"channel"`
	Messages int    `json:"messages"`
	Rate     string `json:"rate,omitempty" doc:"how many messages may leave, such as 30/s; absent: as many as its connections take"`
	Seconds  int64  `json:"seconds,omitempty" doc:"how long they would take at that rate, if nothing else left; absent: no rate, or less than one"`
}

// A DryRunDigest is how many would be told of an event in a digest.
type DryRunDigest struct {
	Cadence    string    `json:"cadence" doc:"such as daily 08:00"`
	Zone       string    `json:"time_zone,omitempty" doc:"on whose clock"`
	Due        time.Time `json:"due" doc:"when the digest is sent"`
	Recipients int       `json:"recipients"`
}

// A DryRunRule is how many subscriptions want an event by a rule.
type DryRunRule struct {
	Rule    string `json:"rule,omitempty" doc:"its name; absent: by filters of their own, or without a condition"`
	Matched int    `json:"matched"`
}

// A DryRunHit is one subscription that would be told.
type DryRunHit struct {
	Subscription string `json:"subscription" doc:"its public id"`
	Subscriber   string `json:"subscriber" doc:"public id of the person"`
	To           string `json:"to" doc:"the address"`
	Channel      string `json:"channel"`
	Rule         string `json:"rule,omitempty" doc:"the rule by which it wants the event"`
}
