package cluster

import (
	"bufio"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/httpapi/httpio"
	"fanfare.dev/fanfare/internal/httpapi/problem"
)

// A link is a connection from a node to the node that leads. Both sides prove that they have the cluster key:
//
//	node:   GET /cluster/link, Upgrade, name, version, nonce A, proof of the request over nonce A and the name
//	leader: 101 Switching Protocols, nonce B, proof of the leader over both nonces and the name
//	node:   proof of the node over the same
//
// The frames of the protocol named in Upgrade follow. The proof of the request does not authenticate the node, since it can
// be repeated. It keeps clients without the key from occupying handshakes.

const (
	// LinkPath is the path of the request that opens a link.
	LinkPath = "/cluster/link"

	nodeHeader    = "Fanfare-Node"
	versionHeader = "Fanfare-Version"
	nonceHeader   = "Fanfare-Nonce"
	proofHeader   = "Fanfare-Proof"

	nonceSize = 32
	linkLimit = 5 * time.Second // for the handshake
)

// proof returns the proof of one side (request, leader or node) that it has the cluster key.
func (k *Key) proof(side string, nonces []byte, name string) []byte {
	h := hmac.New(sha256.New, k.link)
	fmt.Fprintf(h, "%s\n%x\n%s", side, nonces, name)
	return h.Sum(nil)
}

// LinkOptions describe the node that opens a link.
type LinkOptions struct {
	Name, Version string
	Protocol      string
	Key           *Key
	Roots         *x509.CertPool // for the certificates of the other nodes; nil: those of the system
}

// OpenLink opens a link to the node that leads, at the URL of its API.
func OpenLink(ctx context.Context, leader string, o *LinkOptions) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, linkLimit)
	defer cancel()
	to, err := url.Parse(leader)
	if err != nil {
		return nil, fmt.Errorf("the URL of the leader: %w", err)
	}
	conn, err := dialNode(ctx, to, o.Roots)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() }) // ends the handshake
	link, err := introduce(conn, to, o)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = conn.Close() // the handshake failed
		return nil, err
	}
	return link, nil
}

func dialNode(ctx context.Context, to *url.URL, roots *x509.CertPool) (net.Conn, error) {
	host := to.Host
	if to.Port() == "" {
		host = net.JoinHostPort(to.Hostname(), map[bool]string{true: "443", false: "80"}[to.Scheme == "https"])
	}
	dialer := net.Dialer{Timeout: dialLimit, KeepAlive: 5 * time.Second}
	if to.Scheme == "https" {
		secured := tls.Dialer{NetDialer: &dialer, Config: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}}
		return secured.DialContext(ctx, "tcp", host)
	}
	return dialer.DialContext(ctx, "tcp", host)
}

// introduce is the side of the node in the handshake.
func introduce(conn net.Conn, to *url.URL, o *LinkOptions) (net.Conn, error) {
	nonces := make([]byte, nonceSize, 2*nonceSize)
	_, _ = rand.Read(nonces) // it never fails
	request := &http.Request{Method: http.MethodGet, URL: &url.URL{Scheme: to.Scheme, Host: to.Host, Path: LinkPath}, Host: to.Host, Header: http.Header{
		"Connection": {"Upgrade"}, "Upgrade": {o.Protocol}, nodeHeader: {o.Name}, versionHeader: {o.Version}, nonceHeader: {hex.EncodeToString(nonces)},
		proofHeader: {hex.EncodeToString(o.Key.proof("request", nonces, o.Name))},
	}}
	if err := request.Write(conn); err != nil {
		return nil, err
	}
	in := bufio.NewReader(conn)
	response, err := http.ReadResponse(in, request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusSwitchingProtocols {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 4096)) // as much as can be read
		_ = response.Body.Close()                                  // an error has no effect
		return nil, refusal(response.Status, text)
	}
	nonce, err := hex.DecodeString(response.Header.Get(nonceHeader))
	proof, wrong := hex.DecodeString(response.Header.Get(proofHeader))
	nonces = append(nonces, nonce...)
	if err != nil || wrong != nil || len(nonce) != nonceSize || !hmac.Equal(proof, o.Key.proof("leader", nonces, o.Name)) {
		return nil, &fanfare.Error{Code: fanfare.Unauthenticated, Message: "the leader did not prove that it has the cluster key", Hint: "check that cluster_key_file is the same on all nodes"}
	}
	if _, err := conn.Write(o.Key.proof("node", nonces, o.Name)); err != nil {
		return nil, err
	}
	return &bufferedConn{conn, in}, nil
}

