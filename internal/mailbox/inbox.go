package mailbox

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
)

// A Deposit is a message that the channel inbox stores in the inbox of a subscriber.
type Deposit struct {
	Owner
	Delivery fanfare.DeliveryRef
	Content  []byte
	Keep     time.Duration // after which the messages of the broadcast expire; 0: never. The first message of a broadcast decides.
}

// ErrEnded is in the chain of the error for a message whose broadcast was recalled or has expired.
var ErrEnded = errors.New("the broadcast was recalled or has expired")

// The ends of a message of the channel inbox. The numbers are stored.
type ended int64

const (
	endedByRecipient ended = 1
	endedByRecall    ended = 2
	endedByExpiry    ended = 3
)

// Deposit stores messages, each in the inbox of its owner, and returns an error or nil for each. A message whose delivery is stored already is not
// stored again. Messages of operators do not count in the quota. An account is created if it does not exist.
func (s *Store) Deposit(ctx context.Context, list []Deposit) []error {
	errs := make([]error, len(list))
	c := &change{}
	contents := make([]*newContent, len(list))
	for i := range list {
		contents[i] = s.newContent(list[i].Content, list[i].ID)
		c.create = append(c.create, list[i].Owner)
	}
	c.contents = contents
	c.run = func(u *unit) error {
		clear(errs)
		d, err := u.readDeposits(list)
		if err != nil {
			return err
		}
		u.wrote = true
		for i := range list {
			m := &list[i]
			event := eventOf(m.Delivery)
			b := d.broadcasts[event]
			a, err := u.account(m.ID)
			if err == nil && !d.stored[i] {
				err = errors.Join(a.enabled(), b.admits(u.now))
			}
			if errs[i] = err; err != nil || d.stored[i] {
				if err := u.dropUses(contents[i].id, 1); err != nil {
					return err
				}
				continue
			}
			if b.isNew && m.Keep > 0 && b.ExpiresAt.IsZero() {
				b.ExpiresAt = time.Unix(u.now, 0).Add(m.Keep).UTC()
			}
			d.added = append(d.added, i)
			d.emails = append(d.emails, u.addFree(a, contents[i], time.Time{}))
			b.added++
		}
		return u.writeDeposits(list, d)
	}
	if err := s.queue.do(ctx, c); err != nil {
		for i := range errs {
			errs[i] = err
		}
	}
	return errs
}

func eventOf(d fanfare.DeliveryRef) fanfare.EventRef {
	return fanfare.EventRef{Day: d.Day, Seq: d.Manifest.Event()}
}

// addFree is add for a message that does not count in the quota.
func (u *unit) addFree(a *account, content *newContent, received time.Time) Message {
	m := u.add(a, content, Message{Mailbox: InboxID, Received: received})
	a.Quota.Messages--
	a.Quota.Bytes -= m.Size
	return m
}

// depositing is the state of a transaction that stores deposits.
type depositing struct {
	stored     []bool // by deposit: the delivery is stored already
	broadcasts map[fanfare.EventRef]*broadcastRow
	added      []int // the deposits that are stored now, with their messages
	emails     []Message
}

// A broadcastRow is a row of inbox_broadcasts in a transaction.
type broadcastRow struct {
	InboxBroadcast
	workAt int64
	isNew  bool
	added  int64
}

// admits refuses a message of a broadcast that was recalled or has expired.
func (b *broadcastRow) admits(now int64) error {
	if !b.RecalledAt.IsZero() || !b.ExpiresAt.IsZero() && b.ExpiresAt.Unix() <= now {
		return named(ErrEnded, &fanfare.Error{Code: fanfare.Conflict, Message: "the broadcast was recalled or has expired", Hint: "publish a new event"})
	}
	return nil
}

func (u *unit) readDeposits(list []Deposit) (*depositing, error) {
	d := &depositing{stored: make([]bool, len(list)), broadcasts: map[fanfare.EventRef]*broadcastRow{}}
	seen := map[fanfare.DeliveryRef]bool{}
	for i := range list {
		d.stored[i] = seen[list[i].Delivery]
		seen[list[i].Delivery] = true
	}
	err := u.session.EachOf("inbox_message_of_delivery", len(list), func(i int) []any {
		ref := list[i].Delivery
		return []any{int64(ref.Day), int64(ref.Manifest), int64(ref.Position)}
	}, func(i int, _ store.Row) error { d.stored[i] = true; return nil })
	if err != nil {
		return nil, err
	}
	for i := range list {
		if d.stored[i] {
			continue
		}
		ref := list[i].Delivery
		if err := u.membersOf(ref, ref.Position, func(_ blockRow, m *blockMember) { d.stored[i] = d.stored[i] || m.position == ref.Position }); err != nil {
			return nil, err
		}
	}
	for i := range list {
		event := eventOf(list[i].Delivery)
		if d.broadcasts[event] == nil {
			if d.broadcasts[event], err = readBroadcast(u.session, event); err != nil {
				return nil, err
			}
		}
	}
	return d, nil
}

