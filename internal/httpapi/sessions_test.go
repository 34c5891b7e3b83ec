package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/httpapi/limits"
	"fanfare.dev/fanfare/internal/httpapi/listener"
	"fanfare.dev/fanfare/internal/httpapi/problem"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/session"
	"fanfare.dev/fanfare/internal/session/frame"
	"fanfare.dev/fanfare/internal/session/websocket"
)

// fakeBroker has one session, ses-1 of service news, and returns each frame of a connection.
type fakeBroker struct {
	mu     sync.Mutex
	opened session.Options
	ended  []string
	served []string
	page   session.Page
}

func (b *fakeBroker) Open(_ context.Context, service string, o session.Options) (session.Info, error) {
	b.opened = o
	return session.Info{ID: "ses-1", Record: session.Record{Number: 1, Service: service, Options: o, State: session.Open, OpenedAt: time.Now()}}, nil
}

func (b *fakeBroker) Session(service, id string) (session.Info, error) {
	if service != "news" || id != "ses-1" {
		return session.Info{}, problem.NotFound("session", id)
	}
	return b.Sessions(service)[0], nil
}

func (b *fakeBroker) Sessions(service string) (all []session.Info) {
	for number, worker := range []string{"pricing", "risk", "pricing"} {
		all = append(all, session.Info{ID: "ses-" + string(rune('1'+number)), Record: session.Record{Number: uint64(number + 1), Service: service, Options: session.Options{Worker: worker}, State: session.Open}})
	}
	return all
}

func (b *fakeBroker) End(_ context.Context, service, id string, purge bool, _ string) error {
	if purge {
		id += " purged"
	}
	b.ended = append(b.ended, service+" "+id)
	return nil
}

func (b *fakeBroker) Trace(_ context.Context, service, id, client string, request uint64) (session.Trace, error) {
	if _, err := b.Session(service, id); err != nil {
		return session.Trace{}, err
	}
	at := time.Date(2026, 11, 27, 8, 0, 0, 0, time.UTC)
	return session.Trace{Client: client, Request: request, QueuedAt: at, Status: "running", Dispatched: []session.Dispatch{{At: at, Instance: "a", Outcome: "lost"}, {At: at, Instance: "b"}}}, nil
}

func (b *fakeBroker) Page(_ context.Context, service, id, _ string, _ uint64, _ int) (session.Page, error) {
	if _, err := b.Session(service, id); err != nil {
		return session.Page{}, err
	}
	return b.page, nil
}

func (b *fakeBroker) Workers(string) []session.WorkerInfo { return nil }
func (b *fakeBroker) Demand() []session.Demand            { return nil }

func (b *fakeBroker) ServeClient(ctx context.Context, conn session.Conn, service, id, client string, at session.Position) error {
	return b.echo(ctx, conn, service, id, client, at.From)
}

func (b *fakeBroker) ServeInstance(ctx context.Context, conn session.Conn, service, worker, instance string, capacity int) error {
	return b.echo(ctx, conn, service, worker, instance, capacity)
}

func (b *fakeBroker) Agents(string) []wire.Agent { return nil }

func (b *fakeBroker) Failure(string, string) *fanfare.Error { return nil }

func (b *fakeBroker) ServeAgent(ctx context.Context, conn session.Conn, service, agent, _ string) error {
	return b.echo(ctx, conn, service, agent)
}

func (b *fakeBroker) echo(ctx context.Context, conn session.Conn, about ...any) error {
	text, err := json.Marshal(about)
	if err != nil {
		return err
	}
	b.mu.Lock()
	b.served = append(b.served, string(text))
	b.mu.Unlock()
	if conn.(interface{ Remote() string }).Remote() != "127.0.0.1" {
		return errors.New("the address of the peer is not known")
	}
	for {
		f, err := conn.Read(ctx)
		if err != nil {
			return err
		}
		if err := conn.Write(ctx, f); err != nil {
			return err
		}
	}
}

// withWorker is a world whose service news has the worker pricing.
type withWorker struct{ *world }

func (withWorker) Configuration() catalog.Configuration {
	s, svc := catalog.NewSnapshot(), catalog.NewService(1, "news")
	s.Services["news"] = svc
	svc.Workers["pricing"] = &catalog.Worker{Number: 1, Service: "news", Name: "pricing", WorkerSettings: catalog.WorkerSettings{Command: []string{"/opt/a"}, MessageLimit: 64 << 10, Concurrency: 2}}
	return catalog.Configuration{Snapshot: s}
}

func sessionAPI(b *fakeBroker) *API {
	w := newWorld()
	return w.api(func(p *Dependencies) {
		p.Sessions, p.Agents, p.Documents, p.Limits = b, b, withWorker{w}, limits.Limits{Requests: 2, RequestsPerKey: 1}
	})
}

