package control

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
)

// A Notice tells a service about a change of one of its subscribers: of a subscription or of the
// suppression of an address. It has places only and no personal data; the notifier looks up the
// names when it publishes the notice.
type Notice struct {
	Kind    NoticeKind `json:"kind"`
	Source  string     `json:"source"`           // one of the Source constants of the registry
	Reason  string     `json:"reason,omitempty"` // why, in one word
	At      int64      `json:"at"`               // Unix nanoseconds
	Service uint32     `json:"service"`

	Subscription fanfare.RowID `json:"subscription,omitempty"` // 0: the notice is about an address
	Topic        uint32        `json:"topic,omitempty"`        // of the subscription
	Channel      uint16        `json:"channel,omitempty"`
	Fields       []string      `json:"fields,omitempty"` // that changed

	Subscriber  fanfare.RowID `json:"subscriber"`        // the row of the address
	Address     uint8         `json:"address,omitempty"` // kind of the address that the change is about
	Until       int64         `json:"until,omitempty"`   // of a suppression, Unix nanoseconds; 0: for ever
	AllServices bool          `json:"all_services,omitempty"`
}

// A NoticeKind is the kind of a change.
type NoticeKind string

// The kinds of changes.
const (
	NoticeSubscribed   NoticeKind = "subscribed"   // by the person
	NoticeChanged      NoticeKind = "changed"      // by the person
	NoticeUnsubscribed NoticeKind = "unsubscribed" // by anybody
	NoticeResubscribed NoticeKind = "resubscribed" // an unsubscribe was undone
	NoticeSuppressed   NoticeKind = "suppressed"   // also for a stronger reason or for longer than before
	NoticeLifted       NoticeKind = "lifted"
)

// A NoticeGroup has the notices that were stored together.
type NoticeGroup struct {
	ID      int64 // ascending and never reused
	Notices []Notice
}

// maxGroupedNotices is the maximum size of a group.
const maxGroupedNotices = 2000

// writeNotices stores the notices of a batch in groups.
func writeNotices(s store.Session, b *Batch) error {
	for some := range slices.Chunk(b.Notices, maxGroupedNotices) {
		blob, err := json.Marshal(some)
		if err != nil {
			return err
		}
		if err := store.KeepNotice(s, b.At, len(some), blob); err != nil {
			return err
		}
	}
	return nil
}

// PlanNotices returns the oldest groups that have not been published, at most so many. Until
// DeleteNotices it returns the same groups, also after a restart and with newer notices.
func (s *Store) PlanNotices(ctx context.Context, groups int) (plan []NoticeGroup, err error) {
	kept, err := store.PlanNotices(s.reading(ctx), s.writing(ctx), groups)
	for i := range kept {
		group := NoticeGroup{ID: kept[i].ID}
		if err := json.Unmarshal(kept[i].Blob, &group.Notices); err != nil {
			return nil, fmt.Errorf("stored notices are damaged: %w", err)
		}
		plan = append(plan, group)
	}
	return plan, err
}

// DeleteNotices deletes the groups of a plan after they have been published.
func (s *Store) DeleteNotices(ctx context.Context, plan []NoticeGroup) error {
	return store.ToldNotices(s.writing(ctx), plan[len(plan)-1].ID)
}

// WaitingNotices returns the number of unpublished notices and the time of the oldest.
func (s *Store) WaitingNotices(ctx context.Context) (news int64, since time.Time, err error) {
	news, at, err := store.WaitingNotices(s.reading(ctx))
	if at != 0 {
		since = time.Unix(0, at).UTC()
	}
	return news, since, err
}

func (s *Store) reading(ctx context.Context) store.Transaction {
	return func(fn func(store.Session) error) error { return s.part.Read(ctx, fn) }
}

func (s *Store) writing(ctx context.Context) store.Transaction {
	return func(fn func(store.Session) error) error { return s.part.Write(ctx, fn) }
}
