package mailbox

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"math"
	"slices"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/checksum"
	"fanfare.dev/fanfare/internal/failpoint"
	"fanfare.dev/fanfare/internal/mail/mimetree"
	"fanfare.dev/fanfare/internal/mailbox/delta"
	"fanfare.dev/fanfare/internal/store"
)

// minBlock is the number of messages from which a block is smaller and faster than rows.
const minBlock = 64

// DepositAll is Deposit for many messages. It stores those of one manifest as one block, which costs a fraction of the rows. The first access to an
// account makes rows of its messages; until then the account need not exist.
func (s *Store) DepositAll(ctx context.Context, list []Deposit) []error {
	errs := make([]error, len(list))
	groups, rest := groupDeposits(list)
	c := &change{}
	blocks := make([]*newBlock, 0, len(groups))
	for _, group := range groups {
		b, err := newBlockOf(list, group)
		if err != nil { // the rows do not need deltas
			rest = append(rest, group...)
			continue
		}
		blocks = append(blocks, b)
		c.contents = append(c.contents, b.base)
	}
	if len(rest) > 0 {
		some := make([]Deposit, len(rest))
		for i, at := range rest {
			some[i] = list[at]
		}
		for i, err := range s.Deposit(ctx, some) {
			errs[rest[i]] = err
		}
	}
	if len(blocks) == 0 {
		return errs
	}
	c.run = func(u *unit) error {
		for _, b := range blocks {
			if err := u.storeBlock(list, b, errs); err != nil {
				return err
			}
		}
		failpoint.Hit("before-mailbox-block")
		return nil
	}
	err := s.queue.do(ctx, c)
	failpoint.Hit("after-mailbox-block")
	if err != nil {
		for _, b := range blocks {
			for _, at := range b.deposits {
				errs[at] = err
			}
		}
		return errs
	}
	for _, b := range blocks {
		if b.number > 0 {
			s.deposited(b)
		}
	}
	return errs
}

// groupDeposits returns the indexes of deposits that can be stored as blocks, each in ascending order of the accounts, and the other indexes.
func groupDeposits(list []Deposit) (groups [][]int, rest []int) {
	by := map[fanfare.ManifestID][]int{}
	var order []fanfare.ManifestID
	for i := range list {
		m := list[i].Delivery.Manifest
		if by[m] == nil {
			order = append(order, m)
		}
		by[m] = append(by[m], i)
	}
	for _, m := range order {
		group := by[m]
		if len(group) < minBlock {
			rest = append(rest, group...)
			continue
		}
		slices.SortStableFunc(group, func(i, j int) int { return cmp.Compare(list[i].ID, list[j].ID) })
		group = slices.CompactFunc(group, func(i, j int) bool {
			same := list[i].ID == list[j].ID
			if same { // an account is once in a block
				rest = append(rest, j)
			}
			return same
		})
		groups = append(groups, group)
	}
	return groups, rest
}

// A newBlock is a block that is not stored yet.
type newBlock struct {
	deposits []int // indexes
	members  []blockMember
	base     *newContent
	data     []byte
	delivery fanfare.DeliveryRef // of the lowest position
	last     uint32              // the highest position
	number   int64               // 0: all of its messages were stored before, or were refused
}

func newBlockOf(list []Deposit, group []int) (*newBlock, error) {
	deposits := make([]*Deposit, len(group))
	b := &newBlock{deposits: group, delivery: list[group[0]].Delivery}
	for i, at := range group {
		deposits[i] = &list[at]
		b.delivery.Position = min(b.delivery.Position, list[at].Delivery.Position)
		b.last = max(b.last, list[at].Delivery.Position)
	}
	base, members, err := newMembers(deposits)
	if err != nil {
		return nil, err
	}
	b.members, b.data = members, encodeBlock(members)
	b.base = &newContent{data: base, size: int64(len(base)), hash: sha256.Sum256(base), structure: []byte{}, uses: 1}
	return b, nil
}

