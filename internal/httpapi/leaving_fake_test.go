package httpapi

import (
	"context"

	"fanfare.dev/fanfare/internal/httpapi/problem"
	"fanfare.dev/fanfare/internal/httpapi/recipientpages"
	"fanfare.dev/fanfare/internal/people/pages"
)

// leavingWorld is a world that recipients can leave, with the token good.
type leavingWorld struct{ *world }

func (w leavingWorld) Offer(_ context.Context, token string) (recipientpages.Offer, error) {
	if token != "good" {
		return recipientpages.Offer{}, problem.NotFound("link", token)
	}
	return recipientpages.Offer{Site: &pages.Site{Name: "News"}, Choices: []pages.Choice{{ID: "sub-1", Title: "Road <closures>", Checked: true}, {ID: "sub-2", Title: "Storms"}}}, nil
}

func (w leavingWorld) Leave(_ context.Context, token string, ask recipientpages.Leave) (recipientpages.Left, error) {
	if token != "good" {
		return recipientpages.Left{}, problem.NotFound("link", token)
	}
	w.tokens, w.left = append(w.tokens, token), ask
	return recipientpages.Left{Undo: "back"}, w.fail
}

func (w leavingWorld) Undo(_ context.Context, token string, really bool) (recipientpages.Undone, error) {
	if token != "back" {
		return recipientpages.Undone{}, problem.NotFound("link", token)
	}
	if really {
		w.tokens = nil
	}
	return recipientpages.Undone{}, nil
}
