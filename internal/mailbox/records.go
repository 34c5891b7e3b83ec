package mailbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
)

// A RecordKind is the kind of a Record. The numbers are stored.
type RecordKind uint8

// The kinds.
const (
	IdentityRecord     RecordKind = 1
	SubmissionRecord   RecordKind = 2
	SubscriptionRecord RecordKind = 3 // of push; it belongs to a login, so that the state of the account does not change with it
	NameRecord         RecordKind = 4 // the subscribed name of a mailbox that does not exist; JMAP does not show it
)

// A RecordID is the number of a Record, which is never used again.
type RecordID int64

// A Record is something that an account has besides mailboxes and messages. Package mailbox does not read its body.
type Record struct {
	Account AccountID
	ID      RecordID
	Created ModSeq
	Changed ModSeq
	Removed bool
	Work    bool   // the server has something to do: RecordsWithWork finds it
	at      int64  // when it was stored; 0: by a version that did not store this
	Body    string // JSON
}

// Flags of a stored record.
const (
	recordRemoved = 1
	recordWork    = 2
)

// ErrNoRecord is a named error, as those of ErrNoAccount are.
var ErrNoRecord = errors.New("the record does not exist")

func noRecord() error {
	return named(ErrNoRecord, &fanfare.Error{Code: fanfare.NotFound, Message: "the record does not exist", Hint: "list the records of the account"})
}

func recordOf(id AccountID, r store.Row) Record {
	flags := r.Int64(3)
	return Record{Account: id, ID: RecordID(r.Int64(0)), Created: ModSeq(r.Int64(1)), Changed: ModSeq(r.Int64(2)), Removed: flags&recordRemoved != 0, Work: flags&recordWork != 0, at: r.Int64(4), Body: r.Text(5)}
}

func (r *Record) flags() int64 { return bit(r.Removed)*recordRemoved | bit(r.Work)*recordWork }

// Records returns the records of a kind in the order of their numbers, and the state of the account.
func (s *Store) Records(ctx context.Context, id AccountID, kind RecordKind) (list []Record, state ModSeq, err error) {
	return s.SomeRecords(ctx, id, kind, 0, func(*Record) bool { return true })
}

// errEnough ends a read of records.
var errEnough = errors.New("enough records were read")

// SomeRecords returns the records of a kind that are wanted, in the order of their numbers, and the state of the account. It reads no further
// after n of them; 0 is no limit.
func (s *Store) SomeRecords(ctx context.Context, id AccountID, kind RecordKind, n int, wanted func(*Record) bool) (list []Record, state ModSeq, err error) {
	err = s.snapshot(ctx, id, func(session store.Session, a *account) error {
		list, state = nil, a.State
		err := session.Each("records", func(r store.Row) error {
			if one := recordOf(id, r); wanted(&one) {
				list = append(list, one)
			}
			if n > 0 && len(list) == n {
				return errEnough
			}
			return nil
		}, int64(id), int64(kind))
		if errors.Is(err, errEnough) {
			return nil
		}
		return err
	})
	return list, state, err
}

// RecordsByID returns those of the named records that exist, in the order of records, and the state of the account.
func (s *Store) RecordsByID(ctx context.Context, id AccountID, kind RecordKind, records []RecordID) (list []Record, state ModSeq, err error) {
	err = s.snapshot(ctx, id, func(session store.Session, a *account) error {
		list, state = nil, a.State
		if len(records) == 0 {
			return nil
		}
		return session.EachOf("record", len(records), func(i int) []any { return []any{int64(id), int64(kind), int64(records[i])} }, func(_ int, r store.Row) error {
			if one := recordOf(id, r); !one.Removed {
				list = append(list, one)
			}
			return nil
		})
	})
	return list, state, err
}

