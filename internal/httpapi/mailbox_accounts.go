package httpapi

import (
	"context"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/httpapi/httpio"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/mailbox"
	"fanfare.dev/fanfare/internal/people"
)

// Mailboxes manages the mailboxes of the subscribers of a service. They are named by their addresses.
type Mailboxes interface {
	MailboxAliases
	MailboxSearch
	// Page lists mailboxes; a service of "" means all. next is 0 at the end.
	Page(ctx context.Context, service string, after fanfare.RowID, limit int) (page []mailbox.Account, next fanfare.RowID, err error)
	Account(ctx context.Context, service, address string) (mailbox.Account, []mailbox.Mailbox, error)
	// Create creates the subscriber, too. It returns a mailbox that exists.
	Create(ctx context.Context, service, address string) (a mailbox.Account, created bool, err error)
	// Change sets what is not nil, and returns the mailbox before and after.
	Change(ctx context.Context, service, address string, maxBytes, maxMessages *int64, disabled *bool) (before, after mailbox.Account, err error)
	Remove(ctx context.Context, service, address string) (mailbox.Account, error)
	// Export visits the mailbox, followed by its messages.
	Export(ctx context.Context, service, address string, visit func(*PersonalLine) error) error
	// Import stores the messages of lines until next returns io.EOF. After an error, stored messages stay.
	Import(ctx context.Context, service, address string, next func() (*PersonalLine, error)) (a mailbox.Account, stored int, err error)
}

// mailboxAccountRoutes adds the endpoints that manage mailboxes.
func (a *API) mailboxAccountRoutes() {
	op := func(id, method, path, summary string, parameters ...*huma.Param) huma.Operation {
		return huma.Operation{OperationID: id, Method: method, Path: path, Tags: []string{"mailboxes"}, Summary: summary, Parameters: parameters}
	}
	const one = "/v1/mailboxes/{address}"
	list := op("list-mailboxes", http.MethodGet, "/v1/mailboxes", "List mailboxes")
	list.Description = "A mailbox is in the list from its first message or login on. Messages of broadcasts can wait for a mailbox that is not in the list yet. A page can have fewer entries than limit even if more follow; next is then set."
	read(a, list, mayRead, func(ctx context.Context, c caller, in *Page) (wire.MailboxPage, error) {
		l := listingOf("mailboxes", c.service)
		key, err := l.key(in.Cursor)
		if err != nil {
			return wire.MailboxPage{}, err
		}
		after, _ := strconv.ParseUint(key, 10, 64) // the server signed it
		accounts, last, err := a.deps.Mailboxes.Page(ctx, c.service, fanfare.RowID(after), in.Limit)
		page := wire.MailboxPage{Mailboxes: make([]wire.Mailbox, len(accounts))}
		for i := range accounts {
			page.Mailboxes[i] = mailboxOf(&accounts[i])
		}
		if last != 0 {
			page.Next = l.next(strconv.FormatUint(uint64(last), 10))
		}
		return page, err
	})

	type OfMailbox struct {
		Named
		Address string `path:"address" doc:"mail address of the subscriber"`
	}
	get := op("get-mailbox", http.MethodGet, one, "Get a mailbox with its folders")
	get.Description = "If messages of broadcasts wait for the mailbox, it is created."
	read(a, get, mayRead, func(ctx context.Context, c caller, in *OfMailbox) (wire.Mailbox, error) {
		service, err := a.oneService(c)
		if err != nil {
			return wire.Mailbox{}, err
		}
		account, folders, err := a.deps.Mailboxes.Account(ctx, service, in.Address)
		m := mailboxOf(&account)
		for i := range folders {
			f := &folders[i]
			m.Folders = append(m.Folders, wire.Folder{Name: mailbox.Path(folders, f.ID), Role: string(f.Role), Subscribed: f.Subscribed, Messages: f.Messages, Unread: f.Unseen, Bytes: f.Bytes})
		}
		return m, err
	})

	address := param("address", "mail address of the subscriber")
	put := op("put-mailbox", http.MethodPut, one, "Create a mailbox", address, service())
	put.Description = "If nobody has the address, the subscriber is created, too. A mailbox that exists does not change."
	replies[wire.Mailbox](a, &put, http.StatusOK, "The mailbox that exists", "application/json")
	replies[wire.Mailbox](a, &put, http.StatusCreated, "The new mailbox", "application/json")
	a.handle(put, mayConfigure, a.putMailbox)

	change := op("change-mailbox", http.MethodPatch, one, "Change the quota of a mailbox, or disable it", address, service())
	change.Description = "Nobody can log in to a disabled mailbox, and neither mail servers nor channels can deliver to it. Messages that a channel stores do not count in the quota."
	change.RequestBody = body[wire.MailboxPatch](a, "The members to change", httpio.MergePatch, "application/json")
	replies[wire.Mailbox](a, &change, http.StatusOK, "The mailbox as it is now", "application/json")
	a.handle(change, mayConfigure, a.changeMailbox)

	a.mailboxTransferRoutes(op)
	a.mailboxAliasRoutes(op)
	a.mailboxSearchRoutes(op)

	remove := op("delete-mailbox", http.MethodDelete, one, "Remove a mailbox with all its messages")
	remove.Description = "Its app passwords and aliases are removed, too, and traces no longer show when its messages were read. The subscriber stays, and the next message creates a new mailbox. To prevent this, end the subscriptions, or disable the mailbox instead."
	act(a, remove, mayConfigure, func(ctx context.Context, c caller, in *OfMailbox) error {
		service, err := a.oneService(c)
		if err != nil {
			return err
		}
		account, err := a.deps.Mailboxes.Remove(ctx, service, in.Address)
		if err == nil {
			a.noteMailbox(ctx, &account, "delete", nil)
		}
		return err
	})
}

