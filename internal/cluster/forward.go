package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/httpapi/httpio"
	"fanfare.dev/fanfare/internal/httpapi/problem"
	"fanfare.dev/fanfare/internal/store/postgres"
)

const (
	// forwardPatience is how long a request waits for a leader. It is longer than a failover usually takes.
	forwardPatience = 25 * time.Second
	// forwardPoll is how often a waiting request looks whether the API of this node is open.
	forwardPoll = 50 * time.Millisecond
	// idleLimit is how long a client or the leader may be silent within a body.
	idleLimit = 60 * time.Second
	dialLimit = 3 * time.Second
)

// ForwarderOptions are the components that a Forwarder needs.
type ForwarderOptions struct {
	Member      *Member
	Key         *Key
	Local       func() http.Handler // the API of this node; nil until it is open
	Waits       func() error        // why this node, which has the lease, cannot lead yet; nil: unknown
	Metrics     http.Handler        // of this node while it does not lead
	Stopping    <-chan struct{}     // closed when this node stops; nil: never
	Roots       *x509.CertPool      // for the certificates of the other nodes; nil: those of the system
	MaxRequests int                 // at the same time; 0: no limit
	Logger      *slog.Logger

	// Surface is the name of another API that the node that leads has, with a listener of its own; "": the API of Fanfare.
	Surface string
	Refuse  func(w http.ResponseWriter, r *http.Request, e *fanfare.Error) // answers for Surface; nil: with a problem
}

// A Forwarder passes requests to the node that leads. While no node leads, requests wait.
type Forwarder struct {
	options ForwarderOptions
	proxy   *httputil.ReverseProxy
	base    *http.Transport
	slots   chan struct{} // nil: no limit
}

// NewForwarder returns a Forwarder.
func NewForwarder(o ForwarderOptions) *Forwarder {
	f := &Forwarder{options: o}
	if o.MaxRequests > 0 {
		f.slots = make(chan struct{}, o.MaxRequests)
	}
	f.base = &http.Transport{
		DialContext: (&net.Dialer{Timeout: dialLimit, KeepAlive: 5 * time.Second}).DialContext, TLSClientConfig: &tls.Config{RootCAs: o.Roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout: dialLimit, MaxIdleConnsPerHost: 256, IdleConnTimeout: time.Minute, DisableCompression: true,
	}
	f.proxy = &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { copyForwarding(r.Out.Header, r.In.Header) },
		Transport: f, ModifyResponse: f.checkAnswer, FlushInterval: -1, ErrorHandler: f.fail, ErrorLog: slog.NewLogLogger(o.Logger.Handler(), slog.LevelDebug),
	}
	return f
}

// copyForwarding restores the headers about proxies in front of this node, which ReverseProxy removes. The leader judges
// them as if the client had sent the request to it.
func copyForwarding(out, in http.Header) {
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
		if values := in.Values(name); len(values) > 0 {
			out[name] = values
		}
	}
}

// ServeHTTP answers a request while this node does not lead, or until its API is open.
func (f *Forwarder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if f.options.Surface == "" && f.own(w, r) {
		return
	}
	if f.slots != nil && r.Header.Get("Upgrade") == "" { // the leader limits long connections
		select {
		case f.slots <- struct{}{}:
			defer func() { <-f.slots }()
		default:
			f.refuse(w, r, &fanfare.Error{Code: fanfare.Unavailable, Message: "the server handles too many requests at the moment", Hint: "send the request again", RetryAfter: time.Second})
			return
		}
	}
	local, err := f.await(r.Context(), time.Now().Add(forwardPatience))
	switch {
	case err != nil:
		f.fail(w, r, err)
	case local != nil:
		local.ServeHTTP(w, r)
	default:
		io := http.NewResponseController(w)
		r.Body = &patientBody{body: r.Body, io: io}
		f.proxy.ServeHTTP(&patientWriter{ResponseWriter: w, io: io}, r.WithContext(context.WithValue(r.Context(), original{}, r)))
	}
}

// own answers the requests that are for this node itself. It reports whether a request is one.
func (f *Forwarder) own(w http.ResponseWriter, r *http.Request) bool {
	switch {
	case r.URL.Path == "/healthz":
		httpio.WriteAll(w, http.StatusOK, []byte("ok\n"))
	case r.URL.Path == "/readyz":
		f.ready(w, r)
	case r.URL.Path == "/metrics":
		f.options.Metrics.ServeHTTP(w, r)
	case r.URL.Path == LinkPath:
		f.refuse(w, r, &fanfare.Error{Code: fanfare.Unavailable, Message: "this node does not lead", Hint: "the connecting node looks up the current leader in the database and tries again", RetryAfter: time.Second})
	case forwarded(r):
		f.refuse(w, r, errPassedOn)
	default:
		return false
	}
	return true
}

