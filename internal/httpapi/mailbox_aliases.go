package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/httpapi/httpio"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/mailbox"
)

// MailboxAliases manages the aliases of the mailboxes of a service.
type MailboxAliases interface {
	Aliases(ctx context.Context, service, address string) ([]mailbox.Alias, error)
	// AddAlias returns an alias that the mailbox has already.
	AddAlias(ctx context.Context, service, address, alias string) (of mailbox.Account, made mailbox.Alias, added bool, err error)
	RemoveAlias(ctx context.Context, service, address, alias string) (of mailbox.Account, err error)
}

// mailboxAliasRoutes adds the endpoints for the further addresses of mailboxes.
func (a *API) mailboxAliasRoutes(op func(id, method, path, summary string, parameters ...*huma.Param) huma.Operation) {
	const all, one = "/v1/mailboxes/{address}/aliases", "/v1/mailboxes/{address}/aliases/{alias}"
	type OfMailbox struct {
		Named
		Address string `path:"address" doc:"mail address of the subscriber"`
	}
	read(a, op("list-mailbox-aliases", http.MethodGet, all, "List the aliases of a mailbox"), mayRead,
		func(ctx context.Context, c caller, in *OfMailbox) (wire.MailboxAliasList, error) {
			list := wire.MailboxAliasList{Aliases: []wire.MailboxAlias{}}
			service, err := a.oneService(c)
			if err != nil {
				return list, err
			}
			aliases, err := a.deps.Mailboxes.Aliases(ctx, service, in.Address)
			for i := range aliases {
				list.Aliases = append(list.Aliases, wire.MailboxAlias(aliases[i]))
			}
			return list, err
		})

	put := op("put-mailbox-alias", http.MethodPut, one, "Add an alias to a mailbox", param("address", "mail address of the subscriber"), param("alias", "the further address"), service())
	put.Description = "Mail to an alias is delivered to the mailbox, and its owner may send mail with it. Upper and lower case do not matter. An alias belongs to one mailbox, and must not be the address of a subscriber. Nobody can log in with an alias. A mailbox can have up to 1,000 aliases."
	replies[wire.MailboxAlias](a, &put, http.StatusOK, "The alias that the mailbox has already", "application/json")
	replies[wire.MailboxAlias](a, &put, http.StatusCreated, "The new alias", "application/json")
	a.handle(put, mayConfigure, a.putMailboxAlias)

	type One struct {
		OfMailbox
		Alias string `path:"alias" doc:"the further address"`
	}
	remove := op("delete-mailbox-alias", http.MethodDelete, one, "Remove an alias of a mailbox")
	remove.Description = "Mail to the address is refused afterwards. Messages that are in the mailbox stay."
	act(a, remove, mayConfigure, func(ctx context.Context, c caller, in *One) error {
		service, err := a.oneService(c)
		if err != nil {
			return err
		}
		account, err := a.deps.Mailboxes.RemoveAlias(ctx, service, in.Address, in.Alias)
		if err == nil {
			a.noteMailbox(ctx, &account, "remove-alias", &audit.Detail{Changed: []string{"aliases"}})
		}
		return err
	})
}

func (a *API) putMailboxAlias(x *responseWriter, r *http.Request, c caller) error {
	service, err := a.oneService(c)
	if err != nil {
		return err
	}
	account, made, added, err := a.deps.Mailboxes.AddAlias(r.Context(), service, r.PathValue("address"), r.PathValue("alias"))
	if err != nil {
		return err
	}
	status := http.StatusOK
	if added {
		status = http.StatusCreated
		a.noteMailbox(r.Context(), &account, "add-alias", &audit.Detail{Changed: []string{"aliases"}})
	}
	return httpio.WriteJSON(x, status, "application/json", wire.MailboxAlias(made))
}
