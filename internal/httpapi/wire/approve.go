package wire

import "fanfare.dev/fanfare"

// An Approve names a broadcast that waits for approval.
type Approve struct {
	Event string `json:"event" doc:"evt-..., or the id that the sender gave"`
}

// A SetRate says how fast a broadcast or a channel may leave.
type SetRate struct {
	Scope fanfare.Scope `json:"scope" doc:"kind: channel or broadcast; name: service/channel, or the event's id"`
	Rate  string        `json:"rate" doc:"such as 30/s, 1000/min, 5000/h or unlimited; of a channel also configured"`
}
