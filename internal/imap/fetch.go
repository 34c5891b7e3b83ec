package imap

import (
	"bytes"
	"errors"
	"slices"

	"fanfare.dev/fanfare/internal/imap/content"
	"fanfare.dev/fanfare/internal/imap/syntax"
	"fanfare.dev/fanfare/internal/imap/view"
	"fanfare.dev/fanfare/internal/mail/mimetree"
	"fanfare.dev/fanfare/internal/mailbox"
)

// resolve returns the positions in uids of the messages that a set names. A set of sequence numbers must not have a number that does not
// exist (RFC 9051, section 9, seq-number); UIDs that do not exist are ignored.
func (s *session) resolve(set syntax.NumSet, isUID bool) (at []int, wrong *status) {
	sel := s.selected
	switch {
	case set.IsSaved():
		return sel.positions(sel.saved), nil
	case isUID:
		last := uint32(0)
		if n := len(sel.uids); n > 0 {
			last = uint32(sel.uids[n-1])
		}
		return sel.positions(set.Resolve(last)), nil
	}
	n := uint32(len(sel.uids))
	for _, r := range set {
		if r.From > n || r.To > n || n == 0 {
			answer := bad("the mailbox has %d messages, so the sequence number does not exist", n)
			return nil, &answer
		}
	}
	for _, r := range set.Resolve(n) {
		for i := r.From; i <= r.To; i++ {
			at = append(at, int(i-1))
		}
	}
	return at, nil
}

// positions returns the positions in uids of the UIDs of a resolved set.
func (sel *selected) positions(set syntax.NumSet) (at []int) {
	for _, r := range set {
		i, _ := slices.BinarySearch(sel.uids, mailbox.UID(r.From))
		for ; i < len(sel.uids) && uint32(sel.uids[i]) <= r.To; i++ {
			at = append(at, i)
		}
	}
	return at
}

// message returns the newest state of a message: of one that was removed, the last known one.
func (sel *selected) message(latest *view.Snapshot, uid mailbox.UID) (m *mailbox.Message, exists bool) {
	if m = latest.ByUID(uid); m != nil {
		return m, true
	}
	if m = sel.known.ByUID(uid); m == nil {
		m = sel.gone[uid]
	}
	return m, false
}

// fetching is one FETCH command.
type fetching struct {
	*session
	items    []syntax.FetchItem
	latest   *view.Snapshot
	seen     map[mailbox.UID]bool // messages that the command marked as seen
	expunged bool                 // a message that was removed could not be read
	unknown  bool                 // a part has an unknown encoding
	sent     bool                 // a part of the current response was sent
}

func (s *session) fetch(c *syntax.Command) status {
	a := c.Args.(*syntax.Fetch)
	sel := s.selected
	if a.Vanished && (!c.UID || !s.qresync || a.ChangedSince == nil) {
		return bad("VANISHED needs UID FETCH, CHANGEDSINCE and ENABLE QRESYNC")
	}
	at, wrong := s.resolve(a.Set, c.UID)
	if wrong != nil {
		return *wrong
	}
	has := func(kind string) bool {
		return slices.ContainsFunc(a.Items, func(i syntax.FetchItem) bool { return i.Kind == kind })
	}
	if a.ChangedSince != nil || has(syntax.ItemModSeq) {
		s.enableCondstore()
	}
	latest, err := sel.handle.Latest(s.ctx)
	if err != nil {
		return s.failure(err)
	}
	f := &fetching{session: s, items: a.Items, latest: latest}
	if c.UID && !has(syntax.ItemUID) {
		f.items = append([]syntax.FetchItem{{Kind: syntax.ItemUID}}, f.items...)
	}
	if a.ChangedSince != nil && !has(syntax.ItemModSeq) {
		f.items = append(slices.Clip(f.items), syntax.FetchItem{Kind: syntax.ItemModSeq})
	}
	if a.Vanished {
		last := uint32(sel.known.UIDNext - 1)
		vanished, err := s.vanishedSince(mailbox.ModSeq(*a.ChangedSince), a.Set.Resolve(last))
		if err != nil {
			return s.failure(err)
		}
		if len(vanished) > 0 {
			s.untagged("VANISHED (EARLIER) %s", vanished)
		}
	}
	if a.ChangedSince != nil {
		at = slices.DeleteFunc(at, func(i int) bool {
			m, _ := sel.message(latest, sel.uids[i])
			return m == nil || uint64(m.ModSeq) <= *a.ChangedSince
		})
	}
	if err := f.markSeen(at); err != nil {
		return s.failure(err)
	}
	for _, i := range at {
		if err := f.message(i); err != nil {
			return s.failure(err)
		}
		if s.flushLarge() != nil {
			return ok("the connection has ended")
		}
		s.release()
	}
	switch {
	case f.expunged:
		return no("EXPUNGEISSUED", "some of the messages do not exist any more")
	case f.unknown:
		return no("UNKNOWN-CTE", "a part has a content transfer encoding that is not known: fetch it with BODY")
	}
	return ok("FETCH completed")
}