// storeBlock stores a block, without the messages that are stored already.
func (u *unit) storeBlock(list []Deposit, b *newBlock, errs []error) error {
	event := eventOf(b.delivery)
	broadcast, err := readBroadcast(u.session, event)
	if err != nil {
		return err
	}
	for _, at := range b.deposits {
		errs[at] = nil
	}
	ended := broadcast.admits(u.now)
	members, data := b.members, b.data
	b.number = 0
	stored, err := u.storedPositions(b)
	if err != nil {
		return err
	}
	disabled, err := u.disabledMembers(members)
	if err != nil {
		return err
	}
	if ended != nil || len(stored) > 0 || len(disabled) > 0 {
		members = make([]blockMember, 0, len(b.members))
		for i, at := range b.deposits {
			switch m := b.members[i]; {
			case stored[m.position]:
			case disabled[m.account]:
				errs[at] = errDisabled()
			case ended != nil:
				errs[at] = ended
			default:
				members = append(members, m)
			}
		}
		data = encodeBlock(members)
	}
	if len(members) == 0 {
		return u.dropUses(b.base.id, 1)
	}
	u.wrote = true
	number := int64(0)
	if err := u.session.Each("mailbox_numbers_take", func(r store.Row) error { number = r.Int64(0); return nil }, "block", int64(1)); err != nil {
		return err
	}
	b.number = number
	first, last := members[0].position, members[0].position
	for i := range members {
		first, last = min(first, members[i].position), max(last, members[i].position)
	}
	ref := b.delivery
	err = u.session.Insert("inbox_block_insert", 1, func(_ int, to store.Values) {
		for _, v := range [...]int64{number, int64(ref.Day), int64(ref.Manifest), int64(first), int64(last),
			int64(members[0].account), int64(members[len(members)-1].account), int64(len(members)), 0, int64(b.base.id), u.now} {
			to.Int64(v)
		}
	})
	if err != nil {
		return err
	}
	err = u.session.Insert("inbox_block_data_insert", 1, func(_ int, to store.Values) { to.Int64(number); to.Bytes(data) })
	if err != nil {
		return err
	}
	expires := int64(0)
	if keep := list[b.deposits[0]].Keep; keep > 0 {
		expires = u.now + int64(keep/time.Second)
	}
	return u.countBroadcast(event, broadcastCounts{stored: int64(len(members))}, expires)
}

// storedPositions returns which positions of a block are stored: as rows, or in other blocks.
func (u *unit) storedPositions(b *newBlock) (map[uint32]bool, error) {
	stored := map[uint32]bool{}
	ref := b.delivery
	err := u.session.Each("inbox_messages_in_range", func(r store.Row) error { stored[uint32(r.Int64(0))] = true; return nil },
		int64(ref.Day), int64(ref.Manifest), int64(ref.Position), int64(b.last))
	if err != nil {
		return nil, err
	}
	err = u.membersOf(ref, b.last, func(_ blockRow, m *blockMember) { stored[m.position] = true })
	for position := range stored {
		if position < ref.Position || position > b.last {
			delete(stored, position)
		}
	}
	return stored, err
}

// disabledMembers returns which accounts of members, which are in ascending order, are disabled. Few accounts are, and an index has only those, so
// that the cost does not depend on the number of members.
func (u *unit) disabledMembers(members []blockMember) (disabled map[AccountID]bool, err error) {
	err = u.session.Each("accounts_disabled", func(r store.Row) error {
		if disabled == nil {
			disabled = map[AccountID]bool{}
		}
		disabled[AccountID(r.Int64(0))] = true
		return nil
	}, int64(members[0].account), int64(members[len(members)-1].account))
	return disabled, err
}

// A blockRow is a row of inbox_blocks.
type blockRow struct {
	block    int64
	at       int64
	base     ContentID
	members  int64
	merged   int64
	delivery fanfare.DeliveryRef // without a position
}

