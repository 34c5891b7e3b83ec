package people

import (
	"encoding/json"
	"strings"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/inputerror"
	"fanfare.dev/fanfare/internal/schedule/cadence"
	"fanfare.dev/fanfare/internal/store/control"
)

// OfState reports whether its messages contain the state at the time when they are due.
func (s *Subscription) OfState() bool {
	c, err := cadence.Parse(s.Cadence)
	return err == nil && c.OfState()
}

func UnknownSubscription(id string) error {
	if id == "" {
		return &fanfare.Error{Code: fanfare.NotFound, Message: "the subscription does not exist"}
	}
	e := &fanfare.Error{Code: fanfare.NotFound, Message: "the service has no subscription " + inputerror.Quote(id)}
	if strings.Contains(id, "@") {
		e.Hint = "to find the subscriptions of a subscriber, use fanfare subscription list --subscriber or /v1/subscriptions?subscriber="
	}
	return e
}

// Sources of changes.
const (
	SourceOneClick    = "one_click"   // RFC 8058, or another body that is not from the page
	SourcePage        = "page"        // unsubscribe page
	SourcePreferences = "preferences" // preferences page
	SourceMail        = "mail"        // unsubscribe email
	SourceSignup      = "signup"      // confirmed sign-up
	SourceMove        = "move"        // confirmed change of address
	SourceUndo        = "undo"        // undo link of an unsubscribe
	SourceAPI         = "api"         // API client or operator
	SourceReturn      = "return"      // bounce or complaint
)

// Reasons of ends that the subscriber did not choose.
const (
	ReasonReplaced = "replaced" // replaced by another subscription with its id
	ReasonDeleted  = "deleted"  // the subscriber was deleted
	ReasonAddress  = "address"  // the address was removed from the subscriber
	ReasonErased   = "erased"   // the subscriber was erased
)

// An Ending has the source and the reason of the end of a subscription.
type Ending struct {
	Source string
	Reason string // one of the reasons above, or ""
	Text   string // the reason as text, which is stored with the subscription
}

// The states of a subscription.
const (
	StateActive = "active"
	StatePaused = "paused"
	StateEnded  = "ended"
)

func (s *Subscription) SetOwner(o Owner) { s.Subscriber, s.To = o.ID, o.Address }

func PublicSubscriptionID(s *control.SubscriptionRecord) string {
	if s.ID != "" {
		return s.ID
	}
	return fanfare.SubscriptionID(s.Place)
}

// An Owner has the fields of the subscriber that a subscription shows.
type Owner struct{ ID, Address string }

// A SubscriptionPut is a subscription to create or change. It has an address, by which the
// subscriber is found or created, or the id of a subscriber, whose default address is used
// if To is empty. With both, the address belongs to the subscriber, and a missing
// subscriber or address is created.
type SubscriptionPut struct {
	ID          string          `json:"id"`          // chosen by the client, or "": then the natural key identifies it
	Topic       string          `json:"topic"`       // must exist
	Channel     string          `json:"channel"`     // must exist
	To          string          `json:"to"`          // address in the channel's form
	Subscriber  string          `json:"subscriber"`  // id, or ""
	Filter      string          `json:"filter"`      // the subscriber's own condition in CEL, or ""
	Rule        string          `json:"rule"`        // rule of the topic, or ""; never with Filter
	Locale      string          `json:"locale"`      // of the subscriber (BCP 47); "" changes nothing
	TimeZone    string          `json:"time_zone"`   // of the subscriber (IANA name); "" changes nothing
	Params      json.RawMessage `json:"params"`      // object: values for the rule's params
	Data        json.RawMessage `json:"data"`        // object: free data for the template
	Attributes  json.RawMessage `json:"attributes"`  // object: data of the subscriber; nil changes nothing
	State       string          `json:"state"`       // active or paused; "" changes nothing, and a new subscription is active
	Title       string          `json:"title"`       // for the subscriber, in place of the rule's; or ""
	Description string          `json:"description"` // likewise
	Cadence     string          `json:"cadence"`     // when messages are due, see package cadence; "" changes nothing, and a new subscription has the cadence of the topic

	// Consent is the consent of the person, an object like ConsentRequest; nil: nothing to store.
	Consent json.RawMessage `json:"consent"`

	// By is the source of a put by the subscriber, one of Source…; "" for a put by an API client.
	By string `json:"-"`

	// Check is called with the current subscription with the ID, or nil if there is none,
	// before anything is changed. Its error rejects the put. A nil check allows every put.
	Check func(is *Subscription) error `json:"-"`

	decoded bool // decoded by DecodeSubscription: its objects are valid JSON
}

// A PutResult is the result of one put of a subscription or a subscriber.
type PutResult struct {
	ID      string       // public id of the subscription or the subscriber
	Created bool         // false: it existed and has been changed if necessary
	Cost    fanfare.Cost // of the condition
	Added   int64        // additional matching cost of an event of the topic, in nanoseconds
	Err     error        // *fanfare.Error: the put was rejected and nothing was stored
}

// A Subscription is the full record of one subscription.
type Subscription struct {
	ID          string          `json:"id"`
	Place       fanfare.RowID   `json:"-"`
	Subscriber  string          `json:"subscriber"` // public id of the subscriber
	Owner       fanfare.RowID   `json:"-"`          // row id of the subscriber
	Service     string          `json:"service"`
	Topic       string          `json:"topic"`
	Channel     string          `json:"channel"`
	To          string          `json:"to"`
	Filter      string          `json:"filter,omitempty"`
	Rule        string          `json:"rule,omitempty"`
	Params      json.RawMessage `json:"params,omitempty"`
	Data        json.RawMessage `json:"data,omitempty"`
	Title       string          `json:"title,omitempty"`       // for the subscriber, in place of the rule's
	Description string          `json:"description,omitempty"` // likewise
	Cadence     string          `json:"cadence"`
	State       string          `json:"state"` // active, paused or ended
	CreatedAt   time.Time       `json:"created_at"`
	PausedAt    time.Time       `json:"paused_at,omitzero"`
	EndedAt     time.Time       `json:"ended_at,omitzero"`
	Reason      string          `json:"reason,omitempty"` // reason of the end

	// The change sequences of its start and of its end (0: active).
	CreatedSeq uint64 `json:"-"`
	EndedSeq   uint64 `json:"-"`

	// The change sequences of the start and the end of its last pause (0: not resumed).
	PausedSeq  uint64 `json:"-"`
	ResumedSeq uint64 `json:"-"`
}

// A SubscriptionRow has the fields of a subscription that delivery needs. Strings may be
// kept after visit returns, but byte slices may not.
type SubscriptionRow struct {
	Place       fanfare.RowID
	Subscriber  fanfare.RowID
	ID          string // public id
	Rule        string // name, or ""
	Params      []byte // JSON object or nil
	Data        []byte // JSON object or nil
	Title       string // its own title, or that of the rule or the topic, or ""
	Description string // its own description, or that of the rule, or ""
	Slot        uint16 // slot of its cadence, see Registry.Slot; 0: immediate
	Live        bool

	Topic uint32
}

// A SubscriptionFilter selects subscriptions that match all of its non-empty fields.
type SubscriptionFilter struct {
	Topic      string
	Channel    string
	Subscriber string // id, or an address
	State      string // active, paused or ended

	Owners []fanfare.RowID // rows of subscribers, instead of Subscriber; nil: all
}