// errPassedOn is the error of a request that another node forwarded to this one.
var errPassedOn = &fanfare.Error{Code: fanfare.Unavailable, Message: "the node to which this request was forwarded no longer leads", Hint: "send the request again", RetryAfter: time.Second}

// refuse answers with an error.
func (f *Forwarder) refuse(w http.ResponseWriter, r *http.Request, e *fanfare.Error) {
	if f.options.Refuse != nil {
		f.options.Refuse(w, r, e)
		return
	}
	problem.Of(e, httpio.RequestID(r)).Write(w)
}

// checkAnswer refuses the answer of a node that does not lead, or does not know the other API: it has not the form of that API.
func (f *Forwarder) checkAnswer(r *http.Response) error {
	if f.options.Surface != "" && r.StatusCode == http.StatusServiceUnavailable && r.Header.Get("Content-Type") == problem.MediaType {
		return errPassedOn
	}
	return nil
}

// ready answers whether requests to this node are answered.
func (f *Forwarder) ready(w http.ResponseWriter, r *http.Request) {
	leader, _ := f.options.Member.Leader()
	leading := f.options.Member.Leading()
	if leading && f.options.Waits != nil {
		if err := f.options.Waits(); err != nil {
			problem.Of(&fanfare.Error{Code: fanfare.Unavailable, Message: f.options.Member.Name() + " leads, but cannot work yet: " + err.Error()}, httpio.RequestID(r)).Write(w)
			return
		}
	}
	if !leader.Held || leading {
		p := problem.Of(&fanfare.Error{Code: fanfare.Unavailable, Message: "the cluster has no leader", Hint: "wait until a node has taken over; requests wait until then"}, httpio.RequestID(r))
		p.Write(w)
		return
	}
	httpio.WriteAll(w, http.StatusOK, []byte("ok: "+f.options.Member.Name()+" forwards requests to "+leader.Node+", which leads\n"))
}

// errNoLeader is the error of a request that waited in vain.
var errNoLeader = &fanfare.Error{Code: fanfare.Unavailable, Message: "the cluster has no leader at the moment; nothing was stored", Hint: "try again in a moment", RetryAfter: 2 * time.Second}

// errStopping is the error of a request that waits while this node stops.
var errStopping = &fanfare.Error{Code: fanfare.Unavailable, Message: "this node is stopping; nothing was stored", Hint: "send the request to another node", RetryAfter: time.Second}

// await waits for a node that leads. If it is this node, it returns its API.
func (f *Forwarder) await(ctx context.Context, deadline time.Time) (local http.Handler, err error) {
	for {
		leader, changed := f.options.Member.Leader()
		self := leader.Held && leader.Node == f.options.Member.Name()
		if self {
			if local = f.options.Local(); local != nil {
				return local, nil
			}
		} else if leader.Held {
			return nil, nil
		}
		left := time.Until(deadline)
		if left <= 0 {
			return nil, errNoLeader
		}
		if self {
			left = min(left, forwardPoll)
		}
		timer := time.NewTimer(left)
		select {
		case <-changed:
		case <-timer.C:
		case <-f.options.Stopping:
			timer.Stop()
			return nil, errStopping
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		}
		timer.Stop()
	}
}

// errLocal is the error of a request that reached no other node until this node led.
var errLocal = errors.New("this node leads now")

// original is the key of the request of the client in the context of a forwarded request.
type original struct{}

// errMoved ends a request to a node that has lost the lease.
var errMoved = errors.New("another node leads now")

// errUnsent is the error of a request that had no connection to a node yet when the node lost the lease.
var errUnsent = errors.New("another node became the leader before a connection was made")

// RoundTrip sends a request to the leader. If the leader changes, it repeats a request that has reached no leader, or that
// changes nothing.
func (f *Forwarder) RoundTrip(r *http.Request) (*http.Response, error) {
	deadline := time.Now().Add(forwardPatience)
	safe := (r.Method == http.MethodGet || r.Method == http.MethodHead) && (r.Body == nil || r.Body == http.NoBody)
	for {
		leader, changed := f.options.Member.Leader()
		response, err := f.send(r, leader, changed)
		if err == nil || r.Context().Err() != nil {
			return response, err
		}
		f.base.CloseIdleConnections()
		if !safe && !neverSent(err) || time.Now().After(deadline) {
			return nil, err
		}
		timer := time.NewTimer(watchEvery)
		select {
		case <-changed:
		case <-timer.C:
		case <-r.Context().Done():
		}
		timer.Stop()
		local, err := f.await(r.Context(), deadline)
		if err != nil {
			return nil, err
		}
		if local != nil {
			return nil, errLocal
		}
	}
}

