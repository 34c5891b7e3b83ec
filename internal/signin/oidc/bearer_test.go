package oidc_test

import (
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/signin/oidc"
)

// bearerIssuer signs tokens with a key that it publishes.
type bearerIssuer struct {
	*httptest.Server
	key *rsa.PrivateKey
}

func newBearerIssuer(t *testing.T) *bearerIssuer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	i := &bearerIssuer{key: key}
	mux := http.NewServeMux()
	write := func(w http.ResponseWriter, body any) {
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(body); err != nil {
			t.Error(err)
		}
	}
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		write(w, map[string]any{"issuer": i.URL, "authorization_endpoint": i.URL + "/a", "token_endpoint": i.URL + "/t", "jwks_uri": i.URL + "/keys",
			"id_token_signing_alg_values_supported": []string{"RS256", "HS256", "none"}})
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		write(w, map[string]any{"keys": []any{map[string]any{"kty": "RSA", "kid": "k1", "alg": "RS256", "use": "sig",
			"n": encoded(key.N.Bytes()), "e": encoded(big.NewInt(int64(key.E)).Bytes())}}})
	})
	i.Server = httptest.NewServer(mux)
	t.Cleanup(i.Close)
	return i
}

func encoded(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// token returns a token signed by sign.
func (i *bearerIssuer) token(algorithm string, claims map[string]any, sign func(text []byte) []byte) string {
	header, _ := json.Marshal(map[string]any{"alg": algorithm, "kid": "k1", "typ": "JWT"})
	body := map[string]any{"iss": i.URL, "sub": "1", "aud": "notifybc", "exp": time.Now().Add(time.Hour).Unix(), "iat": time.Now().Unix(), "email": "ann@example.org"}
	for name, value := range claims {
		body[name] = value
	}
	payload, _ := json.Marshal(body)
	text := encoded(header) + "." + encoded(payload)
	return text + "." + encoded(sign([]byte(text)))
}

func signedBy(t *testing.T, key *rsa.PrivateKey) func([]byte) []byte {
	return func(text []byte) []byte {
		hash := sha256.Sum256(text)
		signature, err := rsa.SignPKCS1v15(nil, key, crypto.SHA256, hash[:])
		if err != nil {
			t.Fatal(err)
		}
		return signature
	}
}

func TestBearerTokensOfTheIssuerAreValid(t *testing.T) {
	i := newBearerIssuer(t)
	own := signedBy(t, i.key)
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	b := oidc.NewBearer(i.URL+"/.well-known/openid-configuration", "notifybc", nil, clock.System{})
	for name, c := range map[string]struct {
		token string
		valid bool
	}{
		"a token for the client":     {i.token("RS256", nil, own), true},
		"an authorized party":        {i.token("RS256", map[string]any{"aud": "account", "azp": "notifybc"}, own), true},
		"another client":             {i.token("RS256", map[string]any{"aud": "other"}, own), false},
		"an expired token":           {i.token("RS256", map[string]any{"exp": 1_600_000_000}, own), false},
		"another issuer":             {i.token("RS256", map[string]any{"iss": "https://elsewhere.example"}, own), false},
		"another key":                {i.token("RS256", nil, signedBy(t, other)), false},
		"no signature":               {i.token("none", nil, func([]byte) []byte { return nil }), false},
		"the public key as a secret": {i.token("HS256", nil, func(text []byte) []byte { h := hmac.New(sha256.New, i.key.N.Bytes()); h.Write(text); return h.Sum(nil) }), false},
		"a changed body":             {i.token("RS256", nil, func(text []byte) []byte { return own(append(text, 'x')) }), false},
		"no token":                   {"x.y.z", false},
		"an empty token":             {"", false},
	} {
		claims, err := b.Verify(t.Context(), c.token)
		if (err == nil) != c.valid || c.valid && claims["email"] != "ann@example.org" {
			t.Errorf("%s: %v, %v", name, claims, err)
		}
	}
	if _, err := oidc.NewBearer(i.URL, "", nil, clock.System{}).Verify(t.Context(), i.token("RS256", map[string]any{"aud": "x"}, own)); err != nil {
		t.Errorf("a token for any client: %v", err)
	}
	if oidc.CheckIssuer("http://issuer.example") == nil || oidc.CheckIssuer(i.URL) != nil {
		t.Error("an issuer without encryption is accepted only on the same machine")
	}
}
