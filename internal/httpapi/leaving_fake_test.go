package httpapi

import (
	"context"

	"fanfare.dev/fanfare/internal/people/pages"
)

// leavingWorld is a world that recipients can leave, with the token good.
type leavingWorld struct{ *world }

func (w leavingWorld) Offer(_ context.Context, token string) (Offer, error) {
	if token != "good" {
		return Offer{}, notFound("link", token)
	}
	return Offer{Site: &pages.Site{Name: "News"}, Choices: []pages.Choice{{ID: "sub-1", Title: "Road <closures>", Checked: true}, {ID: "sub-2", Title: "Storms"}}}, nil
}

func (w leavingWorld) Leave(_ context.Context, token string, ask Leave) (Left, error) {
	if token != "good" {
		return Left{}, notFound("link", token)
	}
	w.tokens, w.left = append(w.tokens, token), ask
	return Left{Undo: "back"}, w.fail
}

func (w leavingWorld) Undo(_ context.Context, token string, really bool) (Undone, error) {
	if token != "back" {
		return Undone{}, notFound("link", token)
	}
	if really {
		w.tokens = nil
	}
	return Undone{}, nil
}
