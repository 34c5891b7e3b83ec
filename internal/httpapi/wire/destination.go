package wire

import "time"

// A Destination is somebody a channel sends to that is not well, or for whom
// messages wait: the domain of addresses, or host and port of webhooks.
type Destination struct {
	Name          string    `json:"name" doc:"the domain of addresses, or host:port of webhooks"`
	State         string    `json:"state" doc:"suspended: it is left alone, or probed by one message; slow: it takes much longer than others; limited: less goes to it than is configured; waiting: it is well as far as is known, and messages for it were put off"`
	Until         time.Time `json:"suspended_until,omitzero" doc:"until when nothing is sent to it; absent of one that is suspended: a probe is under way, or the next message is one"`
	Failures      int       `json:"failures,omitempty" doc:"refusals in a row, the last ones"`
	LastReply     string    `json:"last_reply,omitempty" doc:"with which it last asked for less"`
	LastReplyAt   time.Time `json:"last_reply_at,omitzero" doc:"when it did"`
	RatePerSecond float64   `json:"rate_per_second,omitempty" doc:"that its refusals have shown it to take; absent: none was found"`
	AtOnce        int       `json:"at_once,omitempty" doc:"messages that may be under way to it, where its refusals have made them fewer"`
	Underway      int       `json:"under_way,omitempty" doc:"messages on their way to it"`
	Aside         int       `json:"aside,omitempty" doc:"messages that wait for it in memory"`
	Postponed     int64     `json:"postponed,omitempty" doc:"messages that wait for it in the store"`
	PostponedTo   time.Time `json:"postponed_until,omitzero" doc:"when the first of these is looked at again"`
}

// Destinations is a part of the destinations of a channel, by name.
type Destinations struct {
	Destinations []Destination `json:"destinations" doc:"the destinations of this page"`
	Next         string        `json:"next,omitempty" doc:"the cursor of the next page; absent at the end"`
}
