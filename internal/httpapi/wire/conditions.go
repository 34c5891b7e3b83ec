package wire

import (
	"encoding/json"
	"time"

	"fanfare.dev/fanfare"
)

// A ConditionReport reports the cost of the conditions of a service that no index
// covers.
type ConditionReport struct {
	Topics     []TopicLoad          `json:"topics" doc:"topics, by name"`
	Conditions []UnindexedCondition `json:"conditions" doc:"unindexed conditions, the most expensive first"`
	More       int                  `json:"more,omitempty" doc:"number of further conditions"`
}

// A TopicLoad is the matching cost of an event of a topic.
type TopicLoad struct {
	Topic         string `json:"topic"`
	Subscriptions int    `json:"subscriptions" doc:"number of active subscriptions"`
	Unindexed     int    `json:"unindexed" doc:"number of conditions that no index covers: distinct filters, and rules"`
	NsPerEvent    int64  `json:"ns_per_event" doc:"estimated cost of these conditions per event, in nanoseconds"`
	BudgetNs      int64  `json:"budget_ns" doc:"limit of that cost: matching_budget of the service"`
	Over          bool   `json:"over,omitempty" doc:"the cost exceeds the budget because the budget was lowered, or a rule or the schema was changed; existing subscriptions remain, and new unindexed ones are rejected"`
	Events        int64  `json:"events" doc:"number of events matched since the server started"`
}

// An UnindexedCondition is a condition that no index covers, so that it is evaluated for every
// event of its topic.
type UnindexedCondition struct {
	Topic         string `json:"topic"`
	Filter        string `json:"filter,omitempty"`
	Rule          string `json:"rule,omitempty" doc:"instead of a filter: the rule, with all of its subscriptions that no index covers"`
	Subscriptions int    `json:"subscriptions" doc:"number of subscriptions with this condition"`
	NsPerEvent    int64  `json:"ns_per_event" doc:"estimated cost per event, in nanoseconds"`
	Reason        string `json:"reason" doc:"why no index covers the condition"`
	Tried         int    `json:"tried,omitempty" doc:"number of recent events on which the filter was tried for this report"`
	Met           int    `json:"met,omitempty" doc:"number of these events that met the filter"`
}

// A DryRun has the recipients of an event if it were published now.
type DryRun struct {
	Topic    string          `json:"topic"`
	Matched  int             `json:"matched" doc:"number of subscriptions that match and are in the audience"`
	Outside  int             `json:"outside,omitempty" doc:"number of subscriptions that match but are not in the audience"`
	Messages int             `json:"messages" doc:"number of messages that would be sent: one per address and channel"`
	Hold     string          `json:"hold,omitempty" doc:"why it would wait for approval"`
	Channels []DryRunChannel `json:"channels" doc:"channels, by name"`
	Gathered []DryRunDigest  `json:"gathered,omitempty" doc:"digests that would include the event, the next due first"`
	Rules    []DryRunRule    `json:"rules" doc:"rules, in the order of the topic"`
	Sample   []DryRunHit     `json:"sample" doc:"a sample of the matching subscriptions; empty for keys without access to subscribers"`
}

// A DryRunChannel is the number of messages that would be sent over a channel.
type DryRunChannel struct {
	Channel  string `json:"channel"`
	Messages int    `json:"messages"`
	Rate     string `json:"rate,omitempty" doc:"rate limit, such as 30/s; absent: limited only by the connections"`
	Seconds  int64  `json:"seconds,omitempty" doc:"how long these messages alone would take at that rate, in seconds; absent: no rate limit, or less than a second"`
}

// A DryRunDigest is the number of recipients that would get an event in a digest.
type DryRunDigest struct {
	Cadence    string    `json:"cadence" doc:"such as daily 08:00"`
	Zone       string    `json:"time_zone,omitempty" doc:"time zone of the cadence"`
	Due        time.Time `json:"due" doc:"when the digest is sent"`
	Recipients int       `json:"recipients"`
}

// A DryRunRule is the number of matching subscriptions of a rule.
type DryRunRule struct {
	Rule    string `json:"rule,omitempty" doc:"name of the rule; absent: subscriptions with their own filter, or without a condition"`
	Matched int    `json:"matched"`
}

// A DryRunHit is one matching subscription.
type DryRunHit struct {
	Subscription string `json:"subscription" doc:"public id of the subscription"`
	Subscriber   string `json:"subscriber" doc:"public id of the subscriber"`
	To           string `json:"to" doc:"address"`
	Channel      string `json:"channel"`
	Rule         string `json:"rule,omitempty" doc:"the rule that matched"`
}

// A ConditionTest is a condition, and an event on which to try it.
type ConditionTest struct {
	Condition string          `json:"condition,omitempty" maxLength:"16384" doc:"condition in CEL, as a subscription has it in filter; or use rule"`
	Rule      string          `json:"rule,omitempty" maxLength:"128" doc:"name of a rule of the topic, instead of condition"`
	Params    json.RawMessage `json:"params,omitempty" doc:"object: values for the params of the rule"`
	Data      json.RawMessage `json:"data,omitempty" doc:"data of the event; or use event"`
	Event     string          `json:"event,omitempty" maxLength:"256" doc:"an event of the topic, instead of data: evt-..., or the id given by the sender; requires a key with the scope read"`
	Previous  json.RawMessage `json:"previous,omitempty" doc:"data of the event before it with the same key, for crosses and similar functions; default: the last event of the key, or none with event"`
}

// A ConditionResult says whether a condition is met, and why.
type ConditionResult struct {
	Matches   bool            `json:"matches" doc:"the event meets the condition"`
	Condition fanfare.Part    `json:"condition" doc:"the condition, part by part"`
	FoundBy   string          `json:"found_by,omitempty" doc:"the part of an event by which the index finds the condition; absent: it is evaluated for every event of the topic"`
	Data      json.RawMessage `json:"data" doc:"object: data of the event"`
	Previous  json.RawMessage `json:"previous,omitempty" doc:"object: data of the previous event that was used; absent: none"`
}
