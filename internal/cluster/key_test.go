package cluster

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare"
)

func keyOf(t *testing.T, text string) *Key {
	t.Helper()
	k, err := NewKey(text)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestASealedKeyOpensWithTheSameClusterKeyAndName(t *testing.T) {
	k, secret := keyOf(t, "one cluster key"), []byte("a secret of the server")
	sealed := k.Seal("link.key", secret)
	if got, err := k.Open("link.key", sealed); err != nil || !bytes.Equal(got, secret) {
		t.Errorf("got %q, %v", got, err)
	}
	if bytes.Contains(sealed, secret) || bytes.Equal(sealed, k.Seal("link.key", secret)) {
		t.Error("the key is not encrypted with a nonce")
	}
	changed := bytes.Clone(sealed)
	changed[len(changed)-1] ^= 1
	for name, open := range map[string]func() ([]byte, error){
		"another cluster key": func() ([]byte, error) { return keyOf(t, "another").Open("link.key", sealed) },
		"another name":        func() ([]byte, error) { return k.Open("webhook.key", sealed) },
		"a changed byte":      func() ([]byte, error) { return k.Open("link.key", changed) },
		"too short":           func() ([]byte, error) { return k.Open("link.key", sealed[:5]) },
		"nothing":             func() ([]byte, error) { return k.Open("link.key", nil) },
	} {
		if _, err := open(); fanfare.CodeOf(err) != fanfare.Conflict || !strings.Contains(err.Error(), "cluster key") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Only a node with the cluster key can say which client a request comes from, for this request, for a minute.
func TestOnlyANodeCanNameTheClient(t *testing.T) {
	k := keyOf(t, "one cluster key")
	const node = "10.0.0.2:700"
	seen := func(r *http.Request) (client string) {
		r.RemoteAddr = node
		k.Trust(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			client = r.RemoteAddr
			if forwarded(r) {
				t.Error("the API sees the header")
			}
		}), nil).ServeHTTP(httptest.NewRecorder(), r)
		return client
	}
	request := func(by *Key, client string, at time.Time, change func(*http.Request)) *http.Request {
		r := httptest.NewRequest("POST", "/v1/events?wait=1s", http.NoBody)
		by.sign(r, client, at)
		if change != nil {
			change(r)
		}
		return r
	}
	now := time.Now()
	if got := seen(request(k, "192.0.2.7:99", now, nil)); got != "192.0.2.7:99" {
		t.Errorf("the client of a forwarded request is %s", got)
	}
	for name, r := range map[string]*http.Request{
		"another key":      request(keyOf(t, "another"), "192.0.2.7:99", now, nil),
		"an old request":   request(k, "192.0.2.7:99", now.Add(-2*time.Minute), nil),
		"a future request": request(k, "192.0.2.7:99", now.Add(2*time.Minute), nil),
		"another path":     request(k, "192.0.2.7:99", now, func(r *http.Request) { r.URL.Path = "/v1/apply" }),
		"another method":   request(k, "192.0.2.7:99", now, func(r *http.Request) { r.Method = "DELETE" }),
		"another client": request(k, "192.0.2.7:99", now, func(r *http.Request) {
			r.Header.Set(forwardedHeader, strings.Replace(r.Header.Get(forwardedHeader), "192.0.2.7", "192.0.2.8", 1))
		}),
		"no signature":           request(k, "192.0.2.7:99", now, func(r *http.Request) { r.Header.Set(forwardedHeader, "192.0.2.7") }),
		"not an address":         request(k, "client", now, nil),
		"the machine of a node":  request(k, "127.0.0.1:99", now, nil),
		"the same, mapped to v6": request(k, "[::ffff:127.0.0.1]:99", now, nil),
	} {
		if got := seen(r); got != node {
			t.Errorf("%s: the client is %s", name, got)
		}
	}
}

// The signature covers the name of another API, and the certificate that its client has shown.
func TestTheSignatureCoversTheAPIAndTheCertificate(t *testing.T) {
	k := keyOf(t, "one cluster key")
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "robot"}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	seen := func(state *tls.ConnectionState, change func(*http.Request)) (name string) {
		r := httptest.NewRequest("GET", "/api/x", http.NoBody)
		mark(r, "other", state)
		k.sign(r, "192.0.2.7:99", time.Now())
		if change != nil {
			change(r)
		}
		say := func(what string) http.Handler {
			return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				switch {
				case r.TLS == nil:
					name = what + " without TLS"
				case len(r.TLS.VerifiedChains) == 0:
					name = what + " with TLS"
				default:
					name = what + " " + r.TLS.VerifiedChains[0][0].Subject.CommonName
				}
			})
		}
		k.Trust(say("main"), map[string]http.Handler{"other": say("other")}).ServeHTTP(httptest.NewRecorder(), r)
		return name
	}
	shown := &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{leaf}}}
	for _, c := range []struct {
		want   string
		state  *tls.ConnectionState
		change func(*http.Request)
	}{
		{"other without TLS", nil, nil},
		{"other with TLS", &tls.ConnectionState{}, nil},
		{"other robot", shown, nil},
		{"main without TLS", nil, func(r *http.Request) { r.Header.Del(forwardedHeader) }},
		{"main without TLS", nil, func(r *http.Request) { r.Header.Set(tlsHeader, base64.StdEncoding.EncodeToString(der)) }},
		{"main without TLS", shown, func(r *http.Request) { r.Header.Set(surfaceHeader, "third") }},
		{"main without TLS", shown, func(r *http.Request) { r.Header.Del(surfaceHeader) }},
	} {
		if got := seen(c.state, c.change); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}

// Servers with other routes cannot join; the order of the routes does not matter.
func TestTheRouteSecretDependsOnTheRoutes(t *testing.T) {
	k := keyOf(t, "one cluster key")
	secret := k.RouteSecret([]string{"a:1", "b:1", "c:1"})
	if k.RouteSecret([]string{"c:1", "a:1", "b:1"}) != secret {
		t.Error("the order of the routes changes the secret")
	}
	for _, other := range [][]string{{"a:1", "b:1"}, {"a:1", "b:1", "c:1", "d:1"}, {"a:1", "b:1", "d:1"}} {
		if k.RouteSecret(other) == secret {
			t.Errorf("%v has the same secret", other)
		}
	}
	if keyOf(t, "another cluster key").RouteSecret([]string{"a:1", "b:1", "c:1"}) == secret {
		t.Error("another key has the same secret")
	}
}
