package imap

import (
	"slices"
	"strings"

	"fanfare.dev/fanfare/internal/imap/syntax"
	"fanfare.dev/fanfare/internal/mailbox"
)

// matches reports whether a name matches a pattern: "*" stands for any characters, "%" for any but the separator.
func matches(pattern, name string) bool {
	// possible[i] says that the pattern up to here matches name[:i].
	possible := make([]bool, len(name)+1)
	possible[0] = true
	for p := range len(pattern) {
		c := pattern[p]
		if c == '*' || c == '%' {
			for i := 1; i <= len(name); i++ {
				possible[i] = possible[i] || possible[i-1] && (c == '*' || name[i-1] != mailbox.Separator)
			}
			continue
		}
		for i := len(name); i > 0; i-- {
			possible[i] = possible[i-1] && name[i-1] == c
		}
		possible[0] = false
	}
	return possible[len(name)]
}

// patterns returns the patterns with the reference before them.
func (s *session) patterns(a *syntax.List) ([]string, *status) {
	reference, err := syntax.DecodeMailbox(a.Reference, s.utf8)
	if err != nil {
		wrong := no("CANNOT", "%s", err)
		return nil, &wrong
	}
	all := make([]string, 0, len(a.Patterns))
	cost := 0
	for _, raw := range a.Patterns {
		pattern, err := syntax.DecodeMailbox(raw, s.utf8)
		if err != nil {
			wrong := no("CANNOT", "%s", err)
			return nil, &wrong
		}
		pattern = reference + pattern
		for strings.Contains(pattern, "**") {
			pattern = strings.ReplaceAll(pattern, "**", "*")
		}
		if cost += len(pattern); cost > maxPatternBytes {
			wrong := no("LIMIT", "the patterns have more than %d bytes in total", maxPatternBytes)
			return nil, &wrong
		}
		all = append(all, normalPattern(pattern))
	}
	return all, nil
}

const maxPatternBytes = 4096

// normalPattern writes INBOX at the beginning of a pattern in upper case.
func normalPattern(pattern string) string {
	const inbox = "INBOX"
	if len(pattern) >= len(inbox) && strings.EqualFold(pattern[:len(inbox)], inbox) {
		if rest := pattern[len(inbox):]; rest == "" || strings.HasPrefix(rest, separator) || rest[0] == '*' || rest[0] == '%' {
			return inbox + rest
		}
	}
	return normal(pattern)
}

func matchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		return matches(p, name) || name == "INBOX" && matches(strings.ToUpper(p), name)
	})
}

func (s *session) list(a *syntax.List) status {
	if !a.Extended && a.Patterns[0] == "" { // the client asks for the separator
		s.out = append(s.out, "* LIST (\\Noselect) \"/\" \"\"\r\n"...)
		return ok("LIST completed")
	}
	patterns, wrong := s.patterns(a)
	if wrong != nil {
		return *wrong
	}
	read := s.readFolders
	if a.Subscribed {
		read = s.readSubscriptions
	}
	all, err := read()
	if err != nil {
		return s.failure(err)
	}
	s.enableByStatus(a.ReturnStatus)
	for _, f := range all {
		matching := matchesAny(patterns, f.path)
		if !matching {
			continue
		}
		selected := selects(a, f)
		var childInfo bool
		if a.RecursiveMatch {
			childInfo = slices.ContainsFunc(all, func(child *folder) bool {
				return strings.HasPrefix(child.path, f.path+separator) && selects(a, child) && !matchesAny(patterns, child.path)
			})
		}
		if !selected && !childInfo {
			continue
		}
		s.listed("LIST", f, a, childInfo)
		if a.ReturnStatus != nil && selected && !f.missing {
			if answer := s.writeStatus(f, a.ReturnStatus); answer != nil {
				return *answer
			}
		}
	}
	return ok("LIST completed")
}

// selects reports whether the selection options select a mailbox.
func selects(a *syntax.List, f *folder) bool {
	return (!a.Subscribed || f.Subscribed) && (!a.SpecialUse || uses[f.Role] != "")
}

