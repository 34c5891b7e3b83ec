package cluster

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"fanfare.dev/fanfare"
)

// A Key is the cluster key, which all nodes have. It seals the server keys in the database, and proves that a request was
// forwarded by a node, and who is at the other end of a link or of a route between embedded NATS servers.
type Key struct {
	seal    cipher.AEAD
	forward []byte
	link    []byte
	routes  []byte
}

// NewKey derives the keys from the text of the cluster key.
func NewKey(text string) (*Key, error) {
	derive := func(purpose string) ([]byte, error) {
		return hkdf.Key(sha256.New, []byte(text), nil, "fanfare cluster key: "+purpose, 32)
	}
	seal, err := derive("server keys")
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(seal)
	if err != nil {
		return nil, err
	}
	k := &Key{}
	if k.seal, err = cipher.NewGCM(block); err != nil {
		return nil, err
	}
	if k.forward, err = derive("forwarded requests"); err != nil {
		return nil, err
	}
	if k.link, err = derive("links"); err != nil {
		return nil, err
	}
	k.routes, err = derive("NATS routes")
	return k, err
}

// RouteSecret returns the secret with which the embedded NATS servers of the nodes authenticate to each other. It differs
// for other routes: a server that joined once with other routes would count for the quorum for ever.
func (k *Key) RouteSecret(routes []string) string {
	h := hmac.New(sha256.New, k.routes)
	for _, route := range slices.Sorted(slices.Values(routes)) {
		fmt.Fprintf(h, "%s\n", route)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Seal encrypts a server key.
func (k *Key) Seal(name string, key []byte) []byte {
	nonce := make([]byte, k.seal.NonceSize())
	_, _ = rand.Read(nonce) // it never fails
	return k.seal.Seal(nonce, nonce, key, []byte(name))
}

// Open decrypts a server key.
func (k *Key) Open(name string, sealed []byte) ([]byte, error) {
	if n := k.seal.NonceSize(); len(sealed) >= n {
		if key, err := k.seal.Open(nil, sealed[:n], sealed[n:], []byte(name)); err == nil {
			return key, nil
		}
	}
	return nil, &fanfare.Error{Code: fanfare.Conflict, Pointer: "/cluster_key_file", Message: fmt.Sprintf("the cluster key cannot decrypt %s in the database: the other nodes use a different cluster key", name),
		Hint: "copy the key file from another node"}
}

// forwardedHeader proves that a node forwarded a request, and has the address of the client.
const forwardedHeader = "Fanfare-Forwarded"

// forwardedFor is how much the clocks of two nodes may differ.
const forwardedFor = time.Minute

// surfaceHeader has the name of the API that a forwarded request is for; without it, it is for the API of Fanfare. Such a request also has
// tlsHeader if the client used TLS, with its certificate if it showed one.
const (
	surfaceHeader = "Fanfare-Surface"
	tlsHeader     = "Fanfare-Client-TLS"
	tlsPlain      = "yes" // TLS without a certificate of the client
)

// sign marks a request as forwarded by this node for a client.
func (k *Key) sign(r *http.Request, client string, now time.Time) {
	at := strconv.FormatInt(now.Unix(), 10)
	r.Header.Set(forwardedHeader, at+" "+client+" "+hex.EncodeToString(k.mac(r, at, client)))
}

// mark names the API that a request is for, before it is signed. A client cannot name one.
func mark(r *http.Request, surface string, state *tls.ConnectionState) {
	r.Header.Del(surfaceHeader)
	r.Header.Del(tlsHeader)
	if surface == "" {
		return
	}
	r.Header.Set(surfaceHeader, surface)
	switch {
	case state == nil:
	case len(state.VerifiedChains) > 0:
		r.Header.Set(tlsHeader, base64.StdEncoding.EncodeToString(state.VerifiedChains[0][0].Raw))
	default:
		r.Header.Set(tlsHeader, tlsPlain)
	}
}

// clientTLS returns the connection of the client of a forwarded request, as far as it was passed on: with its certificate, which the other node
// has verified. It is nil without TLS.
func clientTLS(r *http.Request) *tls.ConnectionState {
	text := r.Header.Get(tlsHeader)
	if text == "" {
		return nil
	}
	der, _ := base64.StdEncoding.DecodeString(text)
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return &tls.ConnectionState{}
	}
	return &tls.ConnectionState{PeerCertificates: []*x509.Certificate{certificate}, VerifiedChains: [][]*x509.Certificate{{certificate}}}
}

func (k *Key) mac(r *http.Request, at, client string) []byte {
	h := hmac.New(sha256.New, k.forward)
	fmt.Fprintf(h, "%s\n%s\n%s\n%s", r.Method, r.URL.RequestURI(), at, client)
	if surface := r.Header.Get(surfaceHeader); surface != "" {
		fmt.Fprintf(h, "\n%s\n%s", surface, r.Header.Get(tlsHeader))
	}
	return h.Sum(nil)
}

// forwarded reports whether a request has the header of forwarded requests.
func forwarded(r *http.Request) bool { return r.Header.Get(forwardedHeader) != "" }

// Trust passes requests to the API, and those that another node forwarded for another API to that one. A request that another node forwarded
// gets the address of its client.
func (k *Key) Trust(api http.Handler, surfaces map[string]http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		to := api
		if text := r.Header.Get(forwardedHeader); text != "" {
			client, remote, ok := k.verify(r, text, time.Now())
			if ok && remote {
				r.RemoteAddr = client
			}
			if surface, known := surfaces[r.Header.Get(surfaceHeader)]; ok && known {
				to, r.TLS = surface, clientTLS(r)
			}
			r.Header.Del(forwardedHeader)
		}
		r.Header.Del(surfaceHeader)
		r.Header.Del(tlsHeader)
		to.ServeHTTP(w, r)
	})
}

// verify returns the address of the client of a request that another node has forwarded, if ok. A client on the machine of the other node is
// not on this machine: it keeps the address of that node, and remote is false.
func (k *Key) verify(r *http.Request, text string, now time.Time) (client string, remote, ok bool) {
	parts := strings.Split(text, " ")
	if len(parts) != 3 {
		return "", false, false
	}
	at, err := strconv.ParseInt(parts[0], 10, 64)
	mac, bad := hex.DecodeString(parts[2])
	if err != nil || bad != nil || !hmac.Equal(mac, k.mac(r, parts[0], parts[1])) || now.Sub(time.Unix(at, 0)).Abs() > forwardedFor {
		return "", false, false
	}
	host, _, err := net.SplitHostPort(parts[1])
	if err != nil {
		return "", false, true
	}
	ip, err := netip.ParseAddr(host)
	return parts[1], err == nil && !ip.Unmap().IsLoopback(), true
}
