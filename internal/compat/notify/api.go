package notify

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/state"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/compat/notify/notificationid"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/mail/reply"
)

// Catalog has the services with their keys, templates and channels.
type Catalog interface {
	Snapshot() *catalog.Snapshot
	Channel(number uint16) (*catalog.Channel, bool)
	Template(number uint32) (catalog.TemplateSource, bool)
	Key(service, id string) (state.Key, error)
	NotifyKeys(service string) []state.NotifyKey
	NotifyKeyUsed(id string)
}

// Messages accepts messages and knows their states.
type Messages interface {
	SendNotify(ctx context.Context, service string, request *wire.MessageRequest, origin fanfare.NotifyOrigin) (fanfare.EventRef, error)
	Posted(ctx context.Context, service string, ref fanfare.EventRef) (*fanfare.AcceptedEvent, error)
	State(ctx context.Context, posted *fanfare.AcceptedEvent) (wire.Message, error)
}

// Store finds the messages of clients, newest first.
type Store interface {
	Days(ctx context.Context) ([]fanfare.Day, error)
	LatestNotify(ctx context.Context, of fanfare.Day, service string, labels []string, before fanfare.EventSeq, limit int) ([]fanfare.EventSeq, error)
	FindReference(ctx context.Context, of fanfare.Day, service, reference string) ([]fanfare.EventSeq, error)
	Posted(ctx context.Context, ref fanfare.EventRef) (*fanfare.AcceptedEvent, error)
	CountNotify(ctx context.Context, of fanfare.Day, service string, labels []string) (int, error)
}

// Addresses returns the addresses of subscribers. An erased one has none.
type Addresses interface {
	AddressesOf(ctx context.Context, places []fanfare.RowID) (map[fanfare.RowID]string, error)
}

// Files stores the files of personalisations.
type Files interface {
	Upload(ctx context.Context, service, recipient string, value any, base string) (link string, err error)
}

// Options are the parts of an API.
type Options struct {
	Catalog   Catalog
	Messages  Messages
	Store     Store
	Addresses Addresses
	Files     Files               // nil: files are refused
	Pages     http.Handler        // the download pages of files, below FilesPath; nil: there are none
	Rules     func() *reply.Rules // classify replies
	Key       []byte              // of the codes in ids
	PublicURL string              // without a slash at its end
	Clock     clock.Clock
	Logger    *slog.Logger
}

// FilesPath is the path below which the download pages of files are.
const FilesPath = "/d/"

// Limits of requests.
const (
	maxBodyBytes = 16 << 20 // several files in base64
	maxBodies    = 32       // large bodies that are read at the same time
	largeBody    = 1 << 20
	bodyPatience = 30 * time.Second
)

// An API answers clients of GOV.UK Notify. It is safe for concurrent use.
type API struct {
	options Options
	ids     *notificationid.Codec
	mux     *http.ServeMux
	lookup  atomic.Pointer[lookup]
	limits  limits
	latest  sync.Map // the last message of each service that this process accepted: string to fanfare.EventRef
	bodies  chan struct{}
}

// New returns an API.
func New(o Options) *API {
	a := &API{options: o, ids: notificationid.New(o.Key), mux: http.NewServeMux(), bodies: make(chan struct{}, maxBodies)}
	a.routes()
	return a
}

// A caller is the service of a request, with its key.
type caller struct {
	service *catalog.ServiceSnapshot
	key     state.NotifyKey
}

// routes sets the handlers. Every other path below /v2 is unknown.
func (a *API) routes() {
	for _, path := range []string{"GET /_status", "POST /_status"} {
		a.mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			writeJSON(w, http.StatusOK, map[string]string{"status": "ok"})
		})
	}
	a.handle("POST /v2/notifications/email", a.postEmail)
	a.handle("POST /v2/notifications/sms", a.postSMS)
	a.handle("POST /v2/notifications/letter", a.postLetter)
	a.handle("GET /v2/notifications", a.list)
	a.handle("GET /v2/notifications/{id}", a.getNotification)
	a.handle("GET /v2/notifications/{id}/pdf", a.getPDF)
	a.handle("GET /v2/template/{id}", a.getTemplate)
	a.handle("GET /v2/template/{id}/version/{version}", a.getTemplateVersion)
	a.handle("POST /v2/template/{id}/preview", a.previewTemplate)
	a.handle("GET /v2/templates", a.listTemplates)
	a.handle("GET /v2/received-text-messages", a.receivedTexts)
	if a.options.Pages != nil {
		a.mux.Handle(FilesPath, a.options.Pages)
	}
}

