package httpapi

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"fanfare.dev/fanfare"
)

// Time-outs of a connection. Bulk bodies move their own deadlines on.
const (
	headerTimeout = 10 * time.Second
	readTimeout   = 30 * time.Second
	writeTimeout  = 60 * time.Second
	idleTimeout   = 2 * time.Minute
	maxHeaders    = 32 << 10
)

// ServerOptions say where a server listens.
type ServerOptions struct {
	Address   string // host:port; port 0 takes a free one
	Cert, Key string // PEM files; both empty: plain HTTP
	Log       *slog.Logger
}

// A Server listens from the start and answers 503 until it is opened, so that
// a client meets a reason rather than a closed port while everything loads.
type Server struct {
	listener net.Listener
	http     *http.Server
	api      atomic.Pointer[API]
	starting atomic.Pointer[string] // what the start waits for; nil: nothing that is known
	served   chan struct{}
	err      error // of serving; valid after served is closed
	stopOnce sync.Once
	stopErr  error
}

// Listen binds the address and begins to answer.
func Listen(o ServerOptions) (*Server, error) {
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
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", o.Address) // binding does not wait
	if err != nil {
		return nil, &fanfare.Error{Code: fanfare.Unavailable, Message: err.Error(), Hint: listenHint(err)}
	}
	s := &Server{listener: l, served: make(chan struct{})}
	s.http = &http.Server{
		Handler: http.HandlerFunc(s.serve), ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaders, ErrorLog: slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug),
	}
	go func() {
		defer close(s.served)
		if certificates != nil {
			s.http.TLSConfig = &tls.Config{Certificates: certificates, MinVersion: tls.VersionTLS12}
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

// listenHint says what to do about an address that cannot be listened at.
func listenHint(err error) string {
	switch {
	case errors.Is(err, syscall.EACCES):
		return "a port below 1024 needs CAP_NET_BIND_SERVICE; give it, or set listen to another port"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return "this machine does not have that address; set listen"
	}
	return "another program may listen there; set listen"
}

// Addr is where the server listens.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Open lets the API answer from now on.
func (s *Server) Open(a *API) { s.api.Store(a) }

// Starting says what the start waits for, until Open. Only who asks from this machine is
// told: no key can be looked up yet.
func (s *Server) Starting(waitsFor string) { s.starting.Store(&waitsFor) }

// Done is closed when the server answers no more; Err says why, nil after Shutdown.
func (s *Server) Done() <-chan struct{} { return s.served }

// Err is the reason why Done is closed.
func (s *Server) Err() error {
	select {
	case <-s.served:
		return s.err
	default:
		return nil
	}
}

// Shutdown takes no more connections, ends bulk bodies where they are, waits
// for the requests under way until ctx ends, and cuts what is left then. A
// second call waits for the first.
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
	if r.URL.Path == "/healthz" {
		w.Write([]byte("ok\n"))
		return
	}
	message := "the server is starting"
	if waitsFor := s.starting.Load(); waitsFor != nil && isLocal(r) {
		message += " and waits for " + *waitsFor
	}
	p := problemOf(&fanfare.Error{Code: fanfare.Unavailable, Message: message, Hint: "try again in a moment"}, requestID(r))
	p.write(w)
}
