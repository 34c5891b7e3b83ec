package registry

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/inputerror"
	"fanfare.dev/fanfare/internal/store/control"
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

func subscriberID(s *control.SubscriberRecord) string {
	if s.ID != "" {
		return s.ID
	}
	return SubscriberID(s.Place)
}

// answersTo reports whether a row is the one that a public id stands for, or
// stood for before it was merged.
func answersTo(s *control.SubscriberRecord, service uint32, id string) bool {
	return s.Service == service && (s.Subscriber == 0 || s.Flags&control.FlagMerged != 0) &&
		s.Flags&control.FlagErased == 0 && subscriberID(s) == id
}

func unknownSubscriber(id string) *fanfare.Error {
	e := &fanfare.Error{Code: fanfare.NotFound, Message: "the service has no subscriber " + inputerror.Quote(id)}
	if strings.Contains(id, "@") {
		e.Hint = "where this is an address: fanfare subscriber list --address, and /v1/subscribers?address=, find the id of who has it"
	}
	return e
}

// shown makes what users see of a subscriber out of its rows.
func shown(head *control.SubscriberRecord, list []control.AddressRow, rows map[fanfare.RowID]*control.SubscriberRecord) Subscriber {
	s := Subscriber{ID: subscriberID(head), Addresses: []Address{}, Locale: head.Locale, TimeZone: head.TimeZone,
		Attributes: slices.Clone(head.Attributes), Place: head.Place}
	for _, p := range list {
		if row := rows[p.Place]; row != nil && row.HasAddress() {
			s.Addresses = append(s.Addresses, Address{catalog.AddressKindNames[row.Kind], row.Address, p.Label})
		}
	}
	return s
}
