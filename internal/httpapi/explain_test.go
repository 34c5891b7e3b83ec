package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/httpapi/wire"
)

func (w *world) ExplainEvent(_ context.Context, service, subscription string, event fanfare.EventRef) (fanfare.Explanation, error) {
	return fanfare.Explanation{Subscription: subscription, Service: service, Event: event.String(), Wanted: true, Checks: []fanfare.Check{}}, w.fail
}

func (w *world) ExplainData(_ context.Context, service, subscription, topic string, data json.RawMessage) (fanfare.Explanation, error) {
	return fanfare.Explanation{Subscription: subscription, Service: service, Topic: topic, Summary: string(data), Checks: []fanfare.Check{}}, w.fail
}

func (w *world) Preview(_ context.Context, service, template string, in wire.PreviewRequest) (wire.Preview, error) {
	if in.Template != nil && in.Template.Text == "bad" {
		return wire.Preview{}, &fanfare.Error{Code: fanfare.Invalid, Pointer: "/templates/" + template + "/text", Line: 3,
			Details: []*fanfare.Error{{Code: fanfare.Invalid, Pointer: "/templates/" + template + "/html"}}}
	}
	return wire.Preview{Template: template, To: in.To, Subject: service}, w.fail
}

func (w *world) HTML(_ context.Context, service, template string, in wire.PreviewRequest) ([]byte, error) {
	return []byte(service + " " + template + " " + in.Locale + " " + string(in.Data)), w.fail
}

func (w *world) Lint(_ context.Context, service, template string, in wire.LintRequest) (wire.Lint, error) {
	if in.Template != nil && in.Template.Text == "bad" {
		return wire.Lint{}, &fanfare.Error{Code: fanfare.Invalid, Pointer: "/templates/" + template + "/text", Line: 3}
	}
	return wire.Lint{Template: template, Findings: []wire.Finding{{Rule: service}}}, w.fail
}

func TestExplanationsAreAskedForByEventOrByData(t *testing.T) {
	api := newWorld().api()
	do := func(method, path, contentType, body string) *httptest.ResponseRecorder {
		return ask(t, api, method, path, body, "Content-Type", contentType)
	}
	rec := do(http.MethodPost, "/v1/subscriptions/a%2Fb/explain?topic=q", "application/json", ` {"mag":1} `)
	var e fanfare.Explanation
	if err := json.Unmarshal(rec.Body.Bytes(), &e); err != nil || rec.Code != 200 || e.Subscription != "a/b" || e.Topic != "q" || strings.TrimSpace(e.Summary) != `{"mag":1}` {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
	for _, c := range []struct {
		method, path, contentType, body string
		status                          int
	}{
		{http.MethodGet, "/v1/subscriptions/x/explain", "", "", 422},
		{http.MethodGet, "/v1/subscriptions/x/explain?event=evt-20200101-1", "", "", 404},
		{http.MethodPost, "/v1/subscriptions/x/explain", "application/json", "{", 422},
		{http.MethodPost, "/v1/subscriptions/x/explain", "text/plain", "{}", 422},
		{http.MethodPost, "/v1/subscriptions/x/explain?tpoic=q", "application/json", "{}", 422},
	} {
		if rec := do(c.method, c.path, c.contentType, c.body); rec.Code != c.status {
			t.Errorf("%s %s: %d %s", c.method, c.path, rec.Code, rec.Body)
		}
	}
}

func TestAMistakeInADraftIsNamedInTheRequest(t *testing.T) {
	api := newWorld().api()
	do := func(method, path, contentType, body string) *httptest.ResponseRecorder {
		return ask(t, api, method, path, body, "Content-Type", contentType)
	}
	rec := do(http.MethodPost, "/v1/templates/a.b/preview", "application/json", `{"template":{"subject":"s","text":"bad"}}`)
	var p wire.Problem
	if err := json.Unmarshal(rec.Body.Bytes(), &p); err != nil || rec.Code != 422 || p.Pointer != "/template/text" || p.Line != 3 || p.Errors[0].Pointer != "/template/html" {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
	for _, wanted := range []struct {
		body, answer string
		status       int
	}{{`{"template":{"subject":"s","text":"bad"}}`, `"/template/text"`, 422}, {`{}`, `"rule"`, 200}, {`{"tpoic":"x"}`, "tpoic", 422}} {
		if rec := do(http.MethodPost, "/v1/templates/x/lint", "application/json", wanted.body); rec.Code != wanted.status || !strings.Contains(rec.Body.String(), wanted.answer) {
			t.Errorf("%s: %d %s", wanted.body, rec.Code, rec.Body)
		}
	}
	if rec := do(http.MethodPost, "/v1/templates/x/preview", "application/json", `{"to":"a@b.c"}`); rec.Code != 200 || !strings.Contains(rec.Body.String(), "a@b.c") {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
}
