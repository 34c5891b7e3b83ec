package control

import (
	"context"

	"fanfare.dev/fanfare/internal/store"
)

// A NotifyBCKey identifies a record of the NotifyBC API.
type NotifyBCKey struct {
	Service string
	Kind    string
	ID      string
}

// A NotifyBCRecord is a record of the NotifyBC API that has no table of its own.
type NotifyBCRecord struct {
	NotifyBCKey
	Created int64  // Unix milliseconds
	Updated int64  // Unix milliseconds
	Body    string // JSON
}

// ChangeNotifyBCRecords stores records, which replace those with the same keys, and deletes others, in one transaction. It is durable when it returns.
func (s *Store) ChangeNotifyBCRecords(ctx context.Context, put []NotifyBCRecord, deleted ...NotifyBCKey) error {
	return s.part.Write(ctx, func(session store.Session) error { return changeNotifyBC(session, put, deleted) })
}

// EraseNotifyBCRecords is ChangeNotifyBCRecords for records of a person who is erased: what they contained before is overwritten.
func (s *Store) EraseNotifyBCRecords(ctx context.Context, put []NotifyBCRecord, deleted ...NotifyBCKey) error {
	return s.part.Erase(ctx, func(session store.Session) error { return changeNotifyBC(session, put, deleted) })
}

func changeNotifyBC(session store.Session, put []NotifyBCRecord, deleted []NotifyBCKey) error {
	for i := range put {
		r := &put[i]
		if err := session.Run("notifybc_put", r.Service, r.Kind, r.ID, r.Created, r.Updated, r.Body); err != nil {
			return err
		}
	}
	for _, key := range deleted {
		if err := session.Run("notifybc_delete", key.Service, key.Kind, key.ID); err != nil {
			return err
		}
	}
	return nil
}

// NotifyBCRecord returns a record, or nil if there is none.
func (s *Store) NotifyBCRecord(ctx context.Context, key NotifyBCKey) (found *NotifyBCRecord, err error) {
	err = s.part.Read(ctx, func(session store.Session) error {
		found = nil
		return session.Each("notifybc_record", func(r store.Row) error {
			found = &NotifyBCRecord{key, r.Int64(1), r.Int64(2), r.Text(3)}
			return nil
		}, key.Service, key.Kind, key.ID)
	})
	return found, err
}

// NotifyBCRecords returns at most limit records of a kind whose ids are greater than after, in the order of their ids.
func (s *Store) NotifyBCRecords(ctx context.Context, service, kind, after string, limit int64) (list []NotifyBCRecord, err error) {
	err = s.part.Read(ctx, func(session store.Session) error {
		list = nil
		return session.Each("notifybc_records", func(r store.Row) error {
			list = append(list, NotifyBCRecord{NotifyBCKey{service, kind, r.Text(0)}, r.Int64(1), r.Int64(2), r.Text(3)})
			return nil
		}, service, kind, after, limit)
	})
	return list, err
}
