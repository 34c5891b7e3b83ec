package wire

import (
	"encoding/json"
	"time"
)

// A SubscriptionRequest is what somebody wants to be told. The subscriber is
// named, or found or made by the address.
type SubscriptionRequest struct {
	ID          string          `json:"id,omitempty" doc:"chosen by you; without one, an equal subscription (topic, channel, address, condition) is the same"`
	Topic       string          `json:"topic"`
	Channel     string          `json:"channel"`
	To          string          `json:"to,omitempty" doc:"address in the channel's form; without it the default address of subscriber"`
	Subscriber  string          `json:"subscriber,omitempty" doc:"id of a subscriber; with to, what is missing of the two is made"`
	Filter      string          `json:"filter,omitempty" doc:"own condition in CEL over event, such as event.mag >= 4.5"`
	Rule        string          `json:"rule,omitempty" doc:"name of a rule of the topic; never with filter"`
	Params      json.RawMessage `json:"params,omitempty" doc:"object: values for the rule's params"`
	Data        json.RawMessage `json:"data,omitempty" doc:"object: yours, for the template"`
	Locale      string          `json:"locale,omitempty" doc:"of the subscriber, such as de-AT; without it what is known stays"`
	TimeZone    string          `json:"time_zone,omitempty" doc:"of the subscriber, such as Europe/Vienna"`
	Attributes  json.RawMessage `json:"attributes,omitempty" doc:"object: of the subscriber, for templates"`
	State       string          `json:"state,omitempty" enum:"active,paused" doc:"default: a paused subscription stays paused, and a new one is active"`
	Title       string          `json:"title,omitempty" doc:"title on pages and in mails, at most 100 characters; default: the title of the rule or of the topic"`
	Description string          `json:"description,omitempty" doc:"description on pages, at most 500 characters; default: the description of the rule"`
	Cadence     string          `json:"cadence,omitempty" doc:"when messages are due: immediate, window 60s, daily 08:00, weekly saturday 08:00 or cron 0 8 * * mon-fri, and behind it of state, and in Europe/London; without it what is stays, and a new one has the topic's"`

	Consent *ConsentGiven `json:"consent,omitempty" doc:"consent of the person, which you vouch for; it is stored with the subscription and added to earlier consents"`
}

// ConsentGiven is what a person agreed to before the request.
type ConsentGiven struct {
	Terms  string    `json:"terms" doc:"version or URL of the terms that they agreed to"`
	Source string    `json:"source" doc:"place of the consent, such as a form or a shop"`
	At     time.Time `json:"at,omitzero" doc:"time of the consent; default: now"`
}

// Subscribed is the answer to one subscription that was put.
type Subscribed struct {
	ID      string `json:"id" doc:"public id of the subscription"`
	Created bool   `json:"created" doc:"false: it was there, and is now as asked"`

	Matching *Matching `json:"matching,omitempty" doc:"what its condition costs; on a line of NDJSON only where no index leads to it"`
}

// Matching is what a condition costs every event of its topic.
type Matching struct {
	Indexed    bool   `json:"indexed" doc:"an index leads to it, and events that do not meet it cost nothing"`
	NsPerEvent int64  `json:"ns_per_event,omitempty" doc:"about how long each event takes for it, estimated from its parts; once for all subscriptions that share a filter"`
	Reason     string `json:"reason,omitempty" doc:"reason why the index does not cover it"`
}

// An Accepted event is kept: every recipient will be found and served.
type Accepted struct {
	ID        string `json:"id" doc:"public id of the event"`
	Duplicate bool   `json:"duplicate" doc:"true: it was known already, and nothing was kept again"`
}

// Accepteds is the answer to events that are taken as a whole.
type Accepteds struct {
	Events []Accepted `json:"events" doc:"in the order of the request"`
}

// A LineError is the answer to one line that was refused.
type LineError struct {
	Line  int    `json:"line" doc:"line of the body, from 1; 0 where the whole request is meant"`
	Error Member `json:"error"`
}

// MaxErrors is how many bad lines a summary names; the rest is only counted.
const MaxErrors = 100

// A PutSummary is the short answer to a bulk import (?quiet=true).
type PutSummary struct {
	Created int64       `json:"created"`
	Updated int64       `json:"updated"`
	Failed  int64       `json:"failed"`
	Errors  []LineError `json:"errors" doc:"the first 100 bad lines"`

	Unindexed  int64 `json:"unindexed,omitempty" doc:"subscriptions to whose condition no index leads"`
	NsPerEvent int64 `json:"ns_per_event,omitempty" doc:"about how much longer an event of their topics takes for these than before"`
}

// An EventSummary is the short answer to NDJSON events (?quiet=true).
type EventSummary struct {
	Accepted   int64       `json:"accepted" doc:"kept, without the duplicates"`
	Duplicates int64       `json:"duplicates"`
	Failed     int64       `json:"failed"`
	First      string      `json:"first,omitempty" doc:"public id of the first event of the body"`
	Last       string      `json:"last,omitempty" doc:"public id of the last one"`
	Errors     []LineError `json:"errors" doc:"the first 100 bad lines"`
}
