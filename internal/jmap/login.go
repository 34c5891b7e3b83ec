package jmap

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/jmap/core"
	"fanfare.dev/fanfare/internal/jmap/mail"
	"fanfare.dev/fanfare/internal/jmap/push"
	"fanfare.dev/fanfare/internal/jmap/token"
	"fanfare.dev/fanfare/internal/mailbox"
)

// A login is a user who may use an account.
type login struct {
	account mailbox.Account
	id      core.ID
	until   time.Time // of a token; zero: no end

	credential string // names the app password or the token
}

// Headers that scripts may send and read.
const (
	sharedHeaders  = "Authorization, Content-Type, Last-Event-ID, Cache-Control"
	exposedHeaders = "Retry-After, X-Request-Id"
)

// preflight answers a CORS preflight. It does not know the token, and therefore permits the request to pages of all origins; the request itself
// is then refused to those that the token does not name. No credentials are permitted, so that a browser adds none that it has stored.
func (s *Server) preflight(w http.ResponseWriter, r *http.Request) bool {
	if r.Method != http.MethodOptions || r.Header.Get("Origin") == "" || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Allow-Methods", "GET, POST")
	h.Set("Access-Control-Allow-Headers", sharedHeaders)
	h.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
	return true
}

// login authenticates a request, and lets the page that sent it read the response.
func (s *Server) login(w http.ResponseWriter, r *http.Request) (login, error) {
	w.Header().Add("Vary", "Origin, Authorization")
	origin := r.Header.Get("Origin")
	scheme, credentials, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	switch {
	case strings.EqualFold(scheme, "bearer"):
		claims, err := s.o.Tokens.Open(strings.TrimSpace(credentials), s.o.Clock.Now())
		if len(claims.Origins) > 0 && origin != "" && claims.Allows(origin) {
			share(w, origin) // also an error, so that the page asks for a new token
		}
		if err != nil {
			w.Header().Set("WWW-Authenticate", `Bearer realm="fanfare", error="invalid_token"`)
			s.metrics.login("token", err)
			return login{}, err
		}
		if !claims.Allows(origin) {
			return login{}, &fanfare.Error{Code: fanfare.Forbidden, Message: "the token is not for pages of the origin " + quote(origin), Hint: "name the origin when you ask the API for a token"}
		}
		user, err := s.byToken(r.Context(), w, &claims)
		sum := sha256.Sum256([]byte(strings.TrimSpace(credentials)))
		user.credential = "token " + hex.EncodeToString(sum[:16])
		s.metrics.login("token", err)
		return user, err
	case strings.EqualFold(scheme, "basic"):
		if origin != "" {
			if !slices.Contains(s.o.Origins, origin) && !slices.Contains(s.o.Origins, "*") {
				return login{}, &fanfare.Error{Code: fanfare.Forbidden, Message: "app passwords are not accepted from pages of the origin " + quote(origin), Hint: "use a token of the API, or add the origin to cors_origins"}
			}
			share(w, origin)
		}
		user, password, ok := r.BasicAuth()
		if !ok {
			s.challenge(w)
			return login{}, &fanfare.Error{Code: fanfare.Unauthenticated, Message: "the header Authorization cannot be read", Hint: "send HTTP Basic with the mail address and an app password"}
		}
		of, err := s.byPassword(w, r, user, password)
		s.metrics.login("app_password", err)
		return of, err
	}
	s.challenge(w)
	return login{}, &fanfare.Error{Code: fanfare.Unauthenticated, Message: "this request needs a login", Hint: "send HTTP Basic with the mail address and an app password, or a token of the API as a Bearer token"}
}

func (s *Server) challenge(w http.ResponseWriter) {
	w.Header().Set("WWW-Authenticate", `Basic realm="fanfare", charset="UTF-8", Bearer realm="fanfare"`)
}

// quote shortens an origin for an error.
func quote(origin string) string {
	if len(origin) > 100 {
		origin = origin[:100]
	}
	return `"` + origin + `"`
}

// share lets the page read the response.
func share(w http.ResponseWriter, origin string) {
	w.Header().Set("Access-Control-Allow-Origin", origin)
	w.Header().Set("Access-Control-Expose-Headers", exposedHeaders)
}

