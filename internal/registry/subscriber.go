package registry

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"fanfare.dev/fanfare/internal/inputerror"

	"fanfare.dev/fanfare"
)

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

// A SubscriberPut is what a subscriber shall be.
type SubscriberPut struct {
	Addresses  []Address       `json:"addresses,omitempty" doc:"at most 20; the first of each kind is the default of channels of that kind"`
	Locale     string          `json:"locale,omitempty" doc:"language tag (BCP 47), such as de-AT"`
	TimeZone   string          `json:"time_zone,omitempty" doc:"IANA name, such as Europe/Vienna"`
	Attributes json.RawMessage `json:"attributes,omitempty" doc:"object: yours, for templates"`
}

// Flags say what became of a subscriber's row. They are stored.
type Flags uint8

// The flags.
const (
	FlagAddressGone Flags = 1 << iota // the address is not the subscriber's any more; history has it
	FlagDeleted                       // of the subscriber: deleted, and its history kept
	FlagMerged                        // of the subscriber: its id is a former one of SubscriberRecord.Subscriber
	FlagErasing                       // of all its rows: nobody finds it any more
	FlagErased                        // nothing is left but the place
)

// hasAddress reports whether the row's address is in use.
func (s *SubscriberRecord) hasAddress() bool {
	return s.Kind != 0 && s.Flags&(FlagAddressGone|FlagErasing|FlagErased) == 0
}

// head is the place of the subscriber that the row belongs to.
func (s *SubscriberRecord) head() fanfare.RowID {
	if s.Subscriber != 0 {
		return s.Subscriber
	}
	return s.Place
}

// A part is one row of a subscriber that has several, or a label.
type part struct {
	Place fanfare.RowID `json:"p"`
	Label string        `json:"l,omitempty"`
}

// parts lists the rows of a subscriber in the order of its addresses.
func (s *SubscriberRecord) parts() []part {
	var list []part
	if len(s.Parts) == 0 || json.Unmarshal(s.Parts, &list) != nil {
		return []part{{Place: s.Place}}
	}
	return list
}

// setParts keeps the list; a single row without a label needs none.
func (s *SubscriberRecord) setParts(list []part) {
	s.Parts = nil
	if len(list) > 1 || len(list) == 1 && list[0] != (part{Place: s.Place}) {
		s.Parts, _ = json.Marshal(list) // numbers and texts: cannot fail
	}
}

func placesOf(list []part) []fanfare.RowID {
	places := make([]fanfare.RowID, len(list))
	for i := range list {
		places[i] = list[i].Place
	}
	return sorted(places)
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

func subscriberID(s *SubscriberRecord) string {
	if s.ID != "" {
		return s.ID
	}
	return SubscriberID(s.Place)
}

// answersTo reports whether a row is the one that a public id stands for, or
// stood for before it was merged.
func (s *SubscriberRecord) answersTo(service uint32, id string) bool {
	return s.Service == service && (s.Subscriber == 0 || s.Flags&FlagMerged != 0) &&
		s.Flags&FlagErased == 0 && subscriberID(s) == id
}

func unknownSubscriber(id string) *fanfare.Error {
	e := &fanfare.Error{Code: fanfare.NotFound, Message: "the service has no subscriber " + inputerror.Quote(id)}
	if strings.Contains(id, "@") {
		e.Hint = "where this is an address: fanfare subscriber list --address, and /v1/subscribers?address=, find the id of who has it"
	}
	return e
}

// shown makes what users see of a subscriber out of its rows.
func shown(head *SubscriberRecord, list []part, rows map[fanfare.RowID]*SubscriberRecord) Subscriber {
	s := Subscriber{ID: subscriberID(head), Addresses: []Address{}, Locale: head.Locale, TimeZone: head.TimeZone,
		Attributes: slices.Clone(head.Attributes), Place: head.Place}
	for _, p := range list {
		if row := rows[p.Place]; row != nil && row.hasAddress() {
			s.Addresses = append(s.Addresses, Address{kindNames[row.Kind], row.Address, p.Label})
		}
	}
	return s
}
