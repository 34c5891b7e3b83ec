package view

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"fanfare.dev/fanfare/internal/ctxlock"
	"fanfare.dev/fanfare/internal/mailbox"
)

// A Store has the mailboxes. It is *mailbox.Store.
type Store interface {
	Messages(ctx context.Context, id mailbox.AccountID, of mailbox.MailboxID) ([]mailbox.Message, mailbox.Mailbox, error)
	Changes(ctx context.Context, id mailbox.AccountID, of mailbox.MailboxID, since mailbox.ModSeq) (mailbox.Changes, error)
	Watch(id mailbox.AccountID, changed func(mailbox.ModSeq)) (stop func())
}

// A Snapshot has the messages of a mailbox at one time.
type Snapshot struct {
	Messages []mailbox.Message // in the order of their UIDs
	State    mailbox.ModSeq    // HIGHESTMODSEQ
	UIDNext  mailbox.UID       // above all UIDs that the snapshot has seen

	once     sync.Once
	keywords []string
}

// ByUID returns a message, or nil.
func (s *Snapshot) ByUID(uid mailbox.UID) *mailbox.Message {
	i, found := slices.BinarySearchFunc(s.Messages, uid, func(m mailbox.Message, uid mailbox.UID) int { return cmp.Compare(m.UID, uid) })
	if !found {
		return nil
	}
	return &s.Messages[i]
}

// Since returns the messages with UIDs from uid on.
func (s *Snapshot) Since(uid mailbox.UID) []mailbox.Message {
	i, _ := slices.BinarySearchFunc(s.Messages, uid, func(m mailbox.Message, uid mailbox.UID) int { return cmp.Compare(m.UID, uid) })
	return s.Messages[i:]
}

// Keywords returns the keywords of all messages, sorted; of keywords that differ only in case, the first one.
func (s *Snapshot) Keywords() []string {
	s.once.Do(func() {
		known := map[string]bool{}
		last := ""
		for i := range s.Messages {
			words := s.Messages[i].Keywords
			if words == "" || words == last {
				continue
			}
			last = words
			for word := range strings.FieldsSeq(words) {
				if lower := strings.ToLower(word); !known[lower] {
					known[lower] = true
					s.keywords = append(s.keywords, word)
				}
			}
		}
		slices.Sort(s.keywords)
	})
	return s.keywords
}

// A Cache has the snapshots of selected mailboxes. Its methods are safe for concurrent use.
type Cache struct {
	store   Store
	mu      sync.Mutex
	entries map[key]*entry
}

type key struct {
	account mailbox.AccountID
	mailbox mailbox.MailboxID
}

// New returns an empty cache.
func New(store Store) *Cache { return &Cache{store: store, entries: map[key]*entry{}} }

// entry is one mailbox.
type entry struct {
	key    key
	latest atomic.Int64 // state of the account that Watch reported
	stop   func()

	loading  ctxlock.Lock
	current  atomic.Pointer[Snapshot]
	readFrom atomic.Int64 // latest before the current snapshot was read

	mu      sync.Mutex
	handles map[*Handle]struct{}
	claimed mailbox.UID // messages below it were shown with \Recent to a session, or to none because they are older
	stored  mailbox.UID // the store knows that messages below it were claimed
}

// A Handle is the use of a mailbox by one session.
type Handle struct {
	cache   *Cache
	entry   *entry
	changed func()
}

// Open returns a handle for a mailbox. changed is called after each change of the account; it must not block.
func (c *Cache) Open(account mailbox.AccountID, of mailbox.MailboxID, changed func()) *Handle {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := key{account, of}
	e := c.entries[k]
	if e == nil {
		e = &entry{key: k, loading: ctxlock.New(), handles: map[*Handle]struct{}{}}
		e.readFrom.Store(-1)
		e.stop = c.store.Watch(account, e.notice)
		c.entries[k] = e
	}
	h := &Handle{c, e, changed}
	e.mu.Lock()
	e.handles[h] = struct{}{}
	e.mu.Unlock()
	return h
}

// Close ends the use of the mailbox.
func (h *Handle) Close() {
	c, e := h.cache, h.entry
	c.mu.Lock()
	defer c.mu.Unlock()
	e.mu.Lock()
	delete(e.handles, h)
	last := len(e.handles) == 0
	e.mu.Unlock()
	if last && c.entries[e.key] == e {
		delete(c.entries, e.key)
		e.stop()
	}
}

// Claim takes the messages below next for a session that shows them with \Recent, and returns the UID from which no other session has taken them.
func (h *Handle) Claim(next mailbox.UID) (from mailbox.UID) {
	e := h.entry
	e.mu.Lock()
	defer e.mu.Unlock()
	from = e.claimed
	e.claimed = max(e.claimed, next)
	return from
}

