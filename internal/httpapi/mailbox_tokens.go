package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/httpapi/httpio"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/mailbox"
	"fanfare.dev/fanfare/internal/people"
)

// MailboxTokens makes the tokens with which pages open mailboxes by JMAP.
type MailboxTokens interface {
	// Issue makes a token for the pages of some origins. A lifetime of 0 is the usual one.
	Issue(ctx context.Context, service, address string, origins []string, lifetime time.Duration) (of mailbox.Account, token string, until time.Time, err error)
}

// mailboxTokenRoutes serves tokens to the backends of customers.
func (a *API) mailboxTokenRoutes() {
	create := huma.Operation{OperationID: "create-mailbox-token", Method: http.MethodPost, Path: "/v1/mailboxes/{address}/tokens", Tags: []string{"mailboxes"},
		Summary: "Create a token with which a page opens a mailbox", Parameters: []*huma.Param{param("address", "mail address of the subscriber"), service()}}
	create.Description = "Your backend requests a token for a person who is signed in, and gives it to the page, which sends it to JMAP as a Bearer token. It is valid for one mailbox, for pages of the named origins, and until it expires; it cannot be revoked. The audit log has an entry for each token, without the token. If the subscriber has no mailbox, it is created."
	create.RequestBody = body[wire.MailboxTokenRequest](a, "The origins and the lifetime of the token", "application/json")
	create.RequestBody.Required = false
	replies[wire.MailboxToken](a, &create, http.StatusCreated, "The token", "application/json")
	a.handle(create, mayConfigure, a.createMailboxToken)
}

func (a *API) createMailboxToken(x *responseWriter, r *http.Request, c caller) error {
	service, err := a.oneService(c)
	if err != nil {
		return err
	}
	var in wire.MailboxTokenRequest
	if r.ContentLength != 0 {
		if err := httpio.ReadJSON(x, r, &in); err != nil {
			return err
		}
	}
	var lifetime time.Duration
	if in.Lifetime != "" {
		if lifetime, err = time.ParseDuration(in.Lifetime); err != nil || lifetime <= 0 {
			return &fanfare.Error{Code: fanfare.Invalid, Pointer: "/lifetime", Message: fmt.Sprintf("%.80q is not a duration", in.Lifetime), Hint: "use a duration such as 15m or 1h"}
		}
	}
	of, token, until, err := a.deps.MailboxTokens.Issue(r.Context(), service, r.PathValue("address"), in.Origins, lifetime)
	if err != nil {
		return err
	}
	detail := &audit.Detail{Fields: []audit.FieldChange{{Field: "expires_at", New: until.Format(time.RFC3339)}}}
	if len(in.Origins) > 0 {
		detail.Fields = append(detail.Fields, audit.FieldChange{Field: "origins", New: strings.Join(in.Origins, ", ")})
	}
	a.note(r.Context(), audit.Operation{Service: of.Service, Action: "create", Kind: "mailbox-token", Name: people.SubscriberID(of.ID)}, detail)
	x.Header().Set("Cache-Control", "no-store")
	return httpio.WriteJSON(x, http.StatusCreated, "application/json", wire.MailboxToken{Token: token, User: of.Address, ExpiresAt: until})
}
