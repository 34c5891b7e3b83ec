package imap

import (
	"cmp"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"

	"fanfare.dev/fanfare/internal/imap/syntax"
	"fanfare.dev/fanfare/internal/mailbox"
)

const separator = string(mailbox.Separator)

// A folder is a mailbox with its full name.
type folder struct {
	mailbox.Mailbox
	path        string
	hasChildren bool
	missing     bool // it does not exist, but its name is subscribed, or that of one in it
}

// folders are the mailboxes of an account in the order of their names, the inbox first.
type folders []*folder

// readFolders reads the mailboxes of the account.
func (s *session) readFolders() (folders, error) {
	list, err := s.server.o.Store.Mailboxes(s.ctx, s.account.ID)
	if err != nil {
		return nil, err
	}
	return foldersOf(list), nil
}

// readSubscriptions returns readFolders with the names that are subscribed but do not exist, and those of their parents. A client needs the
// parents to find the names with the pattern "%".
func (s *session) readSubscriptions() (folders, error) {
	list, names, err := s.server.o.Store.Subscriptions(s.ctx, s.account.ID)
	if err != nil {
		return nil, err
	}
	all := foldersOf(list)
	if len(names) == 0 {
		return all, nil
	}
	known := make(map[string]*folder, len(all)+len(names))
	for _, f := range all {
		known[f.path] = f
	}
	for _, name := range names {
		for at := name; at != "" && known[at] == nil; at = at[:max(0, strings.LastIndex(at, separator))] {
			f := &folder{path: at, missing: true}
			known[at] = f
			all = append(all, f)
		}
		known[name].Subscribed = true
	}
	all.sort()
	return all, nil
}

func foldersOf(list []mailbox.Mailbox) folders {
	byID := make(map[mailbox.MailboxID]*folder, len(list))
	all := make(folders, 0, len(list))
	for _, m := range list {
		f := &folder{Mailbox: m}
		byID[m.ID] = f
		all = append(all, f)
	}
	var path func(f *folder, depth int) string
	path = func(f *folder, depth int) string {
		switch {
		case f.path != "":
		case f.ID == mailbox.InboxID:
			f.path = "INBOX"
		case f.Parent == 0 || byID[f.Parent] == nil || depth > 100:
			f.path = f.Name
		default:
			f.path = path(byID[f.Parent], depth+1) + separator + f.Name
		}
		return f.path
	}
	for _, f := range all {
		path(f, 0)
		if parent := byID[f.Parent]; parent != nil {
			parent.hasChildren = true
		}
	}
	all.sort()
	return all
}

