package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

var (
	loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	secret   = Secret(bytes.Repeat([]byte{7}, 32))
)

// A receiver is a real server whose handler a test chooses.
type receiver struct {
	*httptest.Server
	mu      sync.Mutex
	handler http.HandlerFunc
	protos  map[string]int
	got     [][]byte
	watch   func([]byte)
}

// receive starts a receiver of one protocol: "http", "https" or "h2".
func receive(t testing.TB, protocol string) *receiver {
	t.Helper()
	r := &receiver{protos: map[string]int{}, watch: func([]byte) {}}
	r.handler = r.take
	r.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.mu.Lock()
		handler := r.handler
		r.protos[req.Proto]++
		r.mu.Unlock()
		handler(w, req)
	}))
	r.Config.ErrorLog = log.New(io.Discard, "", 0) // a handshake that is cut is what tests ask for
	switch protocol {
	case "http":
		r.Start()
	case "h2":
		r.EnableHTTP2 = true
		r.StartTLS()
	default:
		r.StartTLS()
	}
	t.Cleanup(func() { r.CloseClientConnections(); r.Close() })
	return r
}

// take takes a message.
func (r *receiver) take(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return
	}
	r.mu.Lock()
	watch := r.watch
	r.mu.Unlock()
	watch(body)
	r.mu.Lock()
	r.got = append(r.got, body)
	r.mu.Unlock()
	w.WriteHeader(http.StatusNoContent)
}

func (r *receiver) handle(h http.HandlerFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.handler = h
}

// config is that of a driver which trusts the receiver. It gives up soon on one that says
// nothing, and not on one that is slow beside other load.
func (r *receiver) config() Config {
	c := Config{
		Service: "news", Keys: []Key{secret}, AllowHTTP: true, AllowNetworks: loopback, Connections: 4,
		ConnectTimeout: time.Second, TLSTimeout: time.Second, SendTimeout: 2 * time.Second,
	}
	if r.TLS != nil {
		roots := x509.NewCertPool()
		roots.AddCert(r.Certificate())
		c.TLS = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	}
	return c
}

// message makes a message to a path of the receiver.
func (r *receiver) message(path, text string) *driver.Message {
	body, err := json.Marshal(map[string]string{"text": text})
	if err != nil {
		panic(err)
	}
	return &driver.Message{Delivery: fanfare.DeliveryRef{Day: 20777, Manifest: 64, Position: 7}, To: r.URL + path, Body: body}
}

func host(url string) string {
	_, rest, _ := strings.Cut(url, "://")
	rest, _, _ = strings.Cut(rest, "/")
	return rest
}

// A doorman stands between a driver and the machines of a test, so that they can
// be away while their address is known.
type doorman struct{ closed atomic.Bool }

type dial = func(ctx context.Context, network, address string) (net.Conn, error)

func (d *doorman) through(_ dial, timeout time.Duration) dial {
	dialer := net.Dialer{Timeout: timeout}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if d.closed.Load() {
			return nil, errors.New("connection refused")
		}
		return dialer.DialContext(ctx, network, address)
	}
}
