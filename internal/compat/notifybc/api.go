package notifybc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/document"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/compat/notifybc/jsonobject"
	"fanfare.dev/fanfare/internal/compat/notifybc/roles"
	"fanfare.dev/fanfare/internal/compat/notifybc/settings"
	"fanfare.dev/fanfare/internal/httpapi/httpio"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/pipeline/ingest"
	"fanfare.dev/fanfare/internal/pipeline/ingest/messages"
	"fanfare.dev/fanfare/internal/store/control"
)

// maxBodyBytes is the maximum size of a request body.
const maxBodyBytes = 100 << 10

// Subscriptions store subscriptions.
type Subscriptions interface {
	PutSubscriptions(ctx context.Context, service string, puts []people.SubscriptionPut, results []people.PutResult) error
	Subscription(ctx context.Context, service, id string) (people.Subscription, error)
	AddressPlaces(ctx context.Context, service, address string) ([]fanfare.RowID, error)
	SubscriptionPage(ctx context.Context, service string, f people.SubscriptionFilter, after fanfare.RowID, limit int) ([]people.Subscription, fanfare.RowID, error)
}

// Topics know and create topics.
type Topics interface {
	Topic(service, name string) (*catalog.Topic, bool)
	ChannelNamed(service, name string) (*catalog.Channel, bool)
	Snapshot() *catalog.Snapshot
	Apply(ctx context.Context, d *document.Document) (catalog.Diff, error)
}

// Records store notifications.
type Records interface {
	ChangeNotifyBCRecords(ctx context.Context, put []control.NotifyBCRecord, deleted ...control.NotifyBCKey) error
	EraseNotifyBCRecords(ctx context.Context, put []control.NotifyBCRecord, deleted ...control.NotifyBCKey) error
	NotifyBCRecord(ctx context.Context, key control.NotifyBCKey) (*control.NotifyBCRecord, error)
	NotifyBCRecords(ctx context.Context, service, kind, after string, limit int64) ([]control.NotifyBCRecord, error)
}

// Messages accept messages to one address.
type Messages interface {
	SendContent(ctx context.Context, service string, of *messages.ContentMessage) (fanfare.EventRef, error)
}

// Intake accepts events.
type Intake interface {
	Post(ctx context.Context, events []fanfare.AcceptedEvent) ([]ingest.Result, error)
}

// Traces know the outcomes of events.
type Traces interface {
	FindEvent(ctx context.Context, service, id string) (fanfare.EventRef, error)
	Broadcast(ctx context.Context, event fanfare.EventRef) (fanfare.Broadcast, error)
	Deliveries(ctx context.Context, ref fanfare.EventRef, cursor string, limit int) ([]fanfare.Delivery, string, error)
}

// Recorder tells when a broadcast is completed.
type Recorder interface {
	Await(event fanfare.EventRef) (done <-chan struct{}, forget func())
}

// Callers know who makes a request.
type Callers interface {
	Caller(r *http.Request) roles.Caller
}

// Overrides are the settings that clients have stored for a service name.
type Overrides interface {
	Subscription(serviceName string) *settings.Subscription
}

// Options are the parts that an API works with.
type Options struct {
	Settings      *settings.Settings
	Subscriptions Subscriptions
	Topics        Topics
	Records       Records
	Messages      Messages
	Intake        Intake
	Traces        Traces
	Recorder      Recorder
	Callers       Callers
	Overrides     Overrides    // nil: the settings apply to all service names
	Client        *http.Client // posts finished notifications to the URLs of clients
	Bounces       Bounces      // nil: bounces are not counted
	Suppressor    Suppressor   // nil only if Bounces is
	Further       []Route      // further routes
	Address       string       // host:port of the listener
	Clock         clock.Clock
	Logger        *slog.Logger
}

// A Route handles the requests of a method and a path.
type Route struct {
	Method, Path string // the path follows the root of the API; {name} matches a segment
	Who          func(*roles.Caller) bool
	Handle       func(*Exchange) error
}

// API is the handler of the NotifyBC API.
type API struct {
	Options
	mux     *http.ServeMux
	topics  topicMaker
	guesses guessLimit

	patterns     sync.Map // expression of a code: *codes.Pattern
	patternCount atomic.Int64

	work    work
	editing sync.Mutex // held while a notification is read, changed and stored

	stopping chan struct{} // closed by Stop
	stopOnce sync.Once
	requests sync.WaitGroup
}

// Everyone, SignedIn and Admins are the callers that a route accepts.
func Everyone(*roles.Caller) bool { return true }

// SignedIn accepts all but anonymous callers.
func SignedIn(c *roles.Caller) bool { return c.Role != roles.Anonymous }

// Admins accepts administrators of both kinds.
func Admins(c *roles.Caller) bool { return c.IsAdmin() }

