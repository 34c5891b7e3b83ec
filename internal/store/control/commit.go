package control

import (
	"context"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/background"
	"fanfare.dev/fanfare/internal/store"
)

// Commit stores all of b in one transaction, or nothing. Configuration survives a loss of power in each durability: events and
// manifests refer to its numbers, which must not be given to something else.
func (s *Store) Commit(b *Batch) error {
	keep := s.part.Write
	if b.SecureDelete {
		keep = s.part.Erase
	}
	ctx := context.Background()
	if err := keep(ctx, func(to store.Session) error { return commit(to, b) }); err != nil {
		return err
	}
	if len(b.Config) > 0 && s.sync != nil {
		_ = s.sync(ctx) // b is stored, and the server, which syncs regularly, reports that it cannot
	}
	return nil
}

func commit(s store.Session, b *Batch) error {
	if b.ChangeSeq != 0 {
		if err := s.Run("change_seq_set", int64(b.ChangeSeq)); err != nil {
			return err
		}
	}
	for i := range b.Config {
		if err := putConfig(s, &b.Config[i]); err != nil {
			return err
		}
	}
	for i := range b.Files {
		if err := s.Run("template_file_put", b.Files[i].Sum[:], b.Files[i].Content); err != nil {
			return err
		}
	}
	err := s.Insert("filters_insert", len(b.Filters), func(i int, to store.Values) {
		to.Int64(int64(b.Filters[i].Number))
		to.Text(b.Filters[i].Text)
	})
	if err != nil {
		return err
	}
	if err := insertAll(s, "subscribers_insert", &b.Subscribers, bindSubscriber); err != nil {
		return err
	}
	err = insertAll(s, "subscriptions_insert", &b.Subscriptions, func(to store.Values, r *SubscriptionRecord) {
		bindSubscription(to, r, b)
	})
	if err != nil {
		return err
	}
	for _, r := range b.SubscriberUpdates {
		if err := updateSubscriber(s, r); err != nil {
			return err
		}
	}
	for _, r := range b.SubscriptionUpdates {
		if err := updateSubscription(s, r); err != nil {
			return err
		}
	}
	if err := writeAudit(s, b); err != nil {
		return err
	}
	if err := writeConsents(s, b); err != nil {
		return err
	}
	if err := writeNotices(s, b); err != nil {
		return err
	}
	return putPrivacy(s, b)
}

func putConfig(s store.Session, r *ConfigRecord) error {
	var deleted int64
	if r.Deleted {
		deleted = 1
	}
	return s.Run("config_put", r.Kind, int64(r.Number), int64(r.Service), r.Name, string(r.Body), deleted)
}

// insertAll writes the rows of all partitions in order.
func insertAll[R any](s store.Session, statement string, rows *[fanfare.Partitions][]R, bind func(store.Values, *R)) error {
	n := 0
	for i := range rows {
		n += len(rows[i])
	}
	partition, before := 0, 0 // number of rows in the partitions before this one
	return s.Insert(statement, n, func(i int, to store.Values) {
		if i == 0 {
			partition, before = 0, 0
		}
		for i-before == len(rows[partition]) {
			before += len(rows[partition])
			partition++
		}
		background.Yield(i)
		bind(to, &rows[partition][i-before])
	})
}

func bindSubscriber(to store.Values, r *SubscriberRecord) {
	to.Int64(int64(r.Place))
	to.Int64(int64(r.Service))
	to.Int64(int64(r.Kind))
	to.Text(r.Address)
	bindText(to, r.ID)
	bindText(to, r.Locale)
	bindText(to, r.TimeZone)
	bindText(to, asString(r.Attributes))
}

func bindSubscription(to store.Values, r *SubscriptionRecord, b *Batch) {
	to.Int64(int64(r.Place))
	to.Int64(int64(r.Subscriber))
	to.Int64(int64(r.Topic))
	to.Int64(int64(r.Channel))
	to.Int64(b.At)
	to.Int64(int64(b.ChangeSeq))
	bindNumber(to, int64(r.Filter))
	bindNumber(to, int64(r.Rule))
	bindText(to, r.ID)
	bindText(to, asString(r.Params))
	bindText(to, asString(r.Data))
	bindNumber(to, int64(r.Slot))
	bindText(to, r.Title)
	bindText(to, r.Description)
}

// Empty values are stored as NULL.

func bindText(to store.Values, text string) {
	if text == "" {
		to.Null()
	} else {
		to.Text(text)
	}
}

func bindNumber(to store.Values, n int64) {
	if n == 0 {
		to.Null()
	} else {
		to.Int64(n)
	}
}

func updateSubscriber(s store.Session, r *SubscriberRecord) error {
	return s.Run("subscriber_update", int64(r.Kind), r.Address, text(r.ID), text(r.Locale), text(r.TimeZone), text(string(r.Attributes)),
		number(int64(r.Subscriber)), text(string(r.RowsJSON)), number(int64(r.Flags)), int64(r.Place))
}

func updateSubscription(s store.Session, r *SubscriptionRecord) error {
	var endedAt, endedSeq, reason any
	if r.Ended {
		endedAt, endedSeq, reason = r.EndedAt, int64(r.EndedSeq), r.Reason
	}
	return s.Run("subscription_update", int64(r.Channel), number(int64(r.Filter)), number(int64(r.Rule)), text(string(r.Params)), text(string(r.Data)),
		endedAt, endedSeq, reason, text(r.ID), number(r.PausedAt), number(int64(r.PausedSeq)), number(int64(r.ResumedSeq)),
		number(int64(r.Slot)), text(string(r.PastSlots)), text(r.Title), text(r.Description), int64(r.Place))
}

func text(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func number(n int64) any {
	if n == 0 {
		return nil
	}
	return n
}
