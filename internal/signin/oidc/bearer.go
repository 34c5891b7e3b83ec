package oidc

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/coreos/go-oidc/v3/oidc"

	"fanfare.dev/fanfare/internal/clock"
)

// discoveryPath is the path of the discovery document below the URL of an issuer.
const discoveryPath = "/.well-known/openid-configuration"

// A Bearer verifies tokens that requests bring along and that an issuer has signed with RS256. It is safe for
// concurrent use.
type Bearer struct {
	issuer *provider
	clock  clock.Clock
}

// CheckIssuer returns an error if a Bearer cannot ask an issuer: its URL must begin with https://, unless it is on the same machine.
func CheckIssuer(url string) error {
	url = strings.TrimSuffix(url, discoveryPath)
	return guard{local: isLocal(url)}.check(url)
}

// NewBearer returns a Bearer for the issuer with a URL, which may be that of its discovery document. Tokens must be for the client with an
// id; "": for any. It does not connect to the issuer. transport is nil for http.DefaultTransport.
func NewBearer(url, clientID string, transport http.RoundTripper, c clock.Clock) *Bearer {
	return &Bearer{newProvider(Issuer{URL: strings.TrimSuffix(url, discoveryPath), ClientID: clientID}, transport, c), c}
}

// Verify returns the claims of a token. It fails if the token is not signed by the issuer with RS256, has expired or is for another client.
func (b *Bearer) Verify(ctx context.Context, token string) (map[string]any, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	found, err := b.issuer.discover(ctx)
	if err != nil {
		return nil, err
	}
	id, err := found.Verifier(&oidc.Config{SkipClientIDCheck: true, SupportedSigningAlgs: []string{oidc.RS256}, Now: b.clock.Now}).Verify(oidc.ClientContext(ctx, b.issuer.client), token)
	if err != nil {
		return nil, fmt.Errorf("the token is not valid: %w", withoutBody(err))
	}
	var stated map[string]any
	if err := id.Claims(&stated); err != nil {
		return nil, errors.New("the claims of the token cannot be read")
	}
	if client := b.issuer.ClientID; client != "" && !isFor(id.Audience, stated, client) {
		return nil, fmt.Errorf("the token is for another client than %q", client)
	}
	return stated, nil
}

// isFor reports whether a token is for a client: by its audience, or, as in access tokens of many issuers, by its authorized party.
func isFor(audience []string, stated map[string]any, client string) bool {
	for _, one := range audience {
		if one == client {
			return true
		}
	}
	return stated["azp"] == client
}
