package mailbox

import (
	"context"
	"slices"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/failpoint"
	"fanfare.dev/fanfare/internal/store"
)

// endedAtOnce is the number of messages that one transaction of a recall or an expiry removes.
const endedAtOnce = 256

// Recall makes the store remove the messages of a broadcast that their recipients have not seen. Messages that are delivered later are refused. It
// returns when this is durable; EndBroadcasts removes the messages. A second recall removes what has become unseen since.
func (s *Store) Recall(ctx context.Context, event fanfare.EventRef) error {
	err := s.editBroadcast(ctx, event, func(b *broadcastRow, now int64) {
		b.workAt = now
		if b.RecalledAt.IsZero() {
			b.RecalledAt = time.Unix(now, 0)
		}
	})
	select {
	case s.recalled <- struct{}{}:
	default:
	}
	return err
}

// Expire sets the time at which the messages of a broadcast are removed, whether they were seen or not; the zero time is never.
func (s *Store) Expire(ctx context.Context, event fanfare.EventRef, at time.Time) error {
	return s.editBroadcast(ctx, event, func(b *broadcastRow, now int64) {
		b.ExpiresAt = at
		if b.workAt == 0 || b.workAt > now {
			b.workAt = secondsOf(at)
		}
	})
}

func (s *Store) editBroadcast(ctx context.Context, event fanfare.EventRef, edit func(b *broadcastRow, now int64)) error {
	err := s.queue.do(ctx, &change{run: func(u *unit) error {
		if err := u.countBroadcast(event, broadcastCounts{}, 0); err != nil { // there is a row from now on
			return err
		}
		b, err := readBroadcast(u.session, event)
		if err != nil {
			return err
		}
		edit(b, u.now)
		failpoint.Hit("before-broadcast-edit")
		return u.session.Run("inbox_broadcast_set", secondsOf(b.RecalledAt), secondsOf(b.ExpiresAt), b.workAt, int64(event.Day), int64(event.Seq))
	}})
	failpoint.Hit("after-broadcast-edit")
	return err
}

// EndBroadcasts removes the messages of broadcasts that were recalled or have expired. The server calls it from time to time. It
// can be interrupted and called again.
func (s *Store) EndBroadcasts(ctx context.Context) error {
	for {
		var events []fanfare.EventRef
		now := s.now()
		err := s.part.Read(ctx, func(session store.Session) error {
			events = nil
			return session.Each("inbox_broadcasts_with_work", func(r store.Row) error {
				events = append(events, fanfare.EventRef{Day: fanfare.Day(r.Int64(0)), Seq: fanfare.EventSeq(r.Int64(1))})
				return nil
			}, now, int64(cleanupRows))
		})
		if err != nil || len(events) == 0 {
			return err
		}
		for _, event := range events {
			if err := s.endBroadcast(ctx, event); err != nil {
				return err
			}
		}
	}
}

// A sentMessage is a message of a broadcast.
type sentMessage struct {
	account  AccountID
	email    EmailID
	manifest fanfare.ManifestID
	position uint32
	read     bool
}

// endBroadcast removes the messages of one broadcast.
func (s *Store) endBroadcast(ctx context.Context, event fanfare.EventRef) error {
	b, err := s.InboxBroadcast(ctx, event)
	if err != nil {
		return err
	}
	now := s.now()
	why := endedByRecall
	if !b.ExpiresAt.IsZero() && b.ExpiresAt.Unix() <= now {
		why = endedByExpiry
	}
	if err := s.endBlocks(ctx, event, why); err != nil {
		return err
	}
	after := sentMessage{manifest: fanfare.NewManifestID(event.Seq, 0)}
	first := true
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		page, err := s.messagesOfEvent(ctx, event, after, first)
		if err != nil {
			return err
		}
		first = false
		if len(page) == 0 {
			break
		}
		after = page[len(page)-1]
		if why == endedByRecall {
			page = slices.DeleteFunc(page, func(m sentMessage) bool { return m.read })
		}
		if err := s.endMessages(ctx, page, why); err != nil {
			return err
		}
	}
	return s.editBroadcast(ctx, event, func(b *broadcastRow, _ int64) {
		b.workAt = 0
		if why == endedByRecall {
			b.workAt = secondsOf(b.ExpiresAt)
		}
	})
}

// messagesOfEvent returns the next messages of an event that are still there.
func (s *Store) messagesOfEvent(ctx context.Context, event fanfare.EventRef, after sentMessage, first bool) (page []sentMessage, err error) {
	position := int64(after.position)
	if first {
		position = -1
	}
	err = s.part.Read(ctx, func(session store.Session) error {
		page = nil
		return session.Each("inbox_messages_of_event", func(r store.Row) error {
			page = append(page, sentMessage{AccountID(r.Int64(0)), EmailID(r.Int64(1)), fanfare.ManifestID(r.Int64(2)), uint32(r.Int64(3)), r.Int64(4) != 0})
			return nil
		}, int64(event.Day), int64(fanfare.NewManifestID(event.Seq, 0)), int64(fanfare.NewManifestID(event.Seq+1, 0)), int64(after.manifest), position, int64(endedAtOnce))
	})
	return page, err
}

// endMessages removes messages of several accounts.
func (s *Store) endMessages(ctx context.Context, page []sentMessage, why ended) error {
	if len(page) == 0 {
		return nil
	}
	c := &change{run: func(u *unit) error {
		if err := u.flush(); err != nil {
			return err
		}
		u.wrote = true
		for _, m := range page {
			a, err := u.account(m.account)
			if err != nil {
				continue // it was removed meanwhile
			}
			a.taken = 0 // several messages of one account may be in the page
			list, err := emailsOf(u.session, m.account, []EmailID{m.email})
			if err != nil {
				return err
			}
			if why == endedByRecall {
				list = slices.DeleteFunc(list, func(m Message) bool { return m.Flags&Seen != 0 })
			}
			if len(list) == 0 {
				continue
			}
			if err := u.remove(a, list, why); err != nil {
				return err
			}
		}
		failpoint.Hit("before-messages-end")
		return nil
	}}
	for _, m := range page {
		c.accounts = append(c.accounts, m.account)
	}
	slices.Sort(c.accounts)
	c.accounts = slices.Compact(c.accounts)
	err := s.queue.do(ctx, c)
	failpoint.Hit("after-messages-end")
	return err
}
