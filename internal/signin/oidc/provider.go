package oidc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/clock"
)

// Limits of the requests to an issuer.
const (
	requestTime   = 10 * time.Second
	exchangeTime  = 25 * time.Second // of all requests of one sign-in
	maxBodyBytes  = 1 << 20
	discoveryTime = time.Hour       // for which what was discovered is used
	failureTime   = 5 * time.Second // for which a failure is repeated, so that a broken issuer is not asked by each person
)

// A provider is an issuer with what was discovered about it.
type provider struct {
	Issuer
	client *http.Client
	clock  clock.Clock

	mu    sync.Mutex // held during a discovery
	found *discovered
	err   error
	at    time.Time // of the last discovery
}

// discovered is the discovery document of an issuer (OpenID Connect Discovery 1.0), with the keys that were read.
type discovered struct {
	*oidc.Provider
	StatesIssuer bool     `json:"authorization_response_iss_parameter_supported"` // RFC 9207
	AuthMethods  []string `json:"token_endpoint_auth_methods_supported"`
	Keys         string   `json:"jwks_uri"`
}

func newProvider(i Issuer, transport http.RoundTripper, c clock.Clock) *provider {
	if transport == nil {
		transport = http.DefaultTransport
	}
	return &provider{Issuer: i, clock: c, client: &http.Client{
		Transport: guard{transport, isLocal(i.URL)}, Timeout: requestTime,
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return errors.New("the issuer redirects the request, which is not allowed")
		},
	}}
}

// isLocal reports whether a URL is of the same machine.
func isLocal(text string) bool {
	u, err := url.Parse(text)
	return err == nil && catalog.IsLoopbackHost(u.Hostname())
}

// A guard limits the requests to an issuer: they are encrypted unless the issuer is on the same machine, and the responses are not large.
type guard struct {
	http.RoundTripper
	local bool // the issuer is on the same machine
}

// RoundTrip sends a request.
func (g guard) RoundTrip(r *http.Request) (*http.Response, error) {
	if problem := g.check(r.URL.String()); problem != nil {
		return nil, problem
	}
	response, err := g.RoundTripper.RoundTrip(r)
	if err == nil {
		response.Body = &limited{response.Body, maxBodyBytes}
	}
	return response, err
}

// check refuses a URL that is not encrypted, unless it and the issuer are on the same machine.
func (g guard) check(text string) error {
	u, err := url.Parse(text)
	switch {
	case err == nil && u.Host != "" && u.Scheme == "https":
		return nil
	case err == nil && u.Scheme == "http" && g.local && isLocal(text):
		return nil
	}
	return fmt.Errorf("%q is not a URL that begins with https://", text)
}

// limited is a body that fails after a number of bytes.
type limited struct {
	io.ReadCloser
	left int
}

// Read reads a part of the body.
func (l *limited) Read(b []byte) (int, error) {
	n, err := l.ReadCloser.Read(b)
	if l.left -= n; l.left < 0 {
		return 0, fmt.Errorf("the response of the issuer is larger than %d bytes", maxBodyBytes)
	}
	return n, err
}

// discover returns the discovery document. It waits for another discovery that is running.
func (p *provider) discover(ctx context.Context) (*discovered, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock.Now()
	switch age := now.Sub(p.at); {
	case p.found != nil && p.err == nil && age < discoveryTime && age >= 0, (p.found != nil || p.err != nil) && age < failureTime && age >= 0:
		if p.found == nil {
			return nil, p.err
		}
		return p.found, nil
	}
	found, err := p.ask(context.WithoutCancel(ctx)) // others wait for the same; the client has a time limit
	p.at, p.err = p.clock.Now(), err
	if err == nil {
		p.found = found
	}
	if p.found == nil {
		return nil, err
	}
	return p.found, nil // an older one is better than none
}

func (p *provider) ask(ctx context.Context) (*discovered, error) {
	ctx = oidc.ClientContext(ctx, p.client)
	known, err := oidc.NewProvider(ctx, p.URL)
	if err != nil {
		return nil, fmt.Errorf("the discovery document of %s cannot be read: %w", p.URL, withoutBody(err))
	}
	found := &discovered{Provider: known}
	if err := known.Claims(found); err != nil {
		return nil, fmt.Errorf("the discovery document of %s cannot be read: %w", p.URL, err)
	}
	g := guard{local: isLocal(p.URL)}
	for _, endpoint := range []string{known.Endpoint().AuthURL, known.Endpoint().TokenURL, found.Keys} {
		if err := g.check(endpoint); err != nil {
			return nil, fmt.Errorf("the discovery document of %s: %w", p.URL, err)
		}
	}
	if len(found.AuthMethods) > 0 && p.authStyle(found.AuthMethods) == oauth2.AuthStyleAutoDetect {
		return nil, fmt.Errorf("%s supports only the client authentication %s; Fanfare supports client_secret_basic, client_secret_post, and none without a secret", p.URL, strings.Join(found.AuthMethods, ", "))
	}
	return found, nil
}

// authStyle returns how the client authenticates itself, or AuthStyleAutoDetect if it cannot.
func (p *Issuer) authStyle(methods []string) oauth2.AuthStyle {
	switch {
	case p.secret == "":
		return oauth2.AuthStyleInParams // as the method none
	case len(methods) == 0 || slices.Contains(methods, "client_secret_basic"):
		return oauth2.AuthStyleInHeader
	case slices.Contains(methods, "client_secret_post"):
		return oauth2.AuthStyleInParams
	}
	return oauth2.AuthStyleAutoDetect
}

// config returns the configuration of the flow.
func (d *discovered) config(i *Issuer, callback string) *oauth2.Config {
	endpoint := d.Endpoint()
	endpoint.AuthStyle = i.authStyle(d.AuthMethods)
	return &oauth2.Config{ClientID: i.ClientID, ClientSecret: i.secret, Endpoint: endpoint, RedirectURL: callback, Scopes: append([]string{oidc.ScopeOpenID}, i.Scopes...)}
}

// withoutBody shortens an error that may quote the body of a response, which may contain tokens or facts about a person.
func withoutBody(err error) error {
	if answer, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		return fmt.Errorf("the issuer replies with the status %d", answer.Response.StatusCode)
	}
	const most = 300
	text := err.Error()
	if at := strings.IndexAny(text, "{<\n"); at >= 0 {
		text = text[:at] + "..."
	}
	if len(text) > most {
		text = text[:most] + "..."
	}
	return errors.New(strings.ToValidUTF8(text, ""))
}
