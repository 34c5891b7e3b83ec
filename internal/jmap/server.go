package jmap

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/httpapi/problem"
	"fanfare.dev/fanfare/internal/jmap/core"
	"fanfare.dev/fanfare/internal/jmap/mail"
	"fanfare.dev/fanfare/internal/jmap/push"
	"fanfare.dev/fanfare/internal/jmap/token"
	"fanfare.dev/fanfare/internal/mailbox"
)

// The paths. Those with variables go on with them.
const (
	WellKnown   = "/.well-known/jmap"
	Prefix      = "/jmap/"
	sessionPath = "/jmap/session"
	apiPath     = "/jmap/api"
	uploadPath  = "/jmap/upload/"
	blobPath    = "/jmap/download/"
	eventPath   = "/jmap/eventsource"
	socketPath  = "/jmap/ws"
)

// Limits of the core capability, of which a request can read the values in the session, and of streams.
const (
	maxRequestBytes = 10 << 20
	maxRequests     = 8 // of an account at the same time
	maxUploads      = 4
	maxCalls        = 32
	maxGet          = 1000
	maxSet          = 1000
	maxStreams      = 32 // of an account at the same time
)

// Logins checks app passwords.
type Logins interface {
	PlainCredential(ctx context.Context, user, password string, from netip.Addr) (account mailbox.Account, credential int64, err error)
}

// Options are what a Server needs.
type Options struct {
	Store          *mailbox.Store
	Sender         mail.Sender         // nil: nothing can be sent
	Push           *push.Subscriptions // nil: push subscriptions are not supported
	Logins         Logins
	Tokens         *token.Key
	PublicURL      string   // without / at the end; "": the host of the request
	Origins        []string // of pages that may use app passwords; "*" means all
	MaxUploadBytes int64    // 0: 50 MiB
	ClientAddress  func(*http.Request) netip.Addr
	Clock          clock.Clock
	Logger         *slog.Logger

	PingInterval time.Duration // shortest one of event streams; 0: 10 seconds
}

// A Server serves JMAP. It is safe for concurrent use.
type Server struct {
	o       Options
	methods *mail.Methods
	core    *core.Server
	logins  loginCache
	metrics *metrics

	mu     sync.Mutex
	counts map[countKey]int

	stopping chan struct{}
	stop     sync.Once
	forget   func() // ends the watch of accounts
}

// New returns a server.
func New(o Options) *Server {
	if o.MaxUploadBytes == 0 {
		o.MaxUploadBytes = 50 << 20
	}
	if o.PingInterval == 0 {
		o.PingInterval = 10 * time.Second
	}
	s := &Server{o: o, methods: mail.New(mail.Options{Store: o.Store, Sender: o.Sender, Clock: o.Clock, Logger: o.Logger}), counts: map[countKey]int{}, metrics: newMetrics(), stopping: make(chan struct{})}
	s.logins.init()
	s.forget = o.Store.WatchAccess(s.logins.drop)
	capabilities := []string{core.Capability, mail.Capability, mail.QuotaCapability, socketCapability}
	if o.Sender != nil {
		capabilities = append(capabilities, mail.SubmissionCapability)
	}
	methods := s.methods.Table()
	if o.Push != nil {
		maps.Copy(methods, o.Push.Table())
	}
	s.core = &core.Server{
		Methods: methods, Capabilities: capabilities, Logger: o.Logger, Observe: s.metrics.call,
		Limits: core.Limits{MaxSizeUpload: o.MaxUploadBytes, MaxConcurrentUpload: maxUploads, MaxSizeRequest: maxRequestBytes, MaxConcurrentRequests: maxRequests,
			MaxCallsInRequest: maxCalls, MaxObjectsInGet: maxGet, MaxObjectsInSet: maxSet, Collations: mail.Collations},
	}
	return s
}

// Stop ends all streams. It may be called twice.
func (s *Server) Stop() { s.stop.Do(func() { close(s.stopping); s.forget() }) }

