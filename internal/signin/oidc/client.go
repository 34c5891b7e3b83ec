package oidc

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/signin"
)

// FlowTime is the time that a person has at the page of the issuer.
const FlowTime = 10 * time.Minute

// Limits of flows that have begun and are not complete.
const (
	maxFlows          = 10_000
	maxFlowsOfAddress = 500 // the oldest one ends when there are more
	maxReplyBytes     = 8 << 10
	maxSubjectBytes   = 255 // OpenID Connect Core 1.0, section 2
)

// A Refusal is the reason for which a sign-in did not succeed. The console shows a text for it.
type Refusal string

// The reasons.
const (
	Unknown     Refusal = "unknown"     // there is no such issuer
	Unavailable Refusal = "unavailable" // the issuer does not respond, or not as it should
	Busy        Refusal = "busy"        // too many people are signing in
	Expired     Refusal = "expired"     // the flow is not known: it took too long, is complete, or belongs to another browser
	Denied      Refusal = "denied"      // by the issuer, or by the person
	Rejected    Refusal = "rejected"    // the issuer's reply or its token is not valid
)

// Error returns the reason.
func (r Refusal) Error() string { return "signing in with OpenID Connect: " + string(r) }

// refused returns an error with a reason for the browser and a cause for the log.
func refused(r Refusal, cause error) error { return fmt.Errorf("%w: %w", r, cause) }

// Options are the parts of a Client.
type Options struct {
	Issuers []Issuer
	// Claims lists the names of the claims of an issuer on which roles depend. If the ID token lacks one, the Client asks for it.
	Claims    func(issuer string) []string
	Transport http.RoundTripper // nil: http.DefaultTransport
	Clock     clock.Clock
}

// A Client signs people in. It is safe for concurrent use.
type Client struct {
	issuers []*provider
	claims  func(issuer string) []string
	clock   clock.Clock

	mu    sync.Mutex
	flows map[[sha256.Size]byte]*flow // by the hash of state
}

// A flow is the way of one browser to an issuer and back.
type flow struct {
	issuer   *provider
	browser  [sha256.Size]byte // hash of the secret in its cookie
	nonce    string
	verifier string // of PKCE
	callback string // redirect_uri
	path     string // to which the person wants to go
	from     netip.Addr
	began    time.Time
}

// New returns a Client. It does not connect to the issuers.
func New(o Options) *Client {
	c := &Client{claims: o.Claims, clock: o.Clock, flows: map[[sha256.Size]byte]*flow{}}
	for _, i := range o.Issuers {
		c.issuers = append(c.issuers, newProvider(i, o.Transport, o.Clock))
	}
	return c
}

// Issuers lists the issuers.
func (c *Client) Issuers() []Issuer {
	list := make([]Issuer, len(c.issuers))
	for i := range c.issuers {
		list[i] = c.issuers[i].Issuer
	}
	return list
}

// A Start is the beginning of a flow.
type Start struct {
	URL     string // to which the browser goes
	Browser string // secret for a cookie, which binds the flow to the browser
}

// Begin begins a flow with the issuer that has an id. The issuer returns the person to callback, from where they go to path. It fails with a Refusal.
func (c *Client) Begin(ctx context.Context, id, callback, path string, from netip.Addr) (Start, error) {
	i := slices.IndexFunc(c.issuers, func(p *provider) bool { return p.ID == id })
	if i < 0 {
		return Start{}, refused(Unknown, errors.New("no issuer has this id"))
	}
	issuer := c.issuers[i]
	found, err := issuer.discover(ctx)
	if err != nil {
		return Start{}, refused(Unavailable, err)
	}
	state, browser := random(), random()
	f := &flow{issuer: issuer, browser: sha256.Sum256([]byte(browser)), nonce: random(), verifier: oauth2.GenerateVerifier(), callback: callback, path: path, from: from, began: c.clock.Now()}
	if err := c.keep(sha256.Sum256([]byte(state)), f); err != nil {
		return Start{}, err
	}
	return Start{found.config(&issuer.Issuer, callback).AuthCodeURL(state, oidc.Nonce(f.nonce), oauth2.S256ChallengeOption(f.verifier)), browser}, nil
}

