package control

import (
	"encoding/json"
	"slices"

	"fanfare.dev/fanfare"
)

// SortPlaces sorts places and removes duplicates.
func SortPlaces(places []fanfare.RowID) []fanfare.RowID {
	slices.Sort(places)
	return slices.Compact(places)
}

// A SubscriberRecord is a row of a subscriber as it is stored.
type SubscriberRecord struct {
	Place      fanfare.RowID
	Service    uint32
	Kind       uint8  // of the address
	ID         string // chosen by the client, or ""
	Address    string
	Locale     string
	TimeZone   string
	Attributes []byte // JSON object, or empty

	// The first row of a subscriber has its data and its first address. Each further address has
	// a row that refers to the first row and uses only the address.
	Subscriber fanfare.RowID // first row; 0: this row is the first
	RowsJSON   []byte        // JSON of all rows of the subscriber, in order; empty: this row alone
	Flags      SubscriberFlags
}

// SubscriberFlags are the states of a subscriber's row. They are stored.
type SubscriberFlags uint8

// The flags.
const (
	FlagAddressGone SubscriberFlags = 1 << iota // the subscriber has this address no longer; its history keeps it
	FlagDeleted                                 // first row: the subscriber is deleted, its history is kept
	FlagMerged                                  // first row: the id is a former id of SubscriberRecord.Subscriber
	FlagErasing                                 // all rows: an erasure has begun, nobody finds the subscriber
	FlagErased                                  // only the place is left
)

// HasAddress reports whether the address of the row is in use.
func (s *SubscriberRecord) HasAddress() bool {
	return s.Kind != 0 && s.Flags&(FlagAddressGone|FlagErasing|FlagErased) == 0
}

// Head returns the place of the first row of the subscriber.
func (s *SubscriberRecord) Head() fanfare.RowID {
	if s.Subscriber != 0 {
		return s.Subscriber
	}
	return s.Place
}

// An AddressRow refers to one row of a subscriber and has the label of its address.
type AddressRow struct {
	Place fanfare.RowID `json:"p"`
	Label string        `json:"l,omitempty"`
}

// Rows lists the rows of a subscriber in the order of its addresses.
func (s *SubscriberRecord) Rows() []AddressRow {
	var list []AddressRow
	if len(s.RowsJSON) == 0 || json.Unmarshal(s.RowsJSON, &list) != nil {
		return []AddressRow{{Place: s.Place}}
	}
	return list
}

// SetRows sets the list. A single row without a label needs no list.
func (s *SubscriberRecord) SetRows(list []AddressRow) {
	s.RowsJSON = nil
	if len(list) > 1 || len(list) == 1 && list[0] != (AddressRow{Place: s.Place}) {
		s.RowsJSON, _ = json.Marshal(list) // numbers and texts: cannot fail
	}
}

// PlacesOf returns the places of rows in ascending order.
func PlacesOf(list []AddressRow) []fanfare.RowID {
	places := make([]fanfare.RowID, len(list))
	for i := range list {
		places[i] = list[i].Place
	}
	return SortPlaces(places)
}
