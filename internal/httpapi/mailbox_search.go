package httpapi

import (
	"context"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/httpapi/httpio"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/mailbox"
)

// MailboxSearch manages the index of searches in mailboxes.
type MailboxSearch interface {
	SearchIndex(ctx context.Context) (mailbox.SearchIndex, error)
	// Reindex does a part of the work; an address of "" means all mailboxes.
	Reindex(ctx context.Context, service, address string, after mailbox.ContentID) (of mailbox.Account, done mailbox.Reindexing, err error)
}

// mailboxSearchRoutes adds the endpoints for the index of searches.
func (a *API) mailboxSearchRoutes(op func(id, method, path, summary string, parameters ...*huma.Param) huma.Operation) {
	get := op("get-mailbox-search-index", http.MethodGet, "/v1/mailbox-search-index", "Get the state of the search index of mailboxes")
	get.Description = "The index has the messages of all services. Searches over IMAP and JMAP read the messages that wait for it, so results do not depend on it."
	read(a, get, mayRead, func(ctx context.Context, _ caller, _ *struct{}) (wire.SearchIndex, error) {
		index, err := a.deps.Mailboxes.SearchIndex(ctx)
		return wire.SearchIndex{Enabled: index.Enabled, Waiting: index.Waiting, Since: index.Since}, err
	})

	cursor := &huma.Param{Name: "cursor", In: "query", Description: "next of the previous response", Schema: &huma.Schema{Type: huma.TypeString}}
	const about = "A request does a part of the work: it puts up to 1,000 messages into the queue of the index, which is processed in the background. Repeat it with next as the cursor until the response has none. The setting mailbox_search_index must be true; otherwise, the reply is 409."
	one := op("reindex-mailbox", http.MethodPost, "/v1/mailboxes/{address}/reindex", "Index the messages of a mailbox again", param("address", "mail address of the subscriber"), cursor, service())
	one.Description = about
	replies[wire.Reindexing](a, &one, http.StatusOK, "The part that was done", "application/json")
	a.handle(one, mayConfigure, func(x *responseWriter, r *http.Request, c caller) error {
		service, err := a.oneService(c)
		if err != nil {
			return err
		}
		return a.reindex(x, r, listingOf("reindex", service, r.PathValue("address")), service, r.PathValue("address"))
	})
	all := op("reindex-all-mailboxes", http.MethodPost, "/v1/mailbox-search-index/reindex", "Index the messages of all mailboxes again", cursor)
	all.Description = about
	replies[wire.Reindexing](a, &all, http.StatusOK, "The part that was done", "application/json")
	a.handle(all, operator, func(x *responseWriter, r *http.Request, _ caller) error {
		return a.reindex(x, r, listingOf("reindex", ""), "", "")
	})
}

func (a *API) reindex(x *responseWriter, r *http.Request, l listing, service, address string) error {
	given := r.URL.Query().Get("cursor")
	key, err := l.key(given)
	if err != nil {
		return err
	}
	after, _ := strconv.ParseInt(key, 10, 64) // the server signed it
	account, done, err := a.deps.Mailboxes.Reindex(r.Context(), service, address, mailbox.ContentID(after))
	if err != nil {
		return err
	}
	if given == "" && address != "" {
		a.noteMailbox(r.Context(), &account, "reindex", nil)
	} else if given == "" {
		a.note(r.Context(), audit.Operation{Action: "reindex", Kind: "mailbox", Name: "all"}, nil)
	}
	part := wire.Reindexing{Queued: done.Queued}
	if done.Next != 0 {
		part.Next = l.next(strconv.FormatInt(int64(done.Next), 10))
	}
	return httpio.WriteJSON(x, http.StatusOK, "application/json", part)
}
