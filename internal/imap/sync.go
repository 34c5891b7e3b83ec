package imap

import (
	"errors"
	"strings"

	"fanfare.dev/fanfare/internal/imap/syntax"
	"fanfare.dev/fanfare/internal/imap/view"
	"fanfare.dev/fanfare/internal/mailbox"
)

// sync reports the changes of the selected mailbox. Without expunge, removed messages keep their sequence numbers.
func (s *session) sync(expunge bool) error {
	sel := s.selected
	snapshot, err := sel.handle.Latest(s.ctx)
	if err != nil {
		return err
	}
	if snapshot == sel.known && (len(sel.gone) == 0 || !expunge) {
		return nil
	}
	before := sel.last
	s.announceKeywords(snapshot)
	if expunge {
		s.reportRemoved(snapshot)
	} else {
		sel.keepRemoved(snapshot)
	}
	added := s.addNew(snapshot)
	s.reportChanged(snapshot, before)
	sel.known, sel.reported = snapshot, nil
	if added {
		s.untagged("%d EXISTS", len(sel.uids))
	}
	if n := sel.countRecent(); n != sel.recents {
		sel.recents = n
		if !s.rev2 {
			s.untagged("%d RECENT", n)
		}
	}
	return s.flushLarge()
}

// reportRemoved reports the messages that are not in the snapshot: from the last to the first, so that sequence numbers do not shift.
func (s *session) reportRemoved(snapshot *view.Snapshot) {
	sel := s.selected
	var vanished syntax.NumSet
	kept := sel.uids[:0]
	var gone []uint32
	at := 0
	for i, uid := range sel.uids {
		for at < len(snapshot.Messages) && snapshot.Messages[at].UID < uid {
			at++
		}
		if at < len(snapshot.Messages) && snapshot.Messages[at].UID == uid {
			kept = append(kept, uid)
			continue
		}
		vanished.Add(uint32(uid))
		gone = append(gone, uint32(i+1))
	}
	sel.uids, sel.gone = kept, nil
	if len(gone) == 0 {
		return
	}
	if s.qresync {
		s.untagged("VANISHED %s", vanished)
		return
	}
	for i := len(gone) - 1; i >= 0; i-- {
		s.out = append(s.out, "* "...)
		s.out = append(s.out, decimal(gone[i])...)
		s.out = append(s.out, " EXPUNGE\r\n"...)
	}
}

// keepRemoved keeps what is known of messages that are not in the snapshot, until their removal is reported.
func (sel *selected) keepRemoved(snapshot *view.Snapshot) {
	if sel.known == snapshot {
		return
	}
	for i := range sel.known.Messages {
		m := &sel.known.Messages[i]
		if snapshot.ByUID(m.UID) == nil && sel.sequence(m.UID) > 0 {
			if sel.gone == nil {
				sel.gone = map[mailbox.UID]*mailbox.Message{}
				sel.unbroken = sel.known.State
			}
			sel.gone[m.UID] = m
		}
	}
}

// addNew gives sequence numbers to new messages, and reports whether there are any.
func (s *session) addNew(snapshot *view.Snapshot) bool {
	sel := s.selected
	first := sel.last + 1
	added := snapshot.Since(first)
	for i := range added {
		sel.uids = append(sel.uids, added[i].UID)
	}
	sel.last = max(sel.last, snapshot.UIDNext-1)
	if len(added) == 0 || s.rev2 {
		return len(added) > 0
	}
	// The first session that hears of a message shows it with \Recent.
	from := max(first, s.server.views.Claimed(s.account.ID, sel.id))
	if !sel.readOnly {
		from = max(from, sel.handle.Claim(snapshot.UIDNext))
	}
	sel.addRecent(from, sel.last)
	return true
}

// reportChanged reports the flags of messages that the client knows, and that changed. It leaves out the changes that a command has reported.
func (s *session) reportChanged(snapshot *view.Snapshot, last mailbox.UID) {
	sel := s.selected
	if snapshot.State <= sel.known.State {
		return
	}
	for i := range snapshot.Messages {
		m := &snapshot.Messages[i]
		if m.UID > last {
			return
		}
		if m.ModSeq <= sel.known.State || sel.reported[m.UID] >= m.ModSeq {
			continue
		}
		if seq := sel.sequence(m.UID); seq > 0 {
			s.flagsFetched(seq, m, false)
		}
	}
}