func TestASessionIsOpenedWithItsOptions(t *testing.T) {
	for _, test := range []struct {
		body string
		want session.Options
	}{
		{`{"worker":"pricing"}`, session.Options{Worker: "pricing", Resends: -1, OpenedBy: "key-1"}},
		{`{"worker":"pricing","kind":"durable","name":"night","min_instances":1,"max_instances":8,"priority":80,"resends":0,"idle_timeout":"1h","total_timeout":"24h"}`,
			session.Options{Worker: "pricing", Kind: session.Durable, Name: "night", MinInstances: 1, MaxInstances: 8, Priority: 80, IdleTimeout: time.Hour, TotalTimeout: 24 * time.Hour, OpenedBy: "key-1"}},
	} {
		b := &fakeBroker{}
		rec := ask(t, sessionAPI(b), "POST", "/v1/sessions", test.body)
		if rec.Code != 201 || rec.Header().Get("Location") != "/v1/sessions/ses-1" || b.opened != test.want {
			t.Errorf("%s: %d %s, opened with %+v", test.body, rec.Code, rec.Body, b.opened)
		}
	}
}

func TestAnInvalidSessionIsRefused(t *testing.T) {
	for body, pointer := range map[string]string{
		`{}`:                                         "/worker",
		`{"worker":"pricing","resends":-1}`:          "/resends",
		`{"worker":"pricing","name":"a b"}`:          "/name",
		`{"worker":"pricing","cores":3}`:             "",
		`{"worker":"pricing","priority":"x"}`:        "/priority",
		`{"worker":"pricing","idle_timeout":"soon"}`: "/idle_timeout",
		`{"worker":"pricing","total_timeout":"-1s"}`: "/total_timeout",
	} {
		if p := problemIn(t, ask(t, sessionAPI(&fakeBroker{}), "POST", "/v1/sessions", body), 422, fanfare.Invalid); p.Pointer != pointer {
			t.Errorf("%s: the pointer is %q", body, p.Pointer)
		}
	}
}

func TestSessionsAreListedTheLatestFirst(t *testing.T) {
	a := sessionAPI(&fakeBroker{})
	var ids []string
	cursor := ""
	for {
		var page wire.SessionPage
		rec := ask(t, a, "GET", "/v1/sessions?worker=pricing&limit=1"+cursor, "")
		if err := json.Unmarshal(rec.Body.Bytes(), &page); err != nil || len(page.Sessions) != 1 {
			t.Fatalf("%v: %s", err, rec.Body)
		}
		ids = append(ids, page.Sessions[0].ID)
		if page.Next == "" {
			break
		}
		cursor = "&cursor=" + page.Next
	}
	if strings.Join(ids, " ") != "ses-3 ses-1" {
		t.Errorf("the list is %v", ids)
	}
}

func TestASessionIsClosedAndPurged(t *testing.T) {
	b, log := &fakeBroker{}, new(ledger)
	a := newWorld().api(func(p *Dependencies) { p.Sessions, p.Audit = b, log })
	for _, query := range []string{"", "?purge=true"} {
		if rec := ask(t, a, "DELETE", "/v1/sessions/ses-1"+query, ""); rec.Code != 204 {
			t.Errorf("%d %s", rec.Code, rec.Body)
		}
	}
	if strings.Join(b.ended, ", ") != "news ses-1, news ses-1 purged" {
		t.Errorf("ended %v", b.ended)
	}
	want := []audit.Operation{{Service: "news", Action: "close", Kind: "session", Name: "ses-1"}, {Service: "news", Action: "purge", Kind: "session", Name: "ses-1"}}
	if !slices.Equal(log.deeds, want) {
		t.Errorf("the audit log has %+v", log.deeds)
	}
}

func TestAPageOfResponsesHasTextAndIsBounded(t *testing.T) {
	b := &fakeBroker{page: session.Page{First: 7, Next: 9, Responses: []frame.Response{
		{Request: 3, ID: []byte("mine"), UserData: []byte{0xff}, Body: []byte("größer"), Attempts: 2},
		{Request: 4, Body: []byte{0xff, 0}, Status: frame.Fault, Last: true, Attempts: 1},
	}}}
	a := sessionAPI(b)
	rec := ask(t, a, "GET", "/v1/sessions/ses-1/clients/risk/responses?from=7", "")
	const want = `{"responses":[{"number":7,"request":3,"id":"mine","status":"ok","attempts":2,"user_data":"/w==","body":"Z3LDtsOfZXI=","text":"größer"},` +
		`{"number":8,"request":4,"status":"fault","attempts":1,"last":true,"body":"/wA="}],"next":9}`
	if got := strings.TrimSpace(rec.Body.String()); got != want {
		t.Errorf("the page is\n%s, want\n%s", got, want)
	}

	b.page = session.Page{First: 1, Next: 13}
	for range 12 {
		b.page.Responses = append(b.page.Responses, frame.Response{Body: make([]byte, 1<<20)})
	}
	var page wire.ResponsePage
	if err := json.Unmarshal(ask(t, a, "GET", "/v1/sessions/ses-1/clients/risk/responses", "").Body.Bytes(), &page); err != nil || len(page.Responses) != 8 || page.Next != 9 {
		t.Errorf("%v: %d responses, the next page begins at %d", err, len(page.Responses), page.Next)
	}
}

