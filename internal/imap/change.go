package imap

import (
	"errors"
	"slices"
	"strings"

	"fanfare.dev/fanfare/internal/imap/syntax"
	"fanfare.dev/fanfare/internal/imap/view"
	"fanfare.dev/fanfare/internal/mailbox"
)

var systemFlags = map[string]mailbox.Flags{
	`\seen`: mailbox.Seen, `\answered`: mailbox.Answered, `\flagged`: mailbox.Flagged, `\deleted`: mailbox.Deleted, `\draft`: mailbox.Draft,
}

// splitFlags returns the system flags and the keywords of a list.
func splitFlags(list []string) (flags mailbox.Flags, keywords []string, wrong *status) {
	for _, f := range list {
		if !strings.HasPrefix(f, `\`) {
			keywords = append(keywords, f)
			continue
		}
		bit := systemFlags[strings.ToLower(f)]
		if bit == 0 {
			answer := bad("the system flag %s does not exist, or cannot be changed", f)
			return 0, nil, &answer
		}
		flags |= bit
	}
	return flags, keywords, nil
}

// readOnly returns the response to a change in a mailbox that was opened by EXAMINE.
func readOnly() status { return no("CANNOT", "the mailbox is open for reading only: SELECT it") }

func (s *session) store(c *syntax.Command) status {
	a := c.Args.(*syntax.Store)
	sel := s.selected
	flags, keywords, wrong := splitFlags(a.Flags)
	if wrong != nil {
		return *wrong
	}
	at, wrong := s.resolve(a.Set, c.UID)
	if wrong != nil {
		return *wrong
	}
	if sel.readOnly {
		return readOnly()
	}
	if a.UnchangedSince != nil {
		s.enableCondstore()
	}
	latest, err := sel.handle.Latest(s.ctx)
	if err != nil {
		return s.failure(err)
	}
	change := mailbox.FlagChange{Flags: flags, Keywords: keywords, Mode: mailbox.SetFlags}
	switch a.Mode {
	case '+':
		change.Mode = mailbox.AddFlags
	case '-':
		change.Mode = mailbox.RemoveFlags
	}
	if a.UnchangedSince != nil {
		since := mailbox.ModSeq(*a.UnchangedSince)
		change.UnchangedSince = &since
	}
	missing := false
	uidOf := make(map[mailbox.EmailID]mailbox.UID, len(at))
	before := make(map[mailbox.UID]mailbox.ModSeq, len(at))
	for _, i := range at {
		m := latest.ByUID(sel.uids[i])
		if m == nil {
			missing = true
			continue
		}
		change.Emails = append(change.Emails, m.Email)
		uidOf[m.Email], before[m.UID] = m.UID, m.ModSeq
	}
	if len(change.Emails) == 0 {
		return stored(missing, nil)
	}
	now, modified, err := s.server.o.Store.UpdateFlags(s.ctx, s.account.ID, []mailbox.FlagChange{change})
	if err != nil {
		return s.failure(err)
	}
	if latest, err = sel.handle.Latest(s.ctx); err != nil {
		return s.failure(err)
	}
	s.announceKeywords(latest)
	unchanged := map[mailbox.EmailID]bool{}
	for _, email := range modified {
		unchanged[email] = true
	}
	for i := range now {
		m := &now[i]
		if m.Mailbox != sel.id || uidOf[m.Email] != m.UID || unchanged[m.Email] {
			continue // it was moved meanwhile
		}
		s.storedMessage(a, c.UID, m, before[m.UID])
		if s.flushLarge() != nil {
			return ok("the connection has ended")
		}
	}
	var failed syntax.NumSet
	uids := make([]mailbox.UID, 0, len(modified))
	for _, email := range modified {
		uids = append(uids, uidOf[email])
	}
	slices.Sort(uids)
	for _, uid := range uids {
		if c.UID {
			failed.Add(uint32(uid))
		} else {
			failed.Add(sel.sequence(uid))
		}
	}
	return stored(missing, failed)
}

// storedMessage reports the flags of a message that STORE has changed. With CONDSTORE, also a silent STORE reports the new MODSEQ.
func (s *session) storedMessage(a *syntax.Store, isUID bool, m *mailbox.Message, before mailbox.ModSeq) {
	seq := s.selected.sequence(m.UID)
	if seq == 0 {
		return
	}
	s.report(m)
	switch {
	case !a.Silent:
		s.flagsFetched(seq, m, isUID)
	case s.condstore && m.ModSeq != before:
		s.out = append(s.out, "* "...)
		s.out = append(s.out, decimal(seq)...)
		s.out = append(s.out, " FETCH ("...)
		if isUID || s.qresync || s.rev2 {
			s.out = append(s.out, "UID "...)
			s.out = append(s.out, decimal(m.UID)...)
			s.out = append(s.out, ' ')
		}
		s.out = append(s.out, "MODSEQ ("...)
		s.out = append(s.out, decimal(int64(m.ModSeq))...)
		s.out = append(s.out, "))\r\n"...)
	}
}

// stored returns the response to STORE.
func stored(missing bool, failed syntax.NumSet) status {
	switch {
	case len(failed) > 0 && missing:
		return no("MODIFIED "+failed.String(), "some messages do not exist any more, and others have changed: read them again")
	case len(failed) > 0:
		return okCode("MODIFIED "+failed.String(), "some messages have changed: read them again")
	case missing:
		return no("EXPUNGEISSUED", "some of the messages do not exist any more")
	}
	return ok("STORE completed")
}

func (s *session) expunge(set *syntax.Set) status {
	sel := s.selected
	if sel.readOnly {
		return readOnly()
	}
	latest, err := sel.handle.Latest(s.ctx)
	if err != nil {
		return s.failure(err)
	}
	var among syntax.NumSet
	if set != nil {
		at, wrong := s.resolve(set.Set, true)
		if wrong != nil {
			return *wrong
		}
		among = syntax.NumSet{}
		for _, i := range at {
			among.Add(uint32(sel.uids[i]))
		}
	}
	removed, err := s.expungeNow(latest, among)
	if err != nil {
		return s.failure(err)
	}
	if !removed {
		return ok("EXPUNGE completed")
	}
	return s.expunged("EXPUNGE")
}

// expunged returns the response to a command that removed messages. With QRESYNC it has the new HIGHESTMODSEQ, after the changes (RFC 7162,
// sections 3.2.7 and 3.2.9).
func (s *session) expunged(command string) status {
	if !s.qresync {
		return ok("%s completed", command)
	}
	if err := s.sync(true); err != nil {
		return s.failure(err)
	}
	answer := okCode("HIGHESTMODSEQ "+decimal(int64(s.selected.known.State)), "%s completed", command)
	answer.keep = true
	return answer
}

// expungeNow removes the messages with \Deleted that the client knows; with a set, only those in it. It reports whether there are any.
func (s *session) expungeNow(latest *view.Snapshot, among syntax.NumSet) (removed bool, err error) {
	var emails []mailbox.EmailID
	for i := range latest.Messages {
		m := &latest.Messages[i]
		if m.Flags&mailbox.Deleted != 0 && (among == nil || among.Contains(uint32(m.UID))) && s.selected.sequence(m.UID) > 0 {
			emails = append(emails, m.Email)
		}
	}
	if len(emails) == 0 {
		return false, nil
	}
	_, _, err = s.server.o.Store.Expunge(s.ctx, s.account.ID, emails)
	return err == nil, err
}

func (s *session) copy(c *syntax.Command) status {
	a := c.Args.(*syntax.Copy)
	sel := s.selected
	at, wrong := s.resolve(a.Set, c.UID)
	if wrong != nil {
		return *wrong
	}
	isMove := c.Name == "MOVE"
	if isMove && sel.readOnly {
		return readOnly()
	}
	if len(at) == 0 {
		return ok("%s completed: no message is in the set", c.Name)
	}
	to, wrong := s.find(a.Mailbox, "TRYCREATE")
	if wrong != nil {
		return *wrong
	}
	latest, err := sel.handle.Latest(s.ctx)
	if err != nil {
		return s.failure(err)
	}
	var emails []mailbox.EmailID
	for _, i := range at {
		m := latest.ByUID(sel.uids[i])
		if m == nil {
			return no("EXPUNGEISSUED", "some of the messages do not exist any more: nothing was done")
		}
		emails = append(emails, m.Email)
	}
	change := s.server.o.Store.Copy
	if isMove {
		change = s.server.o.Store.Move
	}
	sources, results, err := change(s.ctx, s.account.ID, emails, to.ID)
	if errors.Is(err, mailbox.ErrNoMailbox) {
		return no("TRYCREATE", "the mailbox does not exist: create it")
	}
	if err != nil {
		return s.failure(err)
	}
	code := copyUID(to.UIDValidity, sources, results)
	if !isMove {
		return okCode(code, "COPY completed")
	}
	if code != "" {
		s.untagged("OK [%s] the new UIDs", code)
	}
	return s.expunged("MOVE")
}

// copyUID returns the response code of RFC 4315. The sets are in the order of the messages, so that they correspond.
func copyUID(validity uint32, sources, results []mailbox.Message) string {
	if len(sources) == 0 {
		return ""
	}
	var from, to []byte
	from = appendUIDs(from, sources)
	to = appendUIDs(to, results)
	return "COPYUID " + decimal(validity) + " " + string(from) + " " + string(to)
}

// appendUIDs appends UIDs in their order, and joins those that follow each other.
func appendUIDs(b []byte, messages []mailbox.Message) []byte {
	for i := 0; i < len(messages); {
		last := i
		for last+1 < len(messages) && messages[last+1].UID == messages[last].UID+1 {
			last++
		}
		if len(b) > 0 {
			b = append(b, ',')
		}
		b = append(b, decimal(messages[i].UID)...)
		if last > i {
			b = append(b, ':')
			b = append(b, decimal(messages[last].UID)...)
		}
		i = last + 1
	}
	return b
}

func (s *session) appendMessages(a *syntax.Append) status {
	to, wrong := s.find(a.Mailbox, "TRYCREATE")
	if wrong != nil {
		return *wrong
	}
	list := make([]mailbox.NewMessage, 0, len(a.Messages))
	for _, m := range a.Messages {
		flags, keywords, wrong := splitFlags(m.Flags)
		if wrong != nil {
			return *wrong
		}
		if len(m.Data) == 0 {
			return no("CANNOT", "a message must not be empty")
		}
		list = append(list, mailbox.NewMessage{Mailbox: to.ID, Content: lineEnds(m.Data, m.Binary), Flags: flags, Keywords: keywords, Received: m.Date})
	}
	added, err := s.server.o.Store.Append(s.ctx, s.account.ID, list)
	if errors.Is(err, mailbox.ErrNoMailbox) {
		return no("TRYCREATE", "the mailbox does not exist: create it")
	}
	if err != nil {
		return s.failure(err)
	}
	return okCode("APPENDUID "+decimal(to.UIDValidity)+" "+string(appendUIDs(nil, added)), "APPEND completed")
}

// lineEnds returns a message in which all lines end in CR LF. Binary messages stay as they are.
func lineEnds(data []byte, binary bool) []byte {
	bare := 0
	for i, c := range data {
		if c == '\n' && (i == 0 || data[i-1] != '\r') {
			bare++
		}
	}
	if bare == 0 || binary {
		return slices.Clone(data)
	}
	out := make([]byte, 0, len(data)+bare)
	for i, c := range data {
		if c == '\n' && (i == 0 || data[i-1] != '\r') {
			out = append(out, '\r')
		}
		out = append(out, c)
	}
	return out
}
