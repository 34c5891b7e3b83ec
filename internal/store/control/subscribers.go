package control

import (
	"encoding/json"
	"slices"

	"fanfare.dev/fanfare"
)

func SortPlaces(places []fanfare.Place) []fanfare.Place {
	slices.Sort(places)
	return slices.Compact(places)
}

// A SubscriberRecord is a subscriber as kept.
type SubscriberRecord struct {
	Place      fanfare.Place
	Service    uint32
	Kind       uint8  // of the address
	ID         string // chosen by the client, or ""
	Address    string
	Locale     string
	TimeZone   string
	Attributes []byte // JSON object, or empty

	// A row is a subscriber and its first address. Further addresses have rows of
	// their own, which name the first row here and use nothing but their address.
	Subscriber fanfare.Place // 0: this row is the subscriber
	Parts      []byte        // JSON: all rows of the subscriber, in order; empty: this one alone
	Flags      SubscriberFlags
}

// SubscriberFlags say what became of a subscriber's row. They are stored.
type SubscriberFlags uint8

// The flags.
const (
	FlagAddressGone SubscriberFlags = 1 << iota // the address is not the subscriber's any more; history has it
	FlagDeleted                                 // of the subscriber: deleted, and its history kept
	FlagMerged                                  // of the subscriber: its id is a former one of SubscriberRecord.Subscriber
	FlagErasing                                 // of all its rows: nobody finds it any more
	FlagErased                                  // nothing is left but the place
)

// HasAddress reports whether the row's address is in use.
func (s *SubscriberRecord) HasAddress() bool {
	return s.Kind != 0 && s.Flags&(FlagAddressGone|FlagErasing|FlagErased) == 0
}

// Head is the place of the subscriber that the row belongs to.
func (s *SubscriberRecord) Head() fanfare.Place {
	if s.Subscriber != 0 {
		return s.Subscriber
	}
	return s.Place
}

// A AddressRow is one row of a subscriber that has several, or a label.
type AddressRow struct {
	Place fanfare.Place `json:"p"`
	Label string        `json:"l,omitempty"`
}

// Rows lists the rows of a subscriber in the order of its addresses.
func (s *SubscriberRecord) Rows() []AddressRow {
	var list []AddressRow
	if len(s.Parts) == 0 || json.Unmarshal(s.Parts, &list) != nil {
		return []AddressRow{{Place: s.Place}}
	}
	return list
}

// SetRows keeps the list; a single row without a label needs none.
func (s *SubscriberRecord) SetRows(list []AddressRow) {
	s.Parts = nil
	if len(list) > 1 || len(list) == 1 && list[0] != (AddressRow{Place: s.Place}) {
		s.Parts, _ = json.Marshal(list) // numbers and texts: cannot fail
	}
}

func PlacesOf(list []AddressRow) []fanfare.Place {
	places := make([]fanfare.Place, len(list))
	for i := range list {
		places[i] = list[i].Place
	}
	return SortPlaces(places)
}
