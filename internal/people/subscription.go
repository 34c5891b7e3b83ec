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

// OfState reports whether its messages tell what is the case when they are due.
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
	SourceOneClick    = "one_click"   // RFC 8058, or a body that is not the page's
	SourcePage        = "page"        // to which the link to unsubscribe leads
	SourcePreferences = "preferences" // the page of them
	SourceMail        = "mail"        // to unsubscribe
	SourceSignup      = "signup"      // that was confirmed
	SourceMove        = "move"        // to another address, that was confirmed
	SourceUndo        = "undo"        // the link that takes an unsubscribe back
	SourceAPI         = "api"         // a program, or an operator
	SourceReturn      = "return"      // a bounce, or a complaint
)

// Reasons of ends that no person has chosen.
const (
	ReasonReplaced = "replaced" // another subscription was put under its id
	ReasonDeleted  = "deleted"  // the subscriber was
	ReasonAddress  = "address"  // it was taken away from the subscriber
	ReasonErased   = "erased"   // the subscriber was forgotten
)

// An Ending is how a subscription ends.
type Ending struct {
	Source string
	Reason string // in one word of a list, or ""
	Text   string // the same as the subscription keeps it
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

// An Owner is what a subscription shows of its subscriber.
type Owner struct{ ID, Address string }

// A SubscriptionSpec asks for one subscription. It names the address inline, and the subscriber
// is found or made by it; or it names the subscriber, whose default address is
// taken where To is empty. Both together: the address is the subscriber's, and
// what is missing of the two is made.
type SubscriptionPut struct {
	ID          string          `json:"id"`          // chosen by the client, or "": then the natural key identifies it
	Topic       string          `json:"topic"`       // must exist
	Channel     string          `json:"channel"`     // must exist
	To          string          `json:"to"`          // address in the channel's form
	Subscriber  string          `json:"subscriber"`  // id, or ""
	Filter      string          `json:"filter"`      // own condition in CEL, or ""
	Rule        string          `json:"rule"`        // rule of the topic, or ""; never with Filter
	Locale      string          `json:"locale"`      // of the subscriber (BCP 47); "" leaves what is known
	TimeZone    string          `json:"time_zone"`   // of the subscriber (IANA name); "" leaves what is known
	Params      json.RawMessage `json:"params"`      // object: values for the rule's params
	Data        json.RawMessage `json:"data"`        // object: free data for the template
	Attributes  json.RawMessage `json:"attributes"`  // object: data of the subscriber; nil leaves what is known
	State       string          `json:"state"`       // active or paused; "" leaves what is, and a new one is active
	Title       string          `json:"title"`       // for the subscriber, in place of the rule's; or ""
	Description string          `json:"description"` // likewise
	Cadence     string          `json:"cadence"`     // when messages are due, see package cadence; "" leaves what is, and a new one has the topic's

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
	ID          string          `json:"id"`
	Place       fanfare.RowID   `json:"-"`
	Subscriber  string          `json:"subscriber"` // public id of the subscriber
	Owner       fanfare.RowID   `json:"-"`          // place of the subscriber
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
	Reason      string          `json:"reason,omitempty"` // why it ended

	// The change sequence at which it began, and at which it ended (0: active).
	CreatedSeq uint64 `json:"-"`
	EndedSeq   uint64 `json:"-"`

	// Those of its last pause: when it began, and when it was resumed (0: it was not).
	PausedSeq  uint64 `json:"-"`
	ResumedSeq uint64 `json:"-"`
}

// A SubscriptionRow is what delivery needs of a subscription. Strings may be
// kept after visit returns, the bytes not.
type SubscriptionRow struct {
	Place       fanfare.RowID
	Subscriber  fanfare.RowID
	ID          string // public id
	Rule        string // name, or ""
	Params      []byte // JSON object or nil
	Data        []byte // JSON object or nil
	Title       string // its own, or that of the rule or the topic, or ""
	Description string // its own description, or that of the rule, or ""
	Slot        uint16 // when it is due, see Registry.Slot; 0: at once
	Live        bool

	Topic uint32
}

// A SubscriptionFilter says which subscriptions are listed: those for which all
// that is not empty is true.
type SubscriptionFilter struct {
	Topic      string
	Channel    string
	Subscriber string // id, or an address
	State      string // active, paused or ended
}