func TestAStreamNeedsAWebSocket(t *testing.T) {
	a := sessionAPI(&fakeBroker{})
	for _, path := range []string{"/v1/sessions/ses-1/clients/risk/stream", "/v1/workers/pricing/stream?instance=a", "/v1/agents/host1/stream"} {
		rec := ask(t, a, "GET", path, "")
		problemIn(t, rec, 426, fanfare.UpgradeRequired)
		if rec.Header().Get("Upgrade") != "websocket" {
			t.Errorf("%s: the header Upgrade is %q (RFC 9110, section 15.5.22)", path, rec.Header().Get("Upgrade"))
		}
	}
	upgrade := []string{"Connection", "keep-alive, Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "AAAAAAAAAAAAAAAAAAAAAA=="}
	for path, code := range map[string]fanfare.Code{
		"/v1/sessions/ses-9/clients/risk/stream":                         fanfare.NotFound,
		"/v1/sessions/ses-1/clients/a%20b/stream":                        fanfare.Invalid,
		"/v1/sessions/ses-1/clients/risk/stream?from=0":                  fanfare.Invalid,
		"/v1/sessions/ses-1/clients/risk/stream":                         fanfare.Invalid, // without a subprotocol
		"/v1/workers/none/stream?instance=a":                             fanfare.NotFound,
		"/v1/workers/pricing/stream":                                     fanfare.Invalid,
		"/v1/workers/pricing/stream?instance=a&capacity=-1":              fanfare.Invalid,
		"/v1/workers/pricing/stream?instance=" + strings.Repeat("a", 65): fanfare.Invalid,
		"/v1/agents/a%20b/stream":                                        fanfare.Invalid,
	} {
		rec := ask(t, a, "GET", path, "", upgrade...)
		if status := problem.StatusOf(code); rec.Code != status {
			t.Errorf("%s: %d %s, want %d", path, rec.Code, rec.Body, status)
		}
		problemIn(t, rec, problem.StatusOf(code), code)
	}
}

// A stream is not counted as a request: neither the limit of its key nor that of the server concerns it.
func TestStreamsAreServedAndNotLimited(t *testing.T) {
	b := &fakeBroker{}
	s, err := listener.Listen(listener.Options{Address: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	s.Open(sessionAPI(b))
	defer s.Shutdown(t.Context())
	url := "http://" + s.Addr().String()
	header := http.Header{"Authorization": {"Bearer " + newsSecret}}
	for _, stream := range []struct{ path, protocol string }{
		{"/v1/sessions/ses-1/clients/risk/stream?from=3", frame.ClientProtocol},
		{"/v1/sessions/ses-1/clients/other/stream", frame.ClientProtocol},
		{"/v1/workers/pricing/stream?instance=host1-7&capacity=4", frame.WorkerProtocol},
		{"/v1/agents/host1/stream", frame.AgentProtocol},
	} {
		conn, err := websocket.Dial(t.Context(), url+stream.path, header.Clone(), stream.protocol, nil)
		if err != nil {
			t.Fatalf("%s: %v", stream.path, err)
		}
		defer conn.Close(session.CloseNormal, "")
		sent := frame.Token(frame.Flush, 0, 7)
		if err := conn.Write(t.Context(), sent); err != nil {
			t.Fatal(err)
		}
		if got, err := conn.Read(t.Context()); err != nil || !bytes.Equal(got, sent) {
			t.Errorf("%s: received %v, %v", stream.path, got, err)
		}
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/v1/sessions/ses-1", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header = header
	response, err := impatient().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != 200 {
		t.Errorf("a request beside the streams gets %s", response.Status)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if got := strings.Join(b.served, " "); got != `["news","ses-1","risk",3] ["news","ses-1","other",0] ["news","pricing","host1-7",4] ["news","host1"]` {
		t.Errorf("served %s", got)
	}
}

func TestAWorkerIsShownWithItsSettings(t *testing.T) {
	rec := ask(t, sessionAPI(&fakeBroker{}), "GET", "/v1/workers/pricing", "")
	const want = `{"name":"pricing","command":["/opt/a"],"concurrency":2,"prefetch":"auto","message_limit":"64KiB","service":"news","sessions":0,"queued":0,"running":0,"instances":[],"wanted":0}`
	if got := strings.TrimSpace(rec.Body.String()); got != want || rec.Header().Get("ETag") == "" {
		t.Errorf("shown as %s", got)
	}
}
