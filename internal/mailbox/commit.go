package mailbox

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"fanfare.dev/fanfare/internal/failpoint"
	"fanfare.dev/fanfare/internal/store"
)

// commit runs a group of changes in one transaction. If one of them fails in a way that it cannot be undone alone, each change gets a
// transaction of its own.
func (s *Store) commit(group []*change) {
	if err := s.numbers.reserve(s.part, group); err != nil {
		for _, c := range group {
			c.err = err
		}
		return
	}
	err := s.commitGroup(group)
	if err == nil || len(group) == 1 {
		return
	}
	for _, c := range group {
		c.err = nil
		_ = s.commitGroup([]*change{c}) // the error is in the change
	}
}

// errAlone ends a transaction in which a change failed after it had written rows.
var errAlone = errors.New("a change failed after it had written")

// commitGroup sets the errors of the changes. It also returns the error of the transaction.
func (s *Store) commitGroup(group []*change) error {
	var u *unit
	err := s.part.Write(context.Background(), func(session store.Session) error {
		u = &unit{session: &watchedSession{Session: session}, now: s.now(), o: &s.o, numbers: &s.numbers, accounts: map[AccountID]*account{}}
		if err := u.load(group); err != nil {
			return err
		}
		for _, c := range group {
			c.err = u.run(c)
			if u.session.err != nil {
				return u.session.err
			}
			if c.err != nil && u.wrote {
				return errAlone
			}
		}
		err := u.flush()
		failpoint.Hit("before-mailbox-commit")
		if u.mergedBlocks {
			failpoint.Hit("before-mailbox-merge")
		}
		return err
	})
	if err == nil {
		failpoint.Hit("after-mailbox-commit")
		if u.mergedBlocks {
			failpoint.Hit("after-mailbox-merge")
		}
	}
	if err != nil {
		if len(group) > 1 || !errors.Is(err, errAlone) {
			for _, c := range group {
				c.err = err
			}
		}
		return err
	}
	if u.queued > 0 {
		s.storing.add(s.o.Clock.Now(), u.queued)
		s.wakeIndexer()
	}
	var changed []AccountState
	for id, a := range u.accounts {
		if a.State != a.before {
			s.notify(id, a.State)
			if s.o.Announce != nil {
				changed = append(changed, AccountState{id, a.State})
			}
		}
	}
	if len(changed) > 0 {
		s.o.Announce(Hint{Accounts: changed})
	}
	return nil
}

// watchedSession remembers the error of a statement, and with it that the transaction cannot go on.
type watchedSession struct {
	store.Session
	err error
}

func (w *watchedSession) keep(err error) error {
	if err != nil && w.err == nil {
		w.err = err
	}
	return err
}

func (w *watchedSession) Run(statement string, args ...any) error {
	return w.keep(w.Session.Run(statement, args...))
}

func (w *watchedSession) Each(statement string, row func(store.Row) error, args ...any) error {
	return w.keep(w.Session.Each(statement, row, args...))
}

func (w *watchedSession) EachOf(statement string, n int, args func(i int) []any, row func(i int, r store.Row) error) error {
	if n == 0 {
		return nil
	}
	return w.keep(w.Session.EachOf(statement, n, args, row))
}

func (w *watchedSession) Insert(statement string, n int, bind func(i int, to store.Values)) error {
	if n == 0 {
		return nil
	}
	return w.keep(w.Session.Insert(statement, n, bind))
}

// A unit is a transaction that changes accounts. It loads them once for a group of changes, changes them in memory, and writes them
// once at the end.
type unit struct {
	session  *watchedSession
	now      int64
	o        *Options
	accounts map[AccountID]*account
	added    []addedMessage
	numbers  *numbers // for contents that a block has
	wrote    bool     // the running change has written rows that only a rollback removes

	block        []byte // buffer for a decompressed block
	mergedBlocks bool   // messages of blocks became rows
	queued       int    // contents that were put into the queue of the index
}

// An addedMessage is a message that is not written yet.
type addedMessage struct {
	account AccountID
	Message
}

// An account is an account in a unit.
type account struct {
	Account
	nextMailbox MailboxID
	nextEmail   EmailID
	validity    uint32 // the last one that was given
	merged      int64  // the last block whose messages it has as rows

	mailboxes []Mailbox
	threads   map[int64]ThreadID // by hash; 0: there is none
	newThread []int64            // hashes whose thread is not stored yet

	before ModSeq // State before the group
	taken  ModSeq // State that the running change took, or 0
	dirty  bool
	boxes  map[MailboxID]bool // mailboxes to write
}