// Serve answers a request for WellKnown or below Prefix. release is called when the request becomes a stream, so that it does not count as a
// running request any more.
func (s *Server) Serve(w http.ResponseWriter, r *http.Request, release func()) {
	if s.preflight(w, r) {
		return
	}
	path := r.URL.Path
	serve, method, rest := s.route(path)
	switch {
	case serve == nil:
		refuse(w, &fanfare.Error{Code: fanfare.NotFound, Message: path + " does not exist", Hint: "the JMAP session is at " + sessionPath})
		return
	case r.Method != method && (method != http.MethodGet || r.Method != http.MethodHead):
		w.Header().Set("Allow", method)
		refuse(w, &fanfare.Error{Code: fanfare.MethodNotAllowed, Message: path + " does not support the method " + r.Method, Hint: "use " + method})
		return
	}
	if path == WellKnown { // RFC 8620, section 2.2
		w.Header().Set("Access-Control-Allow-Origin", "*") // there is nothing to protect
		http.Redirect(w, r, sessionPath, http.StatusTemporaryRedirect)
		return
	}
	user, err := s.login(w, r)
	if err != nil {
		refuse(w, err)
		return
	}
	if err := serve(w, r, &call{login: user, rest: rest, release: release}); err != nil {
		if r.Context().Err() != nil && errors.Is(err, context.Canceled) {
			return // the client is gone
		}
		if refused, ok := errors.AsType[*core.RequestError](err); ok {
			writeRequestError(w, refused)
			return
		}
		if fanfare.CodeOf(err) == fanfare.Internal {
			s.o.Logger.Error("a JMAP request failed", "request_id", w.Header().Get("X-Request-Id"), "path", pathPattern(path), "err", err)
		}
		refuse(w, err)
	}
}

// A call is a request of a user.
type call struct {
	login
	rest    string // of the path
	release func()
}

type handler func(w http.ResponseWriter, r *http.Request, c *call) error

// route returns the handler and the method of a path, and the part of the path that the handler reads.
func (s *Server) route(path string) (serve handler, method, rest string) {
	switch path {
	case WellKnown, sessionPath, "/jmap", Prefix:
		return s.session, http.MethodGet, ""
	case apiPath, apiPath + "/":
		return s.api, http.MethodPost, ""
	case eventPath, eventPath + "/":
		return s.events, http.MethodGet, ""
	case socketPath:
		return s.socket, http.MethodGet, ""
	}
	if rest, ok := strings.CutPrefix(path, uploadPath); ok {
		return s.upload, http.MethodPost, strings.TrimSuffix(rest, "/")
	}
	if rest, ok := strings.CutPrefix(path, blobPath); ok {
		return s.download, http.MethodGet, rest
	}
	return nil, "", ""
}

// pathPattern returns a path without its variables, for the log.
func pathPattern(path string) string {
	for _, prefix := range []string{uploadPath, blobPath} {
		if strings.HasPrefix(path, prefix) {
			return prefix
		}
	}
	return path
}

// refuse writes a problem document.
func refuse(w http.ResponseWriter, err error) {
	p := problem.Of(err, w.Header().Get("X-Request-Id"))
	challenge := w.Header().Get("WWW-Authenticate")
	if challenge == "" {
		p.Write(w)
		return
	}
	p.Write(challenged{w, challenge})
}

// challenged is a response that keeps its WWW-Authenticate header.
type challenged struct {
	http.ResponseWriter
	challenge string
}

// WriteHeader begins the response.
func (c challenged) WriteHeader(status int) {
	c.Header().Set("WWW-Authenticate", c.challenge)
	c.ResponseWriter.WriteHeader(status)
}

// A resource is counted for each account.
type resource uint8

const (
	requests resource = iota
	uploads
	streams
)

type countKey struct {
	account mailbox.AccountID
	of      resource
}

// acquire counts a use of an account, unless it has as many as permitted.
func (s *Server) acquire(account mailbox.AccountID, of resource, most int) (release func(), ok bool) {
	key := countKey{account, of}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.counts[key] >= most {
		return nil, false
	}
	s.counts[key]++
	var once sync.Once
	return func() {
		once.Do(func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.counts[key]--; s.counts[key] == 0 {
				delete(s.counts, key)
			}
		})
	}, true
}
