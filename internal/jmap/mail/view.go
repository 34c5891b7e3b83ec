package mail

import (
	"cmp"
	"container/list"
	"context"
	"maps"
	"slices"
	"sync"

	"fanfare.dev/fanfare/internal/mailbox"
)

// A view is what an account has in one state. It does not change.
type view struct {
	state    mailbox.ModSeq
	messages []mailbox.Message // that JMAP shows, in the order of their EmailIDs
	hidden   []mailbox.Message // with the flag Deleted, in the same order
	boxes    map[mailbox.MailboxID]mailbox.Mailbox

	threadsOnce sync.Once
	threads     map[mailbox.ThreadID][]*mailbox.Message // in the order of Received

	countsOnce sync.Once
	counted    map[mailbox.MailboxID]*mailboxCounts
}

// message returns a message that JMAP shows, or nil.
func (v *view) message(id mailbox.EmailID) *mailbox.Message {
	i, ok := slices.BinarySearchFunc(v.messages, id, func(m mailbox.Message, id mailbox.EmailID) int { return cmp.Compare(m.Email, id) })
	if !ok {
		return nil
	}
	return &v.messages[i]
}

// thread returns the messages of a thread in the order of Received.
func (v *view) thread(id mailbox.ThreadID) []*mailbox.Message {
	v.threadsOnce.Do(func() {
		v.threads = make(map[mailbox.ThreadID][]*mailbox.Message, len(v.messages))
		for i := range v.messages {
			m := &v.messages[i]
			v.threads[m.Thread] = append(v.threads[m.Thread], m)
		}
		for _, of := range v.threads {
			slices.SortFunc(of, func(a, b *mailbox.Message) int {
				return cmp.Or(a.Received.Compare(b.Received), cmp.Compare(a.Email, b.Email))
			})
		}
	})
	return v.threads[id]
}

// with returns the view after changes.
func (v *view) with(c *mailbox.Changes) *view {
	next := &view{state: c.State, boxes: maps.Clone(v.boxes)}
	for _, m := range c.Mailboxes {
		next.boxes[m.ID] = m
	}
	for _, m := range c.RemovedMailboxes {
		delete(next.boxes, m.ID)
	}
	if len(c.Messages)+len(c.Removed) == 0 {
		next.messages, next.hidden = v.messages, v.hidden
		return next
	}
	dropped := make(map[mailbox.EmailID]bool, len(c.Messages)+len(c.Removed))
	for i := range c.Messages {
		dropped[c.Messages[i].Email] = true
	}
	for _, r := range c.Removed {
		dropped[r.Email] = true // a message that was moved is among the messages
	}
	next.messages, next.hidden = make([]mailbox.Message, 0, len(v.messages)+len(c.Messages)), slices.Clone(v.hidden)
	for i := range v.messages {
		if !dropped[v.messages[i].Email] {
			next.messages = append(next.messages, v.messages[i])
		}
	}
	next.hidden = slices.DeleteFunc(next.hidden, func(m mailbox.Message) bool { return dropped[m.Email] })
	next.add(c.Messages)
	return next
}

// add adds messages and sorts.
func (v *view) add(messages []mailbox.Message) {
	for i := range messages {
		if messages[i].Flags&mailbox.Deleted != 0 {
			v.hidden = append(v.hidden, messages[i])
		} else {
			v.messages = append(v.messages, messages[i])
		}
	}
	for _, list := range [][]mailbox.Message{v.messages, v.hidden} {
		slices.SortFunc(list, func(a, b mailbox.Message) int { return cmp.Compare(a.Email, b.Email) })
	}
}

// maxCached limits the messages in the cached views of all accounts. An account counts as at least accountCost messages.
const (
	maxCached   = 400_000
	accountCost = 50
)

// views are the cached views, by account.
type views struct {
	store *mailbox.Store

	mu      sync.Mutex
	entries map[mailbox.AccountID]*list.Element // of *cachedView
	order   list.List                           // the last one was used first
	size    int
}

type cachedView struct {
	id   mailbox.AccountID
	view *view
}

func (c *cachedView) cost() int { return accountCost + len(c.view.messages) + len(c.view.hidden) }

// current returns the view of an account now.
func (s *views) current(ctx context.Context, id mailbox.AccountID) (*view, error) {
	old := s.cached(id)
	v := old
	if v == nil {
		messages, state, err := s.store.AllMessages(ctx, id)
		if err != nil {
			return nil, err
		}
		boxes, _, err := s.store.MailboxesAt(ctx, id)
		if err != nil {
			return nil, err
		}
		v = &view{state: state, boxes: make(map[mailbox.MailboxID]mailbox.Mailbox, len(boxes))}
		for _, m := range boxes {
			v.boxes[m.ID] = m
		}
		v.add(messages)
	}
	c, err := s.store.Changes(ctx, id, 0, v.state) // also what came between the two reads
	switch {
	case isOld(err):
		s.drop(id)
		if old == nil {
			return nil, err
		}
		return s.current(ctx, id)
	case err != nil:
		return nil, err
	case c.State != v.state:
		v = v.with(&c)
	}
	if v != old {
		s.keep(id, v)
	}
	return v, nil
}

func (s *views) cached(id mailbox.AccountID) *view {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[id]
	if e == nil {
		return nil
	}
	s.order.MoveToFront(e)
	return e.Value.(*cachedView).view
}

func (s *views) drop(id mailbox.AccountID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(id)
}

func (s *views) remove(id mailbox.AccountID) {
	if e := s.entries[id]; e != nil {
		s.size -= e.Value.(*cachedView).cost()
		s.order.Remove(e)
		delete(s.entries, id)
	}
}

func (s *views) keep(id mailbox.AccountID, v *view) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.entries[id]; e != nil && e.Value.(*cachedView).view.state > v.state {
		return
	}
	s.remove(id)
	c := &cachedView{id, v}
	s.entries[id] = s.order.PushFront(c)
	s.size += c.cost()
	for s.size > maxCached && s.order.Len() > 1 {
		s.remove(s.order.Back().Value.(*cachedView).id)
	}
}