// New returns an API without its unfinished notifications, which Open reads.
func New(o Options) *API {
	a := &API{Options: o, mux: http.NewServeMux(), stopping: make(chan struct{})}
	a.work.init()
	for _, r := range append(append(a.subscriptionRoutes(), a.notificationRoutes()...), o.Further...) {
		a.mux.HandleFunc(r.Method+" "+o.Settings.Root+r.Path, func(w http.ResponseWriter, req *http.Request) { a.serve(w, req, &r) })
	}
	a.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		writeJSON(w, http.StatusNotFound, map[string]any{"message": "Cannot " + r.Method + " " + r.URL.Path, "error": "Not Found", "statusCode": http.StatusNotFound})
	})
	return a
}

// ServeHTTP answers a request.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.requests.Add(1)
	defer a.requests.Done()
	a.mux.ServeHTTP(w, r)
}

// Stop ends the waits for broadcasts, which go on after the next start.
func (a *API) Stop() { a.stopOnce.Do(func() { close(a.stopping) }) }

// Drain stops the API, and waits for its running requests until ctx ends. No request may begin after it.
func (a *API) Drain(ctx context.Context) {
	a.Stop()
	done := make(chan struct{})
	go func() {
		a.requests.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// An Exchange is a request with its answer.
type Exchange struct {
	Writer  http.ResponseWriter
	Request *http.Request
	Caller  roles.Caller
	api     *API
}

func (a *API) serve(w http.ResponseWriter, r *http.Request, to *Route) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	x := &Exchange{w, r, a.Callers.Caller(r), a}
	if !to.Who(&x.Caller) {
		writeJSON(w, http.StatusForbidden, map[string]any{"message": "Forbidden resource", "error": "Forbidden", "statusCode": http.StatusForbidden})
		return
	}
	if err := to.Handle(x); err != nil {
		f := a.failure(r, err)
		writeJSON(w, f.Status, f.body())
	}
}

// A Failure is an answer that refuses a request.
type Failure struct {
	Status  int
	Message string // "": the status says it all
	Kind    string // for a body that is not JSON: the text of the status
}

// Error returns the message.
func (f *Failure) Error() string {
	if f.Message == "" {
		return http.StatusText(f.Status)
	}
	return f.Message
}

func (f *Failure) body() map[string]any {
	body := map[string]any{"statusCode": f.Status}
	if f.Message != "" {
		body["message"] = f.Message
	}
	if f.Kind != "" {
		body["error"] = f.Kind
	}
	return body
}

// Bad refuses data.
func Bad(message string) error { return &Failure{Status: http.StatusBadRequest, Message: message} }

var (
	errRefused = &Failure{Status: http.StatusForbidden}
	errMissing = &Failure{Status: http.StatusNotFound}
)

// failure returns the answer for an error.
func (a *API) failure(r *http.Request, err error) *Failure {
	if f, ok := errors.AsType[*Failure](err); ok {
		return f
	}
	if e, ok := errors.AsType[*fanfare.Error](err); ok {
		switch e.Code {
		case fanfare.Unavailable, fanfare.DiskFull:
			a.Logger.Warn("a request of the NotifyBC API failed", "path", r.URL.Path, "error", err)
			return &Failure{Status: http.StatusServiceUnavailable, Message: e.Message}
		case fanfare.NotFound:
			return errMissing
		}
		return &Failure{Status: http.StatusBadRequest, Message: e.Message}
	}
	if r.Context().Err() == nil {
		a.Logger.Error("a request of the NotifyBC API failed", "path", r.URL.Path, "error", err)
	}
	return &Failure{Status: http.StatusInternalServerError, Message: "Internal server error"}
}

// Unavailable answers that the API is not open on this node.
func Unavailable(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Retry-After", "1")
	f := &Failure{Status: http.StatusServiceUnavailable, Message: "the server cannot answer at the moment: try again shortly"}
	writeJSON(w, f.Status, f.body())
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(body); err != nil {
		status = http.StatusInternalServerError
		b.Reset()
		b.WriteString(`{"statusCode":500,"message":"Internal server error"}`)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(bytes.TrimSuffix(b.Bytes(), []byte("\n"))) // the client may be gone
}

// JSON answers 200 with a body.
func (x *Exchange) JSON(body any) error {
	if m, ok := body.(Members); ok {
		x.Writer.Header().Set("Content-Type", "application/json; charset=utf-8")
		_, _ = x.Writer.Write(m.encoded()) // the client may be gone
		return nil
	}
	writeJSON(x.Writer, http.StatusOK, body)
	return nil
}

// Done answers 204.
func (x *Exchange) Done() error {
	x.Writer.WriteHeader(http.StatusNoContent)
	return nil
}

// Members are the members of a JSON object.
type Members map[string]json.RawMessage

// Body reads the object in the body of the request. Members that are null count as missing.
func (x *Exchange) Body() (Members, error) {
	text, err := io.ReadAll(http.MaxBytesReader(x.Writer, x.Request.Body, maxBodyBytes))
	if err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return nil, &Failure{Status: http.StatusRequestEntityTooLarge, Message: "request entity too large"}
		}
		return nil, &Failure{Status: http.StatusBadRequest, Message: "the body could not be read", Kind: "Bad Request"}
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return Members{}, nil
	}
	m, err := jsonobject.Split(text)
	if err != nil || m == nil {
		message := "the body must be a JSON object"
		if err != nil {
			message = err.Error()
		}
		return nil, &Failure{Status: http.StatusBadRequest, Message: message, Kind: "Bad Request"}
	}
	for name, value := range m {
		if string(value) == "null" {
			delete(m, name)
		}
	}
	return m, nil
}