func mailboxOf(a *mailbox.Account) wire.Mailbox {
	return wire.Mailbox{Address: a.Address, Service: a.Service, Subscriber: people.SubscriberID(a.ID), CreatedAt: a.CreatedAt, Disabled: a.Disabled,
		Quota: wire.MailboxQuota{MaxBytes: a.Quota.MaxBytes, Bytes: a.Quota.Bytes, MaxMessages: a.Quota.MaxMessages, Messages: a.Quota.Messages}}
}

func (a *API) putMailbox(x *responseWriter, r *http.Request, c caller) error {
	service, err := a.oneService(c)
	if err != nil {
		return err
	}
	account, created, err := a.deps.Mailboxes.Create(r.Context(), service, r.PathValue("address"))
	if err != nil {
		return err
	}
	status := http.StatusOK
	if created {
		status = http.StatusCreated
		a.noteMailbox(r.Context(), &account, "create", nil)
	}
	return httpio.WriteJSON(x, status, "application/json", mailboxOf(&account))
}

func (a *API) changeMailbox(x *responseWriter, r *http.Request, c caller) error {
	service, err := a.oneService(c)
	if err != nil {
		return err
	}
	p, err := readPatch[wire.MailboxPatch](x, r)
	if err != nil {
		return err
	}
	var maxBytes, maxMessages *int64
	var disabled *bool
	for name, limit := range map[string]**int64{"max_bytes": &maxBytes, "max_messages": &maxMessages} {
		if _, there := p[name]; !there {
			continue
		}
		*limit = new(int64)
		if err := p.into(name, *limit); err != nil {
			return err
		}
		if **limit < 0 {
			return &fanfare.Error{Code: fanfare.Invalid, Pointer: "/" + name, Message: "must not be negative", Hint: "use 0 for no limit"}
		}
	}
	if _, there := p["disabled"]; there {
		disabled = new(bool)
		if err := p.into("disabled", disabled); err != nil {
			return err
		}
	}
	before, after, err := a.deps.Mailboxes.Change(r.Context(), service, r.PathValue("address"), maxBytes, maxMessages, disabled)
	if err != nil {
		return err
	}
	var fields []audit.FieldChange
	for _, f := range []struct {
		name     string
		old, now int64
	}{{"max_bytes", before.Quota.MaxBytes, after.Quota.MaxBytes}, {"max_messages", before.Quota.MaxMessages, after.Quota.MaxMessages}} {
		if f.old != f.now {
			fields = append(fields, audit.FieldChange{Field: f.name, Old: strconv.FormatInt(f.old, 10), New: strconv.FormatInt(f.now, 10)})
		}
	}
	if before.Disabled != after.Disabled {
		fields = append(fields, audit.FieldChange{Field: "disabled", Old: strconv.FormatBool(before.Disabled), New: strconv.FormatBool(after.Disabled)})
	}
	if len(fields) > 0 {
		a.noteMailbox(r.Context(), &after, "update", &audit.Detail{Fields: fields})
	}
	return httpio.WriteJSON(x, http.StatusOK, "application/json", mailboxOf(&after))
}

// noteMailbox adds an entry to the audit log. It names the subscriber by the internal id, because the log has no addresses.
func (a *API) noteMailbox(ctx context.Context, account *mailbox.Account, action string, detail *audit.Detail) {
	a.note(ctx, audit.Operation{Service: account.Service, Action: action, Kind: "mailbox", Name: people.SubscriberID(account.ID)}, detail)
}