// handle adds a route for signed requests. f returns the status and the body of the answer.
func (a *API) handle(pattern string, f func(r *http.Request, c *caller) (status int, body any, err error)) {
	a.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		c, err := a.authenticate(r)
		if err != nil {
			a.fail(w, r, err)
			return
		}
		status, body, err := f(r, c)
		if err != nil {
			a.fail(w, r, err)
			return
		}
		writeJSON(w, status, body)
	})
}

// ServeHTTP answers a request.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer func() {
		if reason := recover(); reason != nil {
			if err, ok := reason.(error); ok && errors.Is(err, http.ErrAbortHandler) {
				panic(reason)
			}
			a.options.Logger.Error("handler panicked", "method", r.Method, "route", r.Pattern, "panic", reason, "stack", string(debug.Stack()))
			refuse(http.StatusInternalServerError, nameInternal, "Internal server error").write(w)
		}
	}()
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if _, pattern := a.mux.Handler(r); pattern == "" {
		a.unknown(w, r)
		return
	}
	a.mux.ServeHTTP(w, r)
}

// Stop does nothing: no request of this API takes long.
func (a *API) Stop() {}

// unknown answers a path or a method that the API does not have.
func (a *API) unknown(w http.ResponseWriter, r *http.Request) {
	if !strings.HasPrefix(r.URL.Path, "/v2/") { // routes of the administration, which answer in an older shape
		if r.Header.Get("Authorization") != "" {
			writeJSON(w, http.StatusUnauthorized, map[string]any{"result": "error", "message": map[string][]string{"token": {"Invalid token: not allowed here"}}})
			return
		}
		writeJSON(w, http.StatusNotFound, map[string]any{"result": "error", "message": "The requested URL was not found on the server."})
		return
	}
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		other := r.Clone(r.Context())
		other.Method = method
		if _, pattern := a.mux.Handler(other); pattern != "" {
			w.Header().Set("Allow", method)
			refuse(http.StatusMethodNotAllowed, "MethodNotAllowed", "The method is not allowed for the requested URL.").write(w)
			return
		}
	}
	refuse(http.StatusNotFound, nameNoResult, "The requested URL was not found on the server.").write(w)
}

// fail answers with an error.
func (a *API) fail(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil {
		return // the client is gone
	}
	if own := translate(err); own != nil {
		own.write(w)
		return
	}
	a.options.Logger.Error("request failed", "method", r.Method, "route", r.Pattern, "error", err)
	refuse(http.StatusInternalServerError, nameInternal, "Internal server error").write(w)
}

// readBody reads the body of a request.
func (a *API) readBody(r *http.Request) ([]byte, error) {
	if r.ContentLength > maxBodyBytes {
		return nil, tooLarge()
	}
	if r.ContentLength < 0 || r.ContentLength > largeBody {
		wait := time.NewTimer(bodyPatience)
		defer wait.Stop()
		select {
		case a.bodies <- struct{}{}:
			defer func() { <-a.bodies }()
		case <-wait.C:
			busy := refuse(http.StatusServiceUnavailable, nameUnavailable, "The server reads too many large requests at the moment: try again shortly")
			busy.retryAfter = time.Second
			return nil, busy
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	text, err := io.ReadAll(io.LimitReader(r.Body, maxBodyBytes+1))
	switch {
	case err != nil:
		return nil, badRequest("The body of the request cannot be read")
	case len(text) > maxBodyBytes:
		return nil, tooLarge()
	}
	return text, nil
}

func tooLarge() *apiError {
	return refuse(http.StatusRequestEntityTooLarge, nameBadRequest, "The request is larger than 16 MiB")
}

// url returns an absolute link.
func (a *API) url(path string) string { return a.options.PublicURL + path }

// at formats a time as GOV.UK Notify does.
func at(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	text := t.UTC().Format("2006-01-02T15:04:05.000000Z")
	return &text
}

// orNull returns nil for "".
func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// receivedTexts answers with an empty list: no channel receives text messages.
func (a *API) receivedTexts(r *http.Request, _ *caller) (int, any, error) {
	var problems []string
	for name, values := range r.URL.Query() {
		if name != "older_than" {
			problems = append(problems, unexpected(name))
		} else if !isUUID(values[0]) {
			problems = append(problems, "older_than is not a valid UUID")
		}
	}
	if err := invalid(problems); err != nil {
		return 0, nil, err
	}
	return http.StatusOK, map[string]any{"received_text_messages": []any{}, "links": map[string]string{"current": a.url(r.URL.RequestURI())}}, nil
}