// text returns the string in a member; "" if it is missing, and an error if it is no string.
func (m Members) text(name string) (text string, err error) {
	raw, ok := m[name]
	if !ok {
		return "", nil
	}
	if last := len(raw) - 1; last > 0 && raw[0] == '"' && bytes.IndexByte(raw, '\\') < 0 && utf8.Valid(raw) {
		return string(raw[1:last]), nil
	}
	if err := json.Unmarshal(raw, &text); err != nil {
		return "", Bad(name + " must be a string")
	}
	return text, nil
}

// encoded returns the object. Its values are valid JSON, so that they need no check.
func (m Members) encoded() []byte {
	dst := []byte{'{'}
	for i, name := range slices.Sorted(maps.Keys(m)) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(httpio.AppendString(dst, name), ':')
		dst = append(dst, m[name]...)
	}
	return append(dst, '}')
}

// flag returns the Boolean in a member; false if it is missing.
func (m Members) flag(name string) (yes bool, err error) {
	raw, ok := m[name]
	if !ok {
		return false, nil
	}
	if err := json.Unmarshal(raw, &yes); err != nil {
		return false, Bad(name + " must be true or false")
	}
	return yes, nil
}

// set stores a value in a member.
func (m Members) set(name string, value any) {
	if text, ok := value.(string); ok {
		m[name] = httpio.AppendString(make([]byte, 0, len(text)+2), text)
		return
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(value) == nil {
		m[name] = bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	}
}

// isObject reports whether a member is an object.
func (m Members) isObject(name string) bool {
	return len(m[name]) > 0 && bytes.TrimLeft(m[name], " \t\r\n")[0] == '{'
}

// decoded returns a member as encoding/json decodes it; nil if it is missing.
func (m Members) decoded(name string) (value any) {
	if raw, ok := m[name]; ok {
		_ = json.Unmarshal(raw, &value) // it was valid when it was stored
	}
	return value
}

// timeFormat is RFC 3339 with milliseconds, in UTC.
const timeFormat = "2006-01-02T15:04:05.000Z07:00"

// now returns the time for a record.
func (a *API) now() string { return a.Clock.Now().UTC().Format(timeFormat) }

// stamp sets who changed a record and when.
func (x *Exchange) stamp(m Members, at, by string) {
	m.set(at, x.api.now())
	m.set(by, x.Caller)
}

// httpHost returns the start of links for this request: what the settings say, or the host of the request. The host of a
// request is used only if an administrator made it, since anybody can claim any host, and the links go to other people.
func (x *Exchange) httpHost() string {
	s := x.api.Settings
	if s.HTTPHost != "" {
		return s.HTTPHost
	}
	scheme := "http://"
	if x.Request.TLS != nil {
		scheme = "https://"
	}
	if host := scheme + x.Request.Host; x.Caller.IsAdmin() && settings.CheckHost(host) == "" {
		return host
	}
	return scheme + x.api.Address
}

// subscriptionSettings returns the settings of a service name.
func (a *API) subscriptionSettings(serviceName string) *settings.Subscription {
	if a.Overrides != nil {
		if s := a.Overrides.Subscription(serviceName); s != nil {
			return s
		}
	}
	return &a.Settings.Subscription
}

// ourChannel returns the name of the channel of the service for a channel of NotifyBC, or "".
func (a *API) ourChannel(channel string) string {
	switch channel {
	case channelEmail:
		return a.Settings.Channels.Email
	case channelSMS:
		return a.Settings.Channels.SMS
	}
	return ""
}

// theirChannel is the inverse of ourChannel.
func (a *API) theirChannel(channel string) string {
	switch channel {
	case a.Settings.Channels.Email:
		return channelEmail
	case a.Settings.Channels.SMS:
		return channelSMS
	}
	return channel
}

// The channels of NotifyBC.
const (
	channelEmail = "email"
	channelSMS   = "sms"
	channelInApp = "inApp"
)

// isTrue reports whether a parameter of a request is set and not false.
func isTrue(text string) bool { return text != "" && !strings.EqualFold(text, "false") && text != "0" }
