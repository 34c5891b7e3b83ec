// Package listener listens for HTTP connections from the start of the server until its stop.
package listener

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/httpapi/httpio"
	"fanfare.dev/fanfare/internal/httpapi/problem"
)

// Time-outs of a connection. Bulk bodies extend their own deadlines.
const (
	headerTimeout = 10 * time.Second
	ReadTimeout   = 30 * time.Second
	writeTimeout  = 60 * time.Second
	idleTimeout   = 2 * time.Minute
	maxHeaders    = 32 << 10
)

// Options set the address of a server.
type Options struct {
	Address   string // host:port; port 0 selects a free port
	Cert, Key string // PEM files; both empty: plain HTTP
	ClientCAs string // PEM file with authorities; clients may present certificates that they have signed. "": no client certificates
	Log       *slog.Logger

	Progress func() (phase string, done, total int64) // progress of the start, until Open; nil: unknown
}

// A Server listens from the start and answers 503 until Open is called, so that
// clients get a reason instead of a closed port while the server loads its data.
type Server struct {
	listener net.Listener
	http     *http.Server
	api      atomic.Pointer[handlerBox]
	fallback atomic.Pointer[http.Handler] // answers while api is nil; nil: the server is starting
	starting atomic.Pointer[string]       // the reason for which the start waits; nil or empty: none
	progress func() (phase string, done, total int64)
	served   chan struct{}
	err      error // of serving; valid after served is closed
	stopOnce sync.Once
	stopErr  error
}

// A Handler handles the requests after Open.
type Handler interface {
	http.Handler
	// Stop stops reading bulk bodies.
	Stop()
}

type handlerBox struct{ Handler }

// Listen binds the address and starts to serve requests.
func Listen(o Options) (*Server, error) {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	var certificates []tls.Certificate
	if o.Cert != "" {
		c, err := tls.LoadX509KeyPair(o.Cert, o.Key)
		if err != nil {
			return nil, &fanfare.Error{Code: fanfare.Invalid, Message: "the certificate cannot be used: " + err.Error(), Hint: "check tls_cert and tls_key"}
		}
		certificates = []tls.Certificate{c}
	}
	secured := &tls.Config{Certificates: certificates, MinVersion: tls.VersionTLS12}
	if o.ClientCAs != "" {
		pem, err := os.ReadFile(o.ClientCAs)
		if secured.ClientCAs = x509.NewCertPool(); err != nil || !secured.ClientCAs.AppendCertsFromPEM(pem) {
			return nil, &fanfare.Error{Code: fanfare.Invalid, Message: "the certificates of the authorities of clients cannot be used", Hint: "check that the file can be read and contains certificates in PEM"}
		}
		secured.ClientAuth = tls.VerifyClientCertIfGiven
	}
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", o.Address) // binding does not wait
	if err != nil {
		return nil, &fanfare.Error{Code: fanfare.Unavailable, Message: err.Error(), Hint: listenHint(err)}
	}
	s := &Server{listener: l, progress: o.Progress, served: make(chan struct{})}
	s.http = &http.Server{
		Handler: http.HandlerFunc(s.serve), ReadHeaderTimeout: headerTimeout, ReadTimeout: ReadTimeout, WriteTimeout: writeTimeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaders, ErrorLog: slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug),
	}
	go func() {
		defer close(s.served)
		if certificates != nil {
			s.http.TLSConfig = secured
			s.err = s.http.ServeTLS(l, "", "")
		} else {
			s.err = s.http.Serve(l)
		}
		if errors.Is(s.err, http.ErrServerClosed) {
			s.err = nil
		}
	}()
	return s, nil
}

// listenHint returns the remedy if the address cannot be bound.
func listenHint(err error) string {
	switch {
	case errors.Is(err, syscall.EACCES):
		return "a port below 1024 needs the capability CAP_NET_BIND_SERVICE: grant it, or set listen to another port"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return "this machine does not have that address: set listen to another address"
	}
	return "another program may be using that address: stop it, or set listen to another address"
}

// Addr returns the address of the server.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Open passes all further requests to the API.
func (s *Server) Open(a Handler) { s.api.Store(&handlerBox{a}) }

// Close ends Open: further requests are answered as before it.
func (s *Server) Close() { s.api.Store(nil) }

// Fallback passes requests to a handler while the API is not open.
func (s *Server) Fallback(h http.Handler) { s.fallback.Store(&h) }

// API returns the API, or nil while it is not open.
func (s *Server) API() http.Handler {
	if a := s.api.Load(); a != nil {
		return a
	}
	return nil
}

// Starting sets the reason for which the start waits, or "", until Open. Only requests from this machine get
// this text and the counts of the phase, because no key can be checked yet.
func (s *Server) Starting(waitsFor string) { s.starting.Store(&waitsFor) }

// Done returns a channel that is closed when the server has stopped. Err returns the
// reason, which is nil after Shutdown.
func (s *Server) Done() <-chan struct{} { return s.served }

// Err returns the error that stopped the server.
func (s *Server) Err() error {
	select {
	case <-s.served:
		return s.err
	default:
		return nil
	}
}

// Shutdown accepts no more connections, stops reading bulk bodies, waits for the
// running requests until ctx ends, and then closes the remaining connections. A second
// call waits for the first.
func (s *Server) Shutdown(ctx context.Context) error {
	s.stopOnce.Do(func() {
		if a := s.api.Load(); a != nil {
			a.Stop()
		}
		if s.stopErr = s.http.Shutdown(ctx); s.stopErr != nil {
			s.stopErr = errors.Join(s.stopErr, s.http.Close())
		}
		<-s.served
	})
	return s.stopErr
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	if a := s.api.Load(); a != nil {
		a.ServeHTTP(w, r)
		return
	}
	if f := s.fallback.Load(); f != nil {
		(*f).ServeHTTP(w, r)
		return
	}
	if r.URL.Path == "/healthz" {
		w.Write([]byte("ok\n"))
		return
	}
	p := problem.Of(&fanfare.Error{Code: fanfare.Unavailable, Message: "the server is starting", Hint: "try again shortly"}, httpio.RequestID(r))
	if s.progress != nil {
		p.Phase, p.Done, p.Total = s.progress()
	}
	if !httpio.IsLocal(r) {
		p.Done, p.Total = 0, 0
	}
	if waitsFor := s.starting.Load(); waitsFor != nil && *waitsFor != "" && httpio.IsLocal(r) {
		p.Detail += " and waits for " + *waitsFor
	} else if p.Phase != "" {
		p.Detail += ": " + phaseText(p.Phase, p.Done, p.Total)
	}
	p.Write(w)
}

// phaseText describes the progress of a phase.
func phaseText(phase string, done, total int64) string {
	switch {
	case total > 0:
		return fmt.Sprintf("%s, %d of %d", phase, done, total)
	case done > 0:
		return fmt.Sprintf("%s, %d so far", phase, done)
	}
	return phase
}