// listed writes a LIST response. LIST without options shows special uses (RFC 6154, section 2) and children (RFC 3348); otherwise the options
// decide.
func (s *session) listed(response string, f *folder, a *syntax.List, childInfo bool) {
	attributes := make([]string, 0, 4)
	if f.Subscribed && a.ReturnSubscribed {
		attributes = append(attributes, `\Subscribed`)
	}
	if f.missing && response != "LSUB" {
		attributes = append(attributes, `\NonExistent`)
	}
	switch {
	case response == "LSUB" || a.Extended && !a.ReturnChildren:
	case f.hasChildren:
		attributes = append(attributes, `\HasChildren`)
	default:
		attributes = append(attributes, `\HasNoChildren`)
	}
	if use := uses[f.Role]; use != "" && (!a.Extended || a.ReturnSpecialUse) {
		attributes = append(attributes, use)
	}
	s.out = append(s.out, "* "...)
	s.out = append(s.out, response...)
	s.out = append(s.out, " ("...)
	s.out = append(s.out, strings.Join(attributes, " ")...)
	s.out = append(s.out, ") \"/\" "...)
	s.out = syntax.AppendMailbox(s.out, f.path, s.utf8)
	if childInfo {
		s.out = append(s.out, ` ("CHILDINFO" ("SUBSCRIBED"))`...)
	}
	s.out = append(s.out, '\r', '\n')
}

// lsub lists the subscribed mailboxes of RFC 3501, section 6.3.9. A mailbox that is not subscribed, but has a subscribed one in it that the
// pattern does not reach, is shown with \Noselect.
func (s *session) lsub(a *syntax.List) status {
	patterns, wrong := s.patterns(a)
	if wrong != nil {
		return *wrong
	}
	all, err := s.readSubscriptions()
	if err != nil {
		return s.failure(err)
	}
	byPercent := strings.HasSuffix(patterns[0], "%")
	for _, f := range all {
		if !matchesAny(patterns, f.path) {
			continue
		}
		if f.Subscribed {
			s.listed("LSUB", f, a, false)
			continue
		}
		if byPercent && slices.ContainsFunc(all, func(child *folder) bool { return child.Subscribed && strings.HasPrefix(child.path, f.path+separator) }) {
			s.out = append(s.out, "* LSUB (\\Noselect) \"/\" "...)
			s.out = syntax.AppendMailbox(s.out, f.path, s.utf8)
			s.out = append(s.out, '\r', '\n')
		}
	}
	return ok("LSUB completed")
}

// enableByStatus begins to write MODSEQ if a client asks for the highest one (RFC 7162, section 3.1).
func (s *session) enableByStatus(items []string) {
	switch {
	case !slices.Contains(items, "HIGHESTMODSEQ"):
	case s.selected != nil:
		s.enableCondstore()
	default:
		s.condstore = true
	}
}

func (s *session) statusCommand(a *syntax.Status) status {
	f, wrong := s.find(a.Mailbox, "NONEXISTENT")
	if wrong != nil {
		return *wrong
	}
	s.enableByStatus(a.Items)
	if answer := s.writeStatus(f, a.Items); answer != nil {
		return *answer
	}
	return ok("STATUS completed")
}

// writeStatus writes a STATUS response.
func (s *session) writeStatus(f *folder, items []string) *status {
	s.out = append(s.out, "* STATUS "...)
	s.out = syntax.AppendMailbox(s.out, f.path, s.utf8)
	s.out = append(s.out, " ("...)
	for i, item := range items {
		if i > 0 {
			s.out = append(s.out, ' ')
		}
		s.out = append(s.out, item...)
		s.out = append(s.out, ' ')
		switch item {
		case "MESSAGES":
			s.out = append(s.out, decimal(f.Messages)...)
		case "UIDNEXT":
			s.out = append(s.out, decimal(int64(f.UIDNext))...)
		case "UIDVALIDITY":
			s.out = append(s.out, decimal(f.UIDValidity)...)
		case "UNSEEN":
			s.out = append(s.out, decimal(f.Unseen)...)
		case "DELETED":
			s.out = append(s.out, decimal(f.Deleted)...)
		case "SIZE":
			s.out = append(s.out, decimal(f.Bytes)...)
		case "HIGHESTMODSEQ":
			s.out = append(s.out, decimal(int64(f.HighestMod))...)
		case "APPENDLIMIT":
			s.out = append(s.out, decimal(s.server.o.Limits.MaxMessageBytes)...)
		case "MAILBOXID":
			s.out = append(s.out, "("+mailboxID(f.ID)+")"...)
		case "RECENT", "DELETED-STORAGE":
			n, err := s.count(f, item)
			if err != nil {
				answer := s.failure(err)
				s.dropLine()
				return &answer
			}
			s.out = append(s.out, decimal(n)...)
		}
	}
	s.out = append(s.out, ")\r\n"...)
	return nil
}

