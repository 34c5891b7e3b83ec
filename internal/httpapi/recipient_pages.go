package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/httpapi/httpio"
	"fanfare.dev/fanfare/internal/httpapi/problem"
	"fanfare.dev/fanfare/internal/httpapi/recipientpages"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/people/pages"
)

// A pageHandler returns a page for recipients.
type pageHandler func(ctx context.Context, w http.ResponseWriter, r *http.Request) (*pages.Page, error)

// pageRoute adds a page. It needs no key: the token in its link contains the permission.
func (a *API) pageRoute(op huma.Operation, h pageHandler) {
	replies[any](a, &op, http.StatusOK, "A page for recipients", "text/html")
	replies[any](a, &op, http.StatusNotFound, "A page that explains that the link does not work", "text/html")
	for _, status := range []int{http.StatusInternalServerError, http.StatusServiceUnavailable, http.StatusInsufficientStorage} {
		replies[any](a, &op, status, "A page that asks the recipient to try again", "text/html")
	}
	a.handle(op, anybody, func(x *responseWriter, r *http.Request, _ caller) error {
		status := http.StatusOK
		page, err := h(audit.WithActor(r.Context(), audit.Actor{KeyName: "recipient", Request: x.id}), x, r)
		if err != nil {
			status, page = a.faultPage(x, err)
		}
		return a.show(x, status, page)
	})
}

func (a *API) show(x *responseWriter, status int, p *pages.Page) error {
	body, policy, err := a.page.Write(p)
	if err != nil {
		return err
	}
	h := x.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", policy)
	h.Set("Referrer-Policy", "no-referrer") // the address is a secret of the recipient
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Robots-Tag", "noindex")
	httpio.WriteAll(x, status, body)
	return nil
}

// signupRoutes serves the pages to sign up and to confirm, and the API endpoint to sign up.
func (a *API) signupRoutes() {
	type SignupIn struct {
		Named
		Body recipientpages.SignupAsk
	}
	act(a, huma.Operation{OperationID: "sign-up", Method: http.MethodPost, Path: "/v1/signups", Tags: []string{"subscriptions"},
		Summary: "Send an email with a link that confirms a subscription",
		Description: "Nothing is stored until the recipient confirms, which must happen within two days. If the address already has the subscription, the email contains a link to the preferences instead. " +
			"A suppressed address gets no email, nor does an address that got three such emails in the last few hours, but the response is the same. Without public_url the request is rejected."}, maySubscribe,
		func(ctx context.Context, c caller, in *SignupIn) error {
			s, err := a.oneService(c)
			if err != nil {
				return err
			}
			if a.deps.Signups == nil {
				return &fanfare.Error{Code: fanfare.Conflict, Message: "the server has no public_url, so its emails cannot contain a link", Hint: "set public_url to the URL at which recipients reach the server"}
			}
			return a.deps.Signups.Ask(ctx, s, &in.Body, a.recipientPages.MayMail)
		})
	if a.deps.Signups == nil {
		return
	}
	form := huma.Operation{OperationID: "show-signup", Method: http.MethodGet, Path: "/s/{service}/{topic}", Tags: []string{"recipients"}, Summary: "Show the form to subscribe to a topic; changes nothing",
		Parameters: []*huma.Param{param("service", "name of the service"), param("topic", "name of a topic with the setting signup")}}
	a.pageRoute(form, a.recipientPages.ShowSignup)
	form.OperationID, form.Method, form.Summary = "send-signup", http.MethodPost, "Request a subscription; no key is needed"
	form.Responses = nil
	replies[any](a, &form, http.StatusTooManyRequests, "A page that asks the recipient to try again later", "text/html")
	a.pageRoute(form, a.recipientPages.SendSignup)
	a.pageRoute(linked("show-confirmation", http.MethodGet, "/c/{token}", "Ask whether to confirm a subscription; changes nothing"), a.recipientPages.Confirm)
	a.pageRoute(linked("confirm", http.MethodPost, "/c/{token}", "Confirm a subscription; no key is needed"), a.recipientPages.Confirm)
}