// RecordChanges returns the records that were created, changed or removed after a ModSeq, in the order of their numbers, and the state of the account.
// It fails with ErrOldModSeq if removals may be missing.
func (s *Store) RecordChanges(ctx context.Context, id AccountID, kind RecordKind, since ModSeq) (list []Record, state ModSeq, err error) {
	since = max(0, since)
	err = s.snapshot(ctx, id, func(session store.Session, a *account) error {
		list, state = nil, a.State
		if since < a.Oldest || since > a.State {
			return ErrOldModSeq
		}
		return session.Each("records_since", func(r store.Row) error { list = append(list, recordOf(id, r)); return nil }, int64(id), int64(kind), int64(since))
	})
	slices.SortFunc(list, func(a, b Record) int { return cmp.Compare(a.ID, b.ID) })
	return list, state, err
}

// Record returns a record. It fails with ErrNoRecord.
func (s *Store) Record(ctx context.Context, id AccountID, kind RecordKind, record RecordID) (result Record, err error) {
	err = s.part.Read(ctx, func(session store.Session) error {
		result, err = readRecord(session, id, kind, record)
		return err
	})
	return result, err
}

func readRecord(session store.Session, id AccountID, kind RecordKind, record RecordID) (result Record, err error) {
	err = session.Each("record", func(r store.Row) error { result = recordOf(id, r); return nil }, int64(id), int64(kind), int64(record))
	if err == nil && (result.ID == 0 || result.Removed) {
		err = noRecord()
	}
	return result, err
}

// AddRecord stores a new record. most limits the records of the kind, 0 does not. A disabled account gets no SubmissionRecord: it sends nothing.
func (s *Store) AddRecord(ctx context.Context, id AccountID, kind RecordKind, work bool, body string, most int) (result Record, err error) {
	err = s.queue.do(ctx, &change{accounts: []AccountID{id}, run: func(u *unit) error {
		a, err := u.account(id)
		if err != nil {
			return err
		}
		if kind == SubmissionRecord {
			if err := a.enabled(); err != nil {
				return err
			}
		}
		if most > 0 {
			n := 0
			err := u.session.Each("records", func(store.Row) error { n++; return nil }, int64(id), int64(kind))
			if err != nil {
				return err
			}
			if n >= most {
				return named(ErrTooMany, &fanfare.Error{Code: fanfare.Conflict, Message: fmt.Sprintf("the account has %d records of this type, which is the maximum", n), Hint: "remove one first"})
			}
		}
		result = Record{Account: id, Work: work, at: u.now, Body: body}
		u.wrote = true
		err = u.session.Each("mailbox_numbers_take", func(r store.Row) error { result.ID = RecordID(r.Int64(0)); return nil }, "record", int64(1))
		if err != nil {
			return err
		}
		result.Created = a.recordSeq(kind)
		result.Changed = result.Created
		return u.putRecord(kind, &result)
	}})
	return result, err
}

// recordSeq is the ModSeq of a change of a record.
func (a *account) recordSeq(kind RecordKind) ModSeq {
	if kind == SubscriptionRecord || kind == NameRecord {
		return 0
	}
	return a.next()
}

func (u *unit) putRecord(kind RecordKind, r *Record) error {
	return u.session.Run("record_put", int64(r.Account), int64(kind), int64(r.ID), int64(r.Created), int64(r.Changed), r.flags(), r.at, r.Body)
}

// EditRecord changes a record in one transaction: edit sets Body, Work and Removed. If it leaves them as they are, nothing changes. Its error
// leaves the record as it was, and is returned. It may be called several times. EditRecord fails with ErrNoRecord.
func (s *Store) EditRecord(ctx context.Context, id AccountID, kind RecordKind, record RecordID, edit func(*Record) error) (result Record, err error) {
	err = s.queue.do(ctx, &change{accounts: []AccountID{id}, run: func(u *unit) error {
		a, err := u.account(id)
		if err != nil {
			return err
		}
		before, err := readRecord(u.session, id, kind, record)
		if err != nil {
			return err
		}
		result = before
		if err := edit(&result); err != nil {
			return err
		}
		if result.Removed {
			result.Body, result.Work = "", false
		}
		if result == before {
			return nil
		}
		u.wrote = true
		result.Changed = a.recordSeq(kind)
		if err := u.putRecord(kind, &result); err != nil || !result.Removed || result.Changed%removalsChecked != 0 {
			return err
		}
		return u.shortenLog(a)
	}})
	return result, err
}

