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

// A DirectRecipient is the recipient of a direct message: an address, or a subscriber,
// which means its first address of the channel's kind.
type DirectRecipient struct {
	Subscriber string        // public id, or ""
	Address    string        // only without a subscriber; in normal form after the lookup
	Place      fanfare.RowID // row id of the address; 0: no subscriber has it yet
	Err        error         // *fanfare.Error: the subscriber or its address does not exist
}

// A Person is the owner of the subscription in a link.
type Person struct {
	Subscriber
	Service       string
	Address       string         // address of the subscription
	Subscriptions []Subscription // active and paused ones, by row id
}

// A Subscriber is a person or machine with its addresses.
type Subscriber struct {
	ID         string          `json:"id" doc:"your own id, or per-... if the server assigned it"`
	Addresses  []Address       `json:"addresses" doc:"addresses; the first of each kind is the default for channels of that kind"`
	Locale     string          `json:"locale,omitempty" doc:"language tag (BCP 47), such as de-AT"`
	TimeZone   string          `json:"time_zone,omitempty" doc:"IANA name, such as Europe/Vienna"`
	Attributes json.RawMessage `json:"attributes,omitempty" doc:"object: your own data, for templates"`

	Place fanfare.RowID `json:"-"` // row id of its first row
}

// An Address is an address of a subscriber. The first of each kind is the
// default for channels of that kind.
type Address struct {
	Kind    string `json:"kind" enum:"mail,url,phone" doc:"kind of address: mail (email channels), url (webhook channels) or phone (SMS channels)"`
	Address string `json:"address" doc:"email address or URL, according to kind"`
	Label   string `json:"label,omitempty" doc:"your own name for the address, such as work"`
}

// A SubscriberPut is the new state of a subscriber.
type SubscriberPut struct {
	Addresses  []Address       `json:"addresses,omitempty" doc:"at most 20 addresses; the first of each kind is the default for channels of that kind"`
	Locale     string          `json:"locale,omitempty" doc:"language tag (BCP 47), such as de-AT"`
	TimeZone   string          `json:"time_zone,omitempty" doc:"IANA name, such as Europe/Vienna"`
	Attributes json.RawMessage `json:"attributes,omitempty" doc:"object: your own data, for templates"`
}

// subscriberPrefix begins the public ids of subscribers without a client's id.
const subscriberPrefix = "per-"

// SubscriberID returns the public id of a subscriber without a client's id.
func SubscriberID(p fanfare.RowID) string {
	return subscriberPrefix + strconv.FormatUint(uint64(p), 16)
}

// ParseSubscriberID parses an id in the format of SubscriberID.
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

// HasPublicID reports whether a row has a public id, or had it before it was merged.
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

// NewSubscriber returns the public form of a subscriber from its rows.
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

// An ImportedSubscriber is one subscriber of an import: with an id it is put under that id,
// without one it is created.
type ImportedSubscriber struct {
	ID string `json:"id,omitempty" doc:"your own id; default: the server assigns one"`
	SubscriberPut
}

// A SubscriberCheck is called with the current subscriber, or nil if there is none, before a
// change. Its error rejects the change. A nil check allows every change.
type SubscriberCheck func(is *Subscriber) error

// Limits of one subscriber.
const (
	MaxAddresses  = 20
	MaxLabelBytes = 64
)

// CheckSubscriberID allows the ids that CheckID allows, except those that look like ids
// assigned by Fanfare.
func CheckSubscriberID(id string) error {
	if id == "" {
		return inputerror.Invalid("/id", "", "id is missing")
	}
	if strings.HasPrefix(id, subscriberPrefix) {
		return inputerror.Invalid("/id", "choose an id that does not begin with "+subscriberPrefix, "id %s is reserved", inputerror.Quote(id))
	}
	return CheckID(id)
}

// MergeAttributes adds missing members to an object.
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

// A SubscriberRow has the fields of a subscriber that delivery needs. Strings may be kept
// after visit returns, but byte slices may not.
type SubscriberRow struct {
	Place      fanfare.RowID
	ID         string // public id
	Address    string
	Locale     string
	TimeZone   string
	Attributes []byte // JSON object or nil
}
