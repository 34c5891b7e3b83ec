package mailboxes

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"fanfare.dev/fanfare/internal/httpapi"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/mailbox"
)

// Export visits the mailbox of an address, followed by its messages.
func (a *Accounts) Export(ctx context.Context, service, of string, visit func(*httpapi.PersonalLine) error) error {
	account, err := a.find(ctx, service, of)
	if err != nil {
		return err
	}
	return ExportAccount(ctx, a.Store, &account, visit)
}

// ExportAccount visits an account, followed by its messages.
func ExportAccount(ctx context.Context, store *mailbox.Store, account *mailbox.Account, visit func(*httpapi.PersonalLine) error) error {
	folders, err := store.Mailboxes(ctx, account.ID)
	if err != nil {
		return err
	}
	passwords, err := store.Credentials(ctx, account.ID)
	if err != nil {
		return err
	}
	aliases, err := store.Aliases(ctx, account.ID)
	if err != nil {
		return err
	}
	line := &httpapi.PersonalMailbox{Address: account.Address, CreatedAt: account.CreatedAt, Folders: []httpapi.PersonalFolder{}, AppPasswords: []wire.AppPassword{}}
	for i := range folders {
		m := &folders[i]
		line.Folders = append(line.Folders, httpapi.PersonalFolder{Name: mailbox.Path(folders, m.ID), Role: string(m.Role), Subscribed: m.Subscribed, Messages: m.Messages})
	}
	for i := range passwords {
		p := &passwords[i]
		line.AppPasswords = append(line.AppPasswords, wire.AppPassword{ID: fmt.Sprintf("app-%d", p.ID), Name: p.Name, CreatedAt: p.CreatedAt, UsedAt: p.UsedAt})
	}
	for i := range aliases {
		line.Aliases = append(line.Aliases, aliases[i].Address)
	}
	if err := visit(&httpapi.PersonalLine{Type: "mailbox", Mailbox: line}); err != nil {
		return err
	}
	for i := range folders {
		if err := exportFolder(ctx, store, account, folders[i].ID, line.Folders[i].Name, visit); err != nil && !errors.Is(err, mailbox.ErrNoMailbox) {
			return err
		}
	}
	return nil
}

// exportFolder visits the messages of a folder. One that is removed at the same time is left out.
func exportFolder(ctx context.Context, store *mailbox.Store, account *mailbox.Account, folder mailbox.MailboxID, name string, visit func(*httpapi.PersonalLine) error) error {
	list, _, err := store.Messages(ctx, account.ID, folder)
	if err != nil {
		return err
	}
	for i := range list {
		m := &list[i]
		content, err := store.Content(ctx, account.ID, m.Email)
		if errors.Is(err, mailbox.ErrNoMessage) {
			continue
		}
		if err != nil {
			return err
		}
		flags := append(m.Flags.Names(), strings.Fields(m.Keywords)...)
		err = visit(&httpapi.PersonalLine{Type: "mail", Mail: &httpapi.PersonalMail{Address: account.Address, Folder: name, ReceivedAt: m.Received, Flags: flags, Content: content}})
		if err != nil {
			return err
		}
	}
	return nil
}