// load reads the accounts of all changes, creates those that are missing, and stores the contents.
func (u *unit) load(group []*change) error {
	var ids []AccountID
	create := map[AccountID]Owner{}
	for _, c := range group {
		ids = append(ids, c.accounts...)
		for _, owner := range c.create {
			ids = append(ids, owner.ID)
			create[owner.ID] = owner
		}
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	if err := u.lock(ids); err != nil {
		return err
	}
	var missing []AccountID
	for _, id := range ids {
		if _, ok := create[id]; ok && u.accounts[id] == nil {
			missing = append(missing, id)
		}
	}
	if len(missing) > 0 {
		if err := u.create(missing, create); err != nil {
			return err
		}
	}
	known := slices.DeleteFunc(ids, func(id AccountID) bool { return u.accounts[id] == nil })
	err := u.session.EachOf("mailboxes", len(known), func(i int) []any { return []any{int64(known[i])} }, func(i int, r store.Row) error {
		a := u.accounts[known[i]]
		a.mailboxes = append(a.mailboxes, mailboxOf(r))
		return nil
	})
	if err != nil {
		return err
	}
	if err := u.loadContents(group); err != nil {
		return err
	}
	if err := u.queueForSearch(group); err != nil {
		return err
	}
	return u.mergeBlocks(known)
}

// lock reads and locks accounts in ascending order.
func (u *unit) lock(ids []AccountID) error {
	return u.session.EachOf("account_lock", len(ids), func(i int) []any { return []any{int64(ids[i])} }, func(i int, r store.Row) error {
		a := accountOf(ids[i], r)
		u.accounts[ids[i]] = a
		return nil
	})
}

func accountOf(id AccountID, r store.Row) *account {
	a := &account{threads: map[int64]ThreadID{}, boxes: map[MailboxID]bool{}}
	a.Account = Account{Owner: Owner{ID: id, Service: r.Text(0), Address: r.Text(1)}, CreatedAt: time.Unix(r.Int64(2), 0).UTC(),
		State: ModSeq(r.Int64(3)), Oldest: ModSeq(r.Int64(4)), Disabled: r.Int64(13)&flagDisabled != 0,
		Quota: Quota{MaxBytes: r.Int64(5), Bytes: r.Int64(6), MaxMessages: r.Int64(7), Messages: r.Int64(8)}}
	a.nextMailbox, a.nextEmail, a.validity = MailboxID(r.Int64(9)), EmailID(r.Int64(10)), uint32(r.Int64(11))
	a.merged = r.Int64(12)
	a.before = a.State
	return a
}

const flagDisabled = 1

// run makes a change. If it fails, the accounts are in memory as they were.
func (u *unit) run(c *change) error {
	u.wrote = false
	added := len(u.added)
	saved := make(map[AccountID]account, len(c.accounts)+len(c.create))
	each := func(id AccountID) {
		if a := u.accounts[id]; a != nil {
			a.taken = 0
			copied := *a
			copied.mailboxes = slices.Clone(a.mailboxes)
			saved[id] = copied
		}
	}
	for _, id := range c.accounts {
		each(id)
	}
	for i := range c.create {
		each(c.create[i].ID)
	}
	err := c.run(u)
	if err == nil {
		return nil
	}
	u.added = u.added[:added]
	for id := range saved {
		a := u.accounts[id]
		before := saved[id]
		for _, hash := range a.newThread[len(before.newThread):] {
			a.threads[hash] = 0
		}
		before.dirty = a.dirty // writing what is unchanged does no harm
		*a = before
	}
	if u.session.err == nil {
		if drop := u.dropContents(c.contents); drop != nil {
			return drop
		}
	}
	return err
}

// account returns an account that was named by the change.
func (u *unit) account(id AccountID) (*account, error) {
	a := u.accounts[id]
	if a == nil {
		return nil, noAccount()
	}
	return a, nil
}

// next returns the ModSeq of the running change in an account.
func (a *account) next() ModSeq {
	if a.taken == 0 {
		a.State++
		a.taken = a.State
		a.dirty = true
	}
	return a.taken
}

// mailbox returns a mailbox of the account, or nil.
func (a *account) mailbox(id MailboxID) *Mailbox {
	i, ok := slices.BinarySearchFunc(a.mailboxes, id, func(m Mailbox, id MailboxID) int { return cmp.Compare(m.ID, id) })
	if !ok {
		return nil
	}
	return &a.mailboxes[i]
}

// touch makes the unit write a mailbox.
func (a *account) touch(m *Mailbox) { a.boxes[m.ID] = true }

// count adds a message to the counts of a mailbox, or removes it with by -1.
func (a *account) count(m *Mailbox, msg *Message, by int64, seq ModSeq) {
	m.Messages += by
	m.Bytes += by * msg.Size
	if msg.Flags&Seen == 0 {
		m.Unseen += by
	}
	if msg.Flags&Deleted != 0 {
		m.Deleted += by
	}
	m.HighestMod, m.Changed = seq, seq
	a.touch(m)
}

// use adds messages to the quota of the account.
func (a *account) use(messages, bytes int64) {
	a.Quota.Messages += messages
	a.Quota.Bytes += bytes
	a.dirty = true
}

// flush writes all that was changed in memory. A change calls it before it reads rows that an earlier change of the group may have added.
func (u *unit) flush() error {
	err := u.session.Insert("message_insert", len(u.added), func(i int, to store.Values) { bindMessage(to, &u.added[i]) })
	if err != nil {
		return err
	}
	u.added = u.added[:0]
	ids := slices.Sorted(func(yield func(AccountID) bool) {
		for id := range u.accounts {
			if !yield(id) {
				return
			}
		}
	})
	type thread struct {
		account AccountID
		hash    int64
	}
	type box struct {
		account AccountID
		*Mailbox
	}
	var threads []thread
	var boxes []box
	var dirty []*account
	for _, id := range ids {
		a := u.accounts[id]
		for _, hash := range a.newThread {
			threads = append(threads, thread{id, hash})
		}
		a.newThread = nil
		for i := range a.mailboxes {
			if a.boxes[a.mailboxes[i].ID] {
				boxes = append(boxes, box{id, &a.mailboxes[i]})
			}
		}
		if a.dirty {
			dirty = append(dirty, a)
		}
	}
	err = u.session.Insert("thread_insert", len(threads), func(i int, to store.Values) {
		to.Int64(int64(threads[i].account))
		to.Int64(threads[i].hash)
		to.Int64(int64(u.accounts[threads[i].account].threads[threads[i].hash]))
	})
	if err != nil {
		return err
	}
	if err := u.session.Insert("mailbox_put", len(boxes), func(i int, to store.Values) { bindMailbox(to, boxes[i].account, boxes[i].Mailbox) }); err != nil {
		return err
	}
	if err := u.session.Insert("account_put", len(dirty), func(i int, to store.Values) { bindAccount(to, dirty[i]) }); err != nil {
		return err
	}
	for _, id := range ids {
		a := u.accounts[id]
		a.dirty = false
		clear(a.boxes)
	}
	return nil
}

// loadContents stores the contents of all changes, and reads the threads of their messages.
func (u *unit) loadContents(group []*change) error {
	byHash := map[[32]byte]*newContent{}
	var distinct []*newContent
	uses := map[*newContent]int64{}
	type lookup struct {
		account *account
		hash    int64
	}
	var lookups []lookup
	for _, c := range group {
		for _, content := range c.contents {
			first := byHash[content.hash]
			if first == nil {
				first = content
				byHash[content.hash] = content
				distinct = append(distinct, content)
			}
			uses[first] += int64(content.uses)
			for _, id := range content.accounts {
				a := u.accounts[id]
				if a == nil {
					continue
				}
				for _, hash := range content.threads {
					if _, known := a.threads[hash]; !known {
						a.threads[hash] = 0
						lookups = append(lookups, lookup{a, hash})
					}
				}
			}
		}
	}
	slices.SortFunc(distinct, func(a, b *newContent) int { return bytes.Compare(a.hash[:], b.hash[:]) }) // all transactions lock rows in the same order
	err := u.session.EachOf("content_use", len(distinct), func(i int) []any {
		d := distinct[i]
		return []any{int64(d.reserved), d.hash[:], d.size, int64(d.base), uses[d], d.structure}
	}, func(i int, r store.Row) error {
		distinct[i].id = ContentID(r.Int64(0))
		return nil
	})
	if err != nil {
		return err
	}
	var fresh []*newContent
	for _, d := range distinct {
		if d.id == d.reserved {
			fresh = append(fresh, d)
		}
	}
	slices.SortFunc(fresh, func(a, b *newContent) int { return cmp.Compare(a.id, b.id) })
	err = u.session.Insert("content_data_insert", len(fresh), func(i int, to store.Values) {
		to.Int64(int64(fresh[i].id))
		to.Bytes(fresh[i].data)
	})
	if err != nil {
		return err
	}
	for _, c := range group {
		for _, content := range c.contents {
			content.id = byHash[content.hash].id
		}
	}
	return u.session.EachOf("thread_find", len(lookups), func(i int) []any {
		return []any{int64(lookups[i].account.ID), lookups[i].hash}
	}, func(i int, r store.Row) error {
		lookups[i].account.threads[lookups[i].hash] = ThreadID(r.Int64(0))
		return nil
	})
}

// dropContents takes back the uses of contents whose change failed.
func (u *unit) dropContents(contents []*newContent) error {
	for _, c := range contents {
		if err := u.dropUses(c.id, int64(c.uses)); err != nil {
			return err
		}
	}
	return nil
}

// dropUses takes uses of a content back. A content without uses is removed in the background.
func (u *unit) dropUses(id ContentID, n int64) error {
	return u.session.Run("content_drop_uses", n, n, u.now, int64(id))
}