// membersOf calls fn for the members of the blocks that may have messages of the deliveries from ref to the position last.
func (u *unit) membersOf(ref fanfare.DeliveryRef, last uint32, fn func(b blockRow, m *blockMember)) error {
	return membersOf(u.session, ref, last, fn)
}

func membersOf(session store.Session, ref fanfare.DeliveryRef, last uint32, fn func(b blockRow, m *blockMember)) error {
	var blocks []blockRow
	err := session.Each("inbox_blocks_of_delivery", func(r store.Row) error {
		blocks = append(blocks, blockRow{block: r.Int64(0), at: r.Int64(1), base: ContentID(r.Int64(2))})
		return nil
	}, int64(ref.Day), int64(ref.Manifest), int64(last), int64(ref.Position))
	for _, b := range blocks {
		if err != nil {
			return err
		}
		var members []blockMember
		if members, err = readBlock(session, b.block); err == nil {
			for i := range members {
				fn(b, &members[i])
			}
		}
	}
	return err
}

// messagesInBlocks sets those entries of list that are nil and whose message is in a block.
func messagesInBlocks(session store.Session, refs []fanfare.DeliveryRef, list []*InboxMessage) error {
	type manifest struct {
		day fanfare.Day
		id  fanfare.ManifestID
	}
	missing := map[manifest]map[uint32]int{} // index by position
	for i, ref := range refs {
		if list[i] == nil {
			m := manifest{ref.Day, ref.Manifest}
			if missing[m] == nil {
				missing[m] = map[uint32]int{}
			}
			missing[m][ref.Position] = i
		}
	}
	for m, positions := range missing {
		first, last := uint32(math.MaxUint32), uint32(0)
		for position := range positions {
			first, last = min(first, position), max(last, position)
		}
		err := membersOf(session, fanfare.DeliveryRef{Day: m.day, Manifest: m.id, Position: first}, last, func(b blockRow, member *blockMember) {
			if i, ok := positions[member.position]; ok {
				list[i] = &InboxMessage{Account: member.account, StoredAt: timeOf(b.at)}
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func readBlock(session store.Session, block int64) (members []blockMember, err error) {
	data, err := blockData(session, block)
	if err != nil {
		return nil, err
	}
	return decodeBlock(data)
}

func blockData(session store.Session, block int64) (data []byte, err error) {
	err = session.Each("inbox_block_data", func(r store.Row) error { data = r.Bytes(0); return nil }, block)
	return data, err
}

// lastBlock returns the number of the last block, 0 if there is none.
func lastBlock(session store.Session) (last int64, err error) {
	err = session.Each("inbox_block_last", func(r store.Row) error { last = r.Int64(0); return nil })
	return last, err
}

// mergeBlocks makes rows of the messages that accounts have in blocks, in the order of the blocks, up to mergedAtOnce of them.
func (u *unit) mergeBlocks(ids []AccountID) error {
	if len(ids) == 0 {
		return nil
	}
	last, err := lastBlock(u.session)
	if err != nil {
		return err
	}
	budget := mergedAtOnce / 2 // the contents of the changes need numbers too
	for _, id := range ids {
		if a := u.accounts[id]; a.merged < last {
			if err := u.mergeAccount(a, last, &budget); err != nil {
				return err
			}
		}
	}
	return nil
}

func (u *unit) mergeAccount(a *account, last int64, budget *int) error {
	var blocks []blockRow
	err := u.session.Each("inbox_blocks_of_account", func(r store.Row) error {
		blocks = append(blocks, blockRow{block: r.Int64(0), base: ContentID(r.Int64(4)), at: r.Int64(5),
			delivery: fanfare.DeliveryRef{Day: fanfare.Day(r.Int64(1)), Manifest: fanfare.ManifestID(r.Int64(2))}})
		return nil
	}, a.merged, int64(a.ID), int64(a.ID))
	if err != nil {
		return err
	}
	for _, b := range blocks {
		if *budget == 0 {
			a.dirty = true
			return nil // the rest follows at the next access
		}
		if err := u.mergeBlock(a, b, budget); err != nil {
			return err
		}
		a.merged = b.block
	}
	a.merged, a.dirty = last, true
	return nil
}

// mergeBlock makes a row of the message that an account has in a block.
func (u *unit) mergeBlock(a *account, b blockRow, budget *int) error {
	data, err := blockData(u.session, b.block)
	if err != nil {
		return err
	}
	member, found, buffer, err := findMember(u.block, data, a.ID)
	if u.block = buffer; err != nil || !found {
		return err
	}
	*budget--
	u.mergedBlocks = true
	content, err := u.expand(slices.Clone(member.delta), b.base)
	if err != nil {
		return err
	}
	a.taken = 0
	message := u.addFree(a, content, time.Unix(b.at, 0))
	a.taken = 0
	ref := b.delivery
	err = u.session.Insert("inbox_message_insert", 1, func(_ int, to store.Values) {
		for _, v := range [...]int64{int64(a.ID), int64(message.Email), int64(ref.Day), int64(ref.Manifest), int64(member.position), b.at, 0, 0, 0} {
			to.Int64(v)
		}
	})
	if err != nil {
		return err
	}
	return u.session.Run("inbox_block_count", int64(1), b.block)
}

// expand stores the message that a delta in a block stands for, as a content with the same base.
func (u *unit) expand(d []byte, base ContentID) (*newContent, error) {
	var bytes, hash []byte
	if err := u.session.Each("content_data", func(r store.Row) error { bytes, hash = r.Bytes(0), r.Bytes(1); return nil }, int64(base)); err != nil {
		return nil, err
	}
	if !sameHash(bytes, hash) {
		return nil, checksum.Damaged("the common part of the inbox messages of a broadcast")
	}
	message, err := delta.Expand(nil, bytes, d)
	if err != nil {
		return nil, err
	}
	tree := mimetree.Parse(message)
	c := &newContent{data: d, size: int64(len(message)), base: base, hash: sha256.Sum256(message), structure: tree.Append(nil),
		threads: threadHashes(message, tree), uses: 1, reserved: u.numbers.take()}
	err = u.session.Each("content_use", func(r store.Row) error { c.id = ContentID(r.Int64(0)); return nil },
		int64(c.reserved), c.hash[:], c.size, int64(base), int64(1), c.structure)
	if err != nil || c.id != c.reserved {
		return c, err
	}
	err = u.session.Insert("content_data_insert", 1, func(_ int, to store.Values) { to.Int64(int64(c.id)); to.Bytes(d) })
	if err != nil {
		return nil, err
	}
	return c, u.session.Run("content_add_uses", int64(1), int64(base))
}

// errBlocks says that an account has messages in blocks that are not rows yet.
var errBlocks = errors.New("the account has messages in blocks")

// merge makes rows of the messages that an account has in blocks.
func (s *Store) merge(ctx context.Context, id AccountID) error {
	return s.queue.do(ctx, &change{accounts: []AccountID{id}, run: func(*unit) error { return nil }})
}

// deposited makes the messages of a new block visible to the watchers of its accounts, here and on other nodes.
func (s *Store) deposited(b *newBlock) {
	s.mergeWatched(b.members)
	if s.o.Announce == nil {
		return
	}
	members := make([]AccountID, len(b.members))
	for i := range b.members {
		members[i] = b.members[i].account
	}
	s.o.Announce(Hint{Block: b.number, Members: members})
}

// mergeWatched makes rows of the messages of those members of a block that are watched, so that the watchers learn of them.
func (s *Store) mergeWatched(members []blockMember) {
	s.mergeThose(func(id AccountID) bool { _, found := memberOf(members, id); return found })
}

// mergeThose makes rows of messages in blocks for the watched accounts that have some.
func (s *Store) mergeThose(have func(AccountID) bool) {
	var ids []AccountID
	s.mu.Lock()
	for id := range s.watchers {
		if have(id) {
			ids = append(ids, id)
		}
	}
	s.mu.Unlock()
	for _, id := range ids {
		go func() {
			s.report(context.Background(), "cannot show a new message to a session", s.merge(context.Background(), id))
		}()
	}
}

// endBlocks removes the blocks of an event that was recalled or has expired, and counts the messages that were in no mailbox yet.
func (s *Store) endBlocks(ctx context.Context, event fanfare.EventRef, why ended) error {
	return s.removeBlocks(ctx, func(b blockRow, u *unit) error {
		n := broadcastCounts{}
		if left := b.members - b.merged; why == endedByExpiry {
			n.expired = left
		} else {
			n.recalled = left
		}
		return u.countBroadcast(event, n, 0)
	}, "inbox_blocks_of_event", int64(event.Day), int64(fanfare.NewManifestID(event.Seq, 0)), int64(fanfare.NewManifestID(event.Seq+1, 0)), int64(cleanupRows))
}

// RemoveMerged removes blocks whose messages are all rows.
func (s *Store) RemoveMerged(ctx context.Context) error {
	return s.removeBlocks(ctx, func(blockRow, *unit) error { return nil }, "inbox_blocks_merged", int64(cleanupRows))
}

// removeBlocks removes the blocks that a statement returns, some in each transaction, until it returns none.
func (s *Store) removeBlocks(ctx context.Context, count func(b blockRow, u *unit) error, statement string, args ...any) error {
	for {
		removed := 0
		err := s.queue.do(ctx, &change{run: func(u *unit) error {
			var blocks []blockRow
			err := u.session.Each(statement, func(r store.Row) error {
				blocks = append(blocks, blockRow{block: r.Int64(0), members: r.Int64(1), merged: r.Int64(2), base: ContentID(r.Int64(3))})
				return nil
			}, args...)
			removed = len(blocks)
			u.wrote = u.wrote || removed > 0
			for _, b := range blocks {
				if err == nil {
					err = errors.Join(u.session.Run("inbox_block_remove", b.block), u.session.Run("inbox_block_data_remove", b.block), u.dropUses(b.base, 1), count(b, u))
				}
			}
			if removed > 0 {
				failpoint.Hit("before-mailbox-blocks-removed")
			}
			return err
		}})
		if err != nil || removed == 0 {
			return err
		}
		failpoint.Hit("after-mailbox-blocks-removed")
	}
}

// inBlocks reports whether an account has a message in a block.
func inBlocks(session store.Session, id AccountID) (bool, error) {
	var blocks []int64
	err := session.Each("inbox_blocks_of_account", func(r store.Row) error { blocks = append(blocks, r.Int64(0)); return nil }, int64(0), int64(id), int64(id))
	var buffer []byte
	for _, block := range blocks {
		if err != nil {
			break
		}
		var data []byte
		if data, err = blockData(session, block); err != nil {
			break
		}
		found := false
		if _, found, buffer, err = findMember(buffer, data, id); found {
			return true, nil
		}
	}
	return false, err
}

// leaveBlocks removes the messages of an account from all blocks, also those that are rows already.
func leaveBlocks(session store.Session, a *account) error {
	var blocks []int64
	err := session.Each("inbox_blocks_of_account", func(r store.Row) error { blocks = append(blocks, r.Int64(0)); return nil }, int64(0), int64(a.ID), int64(a.ID))
	for _, block := range blocks {
		if err != nil {
			return err
		}
		var members []blockMember
		if members, err = readBlock(session, block); err != nil {
			return err
		}
		at, found := memberOf(members, a.ID)
		if !found {
			continue
		}
		merged := bit(block <= a.merged)
		err = errors.Join(session.Run("inbox_block_replace", merged, block),
			session.Run("inbox_block_data_replace", encodeBlock(slices.Delete(members, at, at+1)), block))
	}
	return err
}