// setsSeen reports whether an item sets \Seen.
func setsSeen(item *syntax.FetchItem) bool {
	switch item.Kind {
	case syntax.ItemRFC822, syntax.ItemRFC822Text:
		return true
	case syntax.ItemSection, syntax.ItemBinary:
		return !item.Peek
	}
	return false
}

// markSeen sets \Seen for the messages that the command reads.
func (f *fetching) markSeen(at []int) error {
	if f.selected.readOnly || !slices.ContainsFunc(f.items, func(i syntax.FetchItem) bool { return setsSeen(&i) }) {
		return nil
	}
	var emails []mailbox.EmailID
	f.seen = map[mailbox.UID]bool{}
	for _, i := range at {
		if m := f.latest.ByUID(f.selected.uids[i]); m != nil && m.Flags&mailbox.Seen == 0 {
			emails = append(emails, m.Email)
			f.seen[m.UID] = true
		}
	}
	if len(emails) == 0 {
		return nil
	}
	_, _, err := f.server.o.Store.UpdateFlags(f.ctx, f.account.ID, []mailbox.FlagChange{{Emails: emails, Mode: mailbox.AddFlags, Flags: mailbox.Seen}})
	if err != nil {
		return err
	}
	f.latest, err = f.selected.handle.Latest(f.ctx)
	return err
}

// changeItems returns the items of a response that reports changed flags, as flagsFetched writes them.
func (s *session) changeItems() []string {
	var kinds []string
	if s.qresync || s.rev2 {
		kinds = append(kinds, syntax.ItemUID)
	}
	kinds = append(kinds, syntax.ItemFlags)
	if s.condstore {
		kinds = append(kinds, syntax.ItemModSeq)
	}
	return kinds
}

// body has the bytes and the structure of the message that is being written.
type body struct {
	data []byte
	tree *mimetree.Part
}

// message writes the FETCH response of one message.
func (f *fetching) message(i int) error {
	uid := f.selected.uids[i]
	m, exists := f.selected.message(f.latest, uid)
	if m == nil {
		f.expunged = true
		return nil
	}
	begin := len(f.out)
	f.sent = false
	f.out = append(f.out, "* "...)
	f.out = append(f.out, decimal(i+1)...)
	f.out = append(f.out, " FETCH ("...)
	var b body
	written := 0
	write := func(item *syntax.FetchItem) error {
		before := len(f.out)
		if written > 0 {
			f.out = append(f.out, ' ')
		}
		ok, err := f.item(item, m, &b)
		if !ok {
			f.out = f.out[:before]
			return err
		}
		written++
		return nil
	}
	for j := range f.items {
		if err := write(&f.items[j]); err != nil {
			if f.sent { // a part of the response was sent, so that nothing else can follow
				f.writeErr, f.over = err, true
				return nil
			}
			if errors.Is(err, mailbox.ErrNoMessage) {
				f.expunged = true
				f.out = f.out[:begin]
				return nil
			}
			f.out = f.out[:begin]
			return err
		}
	}
	if f.seen[uid] && exists { // the flags that the command changed
		f.report(m)
		for _, kind := range f.changeItems() {
			if !slices.ContainsFunc(f.items, func(i syntax.FetchItem) bool { return i.Kind == kind }) {
				if err := write(&syntax.FetchItem{Kind: kind}); err != nil {
					return err
				}
			}
		}
	}
	if written == 0 {
		f.out = f.out[:begin]
		return nil
	}
	f.out = append(f.out, ")\r\n"...)
	return nil
}

// report remembers that the client knows a change.
func (s *session) report(m *mailbox.Message) {
	if s.selected.reported == nil {
		s.selected.reported = map[mailbox.UID]mailbox.ModSeq{}
	}
	s.selected.reported[m.UID] = m.ModSeq
}

