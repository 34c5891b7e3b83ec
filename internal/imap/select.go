package imap

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"fanfare.dev/fanfare/internal/imap/syntax"
	"fanfare.dev/fanfare/internal/imap/view"
	"fanfare.dev/fanfare/internal/mailbox"
)

// selected is the mailbox that a session has selected, as its client knows it.
type selected struct {
	id       mailbox.MailboxID
	readOnly bool
	handle   *view.Handle
	known    *view.Snapshot                   // the client knows its changes
	uids     []mailbox.UID                    // of the sequence numbers from 1; some may have been removed since
	last     mailbox.UID                      // UIDs up to this one were reported, or did not exist
	gone     map[mailbox.UID]*mailbox.Message // removed, and still in uids
	unbroken mailbox.ModSeq                   // all changes up to this one were reported; it counts if there are any in gone
	reported map[mailbox.UID]mailbox.ModSeq
	recent   syntax.NumSet // UIDs of messages with \Recent
	recents  int           // the client knows this number of them
	keywords map[string]bool
	saved    syntax.NumSet // UIDs that SEARCH saved
}

// sequence returns the sequence number of a UID, or 0.
func (sel *selected) sequence(uid mailbox.UID) uint32 {
	i, found := slices.BinarySearch(sel.uids, uid)
	if !found {
		return 0
	}
	return uint32(i + 1)
}

func (sel *selected) isRecent(uid mailbox.UID) bool { return sel.recent.Contains(uint32(uid)) }

// countRecent returns the number of messages with \Recent.
func (sel *selected) countRecent() int {
	n := 0
	for _, r := range sel.recent {
		from, _ := slices.BinarySearch(sel.uids, mailbox.UID(r.From))
		to, found := slices.BinarySearch(sel.uids, mailbox.UID(r.To))
		if found {
			to++
		}
		n += to - from
	}
	return n
}

func (s *session) selectMailbox(a *syntax.Select, readOnly bool) status {
	if a.Qresync != nil && !s.qresync {
		return bad("ENABLE QRESYNC first")
	}
	if s.selected != nil {
		s.unselect()
		s.out = append(s.out, "* OK [CLOSED] the previous mailbox is closed\r\n"...)
	}
	if a.Condstore {
		s.condstore = true
	}
	f, wrong := s.find(a.Mailbox, "NONEXISTENT")
	if wrong != nil {
		return *wrong
	}
	sel := &selected{id: f.ID, readOnly: readOnly, keywords: map[string]bool{}}
	sel.handle = s.server.views.Open(s.account.ID, f.ID, s.notify)
	snapshot, err := sel.handle.Reach(s.ctx, f.HighestMod)
	if err == nil {
		err = s.open(sel, snapshot, f)
	}
	if err != nil {
		sel.handle.Close()
		return s.failure(err)
	}
	s.selected = sel
	s.opened(f)
	if a.Qresync != nil && a.Qresync.UIDValidity == f.UIDValidity {
		if err := s.resync(a.Qresync); err != nil {
			s.unselect()
			return s.failure(err)
		}
	}
	answer := okCode("READ-WRITE", "SELECT completed")
	if readOnly {
		answer = okCode("READ-ONLY", "EXAMINE completed")
	}
	answer.keep = true
	return answer
}

// open fills the state of a selected mailbox.
func (s *session) open(sel *selected, snapshot *view.Snapshot, f *folder) error {
	from := max(f.RecentFrom, s.server.views.Claimed(s.account.ID, f.ID))
	if !sel.readOnly {
		if f.RecentFrom < snapshot.UIDNext {
			stored, err := s.server.o.Store.ClaimRecent(s.ctx, s.account.ID, f.ID)
			if err != nil {
				return err
			}
			from = max(from, stored)
		}
		from = max(from, sel.handle.Claim(snapshot.UIDNext))
		sel.handle.Stored(snapshot.UIDNext)
	}
	sel.known = snapshot
	sel.uids = make([]mailbox.UID, len(snapshot.Messages))
	for i := range snapshot.Messages {
		sel.uids[i] = snapshot.Messages[i].UID
	}
	sel.last = snapshot.UIDNext - 1
	sel.addRecent(from, sel.last)
	sel.recents = sel.countRecent()
	return nil
}

// addRecent marks the UIDs between two as recent.
func (sel *selected) addRecent(from, to mailbox.UID) {
	if from > to {
		return
	}
	r := syntax.Range{From: uint32(from), To: uint32(to)}
	if n := len(sel.recent); n > 0 && uint64(sel.recent[n-1].To)+1 >= uint64(r.From) {
		sel.recent[n-1].To = max(sel.recent[n-1].To, r.To)
		return
	}
	sel.recent = append(sel.recent, r)
}

// opened writes the untagged responses of SELECT.
func (s *session) opened(f *folder) {
	sel := s.selected
	s.flagsResponse()
	s.untagged("%d EXISTS", len(sel.uids))
	if !s.rev2 {
		s.untagged("%d RECENT", sel.recents)
		for i, uid := range sel.uids {
			if m := sel.known.ByUID(uid); m != nil && m.Flags&mailbox.Seen == 0 {
				s.untagged("OK [UNSEEN %d] the first unseen message", i+1)
				break
			}
		}
	}
	s.untagged("OK [UIDVALIDITY %d] UIDs are valid", f.UIDValidity)
	s.untagged("OK [UIDNEXT %d] the next UID", sel.known.UIDNext)
	s.highest()
	s.untagged("OK [MAILBOXID (%s)] the identifier", mailboxID(f.ID))
	if s.rev2 {
		s.listed("LIST", f, &syntax.List{}, false)
	}
}