// flagsFetched writes a FETCH response with the flags of a message.
func (s *session) flagsFetched(seq uint32, m *mailbox.Message, withUID bool) {
	s.out = append(s.out, "* "...)
	s.out = append(s.out, decimal(seq)...)
	s.out = append(s.out, " FETCH ("...)
	if withUID || s.qresync || s.rev2 {
		s.out = append(s.out, "UID "...)
		s.out = append(s.out, decimal(m.UID)...)
		s.out = append(s.out, ' ')
	}
	s.appendFlags(m)
	if s.condstore {
		s.appendModSeq(m)
	}
	s.out = append(s.out, ")\r\n"...)
}

func (s *session) appendModSeq(m *mailbox.Message) {
	s.out = append(s.out, " MODSEQ ("...)
	s.out = append(s.out, decimal(int64(m.ModSeq))...)
	s.out = append(s.out, ')')
}

var flagNames = []struct {
	flag mailbox.Flags
	name string
}{
	{mailbox.Answered, `\Answered`}, {mailbox.Flagged, `\Flagged`}, {mailbox.Deleted, `\Deleted`}, {mailbox.Seen, `\Seen`}, {mailbox.Draft, `\Draft`},
}

// appendFlags appends FLAGS and the flags of a message.
func (s *session) appendFlags(m *mailbox.Message) {
	s.out = append(s.out, "FLAGS ("...)
	begin := len(s.out)
	for _, f := range flagNames {
		if m.Flags&f.flag != 0 {
			s.out = append(s.out, f.name...)
			s.out = append(s.out, ' ')
		}
	}
	if !s.rev2 && s.selected.isRecent(m.UID) {
		s.out = append(s.out, `\Recent `...)
	}
	s.out = append(s.out, m.Keywords...)
	if n := len(s.out); n > begin && s.out[n-1] == ' ' {
		s.out = s.out[:n-1]
	}
	s.out = append(s.out, ')')
}

// lostMailbox handles an error of sync. The session ends if its mailbox was deleted.
func (s *session) lostMailbox(err error) {
	if errors.Is(err, mailbox.ErrNoMailbox) || errors.Is(err, mailbox.ErrNoAccount) {
		s.unselect()
		s.untagged("BYE the selected mailbox was deleted; connect again")
		s.over = true
		return
	}
	if s.ctx.Err() == nil && s.writeErr == nil {
		s.server.o.Logger.Warn("cannot read the changes of a mailbox", "account", s.account.ID, "error", err)
	}
}

// notify is called after each change of the account. It begins to report the change if the client idles.
func (s *session) notify() {
	if !s.idling.Load() || s.pushing.Swap(true) {
		return
	}
	go s.push()
}

// push reports changes to a client that idles.
func (s *session) push() {
	select {
	case s.server.pushes <- struct{}{}:
	case <-s.ctx.Done():
		return
	}
	s.mu.Lock()
	s.pushing.Store(false) // before the changes are read, so that a later change begins another push
	if !s.idling.Load() || s.selected == nil {
		s.mu.Unlock()
		<-s.server.pushes
		return
	}
	s.takeOutput()
	err := s.sync(true)
	<-s.server.pushes // a slow client must not keep others waiting
	if err != nil {
		s.lost.Store(errors.Is(err, mailbox.ErrNoMailbox) || errors.Is(err, mailbox.ErrNoAccount))
		if s.lost.Load() {
			_ = s.conn.SetReadDeadline(pastDeadline) // ends IDLE
		}
	}
	_ = s.flush()
	s.releaseOutput()
	s.mu.Unlock()
}

// idle reports changes until the client sends DONE (RFC 2177).
func (s *session) idle() status {
	s.out = append(s.out, "+ idling\r\n"...)
	s.mu.Lock()
	s.idling.Store(true)
	if s.selected != nil {
		if err := s.sync(true); err != nil {
			s.idling.Store(false)
			s.mu.Unlock()
			s.lostMailbox(err)
			return no("UNAVAILABLE", "the changes cannot be read: try again")
		}
	}
	err := s.flush()
	s.releaseOutput()
	s.mu.Unlock()
	var line []byte
	if err == nil {
		line, err = s.in.line(nil, maxLineBytesBefore)
	}
	s.mu.Lock()
	s.idling.Store(false)
	s.takeOutput()
	s.mu.Unlock()
	switch {
	case s.lost.Load():
		s.lostMailbox(mailbox.ErrNoMailbox)
		return status{}
	case err != nil:
		s.endOfInput(err)
		return status{}
	case !isDone(line):
		return bad("DONE ends IDLE")
	}
	return ok("IDLE completed")
}

func isDone(line []byte) bool { return strings.EqualFold(strings.TrimRight(string(line), " "), "DONE") }