// random returns 256 random bits as text.
func random() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// keep adds a flow, and removes those that took too long.
func (c *Client) keep(state [sha256.Size]byte, f *flow) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.flows, func(_ [sha256.Size]byte, old *flow) bool { return !old.isOpen(f.began) })
	var others [][sha256.Size]byte
	for other, old := range c.flows {
		if old.from == f.from {
			others = append(others, other)
		}
	}
	if len(others) >= maxFlowsOfAddress {
		delete(c.flows, slices.MinFunc(others, func(a, b [sha256.Size]byte) int {
			return cmp.Or(c.flows[a].began.Compare(c.flows[b].began), slices.Compare(a[:], b[:]))
		}))
	}
	if len(c.flows) >= maxFlows {
		return refused(Busy, fmt.Errorf("%d people are signing in", len(c.flows)))
	}
	c.flows[state] = f
	return nil
}

func (f *flow) isOpen(now time.Time) bool { return now.Before(f.began.Add(FlowTime)) }

// take removes the flow with a state and returns it, if it belongs to the browser and did not take too long. A flow can be taken once.
func (c *Client) take(state, browser string) (*flow, error) {
	hash, now := sha256.Sum256([]byte(state)), c.clock.Now()
	is := sha256.Sum256([]byte(browser))
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.flows[hash] // of a random state: the time of the lookup tells nothing about others
	delete(c.flows, hash)
	switch {
	case f == nil:
		return nil, refused(Expired, errors.New("no flow has this state"))
	case subtle.ConstantTimeCompare(f.browser[:], is[:]) != 1:
		return nil, refused(Expired, errors.New("the flow belongs to another browser"))
	case !f.isOpen(now):
		return nil, refused(Expired, errors.New("the flow took too long"))
	}
	return f, nil
}

// A Result is the end of a flow.
type Result struct {
	Person signin.Person
	Path   string // to which the person goes
}

// Finish ends the flow to which an issuer replies with a query, in the browser that has the secret. It fails with a Refusal. If the flow is known, the
// result has its path also with an error.
func (c *Client) Finish(ctx context.Context, browser string, reply url.Values) (Result, error) {
	for _, values := range reply {
		if len(values) != 1 || len(values[0]) > maxReplyBytes {
			return Result{}, refused(Rejected, errors.New("a parameter of the reply occurs twice or is too long"))
		}
	}
	f, err := c.take(reply.Get("state"), browser)
	if err != nil {
		return Result{}, err
	}
	result := Result{Path: f.path}
	found, err := f.issuer.discover(ctx)
	if err != nil {
		return result, refused(Unavailable, err)
	}
	// A reply of another issuer (RFC 9207) could not be told from one of this issuer by the state alone.
	if iss := reply.Get("iss"); iss != f.issuer.URL && (iss != "" || found.StatesIssuer) {
		return result, refused(Rejected, fmt.Errorf("the reply is of the issuer %.200q, not of %q", iss, f.issuer.URL))
	}
	switch code := reply.Get("error"); {
	case code == "access_denied":
		return result, refused(Denied, errors.New("the issuer replied access_denied"))
	case code == "server_error" || code == "temporarily_unavailable":
		return result, refused(Unavailable, fmt.Errorf("the issuer replied %q", code))
	case code != "":
		return result, refused(Rejected, fmt.Errorf("the issuer replied with the error %.200q", code))
	case reply.Get("code") == "":
		return result, refused(Rejected, errors.New("the reply has no code"))
	}
	result.Person, err = c.identify(ctx, f, found, reply.Get("code"))
	return result, err
}

