package deliveries

import (
	"context"
	"encoding/binary"
	"errors"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
)

// Notices are the outcomes of one group that services are notified about.
type Notices struct {
	ID      int64 // ascending, and never given out again
	Entries []fanfare.Entry
}

// keepNotices stores the entries of a group that services are notified about.
func keepNotices(in store.Session, entries []fanfare.Entry) error {
	var blob []byte
	told, at := 0, time.Time{}
	for i := range entries {
		if !entries[i].Told {
			continue
		}
		if blob = appendNotice(blob, &entries[i]); told == 0 {
			at = entries[i].At
		}
		told++
	}
	if told == 0 {
		return nil
	}
	return store.KeepNotice(in, nanos(at), told, blob)
}

// PlanNotices returns the oldest notices of a day that have not been delivered, of about so many groups. Until ToldNotices
// is called it returns the same notices, also after a restart and when newer ones exist.
func (s *Store) PlanNotices(ctx context.Context, of fanfare.Day, groups int) (plan []Notices, err error) {
	read, write := s.transactions(ctx, of)
	kept, err := store.PlanNotices(read, write, groups)
	for i := range kept {
		entries, err := readNotices(of, kept[i].Blob)
		if err != nil {
			return nil, err
		}
		plan = append(plan, Notices{kept[i].ID, entries})
	}
	return plan, err
}

// transactions returns the transactions of a day.
func (s *Store) transactions(ctx context.Context, of fanfare.Day) (read, write store.Transaction) {
	return func(fn func(store.Session) error) error { return s.read(ctx, of, fn) },
		func(fn func(store.Session) error) error { return s.write(ctx, of, fn) }
}

// ToldNotices deletes the notices of a plan after delivery.
func (s *Store) ToldNotices(ctx context.Context, of fanfare.Day, plan []Notices) error {
	_, write := s.transactions(ctx, of)
	return store.ToldNotices(write, plan[len(plan)-1].ID)
}

// WaitingNotices returns the number of undelivered outcomes of a day, and the time of the first.
func (s *Store) WaitingNotices(ctx context.Context, of fanfare.Day) (entries int64, since time.Time, err error) {
	read, _ := s.transactions(ctx, of)
	entries, at, err := store.WaitingNotices(read)
	return entries, timeAt(at), err
}

const (
	noticeReturned = 1 << iota
	noticeComplaint
)

// appendNotice appends an entry without the fields that services do not get: relay, address and time of the next attempt.
func appendNotice(b []byte, e *fanfare.Entry) []byte {
	var flags byte
	if e.Returned {
		flags |= noticeReturned
	}
	if e.Complaint {
		flags |= noticeComplaint
	}
	b = append(b, byte(e.State), flags)
	b = binary.AppendUvarint(b, uint64(e.Delivery.Manifest))
	b = binary.AppendUvarint(b, uint64(e.Delivery.Position))
	b = binary.AppendUvarint(b, uint64(e.Attempt))
	b = binary.AppendVarint(b, int64(e.Code))
	b = binary.AppendVarint(b, nanos(e.At))
	b = append(binary.AppendUvarint(b, uint64(len(e.Class))), e.Class...)
	return append(binary.AppendUvarint(b, uint64(len(e.Text))), e.Text...)
}

var errNotices = errors.New("a stored service notification is damaged")

// readNotices decodes the output of appendNotice.
func readNotices(of fanfare.Day, b []byte) (entries []fanfare.Entry, err error) {
	bad := false
	advance := func(n int) {
		if n <= 0 || n > len(b) {
			b, bad = nil, true
			return
		}
		b = b[n:]
	}
	uvarint := func() uint64 {
		v, n := binary.Uvarint(b)
		advance(n)
		return v
	}
	varint := func() int64 {
		v, n := binary.Varint(b)
		advance(n)
		return v
	}
	text := func() string {
		n := uvarint()
		if n == 0 || n > uint64(len(b)) {
			bad = bad || n > 0
			return ""
		}
		s := string(b[:n])
		advance(int(n))
		return s
	}
	for len(b) > 2 && !bad {
		e := fanfare.Entry{State: fanfare.State(b[0]), Returned: b[1]&noticeReturned != 0, Complaint: b[1]&noticeComplaint != 0, Told: true}
		b = b[2:]
		e.Delivery = fanfare.DeliveryRef{Day: of, Manifest: fanfare.ManifestID(uvarint()), Position: uint32(uvarint())}
		e.Attempt, e.Code, e.At = uint16(uvarint()), int(varint()), timeAt(varint())
		e.Class, e.Text = fanfare.Class(text()), text()
		bad = bad || int(e.State) >= fanfare.States
		entries = append(entries, e)
	}
	if bad || len(b) > 0 {
		return nil, errNotices
	}
	return entries, nil
}
