package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/admin/report"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/document"
	"fanfare.dev/fanfare/internal/httpapi/ndjson"
	"fanfare.dev/fanfare/internal/httpapi/problem"
	"fanfare.dev/fanfare/internal/httpapi/recipientpages"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/mailbox"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/pipeline/ingest"
)

// The keys of the fake.
const (
	adminSecret = "admin-secret"
	newsSecret  = "news-secret" // of service news
)

// world implements the dependencies of the API in tests, and records the calls.
type world struct {
	mu       sync.Mutex
	services []string
	subs     map[string]people.SubscriptionPut
	puts     []people.SubscriptionPut // in the order in which they were put
	posted   []fanfare.AcceptedEvent
	known    map[string]fanfare.EventRef
	controls []string
	tokens   []string
	left     recipientpages.UnsubscribeRequest
	applied  []string
	ended    []string
	fail     error // of everything that writes
	failFrom int   // puts from this one on fail with fail; 0: at once
	notReady error
	holdPuts chan struct{} // if not nil, each call of PutSubscriptions takes one
}

func newWorld() *world {
	return &world{services: []string{"news"}, subs: map[string]people.SubscriptionPut{}, known: map[string]fanfare.EventRef{}}
}

func (w *world) Authenticate(secret string) (catalog.Principal, bool) {
	switch secret {
	case adminSecret:
		return catalog.Principal{KeyID: "key-1", Scopes: catalog.ScopeAdmin}, true
	case newsSecret:
		return catalog.Principal{KeyID: "key-2", Service: "news", Scopes: catalog.ScopeAdmin}, true
	}
	return catalog.Principal{}, false
}

// This world has no configuration, and does not store changes of it.
func (w *world) Configuration() catalog.Configuration { return catalog.Configuration{} }

func (w *world) ApplyMember(_ context.Context, _ *document.Document, check func(catalog.Configuration) error) (catalog.Configuration, error) {
	return catalog.Configuration{}, check(catalog.Configuration{})
}

func (w *world) DeleteMember(_ context.Context, _ document.Member, check func(catalog.Configuration) error) error {
	return check(catalog.Configuration{})
}

func (w *world) Plan(_ context.Context, d *document.Document) (catalog.Diff, error) {
	return catalog.Diff{Changes: []catalog.Change{{Kind: "service", Name: d.Service, Action: "create"}}}, w.fail
}

func (w *world) Apply(ctx context.Context, d *document.Document) (catalog.Diff, error) {
	if w.fail != nil {
		return catalog.Diff{}, w.fail
	}
	w.applied = append(w.applied, d.Service)
	if len(w.applied) > 1 {
		return catalog.Diff{}, nil
	}
	return w.Plan(ctx, d)
}

func (w *world) Import(service string) Import {
	return imports(func(ctx context.Context, puts []people.SubscriptionPut, results []people.PutResult) error {
		return w.PutSubscriptions(ctx, service, puts, results)
	})
}

// imports is an Import whose steps are complete as soon as they begin.
type imports func(ctx context.Context, puts []people.SubscriptionPut, results []people.PutResult) error

func (i imports) Begin(ctx context.Context, puts []people.SubscriptionPut, results []people.PutResult) <-chan error {
	return ndjson.Done(i(ctx, puts, results))
}

