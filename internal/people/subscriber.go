package people

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/inputerror"
	"fanfare.dev/fanfare/internal/people/addresskind"
	"fanfare.dev/fanfare/internal/store/control"
)

// An DirectRecipient is who somebody wants to write to: an address, or a subscriber
// and so the first of its addresses in the channel's form.
type DirectRecipient struct {
	Subscriber string        // public id, or ""
	Address    string        // without a subscriber; in normal form, once it was found
	Place      fanfare.RowID // of the address; 0: nobody has it yet
	Err        error         // *fanfare.Error: there is no such subscriber, or address
}

// A Person is somebody that a link to one of their subscriptions leads to.
type Person struct {
	Subscriber
	Service       string
	Address       string         // that the subscription goes to
	Subscriptions []Subscription // that have not ended, in the order of their places
}

// A Subscriber is a person or machine with its addresses.
type Subscriber struct {
	ID         string          `json:"id" doc:"chosen by the client, or per-..."`
	Addresses  []Address       `json:"addresses" doc:"the first of each kind is the default of channels of that kind"`
	Locale     string          `json:"locale,omitempty" doc:"language tag (BCP 47), such as de-AT"`
	TimeZone   string          `json:"time_zone,omitempty" doc:"IANA name, such as Europe/Vienna"`
	Attributes json.RawMessage `json:"attributes,omitempty" doc:"object: yours, for templates"`

	Place fanfare.RowID `json:"-"` // of its first row
}

// An Address is where a subscriber is reached. The first of a kind is the
// default of channels of that kind.
type Address struct {
	Kind    string `json:"kind" enum:"mail,url" doc:"what kind of channel reaches it"`
	Address string `json:"address" doc:"in the form of its kind"`
	Label   string `json:"label,omitempty" doc:"the client's own name for it, such as work"`
}

// A SubscriberSpec is what a subscriber shall be.
type SubscriberPut struct {
	Addresses  []Address       `json:"addresses,omitempty" doc:"at most 20; the first of each kind is the default of channels of that kind"`
	Locale     string          `json:"locale,omitempty" doc:"language tag (BCP 47), such as de-AT"`
	TimeZone   string          `json:"time_zone,omitempty" doc:"IANA name, such as Europe/Vienna"`
	Attributes json.RawMessage `json:"attributes,omitempty" doc:"object: yours, for templates"`
}

// subscriberPrefix begins the public id of a subscriber whose client chose none.
const subscriberPrefix = "per-"

// SubscriberID returns the public id of a subscriber whose client chose none.
func SubscriberID(p fanfare.RowID) string {
	return subscriberPrefix + strconv.FormatUint(uint64(p), 16)
}

// ParseSubscriberID reads what SubscriberID wrote.
func ParseSubscriberID(id string) (fanfare.RowID, bool) {
	hex, ok := strings.CutPrefix(id, subscriberPrefix)
	if !ok {
		return 0, false
	}
	p, err := strconv.ParseUint(hex, 16, 32)
	return fanfare.RowID(p), err == nil
}

func PublicSubscriberID(s *control.SubscriberRecord) string {
	if s.ID != "" {
		return s.ID
	}
	return SubscriberID(s.Place)
}

// HasPublicID reports whether a row is the one that a public id stands for, or
// stood for before it was merged.
func HasPublicID(s *control.SubscriberRecord, service uint32, id string) bool {
	return s.Service == service && (s.Subscriber == 0 || s.Flags&control.FlagMerged != 0) &&
		s.Flags&control.FlagErased == 0 && PublicSubscriberID(s) == id
}

func UnknownSubscriber(id string) *fanfare.Error {
	e := &fanfare.Error{Code: fanfare.NotFound, Message: "the service has no subscriber " + inputerror.Quote(id)}
	if strings.Contains(id, "@") {
		e.Hint = "to find the id of a subscriber by address, use fanfare subscriber list --address or /v1/subscribers?address="
	}
	return e
}

// NewSubscriber makes what users see of a subscriber out of its rows.
func NewSubscriber(head *control.SubscriberRecord, list []control.AddressRow, rows map[fanfare.RowID]*control.SubscriberRecord) Subscriber {
	s := Subscriber{ID: PublicSubscriberID(head), Addresses: []Address{}, Locale: head.Locale, TimeZone: head.TimeZone,
		Attributes: slices.Clone(head.Attributes), Place: head.Place}
	for _, p := range list {
		if row := rows[p.Place]; row != nil && row.HasAddress() {
			s.Addresses = append(s.Addresses, Address{addresskind.Names[row.Kind], row.Address, p.Label})
		}
	}
	return s
}

// A ImportedSubscriber is one of many subscribers: with an id it is put under that,
// without one it is created.
type ImportedSubscriber struct {
	ID string `json:"id,omitempty" doc:"chosen by the client; left out: one of ours"`
	SubscriberPut
}

// A SubscriberCheck is asked with a subscriber as it is, nil if there is none, before it is
// changed; its error refuses the change. Nil allows all.
type SubscriberCheck func(is *Subscriber) error

// Limits of one subscriber.
const (
	MaxAddresses  = 20
	MaxLabelBytes = 64
)

// CheckSubscriberID allows what checkID allows, and no id that looks like one of
// Fanfare's own.
func CheckSubscriberID(id string) error {
	if id == "" {
		return inputerror.Invalid("/id", "", "id is missing")
	}
	if strings.HasPrefix(id, subscriberPrefix) {
		return inputerror.Invalid("/id", "choose an id that does not begin with "+subscriberPrefix, "id %s is reserved", inputerror.Quote(id))
	}
	return CheckID(id)
}

// MergeAttributes adds to an object the members that it does not have.
func MergeAttributes(object, others []byte) ([]byte, error) {
	if len(object) == 0 || len(others) == 0 {
		return append(object, others...), nil
	}
	var is, more map[string]json.RawMessage
	if err := json.Unmarshal(others, &more); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(object, &is); err != nil {
		return nil, err
	}
	added := false
	for name, value := range more {
		if _, has := is[name]; !has {
			is[name], added = value, true
		}
	}
	if !added {
		return object, nil
	}
	both, err := json.Marshal(is)
	if err == nil && len(both) > maxAttributesBytes {
		err = &fanfare.Error{Code: fanfare.Conflict, Message: fmt.Sprintf("the merged attributes have %d bytes; at most %d are allowed", len(both), maxAttributesBytes)}
	}
	return both, err
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
