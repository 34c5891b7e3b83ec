package recipientpages

import (
	"context"
	"net/http"
	"strings"

	"fanfare.dev/fanfare/internal/httpapi/httpio"
	"fanfare.dev/fanfare/internal/people/pages"
)

func (h *Handlers) OfferUnsubscribe(ctx context.Context, _ http.ResponseWriter, r *http.Request) (*pages.Page, error) {
	offer, err := h.Unsubscriber.Offer(ctx, r.PathValue("token"))
	if err != nil {
		return nil, err
	}
	return offerPage(&offer), nil
}

func offerPage(offer *UnsubscribeOffer) *pages.Page {
	if len(offer.Choices) == 0 {
		return unsubscribedPage(&Unsubscribed{Site: offer.Site, Locale: offer.Locale})
	}
	p := &pages.Page{Kind: pages.Unsubscribe, Site: offer.Site, Locale: offer.Locale, Title: pages.Say("leave_title"),
		Form: &pages.UnsubscribeForm{Choices: offer.Choices, Reasons: []string{"", "often", "topic", "never", "other"}}}
	if len(offer.Choices) == 1 {
		p.Notes = []pages.Text{pages.Say("leave_one", offer.Choices[0].Title)}
	}
	return p
}

func (h *Handlers) Unsubscribe(ctx context.Context, w http.ResponseWriter, r *http.Request) (*pages.Page, error) {
	token, form := r.PathValue("token"), httpio.ReadForm(w, r)
	ask := UnsubscribeRequest{}
	if form.Get("page") != "" { // otherwise it is a one-click unsubscribe
		ask = UnsubscribeRequest{Chosen: append([]string{}, form["s"]...), All: form.Get("all") != ""}
		if why := form.Get("why"); UnsubscribeReasons[why] != "" {
			ask.Reason = why
		}
		if len(ask.Chosen) == 0 && !ask.All {
			offer, err := h.Unsubscriber.Offer(ctx, token)
			if err != nil {
				return nil, err
			}
			page := offerPage(&offer)
			page.Fault = pages.Say("leave_none")
			return page, nil
		}
	}
	httpio.AllowLongResponse(w)
	left, err := h.Unsubscriber.Unsubscribe(ctx, token, ask)
	if err != nil {
		return nil, err
	}
	return unsubscribedPage(&left), nil
}

func unsubscribedPage(left *Unsubscribed) *pages.Page {
	p := &pages.Page{Kind: pages.Notice, Site: left.Site, Locale: left.Locale, Title: pages.Say("left_title"), Notes: []pages.Text{pages.Say("left_already"), pages.Say("close")}}
	if len(left.Titles) > 0 {
		p.Notes[0] = pages.Say("left", strings.Join(left.Titles, ", "))
	}
	if left.Undo != "" {
		p.Form = &pages.Button{Action: "../r/" + left.Undo, Label: pages.Say("undo")}
	}
	return p
}

func (h *Handlers) Undo(ctx context.Context, w http.ResponseWriter, r *http.Request) (*pages.Page, error) {
	really := r.Method == http.MethodPost
	if really {
		httpio.ReadForm(w, r)
		httpio.AllowLongResponse(w)
	}
	done, err := h.Unsubscriber.Undo(ctx, r.PathValue("token"), really)
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
