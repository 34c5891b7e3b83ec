package wire

import "time"

// A Destination is a destination of a channel that has problems or for which messages
// wait: the domain of addresses, or the host and port of webhooks.
type Destination struct {
	Name          string    `json:"name" doc:"the domain of addresses, or host:port of webhooks"`
	State         string    `json:"state" doc:"suspended: nothing is sent to it except one message at a time as a probe; slow: it takes much longer than others; limited: less is sent to it than the configuration allows; waiting: no problem is known, but messages for it are delayed"`
	Until         time.Time `json:"suspended_until,omitzero" doc:"end of the suspension; if absent for a suspended destination, a probe is in progress or the next message is the probe"`
	Failures      int       `json:"failures,omitempty" doc:"number of consecutive failures"`
	LastReply     string    `json:"last_reply,omitempty" doc:"last reply that requested a lower rate"`
	LastReplyAt   time.Time `json:"last_reply_at,omitzero" doc:"time of that reply"`
	RatePerSecond float64   `json:"rate_per_second,omitempty" doc:"accepted rate, as learned from its replies; absent: no limit was found"`
	AtOnce        int       `json:"at_once,omitempty" doc:"maximum number of concurrent messages, if its replies have lowered it"`
	Underway      int       `json:"under_way,omitempty" doc:"number of messages in progress"`
	Aside         int       `json:"aside,omitempty" doc:"number of messages that wait for it in memory"`
	Postponed     int64     `json:"postponed,omitempty" doc:"number of messages that wait for it in the store"`
	PostponedTo   time.Time `json:"postponed_until,omitzero" doc:"when the first of these is tried again"`
}

// Destinations is a page of the destinations of a channel, by name.
type Destinations struct {
	Destinations []Destination `json:"destinations" doc:"the destinations of this page"`
	Next         string        `json:"next,omitempty" doc:"the cursor of the next page; absent at the end"`
}
