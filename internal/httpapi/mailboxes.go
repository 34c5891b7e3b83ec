package httpapi

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/httpapi/httpio"
	"fanfare.dev/fanfare/internal/httpapi/problem"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/mailbox"
	"fanfare.dev/fanfare/internal/people"
)

// AppPasswords creates, lists and revokes the app passwords of the mailboxes of a service.
type AppPasswords interface {
	Create(ctx context.Context, service, address, name string) (of mailbox.Account, c mailbox.Credential, password string, err error)
	List(ctx context.Context, service, address string) ([]mailbox.Credential, error)
	Revoke(ctx context.Context, service, address string, id int64) (of mailbox.Account, err error)
}

const appPasswordPrefix = "app-"

// mailboxRoutes serves the app passwords with which mail programs open mailboxes.
func (a *API) mailboxRoutes() {
	op := func(id, method, path, summary string, parameters ...*huma.Param) huma.Operation {
		return huma.Operation{OperationID: id, Method: method, Path: path, Tags: []string{"mailboxes"}, Summary: summary, Parameters: parameters}
	}
	create := op("create-app-password", http.MethodPost, "/v1/mailboxes/{address}/app-passwords", "Create an app password of a mailbox",
		param("address", "mail address of the subscriber"), service())
	create.Description = "A mail program logs in with the address as its user name and the app password. The password is shown only once; the server stores only verifiers (SCRAM-SHA-256). If the subscriber has no mailbox, it is created. A mailbox can have up to 25 app passwords."
	create.RequestBody = body[wire.AppPasswordRequest](a, "The settings of the app password", "application/json")
	create.RequestBody.Required = false
	replies[wire.NewAppPassword](a, &create, http.StatusCreated, "The app password", "application/json")
	a.handle(create, mayConfigure, a.createAppPassword)

	type OfMailbox struct {
		Named
		Address string `path:"address" doc:"mail address of the subscriber"`
	}
	read(a, op("list-app-passwords", http.MethodGet, "/v1/mailboxes/{address}/app-passwords", "List the app passwords of a mailbox in the order of their creation"), mayConfigure,
		func(ctx context.Context, c caller, in *OfMailbox) (wire.AppPasswordList, error) {
			list := wire.AppPasswordList{AppPasswords: []wire.AppPassword{}}
			service, err := a.oneService(c)
			if err != nil {
				return list, err
			}
			all, err := a.deps.AppPasswords.List(ctx, service, in.Address)
			for i := range all {
				list.AppPasswords = append(list.AppPasswords, appPasswordOf(&all[i]))
			}
			return list, err
		})
	type One struct {
		OfMailbox
		ID string `path:"id" doc:"id of the app password, such as app-1"`
	}
	revoke := op("revoke-app-password", http.MethodDelete, "/v1/mailboxes/{address}/app-passwords/{id}", "Revoke an app password of a mailbox")
	revoke.Description = "Nobody can log in with it afterwards. Programs that are logged in stay logged in until they disconnect."
	act(a, revoke, mayConfigure, func(ctx context.Context, c caller, in *One) error {
		service, err := a.oneService(c)
		if err != nil {
			return err
		}
		id, err := strconv.ParseInt(strings.TrimPrefix(in.ID, appPasswordPrefix), 10, 64)
		if err != nil || !strings.HasPrefix(in.ID, appPasswordPrefix) {
			return problem.NotFound("app password", in.ID)
		}
		account, err := a.deps.AppPasswords.Revoke(ctx, service, in.Address, id)
		if err == nil {
			a.noteAppPassword(ctx, &account, "revoke", in.ID)
		}
		return err
	})
}

func appPasswordOf(c *mailbox.Credential) wire.AppPassword {
	return wire.AppPassword{ID: appPasswordPrefix + strconv.FormatInt(c.ID, 10), Name: c.Name, CreatedAt: c.CreatedAt, UsedAt: c.UsedAt}
}

func (a *API) createAppPassword(x *responseWriter, r *http.Request, c caller) error {
	service, err := a.oneService(c)
	if err != nil {
		return err
	}
	var in wire.AppPasswordRequest
	if r.ContentLength != 0 {
		if err := httpio.ReadJSON(x, r, &in); err != nil {
			return err
		}
	}
	account, made, password, err := a.deps.AppPasswords.Create(r.Context(), service, r.PathValue("address"), in.Name)
	if err != nil {
		return err
	}
	out := wire.NewAppPassword{AppPassword: appPasswordOf(&made), User: account.Address, Password: password}
	a.noteAppPassword(r.Context(), &account, "create", out.ID)
	x.Header().Set("Cache-Control", "no-store")
	return httpio.WriteJSON(x, http.StatusCreated, "application/json", out)
}

// noteAppPassword adds an entry to the audit log. It names the subscriber by the internal id, because the log has no addresses.
func (a *API) noteAppPassword(ctx context.Context, account *mailbox.Account, action, id string) {
	a.note(ctx, audit.Operation{Service: account.Service, Action: action, Kind: "app-password", Name: people.SubscriberID(account.ID) + "/" + id}, nil)
}