// dropLine removes an unfinished response.
func (s *session) dropLine() {
	at := strings.LastIndex(string(s.out), "\r\n")
	if at < 0 {
		s.out = s.out[:0]
		return
	}
	s.out = s.out[:at+2]
}

// count returns a number that needs the messages of a mailbox.
func (s *session) count(f *folder, item string) (int64, error) {
	if item == "RECENT" && s.selected != nil && s.selected.id == f.ID { // those of this session
		return int64(s.selected.countRecent()), nil
	}
	claimed := max(f.RecentFrom, s.server.views.Claimed(s.account.ID, f.ID))
	if item == "RECENT" && claimed >= f.UIDNext || item == "DELETED-STORAGE" && f.Deleted == 0 {
		return 0, nil
	}
	messages, _, err := s.server.o.Store.Messages(s.ctx, s.account.ID, f.ID)
	if err != nil {
		return 0, err
	}
	var n int64
	for i := range messages {
		switch {
		case item == "RECENT" && messages[i].UID >= claimed:
			n++
		case item == "DELETED-STORAGE" && messages[i].Flags&mailbox.Deleted != 0:
			n += messages[i].Size
		}
	}
	return n, nil
}

func (s *session) getQuota(a *syntax.QuotaRoot) status {
	if a.Root != "" {
		return no("NONEXISTENT", "the quota root does not exist: the only one is \"\"")
	}
	limits, answer := s.limits()
	if answer != nil {
		return *answer
	}
	if len(limits) == 0 {
		return no("NONEXISTENT", "the account has no limits, and no quota root")
	}
	s.writeQuota(limits)
	return ok("GETQUOTA completed")
}

func (s *session) getQuotaRoot(a *syntax.Mailbox) status {
	f, wrong := s.find(a.Mailbox, "NONEXISTENT")
	if wrong != nil {
		return *wrong
	}
	limits, answer := s.limits()
	if answer != nil {
		return *answer
	}
	s.out = append(s.out, "* QUOTAROOT "...)
	s.out = syntax.AppendMailbox(s.out, f.path, s.utf8)
	if len(limits) == 0 {
		s.out = append(s.out, "\r\n"...)
	} else {
		s.out = append(s.out, " \"\"\r\n"...)
		s.writeQuota(limits)
	}
	return ok("GETQUOTAROOT completed")
}

// writeQuota writes limits, of which there must be one: Thunderbird ends the connection after an empty list.
func (s *session) writeQuota(limits []string) {
	s.untagged("QUOTA \"\" (%s)", strings.Join(limits, " "))
}

// limits returns the limits of the account (RFC 9208). STORAGE counts units of 1,024 bytes.
func (s *session) limits() (limits []string, wrong *status) {
	account, err := s.server.o.Store.Account(s.ctx, s.account.ID)
	if err != nil {
		answer := s.failure(err)
		return nil, &answer
	}
	if q := account.Quota; q.MaxBytes > 0 {
		limits = append(limits, "STORAGE "+decimal((q.Bytes+1023)/1024)+" "+decimal(q.MaxBytes/1024))
	}
	if q := account.Quota; q.MaxMessages > 0 {
		limits = append(limits, "MESSAGE "+decimal(q.Messages)+" "+decimal(q.MaxMessages))
	}
	return limits, nil
}
