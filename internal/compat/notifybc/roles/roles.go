package roles

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"fanfare.dev/fanfare/internal/jmespath"
)

// A Role limits the requests of a caller.
type Role string

// The roles, the widest first.
const (
	SuperAdmin Role = "SuperAdmin"
	Admin      Role = "Admin"
	User       Role = "AuthenticatedUser"
	Anonymous  Role = "Anonymous"
)

// The strategies, by which a caller was recognized.
const (
	byAddress     = "ip"
	byToken       = "accessToken"
	bySiteMinder  = "siteMinder"
	byOIDC        = "oidc"
	byCertificate = "clientCertificate"
)

// A Caller makes a request. Its JSON is that of createdBy and whoami.
type Caller struct {
	SecurityID string `json:"securityId,omitempty"`
	Strategy   string `json:"authnStrategy,omitempty"`
	Role       Role   `json:"role,omitempty"`
}

// IsAdmin reports whether the caller is an administrator of either kind.
func (c *Caller) IsAdmin() bool { return c.Role == SuperAdmin || c.Role == Admin }

// HoldsToken reports whether the caller is an administrator with an access token, who may see only
// their own account.
func (c *Caller) HoldsToken() bool { return c.Role == Admin && c.Strategy == byToken }

// A Refusal is the answer to a request that is refused.
type Refusal struct {
	Status  int
	Message string // "": the body has only the status
	Kind    string // the text of the status, in the body of some answers
}

func (r *Refusal) Error() string {
	if r.Message != "" {
		return r.Message
	}
	return http.StatusText(r.Status)
}

// Body is the body of the answer.
func (r *Refusal) Body() map[string]any {
	body := map[string]any{"statusCode": r.Status}
	if r.Message != "" {
		body["message"] = r.Message
	}
	if r.Kind != "" {
		body["error"] = r.Kind
	}
	return body
}

// Forbidden is the answer to a caller without the role that a route requires.
func Forbidden() *Refusal {
	return &Refusal{Status: http.StatusForbidden, Message: "Forbidden resource", Kind: "Forbidden"}
}

// Tokens know the holders of access tokens.
type Tokens interface {
	// Holder returns the administrator of an access token; "" if it is unknown or expired.
	Holder(ctx context.Context, token string) (administrator string, err error)
}

// A Verifier verifies tokens of OpenID Connect.
type Verifier interface {
	// Verify returns the claims of a token that the issuer has signed and that is valid now.
	Verify(ctx context.Context, token string) (claims map[string]any, err error)
}

// Options are what a Resolver works with.
type Options struct {
	Admins         []netip.Prefix // addresses of super-administrators
	TrustedProxies []netip.Prefix // whose X-Forwarded-For is read
	// SiteMinderProxies may set the headers of SiteMinder; nil: only this machine, without a proxy in between.
	SiteMinderProxies []netip.Prefix

	Tokens   Tokens
	Verifier Verifier // nil: no OpenID Connect
	// IsAdmin and IsAuthorizedUser are filters of the claims; nil: nobody is an administrator, and everyone with a valid token is a user.
	IsAdmin, IsAuthorizedUser *jmespath.Filter

	Logger *slog.Logger
}

// A Resolver decides who makes a request.
type Resolver struct{ Options }

// New returns a Resolver.
func New(o Options) *Resolver { return &Resolver{o} }

// forwardingHeaders are those that proxies add.
var forwardingHeaders = []string{"X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-Ip", "Forwarded", "Via", "True-Client-Ip", "Cf-Connecting-Ip"}

// siteMinderHeaders contain the id of a user; the first one that is set counts.
var siteMinderHeaders = []string{"SM_UNIVERSALID", "sm_user", "smgov_userdisplayname"}

// Caller returns the caller of a request.
func (r *Resolver) Caller(req *http.Request) Caller {
	if len(req.Header.Values("is_anonymous")) > 0 {
		return Caller{Role: Anonymous}
	}
	way := r.trace(req)
	user := r.siteMinderUser(req, &way)
	if way.known && contains(r.Admins, way.client) {
		if user != "" { // a person at an administrator's address remains a user
			return Caller{user, bySiteMinder, User}
		}
		return Caller{way.client.String(), byAddress, SuperAdmin}
	}
	if req.TLS != nil && len(req.TLS.VerifiedChains) > 0 {
		return Caller{req.TLS.VerifiedChains[0][0].Subject.CommonName, byCertificate, SuperAdmin}
	}
	if c := r.tokenHolder(req); c.Role != "" {
		return c
	}
	if user != "" {
		return Caller{user, bySiteMinder, User}
	}
	return Caller{Role: Anonymous}
}

// A way is how a request came to the listener.
type way struct {
	peer   netip.Addr // that has connected
	client netip.Addr // that has sent the request, as far as proxies are trusted
	known  bool       // client is not an unnamed proxy
}

