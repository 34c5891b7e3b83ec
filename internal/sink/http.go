package sink

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"time"
)

// ListenHTTP binds an address for requests, as Listen does for SMTP. The host "loopback"
// means all addresses of 127.0.0.0/8 (on Linux).
//
// Every POST is a message: its recipient is the host and path, its event is X-Fanfare-Event
// or else Webhook-Id. GET returns the Summary.
func (s *Server) ListenHTTP(addr string) (net.Addr, error) {
	l, err := listenLoopback(addr)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.web != nil {
		_ = l.Close()
		return nil, errors.New("the sink is already listening for HTTP, or it is closed")
	}
	s.webListener = l
	s.web = &http.Server{
		Handler: s, TLSConfig: s.cfg.TLS, ReadHeaderTimeout: idleTimeout, IdleTimeout: idleTimeout,
		ConnState: s.countConnection,
	}
	return l.Addr(), nil
}

func (s *Server) countConnection(nc net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		s.counters.connected.Add(1)
		if s.webConnections.Add(1) > int64(s.cfg.MaxConnections) {
			_ = nc.Close()
		}
	case http.StateClosed, http.StateHijacked:
		s.webConnections.Add(-1)
	}
}

// shutdownTimeout is the time that requests have to finish when the sink is closed.
const shutdownTimeout = time.Second

// shutdownHTTP waits for running requests, and closes the remaining connections.
func shutdownHTTP(web *http.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	if web.Shutdown(ctx) != nil {
		_ = web.Close()
	}
}

const loopback = "loopback"

func listenLoopback(addr string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	var config net.ListenConfig
	network := "tcp"
	if host == loopback {
		network, host, config.Control = "tcp4", "0.0.0.0", onlyLoopback // tcp would include all of IPv6
	}
	return config.Listen(context.Background(), network, net.JoinHostPort(host, port))
}

// serveHTTP accepts requests until Close.
func (s *Server) serveHTTP() error {
	serve := s.web.Serve
	if s.cfg.TLS != nil {
		serve = func(l net.Listener) error { return s.web.ServeTLS(l, "", "") }
	}
	if err := serve(s.webListener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// ServeHTTP handles one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(s.Stats()) // the client has gone
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, int64(s.cfg.MaxMessage)))
	if err != nil {
		s.counters.rejected5xx.Add(1)
		http.Error(w, "the body is too large or incomplete", http.StatusRequestEntityTooLarge)
		return
	}
	if status := s.judgeRequest(r, body); status != http.StatusOK {
		if status == noReply {
			panic(http.ErrAbortHandler) // closes the connection without a response
		}
		w.WriteHeader(status)
		return
	}
	event := r.Header.Get("X-Fanfare-Event")
	id := r.Header.Get("Webhook-Id")
	if event == "" {
		event = id
	}
	m := accepted{event: []byte(event), id: []byte(id), recipients: [][]byte{[]byte(r.Host + r.URL.Path)}, size: len(body)}
	_, lines := s.accept(m, nil)
	if len(lines) > 0 && s.recorder.write(lines, s.recorder.sync) != nil {
		panic(http.ErrAbortHandler) // an unrecorded message gets no reply
	}
	s.showMessage(r.RemoteAddr, m.recipients, func() []byte { return rawRequest(r, body) })
	if s.faults.hit(s.faults.beforeReply) {
		s.counters.beforeReply.Add(1)
		panic(http.ErrAbortHandler)
	}
	w.WriteHeader(http.StatusNoContent)
}

// noReply is the status of a request that gets no response.
const noReply = 0

// judgeRequest returns the status of a request, after its delay.
func (s *Server) judgeRequest(r *http.Request, body []byte) int {
	if s.verifiers != nil && !verify(s.verifiers, r.Header, body) {
		s.counters.badSignatures.Add(1)
		return http.StatusUnauthorized
	}
	verdict, wait := s.hostVerdict(hostOf([]byte(r.Host)))
	switch {
	case verdict == hostRefuses:
		return noReply
	case verdict == hostOverRate || s.overRate():
		return http.StatusTooManyRequests
	}
	if s.faults.hit(s.faults.delay) {
		wait += s.faults.Delay
	}
	if !s.pause(r.Context(), wait) {
		return noReply
	}
	switch s.faults.verdict([]byte(r.Host + r.URL.Path)) {
	case tempFail:
		s.counters.rejected4xx.Add(1)
		return http.StatusServiceUnavailable
	case permFail:
		s.counters.rejected5xx.Add(1)
		return http.StatusBadRequest
	}
	if s.faults.hit(s.faults.inData) {
		s.counters.inData.Add(1)
		return noReply
	}
	return http.StatusOK
}

// pause waits. It returns false if the server was closed or the client gave up meanwhile,
// and after forever.
func (s *Server) pause(ctx context.Context, d time.Duration) bool {
	if d == 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return d < forever
	case <-s.closing:
	case <-ctx.Done():
	}
	return false
}

// rawRequest returns a request as it was received.
func rawRequest(r *http.Request, body []byte) []byte {
	var out bytes.Buffer
	out.WriteString(r.Method + " " + r.URL.RequestURI() + " " + r.Proto + "\r\nHost: " + r.Host + "\r\n")
	_ = r.Header.Write(&out) // a buffer never fails
	out.WriteString("\r\n")
	out.Write(body)
	return out.Bytes()
}
