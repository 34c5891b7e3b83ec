package wire

import (
	"encoding/json"
	"time"
)

// A SubscriptionRequest is a subscription to create or replace. It has the id of the
// subscriber, or an address by which the subscriber is found or created.
type SubscriptionRequest struct {
	ID          string          `json:"id,omitempty" doc:"your own id; without one, a request with the same topic, channel, address and condition updates the existing subscription"`
	Topic       string          `json:"topic"`
	Channel     string          `json:"channel"`
	To          string          `json:"to,omitempty" doc:"address in the channel's form; default: the default address of the subscriber"`
	Subscriber  string          `json:"subscriber,omitempty" doc:"id of a subscriber; together with to, a missing subscriber or address is created"`
	Filter      string          `json:"filter,omitempty" doc:"the subscriber's own condition, in CEL over event, such as event.mag >= 4.5"`
	Rule        string          `json:"rule,omitempty" doc:"name of a rule of the topic; cannot be combined with filter"`
	Params      json.RawMessage `json:"params,omitempty" doc:"object: values for the rule's params"`
	Data        json.RawMessage `json:"data,omitempty" doc:"object: your own data, for templates"`
	Locale      string          `json:"locale,omitempty" doc:"locale of the subscriber, such as de-AT; absent: it does not change"`
	TimeZone    string          `json:"time_zone,omitempty" doc:"time zone of the subscriber, such as Europe/Vienna; absent: it does not change"`
	Attributes  json.RawMessage `json:"attributes,omitempty" doc:"object: attributes of the subscriber, for templates"`
	State       string          `json:"state,omitempty" enum:"active,paused" doc:"default: active, except that a paused subscription stays paused"`
	Title       string          `json:"title,omitempty" doc:"title on pages and in emails, at most 100 characters; default: the title of the rule or of the topic"`
	Description string          `json:"description,omitempty" doc:"description on pages, at most 500 characters; default: the description of the rule"`
	Cadence     string          `json:"cadence,omitempty" doc:"when messages are due: immediate, window 60s, daily 08:00, weekly saturday 08:00 or cron 0 8 * * mon-fri; it may be followed by of state, and by a time zone as in Europe/London. Absent: it does not change, and a new subscription has the cadence of the topic"`

	Consent *ConsentGiven `json:"consent,omitempty" doc:"consent that the person gave to you; it is stored with the subscription and added to earlier consents"`
}

// ConsentGiven is a consent that a person gave before the request.
type ConsentGiven struct {
	Terms  string    `json:"terms" doc:"version or URL of the terms that the person agreed to"`
	Source string    `json:"source" doc:"where the consent was given, such as a form or a shop"`
	At     time.Time `json:"at,omitzero" doc:"when the consent was given; default: now"`
}

// Subscribed is the response to one subscription.
type Subscribed struct {
	ID      string `json:"id" doc:"public id of the subscription"`
	Created bool   `json:"created" doc:"false: the subscription already existed, and now matches the request"`

	Matching *Matching `json:"matching,omitempty" doc:"cost of its condition; in NDJSON responses only if no index covers the condition"`
}

// Matching is the cost of a condition for every event of its topic.
type Matching struct {
	Indexed    bool   `json:"indexed" doc:"an index covers the condition, so events that do not meet it cost nothing"`
	NsPerEvent int64  `json:"ns_per_event,omitempty" doc:"estimated cost per event, in nanoseconds; subscriptions with the same filter share it"`
	Reason     string `json:"reason,omitempty" doc:"why no index covers the condition"`
}

// An Accepted is a stored event, which will be matched and delivered.
type Accepted struct {
	ID        string `json:"id" doc:"public id of the event"`
	Duplicate bool   `json:"duplicate" doc:"true: the event was known already and was not stored again"`
}

// Accepteds is the response to events that are stored as a whole.
type Accepteds struct {
	Events []Accepted `json:"events" doc:"results, in the order of the request"`
}

// A LineError is the response to one rejected line.
type LineError struct {
	Line  int    `json:"line" doc:"line of the body, from 1; 0 if the error is about the whole request"`
	Error Member `json:"error"`
}

// MaxErrors is the number of rejected lines that a summary lists; the others are only counted.
const MaxErrors = 100

// A PutSummary is the short response to a bulk import (?quiet=true).
type PutSummary struct {
	Created int64       `json:"created"`
	Updated int64       `json:"updated"`
	Failed  int64       `json:"failed"`
	Errors  []LineError `json:"errors" doc:"errors of the first 100 rejected lines"`

	Unindexed  int64 `json:"unindexed,omitempty" doc:"number of subscriptions whose condition no index covers"`
	NsPerEvent int64 `json:"ns_per_event,omitempty" doc:"estimated additional cost per event of their topics, in nanoseconds"`
}

// An EventSummary is the short response to NDJSON events (?quiet=true).
type EventSummary struct {
	Accepted   int64       `json:"accepted" doc:"number of stored events, without duplicates"`
	Duplicates int64       `json:"duplicates"`
	Failed     int64       `json:"failed"`
	First      string      `json:"first,omitempty" doc:"public id of the first event of the body"`
	Last       string      `json:"last,omitempty" doc:"public id of the last event of the body"`
	Errors     []LineError `json:"errors" doc:"errors of the first 100 rejected lines"`
}
