package httpapi

import (
	"context"

	"fanfare.dev/fanfare/internal/httpapi/problem"
	"fanfare.dev/fanfare/internal/httpapi/recipientpages"
	"fanfare.dev/fanfare/internal/people/pages"
)

// unsubscribeWorld is a world in which recipients can unsubscribe with the token good.
type unsubscribeWorld struct{ *world }

func (w unsubscribeWorld) Offer(_ context.Context, token string) (recipientpages.UnsubscribeOffer, error) {
	if token != "good" {
		return recipientpages.UnsubscribeOffer{}, problem.NotFound("link", token)
	}
	return recipientpages.UnsubscribeOffer{Site: &pages.Site{Name: "News"}, Choices: []pages.Choice{{ID: "sub-1", Title: "Road <closures>", Checked: true}, {ID: "sub-2", Title: "Storms"}}}, nil
}

func (w unsubscribeWorld) Unsubscribe(_ context.Context, token string, ask recipientpages.UnsubscribeRequest) (recipientpages.Unsubscribed, error) {
	if token != "good" {
		return recipientpages.Unsubscribed{}, problem.NotFound("link", token)
	}
	w.tokens, w.left = append(w.tokens, token), ask
	return recipientpages.Unsubscribed{Undo: "back"}, w.fail
}

func (w unsubscribeWorld) Undo(_ context.Context, token string, really bool) (recipientpages.UndoResult, error) {
	if token != "back" {
		return recipientpages.UndoResult{}, problem.NotFound("link", token)
	}
	if really {
		w.tokens = nil
	}
	return recipientpages.UndoResult{}, nil
}
