package mailbox

import (
	"context"
	"errors"
	"fmt"

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
	return Record{Account: id, ID: RecordID(r.Int64(0)), Created: ModSeq(r.Int64(1)), Changed: ModSeq(r.Int64(2)), Removed: flags&recordRemoved != 0, Work: flags&recordWork != 0, Body: r.Text(4)}
}

func (r *Record) flags() int64 { return bit(r.Removed)*recordRemoved | bit(r.Work)*recordWork }

// Records returns the records of a kind in the order of their numbers, and the state of the account.
func (s *Store) Records(ctx context.Context, id AccountID, kind RecordKind) (list []Record, state ModSeq, err error) {
	return s.records(ctx, id, kind, -1)
}

// RecordChanges returns the records that were created, changed or removed after a ModSeq, and the state of the account. It fails with
// ErrOldModSeq if removals may be missing.
func (s *Store) RecordChanges(ctx context.Context, id AccountID, kind RecordKind, since ModSeq) (list []Record, state ModSeq, err error) {
	return s.records(ctx, id, kind, max(0, since))
}

// records reads records after a ModSeq; -1 is for those that exist.
func (s *Store) records(ctx context.Context, id AccountID, kind RecordKind, since ModSeq) (list []Record, state ModSeq, err error) {
	err = s.snapshot(ctx, id, func(session store.Session, a *account) error {
		list, state = nil, a.State
		if since >= 0 && (since < a.Oldest || since > a.State) {
			return ErrOldModSeq
		}
		return session.Each("records_since", func(r store.Row) error {
			if one := recordOf(id, r); since >= 0 || !one.Removed {
				list = append(list, one)
			}
			return nil
		}, int64(id), int64(kind), int64(since))
	})
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

// AddRecord stores a new record. most limits the records of the kind, 0 does not.
func (s *Store) AddRecord(ctx context.Context, id AccountID, kind RecordKind, work bool, body string, most int) (result Record, err error) {
	err = s.queue.do(ctx, &change{accounts: []AccountID{id}, run: func(u *unit) error {
		a, err := u.account(id)
		if err != nil {
			return err
		}
		if most > 0 {
			n := 0
			err := u.session.Each("records_since", func(r store.Row) error {
				if one := recordOf(id, r); !one.Removed {
					n++
				}
				return nil
			}, int64(id), int64(kind), int64(-1))
			if err != nil {
				return err
			}
			if n >= most {
				return named(ErrTooMany, &fanfare.Error{Code: fanfare.Conflict, Message: fmt.Sprintf("the account has %d records of this type, which is the maximum", n), Hint: "remove one first"})
			}
		}
		result = Record{Account: id, Work: work, Body: body}
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
	if kind == SubscriptionRecord {
		return 0
	}
	return a.next()
}

func (u *unit) putRecord(kind RecordKind, r *Record) error {
	return u.session.Run("record_put", int64(r.Account), int64(kind), int64(r.ID), int64(r.Created), int64(r.Changed), r.flags(), r.Body)
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
		return u.putRecord(kind, &result)
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