// trace follows X-Forwarded-For through the trusted proxies.
func (r *Resolver) trace(req *http.Request) (w way) {
	peer, err := netip.ParseAddrPort(req.RemoteAddr)
	if err != nil {
		return w
	}
	w.peer = peer.Addr().Unmap().WithZone("")
	w.client, w.known = w.peer, true
	if !isForwarded(req) {
		return w
	}
	if !contains(r.TrustedProxies, w.peer) {
		w.known = false
		return w
	}
	hops := strings.Split(strings.Join(req.Header.Values("X-Forwarded-For"), ","), ",")
	for _, hop := range slices.Backward(hops) {
		address, err := netip.ParseAddr(strings.TrimSpace(hop))
		if err != nil {
			w.known = false
			return w
		}
		w.client = address.Unmap().WithZone("")
		if !contains(r.TrustedProxies, w.client) {
			return w
		}
	}
	return w
}

func isForwarded(req *http.Request) bool {
	return slices.ContainsFunc(forwardingHeaders, func(name string) bool { return len(req.Header.Values(name)) > 0 })
}

// ClientAddress returns the address of the client of a request, as far as proxies are trusted: for limits and logs.
func (r *Resolver) ClientAddress(req *http.Request) netip.Addr {
	w := r.trace(req)
	return w.client
}

// maxUserBytes is the maximum length of the id of a user.
const maxUserBytes = 255

// siteMinderUser returns the user in the headers of SiteMinder; "" if there is none, or their sender is not named.
func (r *Resolver) siteMinderUser(req *http.Request, w *way) string {
	switch {
	case !w.peer.IsValid():
		return ""
	case r.SiteMinderProxies == nil && (!w.peer.IsLoopback() || isForwarded(req)):
		return ""
	case r.SiteMinderProxies != nil && !contains(r.SiteMinderProxies, w.peer) && (!w.known || w.client == w.peer || !contains(r.SiteMinderProxies, w.client)):
		return ""
	}
	for _, name := range siteMinderHeaders {
		if values := headerValues(req.Header, name); len(values) > 0 {
			if user := values[0]; len(values) == 1 && isUserID(user) {
				return user
			}
			return "" // a client that adds a second header must not select the first
		}
	}
	return ""
}

// headerValues returns the values of a header without regard to case; the names of SiteMinder's headers have underscores, which Go
// does not bring into a canonical form.
func headerValues(h http.Header, name string) (values []string) {
	for key, list := range h {
		if strings.EqualFold(key, name) {
			values = append(values, list...)
		}
	}
	return values
}

func isUserID(text string) bool {
	return text != "" && len(text) <= maxUserBytes && !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f })
}

// maxTokenBytes is the maximum length of a token.
const maxTokenBytes = 16 << 10

// tokenHolder returns the caller of an access token or an OpenID Connect token; its role is empty if there is none that is valid.
func (r *Resolver) tokenHolder(req *http.Request) (c Caller) {
	authorization := req.Header.Get("Authorization")
	token, isQuery := authorization, false
	if token == "" {
		token, isQuery = req.URL.Query().Get("access_token"), true
	}
	if token == "" || len(token) > maxTokenBytes || len(req.Header.Values("Authorization")) > 1 {
		return Caller{}
	}
	if scheme, bearer, ok := strings.Cut(token, " "); ok && !isQuery {
		if strings.EqualFold(scheme, "Bearer") && r.Verifier != nil {
			return r.oidcHolder(req.Context(), strings.TrimSpace(bearer))
		}
		return Caller{}
	}
	if r.Tokens == nil {
		return Caller{}
	}
	administrator, err := r.Tokens.Holder(req.Context(), token)
	if err != nil {
		r.Logger.ErrorContext(req.Context(), "an access token of the NotifyBC API cannot be looked up", "error", err)
		return Caller{}
	}
	if administrator == "" {
		return Caller{}
	}
	return Caller{administrator, byToken, Admin}
}

func (r *Resolver) oidcHolder(ctx context.Context, token string) Caller {
	claims, err := r.Verifier.Verify(ctx, token)
	if err != nil {
		r.Logger.DebugContext(ctx, "a token of OpenID Connect is not valid", "error", err)
		return Caller{}
	}
	id, _ := claims["email"].(string)
	if id == "" || claims["email_verified"] == false { // a person may have chosen an address that is not theirs
		id, _ = claims["preferred_username"].(string)
	}
	switch {
	case !isUserID(id):
		return Caller{}
	case r.IsAdmin != nil && r.IsAdmin.Match(claims):
		return Caller{id, byOIDC, Admin}
	case r.IsAuthorizedUser == nil || r.IsAuthorizedUser.Match(claims):
		return Caller{id, byOIDC, User}
	}
	return Caller{}
}

func contains(list []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(list, func(p netip.Prefix) bool { return p.Contains(a) })
}
