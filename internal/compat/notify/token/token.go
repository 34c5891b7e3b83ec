// Package token checks the tokens with which clients of GOV.UK Notify sign their requests: a JWT (RFC 7519)
// with HS256, the id of the service as issuer, and the time of issue. The signature is compared with each key of
// the service.
//
// It keeps no state. Its errors have the messages of GOV.UK Notify.
package token

import (
	"errors"
	"math"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/google/uuid"
)

// Leeway is how much the clock of a client may differ.
const Leeway = 30 * time.Second

// maxBytes is the maximum length of a token.
const maxBytes = 4096

// A Problem is the reason for which a token is refused, in the words of GOV.UK Notify.
type Problem string

// Error returns the message for the client.
func (p Problem) Error() string { return string(p) }

// The problems of tokens.
const (
	ErrInvalid   Problem = "Invalid token: token is not valid"
	ErrAlgorithm Problem = "Invalid token: algorithm used is not HS256"
	ErrNoIssuer  Problem = "Invalid token: iss field not provided"
	ErrIssuer    Problem = "Invalid token: service id is not the right data type"
	ErrClock     Problem = "Error: Your system clock must be accurate to within 30 seconds"
	ErrNoKey     Problem = "Invalid token: API key not found"
	ErrRevoked   Problem = "Invalid token: API key revoked"
)

// A Token is a token whose signature is not verified yet.
type Token struct {
	signed  *jwt.JSONWebToken
	service string
	issued  float64 // seconds; NaN: absent
}

// A Key verifies signatures.
type Key struct {
	Secret  []byte
	Revoked bool
}

// Parse reads a token. It refuses every algorithm except HS256 before anything else.
func Parse(text string) (*Token, error) {
	if len(text) > maxBytes {
		return nil, ErrInvalid
	}
	signed, err := jwt.ParseSigned(text, []jose.SignatureAlgorithm{jose.HS256})
	if unexpected, ok := errors.AsType[*jose.ErrUnexpectedSignatureAlgorithm](err); ok && unexpected != nil {
		return nil, ErrAlgorithm
	}
	if err != nil {
		return nil, ErrInvalid
	}
	var claims struct {
		Issuer *any     `json:"iss"`
		Issued *float64 `json:"iat"`
	}
	if err := signed.UnsafeClaimsWithoutVerification(&claims); err != nil {
		return nil, ErrInvalid
	}
	if claims.Issuer == nil || *claims.Issuer == nil {
		return nil, ErrNoIssuer
	}
	issuer, _ := (*claims.Issuer).(string)
	service, err := uuid.Parse(issuer)
	if err != nil || len(issuer) != len(service.String()) {
		return nil, ErrIssuer
	}
	t := &Token{signed: signed, service: service.String(), issued: math.NaN()}
	if claims.Issued != nil {
		t.issued = *claims.Issued
	}
	return t, nil
}

// Service returns the id of the service that the token names, in lower case.
func (t *Token) Service() string { return t.service }

// Verify returns the position of the key that signed the token. All keys are tried. A signature of a revoked key
// is an error, unless a valid key has the same secret.
func (t *Token) Verify(keys []Key, now time.Time) (int, error) {
	if age := float64(now.UnixMilli())/1000 - t.issued; !(math.Abs(age) <= Leeway.Seconds()) { // NaN is refused, too
		return 0, ErrClock
	}
	found, revoked := -1, false
	for i := range keys {
		if len(keys[i].Secret) == 0 || t.signed.Claims(keys[i].Secret, &struct{}{}) != nil {
			continue // the library compares signatures in constant time
		}
		if keys[i].Revoked {
			revoked = true
		} else if found < 0 {
			found = i
		}
	}
	switch {
	case found >= 0:
		return found, nil
	case revoked:
		return 0, ErrRevoked
	}
	return 0, ErrNoKey
}

// Bearer returns the token of an Authorization header; false if the scheme is another one.
func Bearer(header string) (text string, ok bool) {
	scheme, text, _ := strings.Cut(strings.TrimSpace(header), " ")
	return strings.TrimSpace(text), strings.EqualFold(scheme, "Bearer")
}