// identify exchanges a code for tokens, and returns the person of the ID token.
func (c *Client) identify(ctx context.Context, f *flow, found *discovered, code string) (signin.Person, error) {
	ctx, cancel := context.WithTimeout(oidc.ClientContext(ctx, f.issuer.client), exchangeTime)
	defer cancel()
	config := found.config(&f.issuer.Issuer, f.callback)
	token, err := config.Exchange(ctx, code, oauth2.VerifierOption(f.verifier))
	if err != nil {
		if answer, ok := errors.AsType[*oauth2.RetrieveError](err); ok && answer.Response.StatusCode < http.StatusInternalServerError {
			return signin.Person{}, refused(Rejected, fmt.Errorf("the issuer refuses the code: status %d, error %.200q", answer.Response.StatusCode, answer.ErrorCode)) // the body may contain a token
		}
		return signin.Person{}, refused(Unavailable, fmt.Errorf("the code cannot be exchanged: %w", withoutBody(err)))
	}
	raw, _ := token.Extra("id_token").(string)
	id, err := found.Verifier(&oidc.Config{ClientID: config.ClientID, Now: c.clock.Now}).Verify(ctx, raw)
	if err != nil {
		return signin.Person{}, refused(Rejected, fmt.Errorf("the ID token is not valid: %w", err))
	}
	var stated claims
	if err := id.Claims(&stated); err != nil {
		return signin.Person{}, refused(Rejected, fmt.Errorf("the claims of the ID token cannot be read: %w", err))
	}
	switch party := stated.text("azp"); {
	case subtle.ConstantTimeCompare([]byte(id.Nonce), []byte(f.nonce)) != 1:
		return signin.Person{}, refused(Rejected, errors.New("the nonce of the ID token is wrong"))
	case party != "" && party != config.ClientID, party == "" && len(id.Audience) > 1:
		return signin.Person{}, refused(Rejected, fmt.Errorf("the ID token is for the client %.200q", party))
	case id.Subject == "" || len(id.Subject) > maxSubjectBytes || strings.ContainsFunc(id.Subject, func(r rune) bool { return r < ' ' || r > '~' }):
		return signin.Person{}, refused(Rejected, errors.New("the ID token has no valid subject"))
	}
	names := &f.issuer.Claims
	mail := stated.verifiedMail(names)
	if c.lacks(stated, f.issuer) && found.UserInfoEndpoint() != "" {
		more, err := userInfo(ctx, found, token, id.Subject)
		if err != nil {
			return signin.Person{}, err
		}
		if mail == "" {
			mail = more.verifiedMail(names) // both the address and its verification
		}
		stated.add(more)
	}
	return signin.Person{Issuer: f.issuer.URL, Subject: id.Subject, Name: stated.text(names.Name), Mail: mail, Values: func(claim string) []string {
		if claim != names.Mail {
			return stated.values(claim)
		}
		if mail == "" {
			return nil // a person may have chosen an address that is not verified, and a role must not depend on it
		}
		return []string{mail}
	}}, nil
}

// lacks reports whether a claim is missing that is of use.
func (c *Client) lacks(stated claims, i *provider) bool {
	return slices.ContainsFunc(append([]string{i.Claims.Name, i.Claims.Mail}, c.claims(i.URL)...), func(name string) bool { return stated.find(name) == nil })
}

// userInfo asks for the claims of a person that are not in the ID token (OpenID Connect Core 1.0, section 5.3).
func userInfo(ctx context.Context, found *discovered, token *oauth2.Token, subject string) (claims, error) {
	info, err := found.UserInfo(ctx, oauth2.StaticTokenSource(token))
	if err != nil {
		return nil, refused(Unavailable, fmt.Errorf("the issuer does not return the claims of the person: %w", withoutBody(err)))
	}
	if info.Subject != subject {
		return nil, refused(Rejected, errors.New("the claims are of another person than the ID token"))
	}
	var more claims
	if err := info.Claims(&more); err != nil {
		return nil, refused(Rejected, fmt.Errorf("the claims of the person cannot be read: %w", err))
	}
	return more, nil
}
