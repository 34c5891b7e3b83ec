package registry

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"fanfare.dev/fanfare"
)

// A Put asks for one subscription. It names the address inline; the subscriber
// is found or made by it.
type Put struct {
	ID         string          `json:"id"`         // chosen by the client, or "": then the natural key identifies it
	Topic      string          `json:"topic"`      // must exist
	Channel    string          `json:"channel"`    // must exist
	To         string          `json:"to"`         // address in the channel's form
	Filter     string          `json:"filter"`     // own condition in CEL, or ""
	Rule       string          `json:"rule"`       // rule of the topic, or ""; never with Filter
	Locale     string          `json:"locale"`     // of the subscriber (BCP 47); "" leaves what is known
	TimeZone   string          `json:"time_zone"`  // of the subscriber (IANA name); "" leaves what is known
	Params     json.RawMessage `json:"params"`     // object: values for the rule's params
	Data       json.RawMessage `json:"data"`       // object: free data for the template
	Attributes json.RawMessage `json:"attributes"` // object: free data of the subscriber; nil leaves what is known
}

// A PutResult is what came of one Put.
type PutResult struct {
	ID      string // public id of the subscription
	Created bool   // false: it was there, and is now as the Put asks
	Err     error  // *fanfare.Error: this member was refused and nothing of it stored
}

// A Subscription is the full record of one subscription.
type Subscription struct {
	ID         string          `json:"id"`
	Place      fanfare.Place   `json:"-"`
	Subscriber string          `json:"subscriber"` // public id of the subscriber
	Owner      fanfare.Place   `json:"-"`          // place of the subscriber
	Service    string          `json:"service"`
	Topic      string          `json:"topic"`
	Channel    string          `json:"channel"`
	To         string          `json:"to"`
	Filter     string          `json:"filter,omitempty"`
	Rule       string          `json:"rule,omitempty"`
	Params     json.RawMessage `json:"params,omitempty"`
	Data       json.RawMessage `json:"data,omitempty"`
	State      string          `json:"state"` // active or ended
	CreatedAt  time.Time       `json:"created_at"`
	EndedAt    time.Time       `json:"ended_at,omitzero"`
	Reason     string          `json:"reason,omitempty"` // why it ended

	// The change sequence at which it began, and at which it ended (0: active).
	CreatedSeq uint64 `json:"-"`
	EndedSeq   uint64 `json:"-"`
}

// subscriberPrefix begins the public id of a subscriber whose client chose none.
const subscriberPrefix = "per-"

// SubscriberID returns the public id of a subscriber whose client chose none.
func SubscriberID(p fanfare.Place) string {
	return subscriberPrefix + strconv.FormatUint(uint64(p), 16)
}

// ParseSubscriberID reads what SubscriberID wrote.
func ParseSubscriberID(id string) (fanfare.Place, bool) {
	hex, ok := strings.CutPrefix(id, subscriberPrefix)
	if !ok {
		return 0, false
	}
	p, err := strconv.ParseUint(hex, 16, 32)
	return fanfare.Place(p), err == nil
}

// A SubscriberRow is what delivery needs of a subscriber. Strings may be kept
// after visit returns, the bytes not.
type SubscriberRow struct {
	Place      fanfare.Place
	ID         string // public id
	Address    string
	Locale     string
	TimeZone   string
	Attributes []byte // JSON object or nil
}

// A SubscriptionRow is what delivery needs of a subscription. Strings may be
// kept after visit returns, the bytes not.
type SubscriptionRow struct {
	Place      fanfare.Place
	Subscriber fanfare.Place
	ID         string // public id
	Rule       string // name, or ""
	Params     []byte // JSON object or nil
	Data       []byte // JSON object or nil
	Live       bool
}
