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

// A receiver is a real server with a handler that tests set.
type receiver struct {
	*httptest.Server
	mu      sync.Mutex
	handler http.HandlerFunc
	protos  map[string]int
	got     [][]byte
	watch   func([]byte)
}

// startReceiver starts a receiver of one protocol: "http", "https" or "h2".
func startReceiver(t testing.TB, protocol string) *receiver {
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
	r.Config.ErrorLog = log.New(io.Discard, "", 0) // tests interrupt handshakes
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

// take accepts a message.
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

// config returns a configuration that trusts the receiver. Its timeouts do not expire while a
// receiver replies, however busy the machine is.
func (r *receiver) config() Config {
	c := Config{
		Service: "news", Keys: []Key{secret}, AllowHTTP: true, AllowNetworks: loopback, Connections: 4,
		ConnectTimeout: time.Minute, TLSTimeout: time.Minute, SendTimeout: time.Minute,
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

// A blockingDialer lets hosts of a test be unreachable.
type blockingDialer struct{ closed atomic.Bool }

type dial = func(ctx context.Context, network, address string) (net.Conn, error)

func (d *blockingDialer) through(_ dial, timeout time.Duration) dial {
	dialer := net.Dialer{Timeout: timeout}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if d.closed.Load() {
			return nil, errors.New("connection refused")
		}
		return dialer.DialContext(ctx, network, address)
	}
}
