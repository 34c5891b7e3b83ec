package wire

import "fanfare.dev/fanfare"

// An Approve identifies a broadcast that waits for approval.
type Approve struct {
	Event string `json:"event" doc:"event id (evt-...), or the id given by the sender"`
}

// A SetRate sets the rate of a broadcast or a channel.
type SetRate struct {
	Scope fanfare.Scope `json:"scope" doc:"kind: channel or broadcast; name: service/channel, or the event id"`
	Rate  string        `json:"rate" doc:"30/s, 1000/min, 5000/h or unlimited; for a channel also configured, which restores the configured rate"`
}
