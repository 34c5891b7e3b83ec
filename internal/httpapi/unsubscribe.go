package httpapi

import (
	"context"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/people/pages"
)

// unsubscribeRoutes serves the links of List-Unsubscribe. GET changes nothing,
// because mail scanners follow links; POST acts, from the page's button or as
// the one click of RFC 8058, without any key: the token is signed.
func (a *API) unsubscribeRoutes() {
	if a.parts.Leaving == nil {
		return
	}
	a.pageRoute(linked("show-unsubscribe", http.MethodGet, "/u/{token}", "Ask a recipient what to unsubscribe from; changes nothing"), a.offerLeave)
	post := linked("unsubscribe", http.MethodPost, "/u/{token}", "Unsubscribe (RFC 8058 one-click); no key is needed")
	post.Description = "The body of RFC 8058, or any other that is not the page's own form, ends what the message was about."
	a.pageRoute(post, a.leave)
	a.pageRoute(linked("show-undo", http.MethodGet, "/r/{token}", "Ask whether to take an unsubscribe back; changes nothing"), a.undo)
	a.pageRoute(linked("undo-unsubscribe", http.MethodPost, "/r/{token}", "Take an unsubscribe back; no key is needed"), a.undo)
}

func (a *API) offerLeave(ctx context.Context, _ *exchange, r *http.Request) (*pages.Page, error) {
	offer, err := a.parts.Leaving.Offer(ctx, r.PathValue("token"))
	if err != nil {
		return nil, err
	}
	return leavePage(&offer), nil
}

func leavePage(offer *Offer) *pages.Page {
	if len(offer.Choices) == 0 {
		return leftPage(&Left{Site: offer.Site, Locale: offer.Locale})
	}
	p := &pages.Page{Kind: pages.Unsubscribe, Site: offer.Site, Locale: offer.Locale, Title: pages.Say("leave_title"),
		Form: &pages.UnsubscribeForm{Choices: offer.Choices, Reasons: []string{"", "often", "topic", "never", "other"}}}
	if len(offer.Choices) == 1 {
		p.Notes = []pages.Text{pages.Say("leave_one", offer.Choices[0].Title)}
	}
	return p
}

func (a *API) leave(ctx context.Context, x *exchange, r *http.Request) (*pages.Page, error) {
	token, form := r.PathValue("token"), readForm(x, r)
	ask := Leave{}
	if form.Get("page") != "" { // else it is one click
		ask = Leave{Chosen: append([]string{}, form["s"]...), All: form.Get("all") != ""}
		if why := form.Get("why"); LeaveReasons[why] != "" {
			ask.Reason = why
		}
		if len(ask.Chosen) == 0 && !ask.All {
			offer, err := a.parts.Leaving.Offer(ctx, token)
			if err != nil {
				return nil, err
			}
			page := leavePage(&offer)
			page.Fault = pages.Say("leave_none")
			return page, nil
		}
	}
	patient(x)
	left, err := a.parts.Leaving.Leave(ctx, token, ask)
	if err != nil {
		return nil, err
	}
	return leftPage(&left), nil
}

func leftPage(left *Left) *pages.Page {
	p := &pages.Page{Kind: pages.Notice, Site: left.Site, Locale: left.Locale, Title: pages.Say("left_title"), Notes: []pages.Text{pages.Say("left_already"), pages.Say("close")}}
	if len(left.Titles) > 0 {
		p.Notes[0] = pages.Say("left", strings.Join(left.Titles, ", "))
	}
	if left.Undo != "" {
		p.Form = &pages.Button{Action: "../r/" + left.Undo, Label: pages.Say("undo")}
	}
	return p
}

func (a *API) undo(ctx context.Context, x *exchange, r *http.Request) (*pages.Page, error) {
	really := r.Method == http.MethodPost
	if really {
		readForm(x, r)
		patient(x)
	}
	done, err := a.parts.Leaving.Undo(ctx, r.PathValue("token"), really)
	if err != nil {
		return nil, err
	}
	p := &pages.Page{Kind: pages.Notice, Site: done.Site, Locale: done.Locale}
	switch {
	case done.Late:
		p.Title, p.Notes = pages.Say("later_title"), []pages.Text{pages.Say("undo_late")}
	case really:
		p.Title, p.Notes = pages.Say("undone_title"), []pages.Text{pages.Say("undone"), pages.Say("close")}
	default:
		p.Title, p.Notes, p.Form = pages.Say("undo_title"), []pages.Text{pages.Say("undo_ask")}, &pages.Button{Label: pages.Say("undo_button")}
	}
	return p, nil
}

// linked describes a page behind a link.
func linked(id, method, path, summary string) huma.Operation {
	return huma.Operation{OperationID: id, Method: method, Path: path, Tags: []string{"recipients"}, Summary: summary,
		Parameters: []*huma.Param{param("token", "from the link in a message")}}
}

// faultPage is what people see of an error.
func (a *API) faultPage(x *exchange, err error) (status int, p *pages.Page) {
	switch code := fanfare.CodeOf(err); code {
	case fanfare.NotFound, fanfare.Invalid:
		return http.StatusNotFound, &pages.Page{Kind: pages.Notice, Title: pages.Say("broken_title"), Notes: []pages.Text{pages.Say("broken")}}
	case fanfare.RateLimited:
		return statusOf(code), &pages.Page{Kind: pages.Notice, Title: pages.Say("many_title"), Notes: []pages.Text{pages.Say("many")}}
	default:
		if code == fanfare.Internal {
			a.log.Log(x.request.Context(), a.failureLevel(), "request failed", "request_id", x.id, "route", x.request.Pattern, "err", err)
		}
		return statusOf(code), &pages.Page{Kind: pages.Notice, Title: pages.Say("later_title"), Notes: []pages.Text{pages.Say("later")}}
	}
}