// sort sorts mailboxes by their names, the inbox first.
func (all folders) sort() {
	slices.SortFunc(all, func(a, b *folder) int {
		if (a.ID == mailbox.InboxID) != (b.ID == mailbox.InboxID) {
			if a.ID == mailbox.InboxID {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.path, b.path)
	})
}

// named returns the mailbox with a full name, or nil.
func (all folders) named(path string) *folder {
	for _, f := range all {
		if f.path == path {
			return f
		}
	}
	return nil
}

// normal returns a full name in the form in which it is compared: INBOX in upper case, and Unicode in NFC.
func normal(path string) string {
	first, rest, has := strings.Cut(path, separator)
	if strings.EqualFold(first, "INBOX") {
		path = "INBOX"
		if has {
			path += separator + rest
		}
	}
	return norm.NFC.String(path)
}

// name decodes the name of a mailbox that the client sent.
func (s *session) name(raw string) (string, *status) {
	name, err := syntax.DecodeMailbox(raw, s.utf8)
	if err != nil {
		wrong := no("CANNOT", "%s", err)
		return "", &wrong
	}
	return normal(name), nil
}

// find returns the mailbox that a client named. A missing mailbox has the response code.
func (s *session) find(raw, code string) (*folder, *status) {
	name, wrong := s.name(raw)
	if wrong != nil {
		return nil, wrong
	}
	all, err := s.readFolders()
	if err != nil {
		answer := s.failure(err)
		return nil, &answer
	}
	f := all.named(name)
	if f == nil {
		answer := no(code, "the mailbox does not exist: list the mailboxes, or create it")
		return nil, &answer
	}
	return f, nil
}

// newPlace finds the parent of a name that does not exist yet, and creates missing parents.
func (s *session) newPlace(all folders, path string) (parent mailbox.MailboxID, name string, wrong *status) {
	names := strings.Split(path, separator)
	if slices.Contains(names, "") {
		answer := no("CANNOT", "the name of a mailbox must not be empty, and must not begin with %q or contain it twice in a row", separator)
		return 0, "", &answer
	}
	for i, name := range names[:len(names)-1] {
		at := strings.Join(names[:i+1], separator)
		if f := all.named(at); f != nil {
			parent = f.ID
			continue
		}
		created, err := s.server.o.Store.CreateMailbox(s.ctx, s.account.ID, mailbox.NewMailbox{Parent: parent, Name: name})
		if err != nil {
			answer := s.failure(err)
			return 0, "", &answer
		}
		parent = created.ID
	}
	return parent, names[len(names)-1], nil
}

// uses are the special-use attributes of roles (RFC 6154).
var uses = map[mailbox.Role]string{mailbox.Drafts: `\Drafts`, mailbox.Sent: `\Sent`, mailbox.Trash: `\Trash`, mailbox.Junk: `\Junk`, mailbox.Archive: `\Archive`}

// roleOf returns the role of a special use.
func roleOf(use string) (mailbox.Role, bool) {
	for role, name := range uses {
		if strings.EqualFold(name, use) {
			return role, true
		}
	}
	return mailbox.NoRole, false
}

func (s *session) create(a *syntax.Create) status {
	path, wrong := s.name(a.Mailbox)
	if wrong != nil {
		return *wrong
	}
	path = strings.TrimSuffix(path, separator) // the client intends to create mailboxes in it
	role := mailbox.NoRole
	if len(a.Use) > 1 {
		return no("USEATTR", "a mailbox can have one special use")
	}
	if len(a.Use) == 1 {
		var known bool
		if role, known = roleOf(a.Use[0]); !known {
			return no("USEATTR", "the special use %s is not supported: use \\Drafts, \\Sent, \\Trash, \\Junk or \\Archive", a.Use[0])
		}
	}
	all, err := s.readFolders()
	if err != nil {
		return s.failure(err)
	}
	if all.named(path) != nil || path == "INBOX" {
		return no("ALREADYEXISTS", "the mailbox exists already")
	}
	if role != mailbox.NoRole && slices.ContainsFunc(all, func(f *folder) bool { return f.Role == role }) {
		return no("USEATTR", "another mailbox has the special use %s", a.Use[0])
	}
	parent, name, wrong := s.newPlace(all, path)
	if wrong != nil {
		return *wrong
	}
	created, err := s.server.o.Store.CreateMailbox(s.ctx, s.account.ID, mailbox.NewMailbox{Parent: parent, Name: name, Role: role})
	if err != nil {
		return s.failure(err)
	}
	return okCode("MAILBOXID ("+mailboxID(created.ID)+")", "CREATE completed")
}

func (s *session) remove(a *syntax.Mailbox) status {
	f, wrong := s.find(a.Mailbox, "NONEXISTENT")
	if wrong != nil {
		return *wrong
	}
	if f.ID == mailbox.InboxID {
		return no("CANNOT", "the inbox cannot be deleted")
	}
	if f.hasChildren {
		return no("HASCHILDREN", "delete the mailboxes in it first")
	}
	if err := s.server.o.Store.RemoveMailbox(s.ctx, s.account.ID, mailbox.MailboxRemoval{ID: f.ID, WithMessages: true, KeepName: true}); err != nil {
		return s.failure(err)
	}
	if s.selected != nil && s.selected.id == f.ID {
		s.unselect()
		s.out = append(s.out, "* OK [CLOSED] the selected mailbox was deleted\r\n"...)
	}
	return ok("DELETE completed")
}

func (s *session) rename(a *syntax.Rename) status {
	from, wrong := s.find(a.From, "NONEXISTENT")
	if wrong != nil {
		return *wrong
	}
	path, wrong := s.name(a.To)
	if wrong != nil {
		return *wrong
	}
	path = strings.TrimSuffix(path, separator)
	all, err := s.readFolders()
	if err != nil {
		return s.failure(err)
	}
	if all.named(path) != nil || path == "INBOX" {
		return no("ALREADYEXISTS", "the mailbox exists already")
	}
	if from.ID != mailbox.InboxID && strings.HasPrefix(path, from.path+separator) {
		return no("CANNOT", "a mailbox cannot be moved into itself")
	}
	parent, name, wrong := s.newPlace(all, path)
	if wrong != nil {
		return *wrong
	}
	if from.ID == mailbox.InboxID {
		return s.renameInbox(parent, name)
	}
	if _, err := s.server.o.Store.UpdateMailbox(s.ctx, s.account.ID, mailbox.MailboxChange{ID: from.ID, Parent: &parent, Name: &name, KeepNames: true}); err != nil {
		return s.failure(err)
	}
	return ok("RENAME completed")
}

// renameInbox moves the messages of the inbox to a new mailbox (RFC 9051, section 6.3.6).
func (s *session) renameInbox(parent mailbox.MailboxID, name string) status {
	created, err := s.server.o.Store.CreateMailbox(s.ctx, s.account.ID, mailbox.NewMailbox{Parent: parent, Name: name})
	if err != nil {
		return s.failure(err)
	}
	messages, _, err := s.server.o.Store.Messages(s.ctx, s.account.ID, mailbox.InboxID)
	if err != nil {
		return s.failure(err)
	}
	emails := make([]mailbox.EmailID, len(messages))
	for i := range messages {
		emails[i] = messages[i].Email
	}
	if len(emails) > 0 {
		if _, _, err := s.server.o.Store.Move(s.ctx, s.account.ID, emails, created.ID); err != nil {
			return s.failure(err)
		}
	}
	return ok("RENAME completed")
}

func (s *session) subscribe(a *syntax.Mailbox, to bool) status {
	name := "SUBSCRIBE"
	if !to {
		name = "UNSUBSCRIBE"
	}
	f, wrong := s.find(a.Mailbox, "NONEXISTENT")
	if wrong != nil {
		if to || wrong.code != "NONEXISTENT" {
			return *wrong
		}
		gone, wrong := s.name(a.Mailbox)
		if wrong != nil {
			return *wrong
		}
		if err := s.server.o.Store.Unsubscribe(s.ctx, s.account.ID, gone); err != nil {
			return s.failure(err)
		}
		return ok("%s completed", name)
	}
	if f.Subscribed != to {
		if _, err := s.server.o.Store.UpdateMailbox(s.ctx, s.account.ID, mailbox.MailboxChange{ID: f.ID, Subscribed: &to}); err != nil {
			return s.failure(err)
		}
	}
	return ok("%s completed", name)
}

// mailboxID returns the identifier of a mailbox (RFC 8474); JMAP has the same one.
func mailboxID(id mailbox.MailboxID) string { return "B" + decimal(id) }
