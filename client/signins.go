package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"

	"fanfare.dev/fanfare/internal/httpapi/wire"
)

// A SignIn is a sign-in of a person to the console.
type SignIn = wire.SignIn

// SignIns yields the sign-ins to the console, the newest first. It ends at the first error, which is its last pair.
func (c *Client) SignIns(ctx context.Context) iter.Seq2[SignIn, error] {
	return List[SignIn](ctx, c, "/v1/sign-ins", "sign_ins", nil)
}

// EndSignIn ends a sign-in to the console.
func (c *Client) EndSignIn(ctx context.Context, id string) error {
	return c.call(ctx, request{method: http.MethodDelete, path: "/v1/sign-ins/" + url.PathEscape(id), repeatable: true}, nil, nil)
}