func (w *world) PutSubscriptions(_ context.Context, service string, puts []people.SubscriptionPut, results []people.PutResult) error {
	if w.holdPuts != nil {
		<-w.holdPuts
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fail != nil && len(w.puts) >= w.failFrom {
		return w.fail
	}
	for i := range puts {
		p := clonePut(puts[i])
		if strings.ContainsAny(p.To, "\r\n") {
			results[i].Err = &fanfare.Error{Code: fanfare.Invalid, Pointer: "/to", Message: "has a line break"}
			continue
		}
		if p.ID == "" {
			p.ID = "sub-" + p.To
		}
		_, was := w.subs[service+"/"+p.ID]
		w.subs[service+"/"+p.ID] = p
		w.puts = append(w.puts, p)
		results[i] = people.PutResult{ID: p.ID, Created: !was}
		if strings.Contains(p.Filter, "!=") {
			results[i].Cost, results[i].Added = fanfare.Cost{Nanos: 40, Why: "!= cannot be indexed"}, 40
		}
	}
	return nil
}

// clonePut copies the fields that may refer to the buffer of a chunk.
func clonePut(p people.SubscriptionPut) people.SubscriptionPut {
	for _, s := range []*string{&p.ID, &p.Topic, &p.Channel, &p.To, &p.Filter, &p.Rule, &p.Locale, &p.TimeZone, &p.State} {
		*s = strings.Clone(*s)
	}
	for _, b := range []*json.RawMessage{&p.Params, &p.Data, &p.Attributes} {
		*b = bytes.Clone(*b)
	}
	return p
}

func (w *world) Subscription(_ context.Context, service, id string) (people.Subscription, error) {
	p, ok := w.subs[service+"/"+id]
	if !ok {
		return people.Subscription{}, problem.NotFound("subscription", id)
	}
	return people.Subscription{ID: id, Service: service, Topic: p.Topic, To: p.To, State: "active"}, nil
}

func (w *world) EndSubscriptionIf(_ context.Context, service, id, reason string, _ func(*people.Subscription) error) error {
	if _, ok := w.subs[service+"/"+id]; !ok {
		return problem.NotFound("subscription", id)
	}
	w.ended = append(w.ended, id+": "+reason)
	return w.fail
}

func (w *world) PauseSubscription(_ context.Context, service, id string, _ func(*people.Subscription) error) error {
	if _, ok := w.subs[service+"/"+id]; !ok {
		return problem.NotFound("subscription", id)
	}
	return w.fail
}

func (w *world) ResumeSubscription(ctx context.Context, service, id string, check func(*people.Subscription) error) error {
	return w.PauseSubscription(ctx, service, id, check)
}

func (w *world) SubscriberPlaces(_ context.Context, service, who string) ([]fanfare.RowID, error) {
	if who != "a@example.com" {
		return nil, problem.NotFound("subscriber", who)
	}
	return []fanfare.RowID{7}, nil
}

func (w *world) Services() []string { return w.services }

func (w *world) CheckAudience(_, filter string) error {
	if filter == "wrong" {
		return &fanfare.Error{Code: fanfare.Invalid, Pointer: "/audience_filter", Message: "unknown name"}
	}
	return nil
}

func (w *world) Topic(service, name string) (*catalog.Topic, bool) {
	if service != "news" || name != "quakes" {
		return nil, false
	}
	return &catalog.Topic{Service: service, Name: name, ValidateData: validate}, true
}

func validate(data json.RawMessage) error {
	var d struct {
		Mag *float64 `json:"mag"`
	}
	if json.Unmarshal(data, &d) != nil || d.Mag == nil {
		return &fanfare.Error{Code: fanfare.Invalid, Pointer: "/data/mag", Message: "is not a number"}
	}
	return nil
}

func (w *world) Post(_ context.Context, events []fanfare.AcceptedEvent) ([]ingest.Result, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fail != nil {
		return nil, w.fail
	}
	kept := make([]ingest.Result, len(events))
	for i, e := range events {
		if _, ok := w.Topic(e.Service, e.Topic); !ok {
			kept[i].Err = problem.NotFound("topic", e.Topic)
			continue
		}
		if err := validate(e.Event.Data); err != nil {
			kept[i].Err = err
			continue
		}
		key := e.Event.Source + " " + e.Event.ID
		if ref, ok := w.known[key]; ok {
			kept[i] = ingest.Result{Ref: ref, Duplicate: true}
			continue
		}
		e.Event.Data = bytes.Clone(e.Event.Data)
		w.posted = append(w.posted, e)
		ref := fanfare.EventRef{Day: 20000, Seq: fanfare.EventSeq(len(w.posted))}
		w.known[key] = ref
		kept[i].Ref = ref
	}
	return kept, nil
}

func (w *world) Status(context.Context) (wire.Status, error) {
	return wire.Status{Version: "test", Ready: true, Database: &wire.Database{Where: "fanfare@db:5432/fanfare"},
		Broadcasts: []fanfare.Broadcast{{Event: "evt-a", Service: "news"}, {Event: "evt-b", Service: "other"}},
		Services:   []wire.ServiceLimits{{Service: "news"}, {Service: "other"}},
		Channels:   []wire.Channel{{Service: "news", Name: "mail"}, {Service: "other", Name: "mail"}},
		Paused:     []wire.Paused{{Scope: fanfare.Scope{Kind: fanfare.ScopeService, Name: "other"}}, {Scope: fanfare.Scope{Kind: fanfare.ScopeChannel, Name: "news/mail"}}},
	}, w.fail
}

// The events for which the fake has reports.
var (
	newsEvent  = fanfare.EventRef{Day: 20000, Seq: 0x1000}
	otherEvent = fanfare.EventRef{Day: 20000, Seq: 0x2000}
)

func (w *world) FindEvent(_ context.Context, service, id string) (fanfare.EventRef, error) {
	if id == "boom" {
		panic("boom with a secret")
	}
	if id == "broken" {
		return fanfare.EventRef{}, errors.New("disk /dev/secret on fire")
	}
	if id == "usgs/1" {
		return newsEvent, nil
	}
	if ref, ok := fanfare.ParseEventRef(id); ok && (ref == newsEvent || ref == otherEvent) {
		return ref, nil
	}
	return fanfare.EventRef{}, problem.NotFound("event", id)
}

func (w *world) Broadcast(_ context.Context, ref fanfare.EventRef) (fanfare.Broadcast, error) {
	b := fanfare.Broadcast{Event: ref.String(), Service: "news", Topic: "quakes", State: "completed", Data: json.RawMessage(`{"mag":1}`)}
	b.Counts[fanfare.Accepted] = 3
	if ref == otherEvent {
		b.Service = "other"
	}
	return b, nil
}

func (w *world) Broadcasts(_ context.Context, p report.Pick) (report.Page[fanfare.Broadcast], error) {
	return report.Page[fanfare.Broadcast]{List: []fanfare.Broadcast{{Event: "evt-1", Service: p.Service, Messages: int64(p.Limit)}}}, nil
}

func (w *world) Delivery(_ context.Context, ref fanfare.DeliveryRef) (fanfare.Delivery, error) {
	return fanfare.Delivery{ID: ref.String(), Service: "other"}, nil
}

func (w *world) PickDeliveries(_ context.Context, _ fanfare.EventRef, p *report.DeliveryPick) (report.Page[fanfare.Delivery], error) {
	return report.Page[fanfare.Delivery]{List: []fanfare.Delivery{{ID: "dlv-" + p.After, State: p.State}}, Next: "next-cursor"}, nil
}

func (w *world) WaitingOf(context.Context, fanfare.EventRef, string) ([]fanfare.Gathering, error) {
	return nil, nil
}

func (w *world) DeliveryOf(_ context.Context, ref fanfare.EventRef, recipient string) ([]fanfare.Delivery, error) {
	return []fanfare.Delivery{{ID: "dlv-1", Address: recipient}}, nil
}

func (w *world) History(_ context.Context, places []fanfare.RowID, p report.Pick) (report.Page[fanfare.Delivery], error) {
	return report.Page[fanfare.Delivery]{}, nil
}

func (w *world) control(what string) func(context.Context, fanfare.Scope, string) error {
	return func(_ context.Context, s fanfare.Scope, reason string) error {
		w.controls = append(w.controls, what+" "+string(s.Kind)+" "+s.Name+" "+reason)
		return w.fail
	}
}

func (w *world) Pause(ctx context.Context, s fanfare.Scope, reason string) error {
	return w.control("pause")(ctx, s, reason)
}
func (w *world) Resume(ctx context.Context, s fanfare.Scope, reason string) error {
	return w.control("resume")(ctx, s, reason)
}
func (w *world) Cancel(ctx context.Context, s fanfare.Scope, reason string) error {
	return w.control("cancel")(ctx, s, reason)
}
func (w *world) Approve(ctx context.Context, event, by string) error {
	return w.control("approve")(ctx, fanfare.Scope{Kind: fanfare.ScopeBroadcast, Name: event}, by)
}
func (w *world) SetRate(ctx context.Context, s fanfare.Scope, rate string) error {
	return w.control("rate")(ctx, s, rate)
}

func (w *world) Recall(_ context.Context, event fanfare.EventRef) error {
	w.controls = append(w.controls, "recall "+event.String())
	return w.fail
}
func (w *world) Expire(_ context.Context, event fanfare.EventRef, at time.Time) error {
	w.controls = append(w.controls, "expire "+event.String()+" "+at.UTC().Format(time.RFC3339))
	return w.fail
}

// boxes are mailboxes that always exist.
type boxes struct{}

func (boxes) Page(context.Context, string, fanfare.RowID, int) ([]mailbox.Account, fanfare.RowID, error) {
	return nil, 0, nil
}

func (boxes) Account(context.Context, string, string) (a mailbox.Account, folders []mailbox.Mailbox, err error) {
	return a, nil, nil
}

func (boxes) Create(context.Context, string, string) (a mailbox.Account, created bool, err error) {
	return a, true, nil
}

func (boxes) Change(context.Context, string, string, *int64, *int64, *bool) (before, after mailbox.Account, err error) {
	return before, after, nil
}

func (boxes) Export(context.Context, string, string, func(*PersonalLine) error) error { return nil }

func (boxes) Import(_ context.Context, _, _ string, next func() (*PersonalLine, error)) (a mailbox.Account, stored int, err error) {
	if _, err = next(); errors.Is(err, io.EOF) {
		err = nil
	}
	return a, 0, err
}

func (boxes) Remove(context.Context, string, string) (a mailbox.Account, err error) { return a, nil }

func (boxes) Aliases(context.Context, string, string) ([]mailbox.Alias, error) { return nil, nil }

func (boxes) AddAlias(context.Context, string, string, string) (of mailbox.Account, made mailbox.Alias, added bool, err error) {
	return of, made, true, nil
}

func (boxes) SearchIndex(context.Context) (index mailbox.SearchIndex, err error) { return index, nil }

func (boxes) Reindex(context.Context, string, string, mailbox.ContentID) (of mailbox.Account, done mailbox.Reindexing, err error) {
	return of, done, nil
}

func (boxes) RemoveAlias(context.Context, string, string, string) (of mailbox.Account, err error) {
	return of, nil
}

func (w *world) Parked(context.Context) ([]fanfare.Parked, error) {
	return []fanfare.Parked{{ID: "p1"}}, nil
}
func (w *world) RetryParked(_ context.Context, id string) error {
	w.controls = append(w.controls, "retry "+id)
	return nil
}
func (w *world) DropParked(_ context.Context, id string) error {
	if id != "p1" {
		return problem.NotFound("parked work", id)
	}
	return nil
}

// api serves the world.
func (w *world) api(change ...func(*Dependencies)) *API {
	parts := Dependencies{Keys: w, Keyring: newKeyBox(), SignIns: signIns(w, noRoles()), Documents: w, Subscriptions: w, Topics: w, Intake: w, Reports: w, Switches: w, Recalls: w, Mailboxes: boxes{}, Parking: w, Audit: new(ledger), Explaining: w, Previews: w,
		Unsubscriber: unsubscribeWorld{w},
		Ready:        func() error { return w.notReady },
		Metrics:      http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { io.WriteString(rw, "fanfare_up 1\n") }),
		Version:      "test", Log: slog.New(slog.DiscardHandler),
	}
	for _, c := range change {
		c(&parts)
	}
	return New(parts)
}

// ask sends one request to a handler.
func ask(t testing.TB, h http.Handler, method, path, body string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+adminSecret)
	for i := 0; i < len(header); i += 2 {
		if header[i+1] == "" {
			r.Header.Del(header[i])
		} else {
			r.Header.Set(header[i], header[i+1])
		}
	}
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	return rec
}

// problemIn reads the problem document of a response and checks its common members.
func problemIn(t testing.TB, rec *httptest.ResponseRecorder, status int, code fanfare.Code) wire.Problem {
	t.Helper()
	var p wire.Problem
	if rec.Code != status {
		t.Errorf("status is %d, not %d: %s", rec.Code, status, rec.Body)
	}
	if ct := rec.Header().Get("Content-Type"); ct != problem.MediaType {
		t.Errorf("content type is %q", ct)
	}
	if err := json.Unmarshal(rec.Body.Bytes(), &p); err != nil {
		t.Fatalf("%v: %s", err, rec.Body)
	}
	if p.Code != code || p.Status != rec.Code || p.RequestID == "" || p.RequestID != rec.Header().Get("X-Request-Id") || p.Title == "" {
		t.Errorf("problem is %+v, not %s", p, code)
	}
	return p
}

func serve(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	return rec
}