func readBroadcast(session store.Session, event fanfare.EventRef) (*broadcastRow, error) {
	b := &broadcastRow{isNew: true}
	err := session.Each("inbox_broadcast", func(r store.Row) error {
		b = broadcastOf(r)
		return nil
	}, int64(event.Day), int64(event.Seq))
	return b, err
}

// broadcastOf reads a row of the statement inbox_broadcast.
func broadcastOf(r store.Row) *broadcastRow {
	b := &broadcastRow{workAt: r.Int64(6)}
	b.Stored, b.Read, b.Recalled, b.Expired = r.Int64(0), r.Int64(1), r.Int64(2), r.Int64(3)
	b.RecalledAt, b.ExpiresAt = timeOf(r.Int64(4)), timeOf(r.Int64(5))
	return b
}

// timeOf returns the time of a column in which 0 stands for none.
func timeOf(seconds int64) time.Time {
	if seconds == 0 {
		return time.Time{}
	}
	return time.Unix(seconds, 0).UTC()
}

func secondsOf(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

func (u *unit) writeDeposits(list []Deposit, d *depositing) error {
	err := u.session.Insert("inbox_message_insert", len(d.added), func(i int, to store.Values) {
		m, ref := &d.emails[i], list[d.added[i]].Delivery
		to.Int64(int64(list[d.added[i]].ID))
		to.Int64(int64(m.Email))
		to.Int64(int64(ref.Day))
		to.Int64(int64(ref.Manifest))
		to.Int64(int64(ref.Position))
		to.Int64(u.now)
		to.Int64(0)
		to.Int64(0)
		to.Int64(0)
	})
	if err != nil {
		return err
	}
	for _, event := range sortedEvents(d.broadcasts) {
		if b := d.broadcasts[event]; b.added > 0 {
			expires := secondsOf(b.ExpiresAt)
			if err := u.countBroadcast(event, broadcastCounts{stored: b.added}, expires); err != nil {
				return err
			}
		}
	}
	return nil
}

func sortedEvents[T any](all map[fanfare.EventRef]T) []fanfare.EventRef {
	list := make([]fanfare.EventRef, 0, len(all))
	for event := range all {
		list = append(list, event)
	}
	slices.SortFunc(list, func(a, b fanfare.EventRef) int {
		return cmp.Or(cmp.Compare(a.Day, b.Day), cmp.Compare(a.Seq, b.Seq))
	})
	return list
}

type broadcastCounts struct{ stored, read, recalled, expired int64 }

// countBroadcast adds to the counts of a broadcast. expires is stored only for a new row.
func (u *unit) countBroadcast(event fanfare.EventRef, n broadcastCounts, expires int64) error {
	return u.session.Run("inbox_broadcast_add", int64(event.Day), int64(event.Seq), n.stored, n.read, n.recalled, n.expired, expires, expires)
}

// An InboxBroadcast has the counts and times of a broadcast with messages in inboxes.
type InboxBroadcast struct {
	Stored, Read, Recalled, Expired int64
	RecalledAt                      time.Time // zero: not recalled
	ExpiresAt                       time.Time // zero: never
}

// InboxBroadcast returns the counts of a broadcast; all are 0 if it has no message in an inbox.
func (s *Store) InboxBroadcast(ctx context.Context, event fanfare.EventRef) (result InboxBroadcast, err error) {
	err = s.part.Read(ctx, func(session store.Session) error {
		b, err := readBroadcast(session, event)
		if err == nil {
			result = b.InboxBroadcast
		}
		return err
	})
	return result, err
}

// InboxBroadcasts returns the counts of several broadcasts, in the same order.
func (s *Store) InboxBroadcasts(ctx context.Context, events []fanfare.EventRef) (list []InboxBroadcast, err error) {
	if len(events) == 0 {
		return nil, nil
	}
	err = s.part.Read(ctx, func(session store.Session) error {
		list = make([]InboxBroadcast, len(events))
		return session.EachOf("inbox_broadcast", len(events), func(i int) []any { return []any{int64(events[i].Day), int64(events[i].Seq)} },
			func(i int, r store.Row) error { list[i] = broadcastOf(r).InboxBroadcast; return nil })
	})
	return list, err
}

// An InboxMessage is what is known of a message of the channel inbox.
type InboxMessage struct {
	Account    AccountID
	StoredAt   time.Time
	ReadAt     time.Time // zero: its recipient has not seen it
	RemovedAt  time.Time // by its recipient
	RecalledAt time.Time
	ExpiredAt  time.Time
}

// InboxMessage returns the message of a delivery, or nil if there is none.
func (s *Store) InboxMessage(ctx context.Context, d fanfare.DeliveryRef) (*InboxMessage, error) {
	list, err := s.InboxMessages(ctx, []fanfare.DeliveryRef{d})
	if err != nil {
		return nil, err
	}
	return list[0], nil
}

// InboxMessages returns the messages of several deliveries, in the same order; nil for a delivery without one.
func (s *Store) InboxMessages(ctx context.Context, refs []fanfare.DeliveryRef) (list []*InboxMessage, err error) {
	if len(refs) == 0 {
		return nil, nil
	}
	err = s.part.Snapshot(ctx, func(session store.Session) error {
		list = make([]*InboxMessage, len(refs))
		err := session.EachOf("inbox_message_of_delivery", len(refs), func(i int) []any {
			return []any{int64(refs[i].Day), int64(refs[i].Manifest), int64(refs[i].Position)}
		}, func(i int, r store.Row) error {
			m := &InboxMessage{Account: AccountID(r.Int64(0)), StoredAt: timeOf(r.Int64(2)), ReadAt: timeOf(r.Int64(3))}
			switch at := timeOf(r.Int64(4)); ended(r.Int64(5)) {
			case endedByRecipient:
				m.RemovedAt = at
			case endedByRecall:
				m.RecalledAt = at
			case endedByExpiry:
				m.ExpiredAt = at
			}
			list[i] = m
			return nil
		})
		if err != nil {
			return err
		}
		return messagesInBlocks(session, refs, list)
	})
	return list, err
}

// inboxMessages reads which of the messages came from the channel inbox, and calls fn for each that is still there.
func (u *unit) inboxMessages(id AccountID, list []Message, fn func(m *Message, event fanfare.EventRef, read bool)) error {
	return u.session.EachOf("inbox_message", len(list), func(i int) []any { return []any{int64(id), int64(list[i].Email)} }, func(i int, r store.Row) error {
		if r.Int64(4) == 0 {
			d := fanfare.DeliveryRef{Day: fanfare.Day(r.Int64(0)), Manifest: fanfare.ManifestID(r.Int64(1)), Position: uint32(r.Int64(2))}
			fn(&list[i], eventOf(d), r.Int64(3) != 0)
		}
		return nil
	})
}

// markRead stores the time at which messages were seen first.
func (u *unit) markRead(id AccountID, list []Message) error {
	var emails []EmailID
	reads := map[fanfare.EventRef]int64{}
	err := u.inboxMessages(id, list, func(m *Message, event fanfare.EventRef, read bool) {
		if !read && !slices.Contains(emails, m.Email) {
			emails = append(emails, m.Email)
			reads[event]++
		}
	})
	if err != nil {
		return err
	}
	for _, email := range emails {
		if err := u.session.Run("inbox_message_read", u.now, int64(id), int64(email)); err != nil {
			return err
		}
	}
	for _, event := range sortedEvents(reads) {
		if err := u.countBroadcast(event, broadcastCounts{read: reads[event]}, 0); err != nil {
			return err
		}
	}
	return nil
}

// markEnded stores why messages were removed, and frees the quota that they did not use.
func (u *unit) markEnded(a *account, list []Message, why ended) error {
	var emails []EmailID
	counts := map[fanfare.EventRef]int64{}
	err := u.inboxMessages(a.ID, list, func(m *Message, event fanfare.EventRef, _ bool) {
		emails = append(emails, m.Email)
		counts[event]++
		a.use(1, m.Size) // it did not count in the quota, and remove takes it from there
	})
	if err != nil {
		return err
	}
	for _, email := range emails {
		if err := u.session.Run("inbox_message_ended", u.now, int64(why), int64(a.ID), int64(email)); err != nil {
			return err
		}
	}
	for _, event := range sortedEvents(counts) {
		n := broadcastCounts{}
		switch why {
		case endedByRecall:
			n.recalled = counts[event]
		case endedByExpiry:
			n.expired = counts[event]
		case endedByRecipient:
			continue
		}
		if err := u.countBroadcast(event, n, 0); err != nil {
			return err
		}
	}
	return nil
}