// Stored says that the store knows which messages below next were claimed.
func (h *Handle) Stored(next mailbox.UID) {
	e := h.entry
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stored = max(e.stored, next)
}

// Unstored reports whether messages were claimed that the store does not know of.
func (h *Handle) Unstored() bool {
	e := h.entry
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.claimed > e.stored
}

// Claimed returns the UID from which no session has taken messages of a mailbox; 0 if no session has selected it.
func (c *Cache) Claimed(account mailbox.AccountID, of mailbox.MailboxID) mailbox.UID {
	c.mu.Lock()
	e := c.entries[key{account, of}]
	c.mu.Unlock()
	if e == nil {
		return 0
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.claimed
}

// notice takes a new state of the account.
func (e *entry) notice(state mailbox.ModSeq) {
	for {
		was := e.latest.Load()
		if state == 0 { // the account was removed
			state = math.MaxInt64
		}
		if int64(state) <= was {
			break
		}
		if e.latest.CompareAndSwap(was, int64(state)) {
			break
		}
	}
	e.mu.Lock()
	all := make([]func(), 0, len(e.handles))
	for h := range e.handles {
		all = append(all, h.changed)
	}
	e.mu.Unlock()
	for _, changed := range all {
		changed()
	}
}

// fresh returns the current snapshot, or nil if the account has changed since it was read.
func (e *entry) fresh() *Snapshot {
	latest := e.latest.Load()
	if e.readFrom.Load() < latest {
		return nil
	}
	return e.current.Load()
}

// Latest returns a snapshot with all changes that were reported before the call.
func (h *Handle) Latest(ctx context.Context) (*Snapshot, error) {
	e := h.entry
	if s := e.fresh(); s != nil {
		return s, nil
	}
	if err := e.loading.Lock(ctx); err != nil {
		return nil, err
	}
	defer e.loading.Unlock()
	if s := e.fresh(); s != nil {
		return s, nil
	}
	from := e.latest.Load()
	next, err := h.cache.read(ctx, e.key, e.current.Load())
	if err != nil {
		return nil, err
	}
	e.current.Store(next)
	e.readFrom.Store(from)
	return next, nil
}

// Reach is Latest for a caller that has read a state of the mailbox from the store. If no report of that state has arrived yet, because another node
// made the change, the snapshot is read again.
func (h *Handle) Reach(ctx context.Context, state mailbox.ModSeq) (*Snapshot, error) {
	s, err := h.Latest(ctx)
	if err == nil && s.State < state {
		h.entry.notice(state)
		s, err = h.Latest(ctx)
	}
	return s, err
}

// read returns a snapshot that follows last, which is nil at first. It returns last if nothing has changed.
func (c *Cache) read(ctx context.Context, k key, last *Snapshot) (*Snapshot, error) {
	if last != nil {
		changes, err := c.store.Changes(ctx, k.account, k.mailbox, last.State)
		switch {
		case err == nil && changes.State == last.State && len(changes.Messages) == 0 && len(changes.Removed) == 0:
			return last, nil
		case err == nil:
			return last.with(&changes), nil
		case !errors.Is(err, mailbox.ErrOldModSeq):
			return nil, err
		}
	}
	messages, m, err := c.store.Messages(ctx, k.account, k.mailbox)
	if err != nil {
		return nil, err
	}
	next := &Snapshot{Messages: messages, State: m.HighestMod, UIDNext: m.UIDNext}
	if last != nil {
		next.UIDNext = max(next.UIDNext, last.UIDNext)
	}
	return next, nil
}

// with returns a snapshot that has the changes in addition.
func (s *Snapshot) with(c *mailbox.Changes) *Snapshot {
	next := &Snapshot{Messages: make([]mailbox.Message, 0, len(s.Messages)+len(c.Messages)), State: c.State, UIDNext: s.UIDNext}
	changed, removed := c.Messages, c.Removed
	for _, m := range s.Messages {
		for len(changed) > 0 && changed[0].UID < m.UID {
			next.Messages = append(next.Messages, changed[0])
			changed = changed[1:]
		}
		for len(removed) > 0 && removed[0].UID < m.UID {
			removed = removed[1:]
		}
		switch {
		case len(removed) > 0 && removed[0].UID == m.UID:
		case len(changed) > 0 && changed[0].UID == m.UID:
			next.Messages = append(next.Messages, changed[0])
			changed = changed[1:]
		default:
			next.Messages = append(next.Messages, m)
		}
	}
	next.Messages = append(next.Messages, changed...)
	if n := len(next.Messages); n > 0 {
		next.UIDNext = max(next.UIDNext, next.Messages[n-1].UID+1)
	}
	if n := len(c.Removed); n > 0 {
		next.UIDNext = max(next.UIDNext, c.Removed[n-1].UID+1)
	}
	return next
}