// RemoveRecord removes a record. It fails with ErrNoRecord.
func (s *Store) RemoveRecord(ctx context.Context, id AccountID, kind RecordKind, record RecordID) error {
	_, err := s.EditRecord(ctx, id, kind, record, func(r *Record) error { r.Removed = true; return nil })
	return err
}

// A RecordPlace names a record.
type RecordPlace struct {
	Account AccountID
	ID      RecordID
}

// RecordsWithWork returns up to n records of a kind with which the server has work, after a place, in the order of their accounts and numbers.
func (s *Store) RecordsWithWork(ctx context.Context, kind RecordKind, after RecordPlace, n int) (list []RecordPlace, err error) {
	err = s.part.Read(ctx, func(session store.Session) error {
		list = nil
		return session.Each("records_with_work", func(r store.Row) error {
			list = append(list, RecordPlace{AccountID(r.Int64(0)), RecordID(r.Int64(1))})
			return nil
		}, int64(kind), int64(after.Account), int64(after.ID), int64(n))
	})
	return list, err
}

// WorkOf returns the records of a kind of one account with which the server has work. It does not read the messages in blocks first, and an account
// that does not exist has none.
func (s *Store) WorkOf(ctx context.Context, id AccountID, kind RecordKind) (list []Record, err error) {
	err = s.part.Read(ctx, func(session store.Session) error {
		list = nil
		return session.Each("records", func(r store.Row) error {
			if one := recordOf(id, r); one.Work {
				list = append(list, one)
			}
			return nil
		}, int64(id), int64(kind))
	})
	return list, err
}

// RemoveOldSubmissions removes the records of submissions that are older than Submissions and with which the server has no work, as changes of
// their accounts.
func (s *Store) RemoveOldSubmissions(ctx context.Context) error {
	if s.o.Submissions == 0 {
		return nil
	}
	for {
		before := s.o.Clock.Now().Add(-s.o.Submissions).Unix()
		var old []RecordPlace
		err := s.part.Read(ctx, func(session store.Session) error {
			old = nil
			return session.Each("records_old", func(r store.Row) error {
				old = append(old, RecordPlace{AccountID(r.Int64(0)), RecordID(r.Int64(1))})
				return nil
			}, int64(SubmissionRecord), before, int64(cleanupRows))
		})
		if err != nil || len(old) == 0 {
			return err
		}
		if changed, err := s.removeSubmissions(ctx, old, before); err != nil || !changed {
			return err
		}
	}
}

// removeSubmissions removes those of the records that are still old and without work, and reports whether it changed any. Records of an earlier version have no time: they get one.
func (s *Store) removeSubmissions(ctx context.Context, old []RecordPlace, before int64) (changed bool, err error) {
	c := &change{run: func(u *unit) error {
		changed, u.wrote = false, true
		shortened := map[AccountID]bool{}
		for _, place := range old {
			a, err := u.account(place.Account)
			if err != nil {
				continue // it was removed meanwhile, with its records
			}
			r, err := readRecord(u.session, place.Account, SubmissionRecord, place.ID)
			switch {
			case errors.Is(err, ErrNoRecord):
				continue
			case err != nil:
				return err
			case r.Work || r.at > before:
				continue
			case r.at == 0:
				r.at = u.now
			default:
				r.Removed, r.Body, r.Changed = true, "", a.next()
				shortened[place.Account] = true
			}
			if err := u.putRecord(SubmissionRecord, &r); err != nil {
				return err
			}
			changed = true
		}
		for _, id := range sortedKeys(shortened) {
			if err := u.shortenLog(u.accounts[id]); err != nil {
				return err
			}
		}
		return nil
	}}
	for _, place := range old {
		c.accounts = append(c.accounts, place.Account)
	}
	slices.Sort(c.accounts)
	c.accounts = slices.Compact(c.accounts)
	err = s.queue.do(ctx, c)
	return changed, err
}
