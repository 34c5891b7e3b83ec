package control

import (
	"fanfare.dev/fanfare"
)

// A Notice is something that a service is to be told of one of its people: of a
// subscription, or of what the suppression list says of an address. It names places
// alone, so that nothing of a person waits in it: whoever tells looks up what they are
// called then.
type Notice struct {
	Kind    NoticeKind `json:"kind"`
	Source  string     `json:"source"`           // what brought it about: a Source… of this package
	Reason  string     `json:"reason,omitempty"` // why, in one word of a list
	At      int64      `json:"at"`               // Unix nanoseconds
	Service uint32     `json:"service"`

	Subscription fanfare.Place `json:"subscription,omitempty"` // 0: it is about an address
	Topic        uint32        `json:"topic,omitempty"`        // of the subscription, and Channel
	Channel      uint16        `json:"channel,omitempty"`
	Fields       []string      `json:"fields,omitempty"` // that were changed

	Subscriber  fanfare.Place `json:"subscriber"`        // the row of the address
	Address     uint8         `json:"address,omitempty"` // its kind, where it is what the change is about
	Until       int64         `json:"until,omitempty"`   // of a suppression, Unix nanoseconds; 0: for good
	AllServices bool          `json:"all_services,omitempty"`
}

// A NoticeKind is what happened.
type NoticeKind string

// The kinds, those of subscriptions first.
const (
	Subscribed   NoticeKind = "subscribed"   // by the person
	Changed      NoticeKind = "changed"      // by the person
	Unsubscribed NoticeKind = "unsubscribed" // by anybody
	Resubscribed NoticeKind = "resubscribed" // an end was taken back
	Suppressed   NoticeKind = "suppressed"   // or for a stronger reason than before, or for longer
	Lifted       NoticeKind = "lifted"
)
