package mailbox

import (
	"context"
	"errors"
	"slices"
	"time"

	"fanfare.dev/fanfare/internal/store"
)

// The nodes of a cluster have a Store each, of the same database. Transactions lock the accounts that they change, so the stores need no
// coordination. Only what a store keeps in memory for its sessions needs news of the others: after each change a store announces a Hint, and
// the other stores Hear it. A hint may be lost. Follow therefore reads from time to time what the sessions of a store wait for.

// A Hint says what a change of one store means for the sessions of others. It has no data: they read the database.
type Hint struct {
	Accounts []AccountState `json:"accounts,omitempty"` // that have changed
	Access   []AccountID    `json:"access,omitempty"`   // that were disabled, enabled or removed, or have lost an app password
	Block    int64          `json:"block,omitempty"`    // number of a new block of messages; 0: none
	Members  []AccountID    `json:"members,omitempty"`  // of the block, in ascending order
}

// An AccountState is an account with its new state; 0 after it was removed.
type AccountState struct {
	ID    AccountID `json:"id"`
	State ModSeq    `json:"state"`
}

// Hear tells the watchers of this store what another store has announced. It does not wait for the database.
func (s *Store) Hear(h Hint) {
	if h.Block > 0 {
		s.blocks.hear(s, h.Block)
		s.mergeThose(func(id AccountID) bool { _, found := slices.BinarySearch(h.Members, id); return found })
	}
	for _, a := range h.Accounts {
		s.notify(a.ID, a.State)
	}
	for _, id := range h.Access {
		s.notifyAccess(id)
	}
}

// An accessWatcher is a call of WatchAccess.
type accessWatcher struct{ changed func(AccountID) }

// WatchAccess calls changed after an account was disabled, enabled or removed, or has lost an app password, until stop is called. changed must not
// block.
func (s *Store) WatchAccess(changed func(AccountID)) (stop func()) {
	w := &accessWatcher{changed}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.access[w] = struct{}{}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.access, w)
	}
}

func (s *Store) notifyAccess(id AccountID) {
	s.mu.Lock()
	all := make([]*accessWatcher, 0, len(s.access))
	for w := range s.access {
		all = append(all, w)
	}
	s.mu.Unlock()
	for _, w := range all {
		w.changed(id)
	}
}

// accessChanged reports that logins of an account may not be valid any more. Its watchers look at the account again, although its state is the same.
func (s *Store) accessChanged(id AccountID, state ModSeq) {
	h := Hint{Accounts: []AccountState{{id, state}}, Access: []AccountID{id}}
	s.Hear(h)
	if s.o.Announce != nil {
		s.o.Announce(h)
	}
}

const (
	// followInterval is how often Follow reads, and so about how late a change is reported whose hint was lost.
	followInterval = 30 * time.Second
	followAtOnce   = 500 // accounts or blocks in one read
)

// Follow reports to the watchers of this store what others have changed, if no hint did: each followInterval, and at once after each element of again.
// It runs until ctx ends.
func (s *Store) Follow(ctx context.Context, again <-chan struct{}) {
	ticker := time.NewTicker(followInterval)
	defer ticker.Stop()
	f := &follower{store: s}
	for {
		s.report(ctx, "cannot read what other nodes have changed in mailboxes", f.read(ctx))
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-again:
		}
	}
}

// A follower remembers what it has read.
type follower struct {
	store  *Store
	states map[AccountID]ModSeq // of watched accounts
	begun  bool
}

func (f *follower) read(ctx context.Context) error {
	return errors.Join(f.readBlocks(ctx), f.readStates(ctx))
}

// readStates notifies the watchers of accounts whose state differs from that of the last read.
func (f *follower) readStates(ctx context.Context) error {
	s := f.store
	s.mu.Lock()
	ids := make([]AccountID, 0, len(s.watchers))
	for id := range s.watchers {
		ids = append(ids, id)
	}
	s.mu.Unlock()
	slices.Sort(ids)
	states := make(map[AccountID]ModSeq, len(ids))
	for some := range slices.Chunk(ids, followAtOnce) {
		list, err := s.accounts(ctx, some)
		if err != nil {
			return err
		}
		for i := range list {
			a := &list[i]
			if states[a.ID] = a.State; f.states[a.ID] != a.State {
				s.notify(a.ID, a.State)
			}
			if a.Disabled {
				s.Hear(Hint{Accounts: []AccountState{{a.ID, a.State}}, Access: []AccountID{a.ID}})
			}
		}
		for _, id := range some {
			if _, exists := states[id]; !exists {
				s.Hear(Hint{Accounts: []AccountState{{id, 0}}, Access: []AccountID{id}})
			}
		}
	}
	f.states = states
	return nil
}

// knownBlocks are the new blocks that a store has heard of. Store.mu guards them.
type knownBlocks struct {
	heard map[int64]bool // nil: Follow does not run
	last  int64          // the blocks up to this one are merged where they are watched
}

func (k *knownBlocks) hear(s *Store, block int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k.heard != nil && block > k.last {
		k.heard[block] = true
	}
}

// readBlocks makes rows of the messages of watched accounts in the blocks that no hint reported. Blocks become visible in the order of their numbers,
// because the transaction that takes a number keeps the next one waiting.
func (f *follower) readBlocks(ctx context.Context) error {
	s := f.store
	if !f.begun {
		var last int64
		err := s.part.Read(ctx, func(session store.Session) (err error) { last, err = lastBlock(session); return err })
		if err != nil {
			return err
		}
		s.mu.Lock()
		s.blocks = knownBlocks{map[int64]bool{}, last}
		s.mu.Unlock()
		f.begun = true
		return nil
	}
	for {
		n, err := f.readSomeBlocks(ctx)
		if err != nil || n < followAtOnce {
			return err
		}
	}
}

// A blockRange is a block and the lowest and the highest of its members.
type blockRange struct {
	block           int64
	lowest, highest AccountID
}

func (f *follower) readSomeBlocks(ctx context.Context) (n int, err error) {
	s := f.store
	s.mu.Lock()
	after := s.blocks.last
	s.mu.Unlock()
	var blocks []blockRange
	err = s.part.Read(ctx, func(session store.Session) error {
		blocks = nil
		return session.Each("inbox_blocks_after", func(r store.Row) error {
			blocks = append(blocks, blockRange{r.Int64(0), AccountID(r.Int64(1)), AccountID(r.Int64(2))})
			return nil
		}, after, int64(followAtOnce))
	})
	if err != nil {
		return 0, err
	}
	for _, b := range blocks {
		if s.watches(b) {
			if err := s.mergeBlockOf(ctx, b.block); err != nil {
				return 0, err
			}
		}
		s.mu.Lock()
		s.blocks.last = b.block
		delete(s.blocks.heard, b.block)
		s.mu.Unlock()
	}
	return len(blocks), nil
}

// mergeBlockOf is mergeWatched for a stored block. The block may have been removed meanwhile.
func (s *Store) mergeBlockOf(ctx context.Context, block int64) error {
	data, err := s.bytes(ctx, "inbox_block_data", block)
	if errors.Is(err, ErrNoMessage) {
		return nil
	}
	if err != nil {
		return err
	}
	members, err := decodeBlock(data)
	if err == nil {
		s.mergeWatched(members)
	}
	return err
}

// watches reports whether a block of which the store has not heard may have messages of a watched account.
func (s *Store) watches(b blockRange) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.blocks.heard[b.block] {
		return false
	}
	for id := range s.watchers {
		if id >= b.lowest && id <= b.highest {
			return true
		}
	}
	return false
}
