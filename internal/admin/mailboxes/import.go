package mailboxes

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/httpapi"
	"fanfare.dev/fanfare/internal/mailbox"
)

// The maximum size of a transaction of an import.
const (
	batchMessages = 100
	batchBytes    = 4 << 20
)

// Import stores messages in the mailbox of an address until next returns io.EOF, and returns how many it stored. Folders that do not exist are
// created. An error ends it; what was stored before stays.
func (a *Accounts) Import(ctx context.Context, service, of string, next func() (*httpapi.PersonalLine, error)) (account mailbox.Account, stored int, err error) {
	account, err = a.find(ctx, service, of)
	if err != nil {
		return account, 0, err
	}
	i := &importer{store: a.Store, account: account.ID}
	if i.folders, err = a.Store.Mailboxes(ctx, account.ID); err != nil {
		return account, 0, err
	}
	for {
		line, err := next()
		if errors.Is(err, io.EOF) {
			return account, i.stored, i.flush(ctx)
		}
		if err == nil {
			err = i.line(ctx, line)
		}
		if err != nil {
			return account, i.stored, errors.Join(err, i.flush(ctx))
		}
	}
}

// An importer is a running import.
type importer struct {
	store   *mailbox.Store
	account mailbox.AccountID
	folders []mailbox.Mailbox
	batch   []mailbox.NewMessage
	bytes   int
	stored  int
}

func (i *importer) line(ctx context.Context, line *httpapi.PersonalLine) error {
	switch {
	case line.Mailbox != nil:
		for _, f := range line.Mailbox.Folders {
			if _, err := i.folder(ctx, f.Name); err != nil {
				return err
			}
		}
		return nil
	case line.Mail != nil:
		return i.add(ctx, line.Mail)
	}
	return &fanfare.Error{Code: fanfare.Invalid, Pointer: "/type", Message: "the line has no message", Hint: `set the members type ("mail") and mail, or type ("mailbox") and mailbox`}
}

func (i *importer) add(ctx context.Context, m *httpapi.PersonalMail) error {
	if len(m.Content) == 0 {
		return &fanfare.Error{Code: fanfare.Invalid, Pointer: "/mail/content", Message: "the message is empty", Hint: "set it to the whole message in base64"}
	}
	folder, err := i.folder(ctx, m.Folder)
	if err != nil {
		return err
	}
	message := mailbox.NewMessage{Mailbox: folder, Content: withLineEnds(m.Content), Received: m.ReceivedAt}
	for _, name := range m.Flags {
		if flag, known := flagOf(name); known {
			message.Flags |= flag
		} else {
			message.Keywords = append(message.Keywords, name)
		}
	}
	if len(i.batch) > 0 && i.bytes+len(message.Content) > batchBytes {
		if err := i.flush(ctx); err != nil {
			return err
		}
	}
	i.batch, i.bytes = append(i.batch, message), i.bytes+len(message.Content)
	if len(i.batch) == batchMessages {
		return i.flush(ctx)
	}
	return nil
}

func flagOf(name string) (mailbox.Flags, bool) {
	names := (mailbox.Seen | mailbox.Answered | mailbox.Flagged | mailbox.Deleted | mailbox.Draft).Names()
	at := slices.Index(names, name)
	return 1 << max(0, at), at >= 0
}

// withLineEnds returns a message whose lines end with CR LF. One that has a CR LF already stays as it is.
func withLineEnds(message []byte) []byte {
	if bytes.Contains(message, []byte("\r\n")) {
		return message
	}
	return bytes.ReplaceAll(message, []byte("\n"), []byte("\r\n"))
}

func (i *importer) flush(ctx context.Context) error {
	if len(i.batch) == 0 {
		return nil
	}
	batch := i.batch
	i.batch, i.bytes = nil, 0
	if _, err := i.store.Append(ctx, i.account, batch); err != nil {
		return err
	}
	i.stored += len(batch)
	return nil
}

// folder returns the folder with a path, and creates what is missing of it.
func (i *importer) folder(ctx context.Context, path string) (id mailbox.MailboxID, err error) {
	if path == "" || strings.EqualFold(path, "INBOX") {
		return mailbox.InboxID, nil
	}
	for name := range strings.SplitSeq(path, string(mailbox.Separator)) {
		parent := id
		at := slices.IndexFunc(i.folders, func(m mailbox.Mailbox) bool {
			return m.Parent == parent && (m.Name == name || parent == 0 && m.ID == mailbox.InboxID && strings.EqualFold(name, "INBOX"))
		})
		if at < 0 {
			made, err := i.store.CreateMailbox(ctx, i.account, mailbox.NewMailbox{Parent: parent, Name: name, Subscribed: new(true)})
			if err != nil {
				return 0, err
			}
			at = len(i.folders)
			i.folders = append(i.folders, made)
		}
		id = i.folders[at].ID
	}
	return id, nil
}