// highest writes the highest ModSeq of the selected mailbox.
func (s *session) highest() {
	s.untagged("OK [HIGHESTMODSEQ %d] the last change", max(s.selected.known.State, 1))
}

// enableCondstore begins to write MODSEQ in FETCH responses, after a command that asks for it (RFC 7162, section 3.1).
func (s *session) enableCondstore() {
	if !s.condstore {
		s.condstore = true
		s.highest()
	}
}

// flagsResponse writes the flags that messages have and can have.
func (s *session) flagsResponse() {
	sel := s.selected
	words := sel.known.Keywords()
	clear(sel.keywords) // the client replaces its list by this one (RFC 9051, section 7.3.5)
	for _, word := range words {
		sel.keywords[strings.ToLower(word)] = true
	}
	list := `\Answered \Flagged \Deleted \Seen \Draft`
	if len(words) > 0 {
		list += " " + strings.Join(words, " ")
	}
	s.untagged("FLAGS (%s)", list)
	if sel.readOnly {
		s.untagged("OK [PERMANENTFLAGS ()] the mailbox is read-only")
		return
	}
	s.untagged(`OK [PERMANENTFLAGS (%s \*)] these flags can be stored`, list)
}

// announceKeywords writes the flags again if a message has a keyword that the client does not know.
func (s *session) announceKeywords(snapshot *view.Snapshot) {
	for _, word := range snapshot.Keywords() {
		if !s.selected.keywords[strings.ToLower(word)] {
			known := s.selected.known
			s.selected.known = snapshot
			s.flagsResponse()
			s.selected.known = known
			return
		}
	}
}

// resync reports the changes since the state that the client knows (RFC 7162, section 3.2.5.2).
func (s *session) resync(q *syntax.Qresync) error {
	sel := s.selected
	known := q.Known
	if known != nil {
		known = known.Resolve(uint32(sel.known.UIDNext - 1))
	}
	vanished, err := s.vanishedSince(mailbox.ModSeq(q.ModSeq), known)
	if err != nil {
		return err
	}
	if len(vanished) > 0 {
		s.untagged("VANISHED (EARLIER) %s", vanished)
	}
	for i, uid := range sel.uids {
		m := sel.known.ByUID(uid)
		if m.ModSeq <= mailbox.ModSeq(q.ModSeq) || known != nil && !known.Contains(uint32(uid)) {
			continue
		}
		s.flagsFetched(uint32(i+1), m, true)
		if err := s.flushLarge(); err != nil {
			return err
		}
	}
	return nil
}

// vanishedSince returns the UIDs that were removed after a change; with a set, only those in it. If the log does not reach back so far, it returns
// all UIDs that do not exist.
func (s *session) vanishedSince(since mailbox.ModSeq, among syntax.NumSet) (syntax.NumSet, error) {
	sel := s.selected
	changes, err := s.server.o.Store.Changes(s.ctx, s.account.ID, sel.id, min(since, sel.known.State))
	var gone syntax.NumSet
	switch {
	case errors.Is(err, mailbox.ErrOldModSeq):
		if among == nil {
			among = syntax.NumSet{{From: 1, To: uint32(sel.known.UIDNext - 1)}}
		}
		return sel.missing(among), nil
	case err != nil:
		return nil, err
	}
	for _, r := range changes.Removed {
		if (among == nil || among.Contains(uint32(r.UID))) && sel.known.ByUID(r.UID) == nil {
			gone.Add(uint32(r.UID))
		}
	}
	return gone, nil
}

// missing returns the UIDs of a set that no message has.
func (sel *selected) missing(among syntax.NumSet) (gone syntax.NumSet) {
	for _, r := range among {
		r.To = min(r.To, uint32(sel.known.UIDNext-1))
		at := r.From
		i, _ := slices.BinarySearchFunc(sel.known.Messages, mailbox.UID(r.From), func(m mailbox.Message, uid mailbox.UID) int { return cmp.Compare(m.UID, uid) })
		for ; i < len(sel.known.Messages) && uint32(sel.known.Messages[i].UID) <= r.To; i++ {
			uid := uint32(sel.known.Messages[i].UID)
			if at < uid {
				gone = append(gone, syntax.Range{From: at, To: uid - 1})
			}
			at = uid + 1
		}
		if at <= r.To {
			gone = append(gone, syntax.Range{From: at, To: r.To})
		}
	}
	return gone
}

// unselect leaves the selected mailbox.
func (s *session) unselect() {
	s.mu.Lock()
	sel := s.selected
	s.selected = nil
	s.mu.Unlock()
	if sel == nil {
		return
	}
	if !sel.readOnly && sel.handle.Unstored() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), claimTimeout)
		defer cancel()
		_, err := s.server.o.Store.ClaimRecent(ctx, s.account.ID, sel.id)
		switch {
		case err == nil:
			sel.handle.Stored(sel.known.UIDNext)
		case !errors.Is(err, mailbox.ErrNoMailbox) && !errors.Is(err, mailbox.ErrNoAccount): // the next session shows the messages with \Recent again
			s.server.o.Logger.Warn("cannot store which messages are not recent", "account", s.account.ID, "error", err)
		}
	}
	sel.handle.Close()
}

// closeMailbox removes the messages with \Deleted, and leaves the mailbox.
func (s *session) closeMailbox() status {
	sel := s.selected
	if !sel.readOnly {
		snapshot, err := sel.handle.Latest(s.ctx)
		if err != nil {
			return s.failure(err)
		}
		if _, err := s.expungeNow(snapshot, nil); err != nil {
			return s.failure(err)
		}
	}
	s.unselect()
	return ok("CLOSE completed")
}
