package token

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

const (
	service = "c5d4bd0c-8e5f-4d1f-a8d6-1b0f4f0d1a11"
	secret  = "8a1f3c52-0b9c-4f5e-9d55-6a2f7f1c2b3d"
)

var now = time.Unix(1_800_000_000, 0)

// sign makes a token with the standard library only.
func sign(header, claims, secret string) string {
	encode := base64.RawURLEncoding.EncodeToString
	text := encode([]byte(header)) + "." + encode([]byte(claims))
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(text))
	return text + "." + encode(mac.Sum(nil))
}

const header = `{"typ":"JWT","alg":"HS256"}`

func claims(issuer string, at int64) string { return fmt.Sprintf(`{"iss":%q,"iat":%d}`, issuer, at) }

func TestTokenIsVerifiedWithEachKey(t *testing.T) {
	other := Key{Secret: []byte("00000000-0000-4000-8000-000000000000")}
	good, revoked := Key{Secret: []byte(secret)}, Key{Secret: []byte(secret), Revoked: true}
	for name, c := range map[string]struct {
		text string
		keys []Key
		want error
		at   int
	}{
		"the only key":             {sign(header, claims(service, now.Unix()), secret), []Key{good}, nil, 0},
		"the last key":             {sign(header, claims(service, now.Unix()), secret), []Key{other, other, good}, nil, 2},
		"a revoked and a good one": {sign(header, claims(service, now.Unix()), secret), []Key{revoked, good}, nil, 1},
		"upper case":               {sign(header, claims(strings.ToUpper(service), now.Unix()), secret), []Key{good}, nil, 0},
		"claims in another order":  {sign(`{"alg":"HS256"}`, fmt.Sprintf(`{"iat":%d,"iss":%q}`, now.Unix(), service), secret), []Key{good}, nil, 0},
		"30 seconds old":           {sign(header, claims(service, now.Unix()-30), secret), []Key{good}, nil, 0},
		"30 seconds ahead":         {sign(header, claims(service, now.Unix()+30), secret), []Key{good}, nil, 0},
		"31 seconds old":           {sign(header, claims(service, now.Unix()-31), secret), []Key{good}, ErrClock, 0},
		"31 seconds ahead":         {sign(header, claims(service, now.Unix()+31), secret), []Key{good}, ErrClock, 0},
		"no time":                  {sign(header, fmt.Sprintf(`{"iss":%q}`, service), secret), []Key{good}, ErrClock, 0},
		"another key":              {sign(header, claims(service, now.Unix()), secret), []Key{other}, ErrNoKey, 0},
		"no secret":                {sign(header, claims(service, now.Unix()), ""), []Key{{}}, ErrNoKey, 0},
		"a revoked key":            {sign(header, claims(service, now.Unix()), secret), []Key{other, revoked}, ErrRevoked, 0},
		"no issuer":                {sign(header, `{"iat":1}`, secret), nil, ErrNoIssuer, 0},
		"a null issuer":            {sign(header, `{"iss":null}`, secret), nil, ErrNoIssuer, 0},
		"an issuer that is a name": {sign(header, claims("passports", now.Unix()), secret), nil, ErrIssuer, 0},
		"an issuer as a number":    {sign(header, `{"iss":7}`, secret), nil, ErrIssuer, 0},
		"an issuer in braces":      {sign(header, claims("{"+service+"}", now.Unix()), secret), nil, ErrIssuer, 0},
		"algorithm none":           {sign(`{"typ":"JWT","alg":"none"}`, claims(service, now.Unix()), secret), nil, ErrAlgorithm, 0},
		"algorithm RS256":          {sign(`{"typ":"JWT","alg":"RS256"}`, claims("not even a service", now.Unix()), secret), nil, ErrAlgorithm, 0},
		"algorithm HS512":          {sign(`{"typ":"JWT","alg":"HS512"}`, claims(service, now.Unix()), secret), nil, ErrAlgorithm, 0},
		"no JWT":                   {"something", nil, ErrInvalid, 0},
		"nothing":                  {"", nil, ErrInvalid, 0},
		"too long":                 {sign(header, claims(service, 1), strings.Repeat("a", 10)) + strings.Repeat("a", maxBytes), nil, ErrInvalid, 0},
	} {
		t.Run(name, func(t *testing.T) {
			parsed, err := Parse(c.text)
			at := 0
			if err == nil {
				if parsed.Service() != service {
					t.Errorf("the service is %s", parsed.Service())
				}
				at, err = parsed.Verify(c.keys, now)
			}
			if !errors.Is(err, c.want) || at != c.at {
				t.Errorf("got %d, %v, want %d, %v", at, err, c.at, c.want)
			}
		})
	}
}

func TestChangedTokenIsRefused(t *testing.T) {
	text := sign(header, claims(service, now.Unix()), secret)
	for i := range text {
		changed := []byte(text)
		if changed[i] == 'A' {
			changed[i] = 'B'
		} else {
			changed[i] = 'A'
		}
		parsed, err := Parse(string(changed))
		if err != nil {
			continue
		}
		if _, err := parsed.Verify([]Key{{Secret: []byte(secret)}}, now); err == nil && !sameBytes(text, string(changed)) {
			t.Fatalf("a change of byte %d is accepted", i)
		}
	}
}

// sameBytes reports whether two texts differ only in the unused bits of their last character.
func sameBytes(a, b string) bool {
	x, y := strings.Split(a, "."), strings.Split(b, ".")
	for i := range x {
		p, _ := base64.RawURLEncoding.DecodeString(x[i])
		q, _ := base64.RawURLEncoding.DecodeString(y[i])
		if string(p) != string(q) {
			return false
		}
	}
	return true
}

func FuzzToken(f *testing.F) {
	f.Add(sign(header, claims(service, now.Unix()), secret))
	f.Add(sign(`{"alg":"none"}`, `{}`, ""))
	f.Add("..")
	f.Add(`{"payload":"e30","signatures":[{"protected":"eyJhbGciOiJIUzI1NiJ9","signature":""}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		parsed, err := Parse(text)
		if err != nil {
			return
		}
		if _, err := parsed.Verify([]Key{{Secret: []byte("a secret that no token of the corpus has")}}, now); err == nil {
			t.Error("a token is accepted without its secret")
		}
	})
}
