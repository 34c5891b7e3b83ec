package registry

import (
	"encoding/json"
	"time"

	"fanfare.dev/fanfare"
)

// A Put asks for one subscription. It names the address inline, and the subscriber
// is found or made by it; or it names the subscriber, whose default address is
// taken where To is empty. Both together: the address is the subscriber's, and
// what is missing of the two is made.
type Put struct {
	ID         string          `json:"id"`         // chosen by the client, or "": then the natural key identifies it
	Topic      string          `json:"topic"`      // must exist
	Channel    string          `json:"channel"`    // must exist
	To         string          `json:"to"`         // address in the channel's form
	Subscriber string          `json:"subscriber"` // id, or ""
	Filter     string          `json:"filter"`     // own condition in CEL, or ""
	Rule       string          `json:"rule"`       // rule of the topic, or ""; never with Filter
	Locale     string          `json:"locale"`     // of the subscriber (BCP 47); "" leaves what is known
	TimeZone   string          `json:"time_zone"`  // of the subscriber (IANA name); "" leaves what is known
	Params     json.RawMessage `json:"params"`     // object: values for the rule's params
	Data       json.RawMessage `json:"data"`       // object: free data for the template
	Attributes json.RawMessage `json:"attributes"` // object: data of the subscriber; nil leaves what is known
	State      string          `json:"state"`      // active or paused; "" leaves what is, and a new one is active
	Cadence    string          `json:"cadence"`    // when messages are due, see package cadence; "" leaves what is, and a new one has the topic's

	// Consent is what the person agreed to, an object as ConsentAsk; nil keeps nothing.
	Consent json.RawMessage `json:"consent"`

	// By is the Source… of a put that the person made, who is told of; "" is a program's.
	By string `json:"-"`

	// Check is asked with the subscription that has the ID now, nil if none does,
	// before anything is changed; its error refuses the put. Nil allows all.
	Check func(is *Subscription) error `json:"-"`

	decoded bool // by DecodePut: its objects are valid JSON
}

// A PutResult is what came of one Put, or of one SubscriberLine.
type PutResult struct {
	ID      string       // public id of what was put
	Created bool         // false: it was there, and is now as the Put asks
	Cost    fanfare.Cost // of the condition
	Added   int64        // nanoseconds that an event of the topic takes longer with it than without
	Err     error        // *fanfare.Error: this member was refused and nothing of it stored
}

// A Subscription is the full record of one subscription.
type Subscription struct {
	ID         string          `json:"id"`
	Place      fanfare.RowID   `json:"-"`
	Subscriber string          `json:"subscriber"` // public id of the subscriber
	Owner      fanfare.RowID   `json:"-"`          // place of the subscriber
	Service    string          `json:"service"`
	Topic      string          `json:"topic"`
	Channel    string          `json:"channel"`
	To         string          `json:"to"`
	Filter     string          `json:"filter,omitempty"`
	Rule       string          `json:"rule,omitempty"`
	Params     json.RawMessage `json:"params,omitempty"`
	Data       json.RawMessage `json:"data,omitempty"`
	Cadence    string          `json:"cadence"`
	State      string          `json:"state"` // active, paused or ended
	CreatedAt  time.Time       `json:"created_at"`
	PausedAt   time.Time       `json:"paused_at,omitzero"`
	EndedAt    time.Time       `json:"ended_at,omitzero"`
	Reason     string          `json:"reason,omitempty"` // why it ended

	// The change sequence at which it began, and at which it ended (0: active).
	CreatedSeq uint64 `json:"-"`
	EndedSeq   uint64 `json:"-"`

	// Those of its last pause: when it began, and when it was resumed (0: it was not).
	PausedSeq  uint64 `json:"-"`
	ResumedSeq uint64 `json:"-"`
}

// A SubscriberRow is what delivery needs of a subscriber. Strings may be kept
// after visit returns, the bytes not.
type SubscriberRow struct {
	Place      fanfare.RowID
	ID         string // public id
	Address    string
	Locale     string
	TimeZone   string
	Attributes []byte // JSON object or nil
}

// A SubscriptionRow is what delivery needs of a subscription. Strings may be
// kept after visit returns, the bytes not.
type SubscriptionRow struct {
	Place      fanfare.RowID
	Subscriber fanfare.RowID
	ID         string // public id
	Rule       string // name, or ""
	Params     []byte // JSON object or nil
	Data       []byte // JSON object or nil
	Slot       uint16 // when it is due, see Registry.Slot; 0: at once
	Live       bool

	topic uint32
}