func (s *Server) byToken(ctx context.Context, w http.ResponseWriter, claims *token.Claims) (login, error) {
	of, err := s.o.Store.Account(ctx, claims.Account)
	if fanfare.CodeOf(err) == fanfare.NotFound || err == nil && (of.Disabled || of.Service != claims.Service) {
		w.Header().Set("WWW-Authenticate", `Bearer realm="fanfare", error="invalid_token"`)
		return login{}, &fanfare.Error{Code: fanfare.Unauthenticated, Message: "the account of the token does not exist or is disabled", Hint: "ask the API for a new token"}
	}
	return login{account: of, id: mail.AccountID(of.ID), until: claims.Until}, err
}

func (s *Server) byPassword(w http.ResponseWriter, r *http.Request, user, password string) (login, error) {
	now := s.o.Clock.Now()
	if known, ok := s.logins.find(user, password, now); ok {
		if of, err := s.o.Store.Account(r.Context(), known.account); err == nil && !of.Disabled && s.isValid(r.Context(), known) {
			return login{account: of, id: mail.AccountID(of.ID), credential: push.AppPassword(known.credential)}, nil
		}
	}
	drops := s.logins.dropped()
	of, credential, err := s.o.Logins.PlainCredential(r.Context(), user, password, s.o.ClientAddress(r))
	if err != nil {
		if fanfare.CodeOf(err) == fanfare.Unauthenticated {
			s.challenge(w)
		}
		return login{}, err
	}
	s.logins.keep(user, password, knownLogin{of.ID, credential, now.Add(loginLifetime)}, now, drops)
	return login{account: of, id: mail.AccountID(of.ID), credential: push.AppPassword(credential)}, nil
}

// isValid reports whether the app password of a remembered login was not revoked.
func (s *Server) isValid(ctx context.Context, known knownLogin) bool {
	list, err := s.o.Store.Credentials(ctx, known.account)
	return err == nil && slices.ContainsFunc(list, func(c mailbox.Credential) bool { return c.ID == known.credential })
}

// Bounds of the remembered logins. Checking an app password takes some milliseconds of processor time by design, and programs send it with each request.
const (
	loginLifetime = 10 * time.Minute
	maxLogins     = 50_000
)

// A loginCache remembers successful logins by a hash with a random key. It has no passwords.
type loginCache struct {
	key     [32]byte
	mu      sync.Mutex
	entries map[[sha256.Size]byte]knownLogin
	drops   int // calls of drop
}

type knownLogin struct {
	account    mailbox.AccountID
	credential int64
	until      time.Time
}

func (c *loginCache) init() {
	_, _ = rand.Read(c.key[:]) // it never fails
	c.entries = map[[sha256.Size]byte]knownLogin{}
}

func (c *loginCache) hash(user, password string) (sum [sha256.Size]byte) {
	mac := hmac.New(sha256.New, c.key[:])
	mac.Write([]byte(user))
	mac.Write([]byte{0})
	mac.Write([]byte(password))
	mac.Sum(sum[:0])
	return sum
}

func (c *loginCache) find(user, password string, now time.Time) (knownLogin, bool) {
	sum := c.hash(user, password)
	c.mu.Lock()
	defer c.mu.Unlock()
	known, ok := c.entries[sum]
	return known, ok && now.Before(known.until)
}

// dropped returns the number of calls of drop so far, for keep.
func (c *loginCache) dropped() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.drops
}

// drop forgets the logins of an account.
func (c *loginCache) drop(id mailbox.AccountID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drops++
	for key, known := range c.entries {
		if known.account == id {
			delete(c.entries, key)
		}
	}
}

// keep remembers a login that was checked after the given number of drops. Since a later drop it may not be valid any more.
func (c *loginCache) keep(user, password string, one knownLogin, now time.Time, drops int) {
	sum := c.hash(user, password)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.drops != drops {
		return
	}
	if len(c.entries) >= maxLogins {
		for key, known := range c.entries {
			if !now.Before(known.until) {
				delete(c.entries, key)
			}
		}
		if len(c.entries) >= maxLogins {
			return
		}
	}
	c.entries[sum] = one
}