// refusal returns the error of a link that a node has refused with a problem document. It is the same for each attempt,
// so it does not contain the id of the request.
func refusal(status string, body []byte) error {
	var p struct{ Detail, Hint string }
	if err := json.Unmarshal(body, &p); err != nil || p.Detail == "" {
		return fmt.Errorf("the node refused the link: %s", status)
	}
	return fmt.Errorf("the node refused the link: %s (%s)", p.Detail, p.Hint)
}

// maxHandshakes is the number of handshakes at the same time.
const maxHandshakes = 32

// errHandshakes is the error of a handshake above this number.
var errHandshakes error = &fanfare.Error{Code: fanfare.Unavailable, Message: "too many nodes are opening links at the same time", Hint: "try again", RetryAfter: time.Second}

// An Attach runs a link to a node until it ends.
type Attach func(conn net.Conn, name, version string)

// Links accepts links: it authenticates nodes, and passes their connections to the Attach of their protocol. It passes all
// other requests to next.
func (k *Key) Links(protocols map[string]Attach, next http.Handler) http.Handler {
	handshakes := make(chan struct{}, maxHandshakes)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != LinkPath {
			next.ServeHTTP(w, r)
			return
		}
		protocol := r.Header.Get("Upgrade")
		var conn net.Conn
		err := k.checkRequest(r)
		if err == nil {
			err = errHandshakes
			select {
			case handshakes <- struct{}{}:
				conn, err = k.accept(w, r, protocol, protocols[protocol] != nil)
				<-handshakes
			default:
			}
		}
		if e, ok := errors.AsType[*fanfare.Error](err); ok {
			problem.Of(e, httpio.RequestID(r)).Write(w)
			return
		}
		if err == nil {
			protocols[protocol](conn, r.Header.Get(nodeHeader), r.Header.Get(versionHeader))
		}
	})
}

// checkRequest checks that the client which requests a link has the cluster key.
func (k *Key) checkRequest(r *http.Request) error {
	nonce, err := hex.DecodeString(r.Header.Get(nonceHeader))
	proof, wrong := hex.DecodeString(r.Header.Get(proofHeader))
	if err != nil || wrong != nil || !hmac.Equal(proof, k.proof("request", nonce, r.Header.Get(nodeHeader))) {
		return &fanfare.Error{Code: fanfare.Unauthenticated, Message: "the request for a link does not prove that its sender has the cluster key", Hint: "check that cluster_key_file is the same on all nodes"}
	}
	return nil
}

// accept is the side of the leader in the handshake. A *fanfare.Error is the response to the request; after any other error, the
// connection is closed.
func (k *Key) accept(w http.ResponseWriter, r *http.Request, protocol string, known bool) (net.Conn, error) {
	nonces, err := hex.DecodeString(r.Header.Get(nonceHeader))
	name := r.Header.Get(nodeHeader)
	switch {
	case !known:
		return nil, &fanfare.Error{Code: fanfare.Invalid, Message: fmt.Sprintf("this node does not support the link protocol %q", protocol), Hint: "upgrade the node with the older version"}
	case err != nil || len(nonces) != nonceSize || name == "":
		return nil, &fanfare.Error{Code: fanfare.Invalid, Message: "a request for a link must contain a nonce and the name of a node", Hint: "only nodes of a cluster send such requests"}
	}
	nonces = append(nonces, make([]byte, nonceSize)...)
	_, _ = rand.Read(nonces[nonceSize:]) // it never fails
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, &fanfare.Error{Code: fanfare.Invalid, Message: "a link needs HTTP/1.1", Hint: "set node_url to a URL that reaches the node directly, or through a proxy that forwards the Upgrade header"}
	}
	_ = conn.SetDeadline(time.Now().Add(linkLimit)) // without support, the peer can only hold this connection
	_, err = fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n%s: %x\r\n%s: %x\r\n\r\n",
		protocol, nonceHeader, nonces[nonceSize:], proofHeader, k.proof("leader", nonces, name))
	proof := make([]byte, sha256.Size)
	if err == nil {
		_, err = io.ReadFull(buffered, proof)
	}
	if err == nil && !hmac.Equal(proof, k.proof("node", nonces, name)) {
		err = fmt.Errorf("node %q does not have the cluster key", name)
	}
	if err != nil {
		_ = conn.Close() // the handshake failed
		return nil, err
	}
	_ = conn.SetDeadline(time.Time{}) // as above
	return &bufferedConn{conn, buffered.Reader}, nil
}

// bufferedConn is a connection of which some bytes were read ahead.
type bufferedConn struct {
	net.Conn
	in *bufio.Reader
}

func (c *bufferedConn) Read(p []byte) (int, error) { return c.in.Read(p) }
