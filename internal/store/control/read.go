package control

import (
	"strings"
	"unsafe"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
)

// readSubscribers and readSubscriptions decode a row into a record. The caller must not keep any part of the record, so that reading a row
// allocates nothing.

func readSubscribers(visit func(*SubscriberRecord) error) func(store.Row) error {
	var buf arena
	var r SubscriberRecord
	return func(row store.Row) error {
		buf.reset()
		buf.subscriber(row, &r)
		return visit(&r)
	}
}

func readSubscriptions(visit func(*SubscriptionRecord) error) func(store.Row) error {
	var buf arena
	var r SubscriptionRecord
	return func(row store.Row) error {
		buf.reset()
		buf.subscription(row, &r)
		return visit(&r)
	}
}

// keptSubscribers and keptSubscriptions decode a row into a record whose strings the caller may keep.

func keptSubscribers(visit func(*SubscriberRecord) error) func(store.Row) error {
	return readSubscribers(func(r *SubscriberRecord) error {
		r.Address, r.ID = strings.Clone(r.Address), strings.Clone(r.ID)
		r.Locale, r.TimeZone = strings.Clone(r.Locale), strings.Clone(r.TimeZone)
		return visit(r)
	})
}

func keptSubscriptions(visit func(*SubscriptionRecord) error) func(store.Row) error {
	return readSubscriptions(func(r *SubscriptionRecord) error {
		r.ID, r.Reason = strings.Clone(r.ID), strings.Clone(r.Reason)
		r.Title, r.Description = strings.Clone(r.Title), strings.Clone(r.Description)
		return visit(r)
	})
}

// An arena holds the texts of one row.
type arena struct {
	buf  []byte
	used int
}

func (a *arena) reset() { a.used = 0 }

// bytes returns a column's text, valid until reset; nil for NULL.
func (a *arena) bytes(row store.Row, column int) []byte {
	n := row.Len(column)
	if n == 0 {
		return nil
	}
	if a.used+n > len(a.buf) {
		// The old buffer is not reused, so values that point into it stay valid.
		a.buf, a.used = make([]byte, max(1024, 2*(a.used+n))), 0
	}
	b := a.buf[a.used : a.used+n : a.used+n]
	row.Copy(column, b)
	a.used += n
	return b
}

func (a *arena) text(row store.Row, column int) string { return asString(a.bytes(row, column)) }

func (a *arena) subscriber(row store.Row, r *SubscriberRecord) {
	*r = SubscriberRecord{
		Place:      fanfare.RowID(row.Int64(0)),
		Service:    uint32(row.Int64(1)),
		Kind:       uint8(row.Int64(2)),
		Address:    a.text(row, 3),
		ID:         a.text(row, 4),
		Locale:     a.text(row, 5),
		TimeZone:   a.text(row, 6),
		Attributes: a.bytes(row, 7),
		Subscriber: fanfare.RowID(row.Int64(8)),
		RowsJSON:   a.bytes(row, 9),
		Flags:      SubscriberFlags(row.Int64(10)),
	}
}

func (a *arena) subscription(row store.Row, r *SubscriptionRecord) {
	*r = SubscriptionRecord{
		Place:      fanfare.RowID(row.Int64(0)),
		Subscriber: fanfare.RowID(row.Int64(1)),
		Topic:      uint32(row.Int64(2)),
		Channel:    uint16(row.Int64(3)),
		CreatedAt:  row.Int64(4),
		CreatedSeq: uint64(row.Int64(5)),
		Filter:     uint32(row.Int64(6)),
		Rule:       uint32(row.Int64(7)),
		ID:         a.text(row, 8),
		Params:     a.bytes(row, 9),
		Data:       a.bytes(row, 10),
		EndedAt:    row.Int64(11),
		EndedSeq:   uint64(row.Int64(12)),
		Reason:     a.text(row, 13),
		PausedAt:   row.Int64(14),
		PausedSeq:  uint64(row.Int64(15)),
		ResumedSeq: uint64(row.Int64(16)),
		Slot:       uint16(row.Int64(17)),
		PastSlots:  a.bytes(row, 18),

		Title:       a.text(row, 19),
		Description: a.text(row, 20),
	}
	r.Ended = r.EndedSeq != 0
	r.Paused = r.PausedSeq != 0 && r.ResumedSeq == 0
}

// asString is b as a string without a copy; b must not change while it is used.
func asString(b []byte) string {
	return unsafe.String(unsafe.SliceData(b), len(b)) //nolint:gosec // saves a copy of every text that is read or written
}