// unsubscribeRoutes serves the links of List-Unsubscribe. GET changes nothing,
// because mail scanners follow links; POST acts, from the page's button or as
// the one click of RFC 8058, without any key: the token is signed.
func (a *API) unsubscribeRoutes() {
	if a.deps.Unsubscriber == nil {
		return
	}
	a.pageRoute(linked("show-unsubscribe", http.MethodGet, "/u/{token}", "Ask a recipient what to unsubscribe from; changes nothing"), a.recipientPages.OfferUnsubscribe)
	post := linked("unsubscribe", http.MethodPost, "/u/{token}", "Unsubscribe (RFC 8058 one-click); no key is needed")
	post.Description = "The body of RFC 8058, or any other body that is not the form of the page, ends the subscriptions that the message was about."
	a.pageRoute(post, a.recipientPages.Unsubscribe)
	a.pageRoute(linked("show-undo", http.MethodGet, "/r/{token}", "Ask whether to undo an unsubscribe; changes nothing"), a.recipientPages.Undo)
	a.pageRoute(linked("undo-unsubscribe", http.MethodPost, "/r/{token}", "Undo an unsubscribe; no key is needed"), a.recipientPages.Undo)
}

// preferenceRoutes serves the preferences page, and the list of consents.
func (a *API) preferenceRoutes() {
	type One struct {
		Named
		ID string `path:"id" doc:"id of the subscriber: your own id, or per-..."`
	}
	read(a, huma.Operation{OperationID: "list-consents", Method: http.MethodGet, Path: "/v1/subscribers/{id}/consents", Tags: []string{"subscribers"},
		Summary: "List the consents of a subscriber", Description: "The latest first. A consent is stored as long as its subscriber."}, mayLookUp,
		func(ctx context.Context, c caller, in *One) (page ConsentList, err error) {
			s, err := a.oneService(c)
			if err == nil {
				page.Consents, err = a.deps.Consents.Consents(ctx, s, in.ID)
			}
			return page, err
		})
	if a.deps.Choices == nil {
		return
	}
	a.pageRoute(linked("show-preferences", http.MethodGet, "/p/{token}", "Show the preferences of a recipient; changes nothing"), a.recipientPages.ShowPreferences)
	a.pageRoute(linked("change-preferences", http.MethodPost, "/p/{token}", "Change what a recipient gets; no key is needed"), a.recipientPages.ChangePreferences)
	a.pageRoute(linked("show-move", http.MethodGet, "/a/{token}", "Ask whether to send messages to this address; changes nothing"), a.recipientPages.Move)
	a.pageRoute(linked("show-mail-programs", http.MethodGet, "/m/{token}", "Show the app passwords of a recipient's mailbox; changes nothing"), a.recipientPages.ShowMailPrograms)
	a.pageRoute(linked("change-mail-programs", http.MethodPost, "/m/{token}", "Create or revoke an app password; no key is needed"), a.recipientPages.ChangeMailPrograms)
	a.pageRoute(linked("confirm-move", http.MethodPost, "/a/{token}", "Confirm that messages go to another address; no key is needed"), a.recipientPages.Move)
}

// A ConsentList lists the consents of a subscriber.
type ConsentList struct {
	Consents []people.Consent `json:"consents" doc:"consents for all addresses, the latest first"`
}

// linked describes a page behind a link.
func linked(id, method, path, summary string) huma.Operation {
	return huma.Operation{OperationID: id, Method: method, Path: path, Tags: []string{"recipients"}, Summary: summary,
		Parameters: []*huma.Param{param("token", "token from the link in a message")}}
}

// faultPage returns the status and the page for an error.
func (a *API) faultPage(x *responseWriter, err error) (status int, p *pages.Page) {
	switch code := fanfare.CodeOf(err); code {
	case fanfare.NotFound, fanfare.Invalid:
		return http.StatusNotFound, &pages.Page{Kind: pages.Notice, Title: pages.Say("broken_title"), Notes: []pages.Text{pages.Say("broken")}}
	case fanfare.RateLimited:
		return problem.StatusOf(code), &pages.Page{Kind: pages.Notice, Title: pages.Say("many_title"), Notes: []pages.Text{pages.Say("many")}}
	default:
		if code == fanfare.Internal {
			a.log.Log(x.request.Context(), a.failureLevel(), "request failed", "request_id", x.id, "route", x.request.Pattern, "err", err)
		}
		return problem.StatusOf(code), &pages.Page{Kind: pages.Notice, Title: pages.Say("later_title"), Notes: []pages.Text{pages.Say("later")}}
	}
}
