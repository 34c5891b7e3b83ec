// Package issuer is an OpenID provider for tests. It follows OpenID Connect Core 1.0 unless a test makes it do otherwise, and refuses clients that do not:
// those with a wrong secret, a wrong redirect_uri, or a wrong verifier of PKCE. It is written with the standard library only, so that it shares no
// mistake with the libraries of the server.
package issuer

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// The client that the issuer knows.
const (
	ClientID     = "fanfare"
	ClientSecret = "a secret: with & signs+"
)

// An Issuer is a running provider. Tests change its fields under Change.
type Issuer struct {
	URL string

	mu        sync.Mutex
	State     State
	key       *ecdsa.PrivateKey
	codes     map[string]url.Values // parameters of the authorization request, by code
	discovery int
}

// State is what an Issuer does.
type State struct {
	Claims   map[string]any // of the person who signs in, in the ID token
	UserInfo map[string]any // more claims of the person, at the endpoint for them
	Denies   string         // error that the person gets instead of a code
	Down     bool           // all requests fail
	Endless  bool           // responses do not end
	Reusable bool           // a code can be exchanged again

	Header    map[string]any                       // changes of the header of the ID token
	Token     map[string]any                       // changes of its claims; nil removes one
	Sign      func(text string) (signature []byte) // instead of the key
	Discovery map[string]any                       // changes of the discovery document
	Reply     func(reply url.Values)               // changes the reply to the browser
}

// Start starts an issuer that runs until the end of the test.
func Start(t testing.TB) *Issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i := &Issuer{key: key, codes: map[string]url.Values{}, State: State{Claims: map[string]any{"sub": "ada-1", "name": "Ada Example", "email": "ada@example.com", "email_verified": true}}}
	server := httptest.NewServer(i)
	t.Cleanup(server.Close)
	i.URL = server.URL
	return i
}

// Change changes what the issuer does.
func (i *Issuer) Change(change func(s *State)) {
	i.mu.Lock()
	defer i.mu.Unlock()
	change(&i.State)
}

// Discoveries returns how often the discovery document was requested.
func (i *Issuer) Discoveries() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.discovery
}

// ServeHTTP answers a request.
func (i *Issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch {
	case i.State.Down:
		http.Error(w, "out of order", http.StatusInternalServerError)
		return
	case i.State.Endless:
		for line := []byte(strings.Repeat(" ", 1<<16)); r.Context().Err() == nil; {
			if _, err := w.Write(line); err != nil {
				return
			}
		}
		return
	}
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		i.discovery++
		answer(w, http.StatusOK, changed(map[string]any{
			"issuer": i.URL, "authorization_endpoint": i.URL + "/authorize", "token_endpoint": i.URL + "/token", "userinfo_endpoint": i.URL + "/userinfo", "jwks_uri": i.URL + "/keys",
			"response_types_supported": []string{"code"}, "subject_types_supported": []string{"public"}, "id_token_signing_alg_values_supported": []string{"ES256"},
			"token_endpoint_auth_methods_supported": []string{"client_secret_basic"}, "authorization_response_iss_parameter_supported": true,
		}, i.State.Discovery))
	case "/keys":
		point, _ := i.key.PublicKey.Bytes() // 4, x, y
		answer(w, http.StatusOK, map[string]any{"keys": []any{map[string]any{"kty": "EC", "crv": "P-256", "kid": "k1", "alg": "ES256", "use": "sig", "x": encode(point[1:33]), "y": encode(point[33:])}}})
	case "/authorize":
		i.authorize(w, r)
	case "/token":
		i.token(w, r)
	case "/userinfo":
		if r.Header.Get("Authorization") != "Bearer opaque" {
			answer(w, http.StatusUnauthorized, map[string]any{"error": "invalid_token"})
			return
		}
		answer(w, http.StatusOK, changed(map[string]any{"sub": i.State.Claims["sub"]}, i.State.UserInfo))
	default:
		http.NotFound(w, r)
	}
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func changed(m, changes map[string]any) map[string]any {
	m = maps.Clone(m)
	for name, value := range changes {
		if value == nil {
			delete(m, name)
			continue
		}
		m[name] = value
	}
	return m
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// authorize returns the person to the client with a code, without asking them anything.
func (i *Issuer) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	back, err := url.Parse(q.Get("redirect_uri"))
	if err != nil || !back.IsAbs() || q.Get("client_id") != ClientID || q.Get("response_type") != "code" || len(q.Get("state")) < 40 || len(q.Get("nonce")) < 40 ||
		q.Get("code_challenge_method") != "S256" || len(q.Get("code_challenge")) != 43 || !strings.Contains(" "+q.Get("scope")+" ", " openid ") {
		http.Error(w, "this is not an authorization request with PKCE, state and nonce: "+r.URL.RawQuery, http.StatusBadRequest)
		return
	}
	reply := url.Values{"state": {q.Get("state")}, "iss": {i.URL}}
	if i.State.Denies != "" {
		reply.Set("error", i.State.Denies)
	} else {
		code := rand.Text()
		i.codes[code] = q
		reply.Set("code", code)
	}
	if i.State.Reply != nil {
		i.State.Reply(reply)
	}
	back.RawQuery = reply.Encode()
	http.Redirect(w, r, back.String(), http.StatusFound) //nolint:gosec // the address is that of the client in the test
}

// token exchanges a code, once.
func (i *Issuer) token(w http.ResponseWriter, r *http.Request) {
	id, secret, _ := r.BasicAuth()
	id, _ = url.QueryUnescape(id) // RFC 6749, section 2.3.1
	secret, _ = url.QueryUnescape(secret)
	code := r.PostFormValue("code")
	q := i.codes[code]
	if !i.State.Reusable {
		delete(i.codes, code)
	}
	challenge := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	switch {
	case r.Method != http.MethodPost || id != ClientID || secret != ClientSecret:
		answer(w, http.StatusUnauthorized, map[string]any{"error": "invalid_client"})
		return
	case q == nil || r.PostFormValue("grant_type") != "authorization_code" || r.PostFormValue("redirect_uri") != q.Get("redirect_uri") || encode(challenge[:]) != q.Get("code_challenge"):
		answer(w, http.StatusBadRequest, map[string]any{"error": "invalid_grant"})
		return
	}
	now := time.Now()
	token := changed(map[string]any{"iss": i.URL, "aud": ClientID, "nonce": q.Get("nonce"), "iat": now.Unix(), "exp": now.Add(time.Minute).Unix()}, i.State.Claims)
	header := changed(map[string]any{"alg": "ES256", "kid": "k1", "typ": "JWT"}, i.State.Header)
	answer(w, http.StatusOK, map[string]any{"access_token": "opaque", "token_type": "Bearer", "expires_in": 60, "id_token": i.jwt(header, changed(token, i.State.Token))})
}

func (i *Issuer) jwt(header, body map[string]any) string {
	h, _ := json.Marshal(header)
	b, _ := json.Marshal(body)
	text := encode(h) + "." + encode(b)
	if i.State.Sign != nil {
		return text + "." + encode(i.State.Sign(text))
	}
	hash := sha256.Sum256([]byte(text))
	r, s, err := ecdsa.Sign(rand.Reader, i.key, hash[:])
	if err != nil {
		panic(err)
	}
	return text + "." + encode(append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...))
}

// Visit goes to the issuer as a browser does, and returns the address to which it sends the browser.
func (i *Issuer) Visit(t testing.TB, address string) *url.URL {
	t.Helper()
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	back, err := response.Location()
	if err != nil {
		t.Fatalf("the issuer responds with %s: %v", response.Status, err)
	}
	return back
}
