// Package token makes and reads the tokens with which scripts in a browser open a mailbox. The backend of a customer asks the API for a token
// of one account and hands it to the page of the person.
//
// State. None: a token contains the account, the origins of the pages that may use it, and the time of its end. It is encrypted and
// authenticated with a key of the server, so that nobody else can read or change it. It cannot be revoked before its end, except by
// disabling the account.
//
// Failure. An error does not say why a token is wrong, except that it has expired.
package token

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/mail/linktoken"
	"fanfare.dev/fanfare/internal/mailbox"
)

// purpose is the purpose of these tokens. Those of links and forms have other ones.
const purpose linktoken.Purpose = 'J'

// Limits of a token.
const (
	DefaultLifetime = time.Hour
	MaxLifetime     = 24 * time.Hour
	MinLifetime     = time.Minute
	MaxOrigins      = 10
	maxOriginBytes  = 200
)

// Claims are the contents of a token.
type Claims struct {
	Account mailbox.AccountID
	Service string
	Origins []string  // of pages, such as https://app.example.org; nil: only programs without an origin
	Until   time.Time // in seconds
}

// Allows reports whether a page of an origin may use the token. Programs that are no browsers have no origin.
func (c *Claims) Allows(origin string) bool {
	return origin == "" || slices.Contains(c.Origins, origin)
}

// A Key makes and reads tokens. It is safe for concurrent use.
type Key struct{ seals *linktoken.Key }

// New returns a key.
func New(seals *linktoken.Key) *Key { return &Key{seals} }

// payload is the encoded form of Claims, without the time.
type payload struct {
	Account uint32   `json:"a"`
	Service string   `json:"s"`
	Origins []string `json:"o,omitempty"`
	Until   int64    `json:"u"`
}

// Mint makes a token. It refuses origins that are not valid, and lifetimes out of bounds.
func (k *Key) Mint(c Claims, now time.Time) (string, error) {
	if life := c.Until.Sub(now); life < MinLifetime || life > MaxLifetime {
		return "", &fanfare.Error{Code: fanfare.Invalid, Pointer: "/lifetime", Message: fmt.Sprintf("a token is valid for %v to %v", MinLifetime, MaxLifetime), Hint: "use a duration such as 1h, and ask for a new token before it ends"}
	}
	if len(c.Origins) > MaxOrigins {
		return "", &fanfare.Error{Code: fanfare.Invalid, Pointer: "/origins", Message: fmt.Sprintf("a token has at most %d origins", MaxOrigins), Hint: "name only the origins of pages that show the mailbox"}
	}
	for i, origin := range c.Origins {
		u, err := url.Parse(origin)
		if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.Scheme+"://"+u.Host != origin || len(origin) > maxOriginBytes {
			return "", &fanfare.Error{Code: fanfare.Invalid, Pointer: fmt.Sprintf("/origins/%d", i), Message: fmt.Sprintf("%.80q is not an origin", origin), Hint: "use a scheme and a host, such as https://app.example.org"}
		}
	}
	text, err := json.Marshal(payload{uint32(c.Account), c.Service, c.Origins, c.Until.Unix()})
	if err != nil {
		return "", err
	}
	if len(text) > linktoken.MaxPayloadBytes {
		return "", &fanfare.Error{Code: fanfare.Invalid, Pointer: "/origins", Message: "the origins are too long for a token", Hint: "use fewer origins"}
	}
	return k.seals.Seal(purpose, c.Until, text)
}

// Open reads a token. For an expired one, it returns the claims with an error, so that a page can learn that it needs a new token.
func (k *Key) Open(token string, now time.Time) (Claims, error) {
	text, err := k.seals.Open(purpose, token, now)
	var p payload
	if text == nil || json.Unmarshal(text, &p) != nil {
		return Claims{}, &fanfare.Error{Code: fanfare.Unauthenticated, Message: "the token is not valid", Hint: "ask the API for a new token"}
	}
	c := Claims{mailbox.AccountID(p.Account), p.Service, p.Origins, time.Unix(p.Until, 0).UTC()}
	if errors.Is(err, linktoken.ErrExpired) {
		return c, &fanfare.Error{Code: fanfare.Unauthenticated, Message: "the token has expired", Hint: "ask the API for a new token"}
	}
	return c, err
}