// item writes one item. It writes nothing if ok is false.
func (f *fetching) item(item *syntax.FetchItem, m *mailbox.Message, b *body) (ok bool, err error) {
	w := content.Writer{UTF8: f.utf8}
	switch item.Kind {
	case syntax.ItemUID:
		f.out = append(f.out, "UID "...)
		f.out = append(f.out, decimal(m.UID)...)
	case syntax.ItemFlags:
		f.appendFlags(m)
	case syntax.ItemInternalDate:
		f.out = append(f.out, "INTERNALDATE "...)
		f.out = syntax.AppendDateTime(f.out, m.Received)
	case syntax.ItemRFC822Size:
		f.out = append(f.out, "RFC822.SIZE "...)
		f.out = append(f.out, decimal(m.Size)...)
	case syntax.ItemModSeq:
		f.out = append(f.out, "MODSEQ ("...)
		f.out = append(f.out, decimal(int64(m.ModSeq))...)
		f.out = append(f.out, ')')
	case syntax.ItemEmailID:
		f.out = append(f.out, "EMAILID (M"+decimal(int64(m.Email))+")"...)
	case syntax.ItemThreadID:
		f.out = append(f.out, "THREADID (T"+decimal(int64(m.Thread))+")"...)
	case syntax.ItemSaveDate:
		f.out = append(f.out, "SAVEDATE "...)
		f.out = syntax.AppendDateTime(f.out, m.Saved)
	case syntax.ItemEnvelope, syntax.ItemBody, syntax.ItemBodyStructure:
		if err := f.readTree(m, b); err != nil {
			return false, err
		}
		f.out = append(f.out, item.Kind...)
		f.out = append(f.out, ' ')
		if item.Kind == syntax.ItemEnvelope {
			f.out = w.Envelope(f.out, b.tree.Envelope)
		} else {
			f.out = w.Structure(f.out, b.tree, item.Kind == syntax.ItemBodyStructure)
		}
	default:
		return f.section(item, m, b)
	}
	return true, nil
}

// readTree reads the structure of a message.
func (f *fetching) readTree(m *mailbox.Message, b *body) (err error) {
	switch {
	case b.tree != nil:
	case b.data != nil:
		b.tree = mimetree.Parse(b.data)
	default:
		b.tree, err = f.server.o.Store.Structure(f.ctx, f.account.ID, m.Email)
	}
	return err
}

func (f *fetching) readData(m *mailbox.Message, b *body) (err error) {
	if b.data == nil {
		b.data, err = f.content(m)
	}
	return err
}

// section writes an item with bytes of the message.
func (f *fetching) section(item *syntax.FetchItem, m *mailbox.Message, b *body) (ok bool, err error) {
	if err := f.readData(m, b); err != nil {
		return false, err
	}
	section := item.Section
	switch item.Kind {
	case syntax.ItemRFC822Header:
		section.Of = "HEADER"
	case syntax.ItemRFC822Text:
		section.Of = "TEXT"
	}
	if len(section.Part) > 0 || section.Of != "" {
		if err := f.readTree(m, b); err != nil {
			return false, err
		}
	}
	switch item.Kind {
	case syntax.ItemBinary, syntax.ItemBinarySize:
		return f.binary(item, b)
	case syntax.ItemSection:
		f.out = append(f.out, "BODY"...)
		f.out = syntax.AppendSection(f.out, section)
	default:
		f.out = append(f.out, item.Kind...)
	}
	data := content.Section(b.tree, b.data, section)
	f.partial(item.Partial)
	return true, f.literal(content.Cut(data, item.Partial))
}

// partial writes the origin of a partial.
func (f *fetching) partial(p *syntax.Partial) {
	if p != nil {
		f.out = append(f.out, '<')
		f.out = append(f.out, decimal(p.Offset)...)
		f.out = append(f.out, '>')
	}
	f.out = append(f.out, ' ')
}

// literal writes bytes as a literal. NUL, which a literal cannot have, becomes 0x80.
func (f *fetching) literal(data []byte) error {
	if bytes.IndexByte(data, 0) >= 0 {
		data = bytes.ReplaceAll(data, []byte{0}, []byte{0x80})
	}
	f.out = append(f.out, '{')
	f.out = append(f.out, decimal(len(data))...)
	f.out = append(f.out, "}\r\n"...)
	return f.send(data)
}

// send writes bytes. Large ones are sent without a copy.
func (f *fetching) send(data []byte) error {
	if len(data) <= outputBytes {
		f.out = append(f.out, data...)
		return nil
	}
	f.sent = true
	if err := f.flush(); err != nil {
		return err
	}
	_, err := f.stream.Write(data)
	return err
}

func (f *fetching) binary(item *syntax.FetchItem, b *body) (ok bool, err error) {
	data, err := content.Binary(b.tree, b.data, item.Section.Part)
	if errors.Is(err, mimetree.ErrUnknownEncoding) {
		f.unknown = true
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if item.Kind == syntax.ItemBinarySize {
		f.out = append(f.out, "BINARY.SIZE"...)
		f.out = syntax.AppendSection(f.out, item.Section)
		f.out = append(f.out, ' ')
		f.out = append(f.out, decimal(len(data))...)
		return true, nil
	}
	f.out = append(f.out, "BINARY"...)
	f.out = syntax.AppendSection(f.out, item.Section)
	f.partial(item.Partial)
	data = content.Cut(data, item.Partial)
	if bytes.IndexByte(data, 0) >= 0 {
		f.out = append(f.out, '~')
	}
	f.out = append(f.out, '{')
	f.out = append(f.out, decimal(len(data))...)
	f.out = append(f.out, "}\r\n"...)
	return true, f.send(data)
}