// send sends a request to a node, and gives up when that node loses the lease before it answers. It ends an upgraded
// connection when the node loses the lease later: a node that hangs would not end it.
func (f *Forwarder) send(r *http.Request, leader postgres.Holder, changed <-chan struct{}) (*http.Response, error) {
	base, err := url.Parse(leader.URL)
	if err != nil || leader.URL == "" {
		return nil, errNoLeader
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	answered := make(chan struct{})
	go func() {
		if f.moved(leader, changed, answered) {
			cancel(errMoved)
		}
	}()
	var connected atomic.Bool // from here on, the node may have received the request
	out := r.Clone(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }}))
	out.URL.Scheme, out.URL.Host = base.Scheme, base.Host
	if r.Body != nil && r.Body != http.NoBody {
		out.Body = io.NopCloser(r.Body) // a failed dial must not close it
	}
	mark(out, f.options.Surface, r.TLS)
	f.options.Key.sign(out, r.RemoteAddr, time.Now())
	response, err := f.base.RoundTrip(out)
	close(answered)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil && r.Context().Err() == nil {
			err = cause
			if !connected.Load() {
				err = errUnsent
			}
		}
		cancel(nil)
		return nil, err
	}
	ended := make(chan struct{})
	ending := endingBody{ReadCloser: response.Body, end: sync.OnceFunc(func() { cancel(nil); close(ended) })}
	if upgraded, is := response.Body.(io.ReadWriteCloser); is {
		response.Body = &upgradedBody{ending, upgraded}
		go func() {
			if f.moved(leader, changed, ended) {
				_ = upgraded.Close() // the client connects again, and reaches the next leader
			}
		}()
	} else {
		response.Body = &ending
		if strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream") {
			f.endStream(leader, changed, ended, func() { cancel(nil) })
		}
	}
	return response, nil
}

// endStream calls end when this node stops, or when a leader has lost the lease, unless a stream of events is over before. Its client connects again.
func (f *Forwarder) endStream(leader postgres.Holder, changed, over <-chan struct{}, end func()) {
	go func() {
		if f.moved(leader, changed, over) {
			end()
		}
	}()
	go func() {
		select {
		case <-f.options.Stopping:
			end()
		case <-over:
		}
	}()
}

// moved waits until a leader has lost the lease, or until over is closed.
func (f *Forwarder) moved(leader postgres.Holder, changed, over <-chan struct{}) bool {
	for {
		select {
		case <-changed:
		case <-over:
			return false
		}
		var next postgres.Holder
		if next, changed = f.options.Member.Leader(); next.Epoch != leader.Epoch {
			return true
		}
	}
}

// neverSent reports whether a request failed before any of it was sent.
func neverSent(err error) bool {
	dial, ok := errors.AsType[*net.OpError](err)
	return ok && dial.Op == "dial" || errors.Is(err, errUnsent) || errors.Is(err, errNoLeader)
}

// fail answers a request that was not forwarded, or whose answer was lost.
func (f *Forwarder) fail(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil {
		return // the client is gone
	}
	if client, ok := r.Context().Value(original{}).(*http.Request); ok {
		r = client
	}
	if local := f.options.Local(); errors.Is(err, errLocal) && local != nil {
		local.ServeHTTP(w, r)
		return
	}
	e, ok := errors.AsType[*fanfare.Error](err)
	switch {
	case ok:
	case errors.Is(err, errLocal):
		e = errNoLeader
	case neverSent(err):
		e = errNoLeader
	default:
		f.options.Logger.Debug("a forwarded request failed", "error", err)
		e = &fanfare.Error{Code: fanfare.Unavailable, Message: "the leader stopped while handling the request; it is unknown whether the request was carried out",
			Hint: "send it again: an event with the same id, and a message with the same Idempotency-Key, are accepted only once", RetryAfter: time.Second}
	}
	f.refuse(w, r, e)
}

// patientBody extends the deadline of the connection as long as the client sends.
type patientBody struct {
	body io.ReadCloser
	io   *http.ResponseController
}

func (b *patientBody) Read(p []byte) (int, error) {
	_ = b.io.SetReadDeadline(time.Now().Add(idleLimit)) // without support, the deadline of the server stays
	return b.body.Read(p)
}

func (b *patientBody) Close() error { return b.body.Close() }

// patientWriter extends the deadline of the connection as long as the leader answers.
type patientWriter struct {
	http.ResponseWriter
	io *http.ResponseController
}

func (w *patientWriter) Write(p []byte) (int, error) {
	_ = w.io.SetWriteDeadline(time.Now().Add(idleLimit)) // as above
	return w.ResponseWriter.Write(p)
}

func (w *patientWriter) WriteHeader(status int) {
	_ = w.io.SetWriteDeadline(time.Now().Add(idleLimit)) // as above
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap gives http.ResponseController the connection.
func (w *patientWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// endingBody ends the context of a request with its answer.
type endingBody struct {
	io.ReadCloser
	end func()
}

func (b *endingBody) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}

// upgradedBody is the connection of a request that was upgraded to another protocol.
type upgradedBody struct {
	endingBody
	io.Writer
}
