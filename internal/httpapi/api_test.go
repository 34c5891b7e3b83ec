package httpapi

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/httpapi/httpio"
	"fanfare.dev/fanfare/internal/httpapi/wire"
)

const oneSub = `{"topic":"quakes","channel":"mail","to":"a@example.com"}`

func TestEveryEndpointAnswers(t *testing.T) {
	evt := newsEvent.String()
	for _, test := range []struct {
		method, path, body string
		status             int
		contains           string
	}{
		{"GET", "/healthz", "", 200, "ok"},
		{"GET", "/readyz", "", 200, "ready"},
		{"GET", "/v1/status", "", 200, `"version":"test"`},
		{"GET", "/v1/events/" + evt, "", 200, `"accepted":3`},
		{"GET", "/v1/events/usgs%2F1", "", 200, evt},
		{"GET", "/v1/events/" + evt + "/deliveries?state=failed&cursor=" + listingOf("deliveries", evt, "failed").cursor("x"), "", 200, `"dlv-x"`},
		{"GET", "/v1/events/" + evt + "/deliveries?recipient=a@example.com", "", 200, `"address":"a@example.com"`},
		{"GET", "/v1/broadcasts?limit=5", "", 200, `"messages":5`},
		{"GET", "/v1/subscribers/a@example.com/deliveries", "", 200, `"deliveries":[]`},
		{"POST", "/v1/subscriptions", oneSub, 201, `{"id":"sub-a@example.com","created":true,"matching":{"indexed":true}}`},
		{"PUT", "/v1/subscriptions/mine", oneSub, 201, `{"id":"mine","created":true,"matching":{"indexed":true}}`},
		{"POST", "/v1/topics/quakes/events", `{"mag":4}`, 202, `"duplicate":false`},
		{"POST", "/v1/pause", `{"scope":{"kind":"all"},"reason":"relay is down"}`, 204, ""},
		{"POST", "/v1/resume", `{"scope":{"kind":"service","name":"news"}}`, 204, ""},
		{"POST", "/v1/cancel", `{"scope":{"kind":"broadcast","name":"usgs/1"}}`, 204, ""},
		{"GET", "/v1/parked", "", 200, `"p1"`},
		{"POST", "/v1/parked/p1/retry", "", 204, ""},
		{"DELETE", "/v1/parked/p1", "", 204, ""},
		{"POST", "/v1/keys", `{"service":"news","name":"ci"}`, 201, `"secret-of-news-ci"`},
		{"GET", "/u/good", "", 200, "<button"},
		{"POST", "/u/good", "List-Unsubscribe=One-Click", 200, "You are unsubscribed"},
		{"POST", "/v1/apply?dry_run=true", "service: news\n", 200, `"changes":[`},
		{"POST", "/v1/apply", `{"service":"news"}`, 200, `"changes":[`},
	} {
		t.Run(test.method+" "+test.path, func(t *testing.T) {
			rec := ask(t, newWorld().api(), test.method, test.path, test.body)
			if rec.Code != test.status || !strings.Contains(rec.Body.String(), test.contains) {
				t.Errorf("%d %s", rec.Code, rec.Body)
			}
			if text := rec.Body.String(); text != "" && !strings.HasSuffix(text, "\n") && !strings.HasPrefix(test.path, "/u/") {
				t.Errorf("in a terminal the prompt would stand behind %q", text)
			}
		})
	}
}

func TestEveryRefusalIsAProblemDocument(t *testing.T) {
	big := `{"to":"` + strings.Repeat("x", httpio.MaxBodyBytes) + `"}`
	for name, test := range map[string]struct {
		method, path, body string
		header             []string
		status             int
		code               fanfare.Code
		says               string
	}{
		"no key":                        {"GET", "/v1/status", "", []string{"Authorization", ""}, 401, fanfare.Unauthenticated, "key"},
		"no bearer":                     {"GET", "/v1/status", "", []string{"Authorization", "Basic eDp5"}, 401, fanfare.Unauthenticated, "Bearer"},
		"wrong key":                     {"POST", "/v1/subscriptions", oneSub, []string{"Authorization", "Bearer nope"}, 401, fanfare.Unauthenticated, "unknown or revoked"},
		"key of another service":        {"GET", "/v1/status", "", []string{"Authorization", "Bearer " + newsSecret, "X-Fanfare-Service", "other"}, 403, fanfare.Forbidden, "other"},
		"another service by query":      {"POST", "/v1/subscriptions?service=other", oneSub, []string{"Authorization", "Bearer " + newsSecret}, 403, fanfare.Forbidden, "other"},
		"event of another service":      {"GET", "/v1/events/" + otherEvent.String(), "", []string{"Authorization", "Bearer " + newsSecret}, 404, fanfare.NotFound, "does not exist"},
		"deliveries of another":         {"GET", "/v1/events/" + otherEvent.String() + "/deliveries", "", []string{"Authorization", "Bearer " + newsSecret}, 404, fanfare.NotFound, "does not exist"},
		"pause another's broadcast":     {"POST", "/v1/pause", `{"scope":{"kind":"broadcast","name":"` + otherEvent.String() + `"}}`, []string{"Authorization", "Bearer " + newsSecret}, 404, fanfare.NotFound, "does not exist"},
		"pause all with service key":    {"POST", "/v1/pause", `{"scope":{"kind":"all"}}`, []string{"Authorization", "Bearer " + newsSecret}, 403, fanfare.Forbidden, "admin"},
		"pause another service":         {"POST", "/v1/pause", `{"scope":{"kind":"service","name":"other"}}`, []string{"Authorization", "Bearer " + newsSecret}, 403, fanfare.Forbidden, "admin"},
		"pause another's channel":       {"POST", "/v1/pause", `{"scope":{"kind":"channel","name":"other/mail"}}`, []string{"Authorization", "Bearer " + newsSecret}, 403, fanfare.Forbidden, "admin"},
		"retry with service key":        {"POST", "/v1/parked/p1/retry", "", []string{"Authorization", "Bearer " + newsSecret}, 404, fanfare.NotFound, "p1"},
		"new key for another":           {"POST", "/v1/keys", `{"service":"other"}`, []string{"Authorization", "Bearer " + newsSecret}, 403, fanfare.Forbidden, "other"},
		"apply for another service":     {"POST", "/v1/apply", "service: other\n", []string{"Authorization", "Bearer " + newsSecret}, 403, fanfare.Forbidden, "other"},
		"unknown path":                  {"GET", "/v1/nothing", "", nil, 404, fanfare.NotFound, "/v1/nothing"},
		"unknown method":                {"PATCH", "/v1/subscriptions", "", nil, 405, fanfare.MethodNotAllowed, "PATCH"},
		"unknown query parameter":       {"POST", "/v1/subscriptions?quite=true", oneSub, nil, 422, fanfare.Invalid, "quite"},
		"unknown parameter of huma":     {"GET", "/v1/status?x=1", "", nil, 422, fanfare.Invalid, "x"},
		"parameter that is there twice": {"GET", "/v1/broadcasts?limit=1&limit=2", "", nil, 422, fanfare.Invalid, "query parameter limit occurs twice"},
		"limit out of range":            {"GET", "/v1/broadcasts?limit=100000", "", nil, 422, fanfare.Invalid, "limit"},
		"unknown state":                 {"GET", "/v1/events/" + newsEvent.String() + "/deliveries?state=lost", "", nil, 422, fanfare.Invalid, "state"},
		"body over the limit":           {"POST", "/v1/subscriptions", big, nil, 413, fanfare.TooLarge, "1048576"},
		"apply over the limit":          {"POST", "/v1/apply", `{"service":"` + strings.Repeat("x", 2<<20) + `"}`, nil, 413, fanfare.TooLarge, "2097152"},
		"malformed JSON":                {"POST", "/v1/keys", "{\n \"service\": }", nil, 422, fanfare.Invalid, "not valid JSON"},
		"time without a zone":           {"POST", "/v1/keys", "{\"service\":\"news\",\n\"expires_at\":\"2026-12-01 10:00\"}", nil, 422, fanfare.Invalid, `"detail":"\"2026-12-01 10:00\" is not a valid time","line":2,"column":14,"hint":"write it with its time zone`},
		"day without a time":            {"POST", "/v1/topics/quakes/events?not_before=2026-12-01", `{"mag":1}`, nil, 422, fanfare.Invalid, `"detail":"\"2026-12-01\" is not a valid time","pointer":"/not_before"`},
		"unknown member":                {"POST", "/v1/keys", `{"service":"news","label":"x"}`, nil, 422, fanfare.Invalid, "label"},
		"two values":                    {"POST", "/v1/keys", `{"service":"news"} {}`, nil, 422, fanfare.Invalid, "more than one"},
		"empty body":                    {"POST", "/v1/pause", "", nil, 422, fanfare.Invalid, "unexpected end of the body"},
		"wrong type":                    {"POST", "/v1/pause", `{"scope":{"kind":7}}`, nil, 422, fanfare.Invalid, "number"},
		"unknown scope":                 {"POST", "/v1/pause", `{"scope":{"kind":"world","name":"x"}}`, nil, 422, fanfare.Invalid, "broadcast"},
		"scope without a name":          {"POST", "/v1/pause", `{"scope":{"kind":"service"}}`, nil, 422, fanfare.Invalid, "empty"},
		"key for nobody":                {"POST", "/v1/keys", `{"name":"x"}`, nil, 422, fanfare.Invalid, "service"},
		"form instead of JSON":          {"POST", "/v1/subscriptions", "to=a", []string{"Content-Type", "application/x-www-form-urlencoded"}, 422, fanfare.Invalid, "Content-Type"},
		"compressed":                    {"POST", "/v1/subscriptions", "x", []string{"Content-Encoding", "gzip"}, 422, fanfare.Invalid, "gzip"},
		"line break in an address":      {"POST", "/v1/subscriptions", `{"topic":"q","channel":"m","to":"a@b.c\r\nBcc: x@y.z"}`, nil, 422, fanfare.Invalid, "line break"},
		"id unlike the path's":          {"PUT", "/v1/subscriptions/a", `{"id":"b"}`, nil, 422, fanfare.Invalid, "path"},
		"no such subscription":          {"GET", "/v1/subscriptions/none", "", nil, 404, fanfare.NotFound, "none"},
		"end of no subscription":        {"DELETE", "/v1/subscriptions/none", "", nil, 404, fanfare.NotFound, "none"},
		"no such subscriber":            {"GET", "/v1/subscribers/nobody@example.com/deliveries", "", nil, 404, fanfare.NotFound, "nobody"},
		"unknown topic":                 {"POST", "/v1/topics/weather/events", `{"mag":1}`, nil, 404, fanfare.NotFound, "weather"},
		"schema violation":              {"POST", "/v1/topics/quakes/events", `{"mag":"big"}`, nil, 422, fanfare.Invalid, "number"},
		"unknown lane":                  {"POST", "/v1/topics/quakes/events?lane=fast", `{"mag":1}`, nil, 422, fanfare.Invalid, "urgent"},
		"no such parked work":           {"DELETE", "/v1/parked/p9", "", nil, 404, fanfare.NotFound, "p9"},
		"inside of the server":          {"GET", "/v1/events/broken", "", nil, 500, fanfare.Internal, "an internal error"},
		"panic":                         {"GET", "/v1/events/boom", "", nil, 500, fanfare.Internal, "an internal error"},
		"apply with an unknown key":     {"POST", "/v1/apply", "service: news\ntopcis: {}\n", nil, 422, fanfare.Invalid, "topcis"},
	} {
		t.Run(name, func(t *testing.T) {
			rec := ask(t, newWorld().api(), test.method, test.path, test.body, test.header...)
			problemIn(t, rec, test.status, test.code)
			if !strings.Contains(rec.Body.String(), test.says) {
				t.Errorf("does not say %q: %s", test.says, rec.Body)
			}
			if strings.Contains(rec.Body.String(), "secret") {
				t.Errorf("shows internals: %s", rec.Body)
			}
			if test.status == 401 && rec.Header().Get("WWW-Authenticate") == "" {
				t.Error("401 without WWW-Authenticate")
			}
			if test.status == 405 && !strings.Contains(rec.Header().Get("Allow"), "POST") {
				t.Errorf("405 with Allow: %q", rec.Header().Get("Allow"))
			}
		})
	}
}

func TestPointerAndPositionPassThrough(t *testing.T) {
	a := newWorld().api()
	p := problemIn(t, ask(t, a, "POST", "/v1/topics/quakes/events", `{"mag":"x"}`), 422, fanfare.Invalid)
	if p.Pointer != "/data/mag" {
		t.Errorf("pointer is %q", p.Pointer)
	}
	p = problemIn(t, ask(t, a, "POST", "/v1/keys", "{\n  \"service\": }"), 422, fanfare.Invalid)
	if p.Line != 2 || p.Column == 0 {
		t.Errorf("position is %d:%d", p.Line, p.Column)
	}
	p = problemIn(t, ask(t, a, "POST", "/v1/apply", "service: news\ntopcis: {}\n"), 422, fanfare.Invalid)
	if p.Line != 2 {
		t.Errorf("line is %d", p.Line)
	}
}

func TestFullDiskAndUnavailableSayWhenToTryAgain(t *testing.T) {
	for code, status := range map[fanfare.Code]int{fanfare.DiskFull: 507, fanfare.Unavailable: 503, fanfare.Conflict: 409} {
		w := newWorld()
		w.fail = &fanfare.Error{Code: code, Message: "not now"}
		for path, body := range map[string]string{"/v1/subscriptions": oneSub, "/v1/topics/quakes/events": `{"mag":1}`} {
			rec := ask(t, w.api(), "POST", path, body)
			problemIn(t, rec, status, code)
			if (rec.Header().Get("Retry-After") == "") != (status == 409) {
				t.Errorf("%d with Retry-After %q", status, rec.Header().Get("Retry-After"))
			}
		}
	}
}

func TestReadinessHasAReason(t *testing.T) {
	w := newWorld()
	w.notReady = &fanfare.Error{Code: fanfare.Unavailable, Message: "draining"}
	p := problemIn(t, ask(t, w.api(), "GET", "/readyz", ""), 503, fanfare.Unavailable)
	if p.Detail != "draining" {
		t.Errorf("says %q", p.Detail)
	}
	if rec := ask(t, w.api(), "GET", "/healthz", "", "Authorization", ""); rec.Code != 200 {
		t.Errorf("healthz is %d while not ready", rec.Code)
	}
}

func TestMetricsAreOpenOnlyToThisMachine(t *testing.T) {
	a := newWorld().api()
	for _, test := range []struct {
		remote, forwarded, key string
		status                 int
	}{
		{"127.0.0.1:5", "", "", 200}, {"[::1]:5", "", "", 200}, {"[::ffff:127.0.0.1]:5", "", "", 200},
		{"192.0.2.1:5", "", "", 401}, {"127.0.0.1:5", "192.0.2.1", "", 401},
		{"192.0.2.1:5", "", newsSecret, 403}, {"192.0.2.1:5", "", adminSecret, 200},
	} {
		r, _ := http.NewRequest("GET", "/metrics", nil)
		r.RemoteAddr = test.remote
		if test.forwarded != "" {
			r.Header.Set("X-Forwarded-For", test.forwarded)
		}
		if test.key != "" {
			r.Header.Set("Authorization", "Bearer "+test.key)
		}
		rec := serve(a, r)
		if rec.Code != test.status {
			t.Errorf("%+v: %d", test, rec.Code)
		}
	}
}

func TestAdminNamesTheServiceWhereThereAreSeveral(t *testing.T) {
	w := newWorld()
	w.services = []string{"news", "other"}
	a := w.api()
	p := problemIn(t, ask(t, a, "POST", "/v1/subscriptions", oneSub), 422, fanfare.Invalid)
	if !strings.Contains(p.Hint, "news, other") {
		t.Errorf("hint is %q", p.Hint)
	}
	for _, rec := range []int{
		ask(t, a, "POST", "/v1/subscriptions?service=other", oneSub).Code,
		ask(t, a, "PUT", "/v1/subscriptions/x", oneSub, "X-Fanfare-Service", "other").Code,
		ask(t, a, "GET", "/v1/subscriptions/x?service=other", "").Code - 200 + 201,
		ask(t, a, "POST", "/v1/subscriptions", oneSub, "Authorization", "bearer "+newsSecret).Code,
	} {
		if rec != 201 {
			t.Errorf("got %d", rec)
		}
	}
	w.services = nil
	if p := problemIn(t, ask(t, a, "POST", "/v1/subscriptions", oneSub), 422, fanfare.Invalid); !strings.Contains(p.Detail, "no services yet") {
		t.Errorf("says %q", p.Detail)
	}
}

func TestStatusOfAServiceShowsOnlyItsOwn(t *testing.T) {
	var s wire.Status
	rec := ask(t, newWorld().api(), "GET", "/v1/status", "", "Authorization", "Bearer "+newsSecret)
	if err := json.Unmarshal(rec.Body.Bytes(), &s); err != nil {
		t.Fatal(err)
	}
	if len(s.Broadcasts) != 1 || len(s.Channels) != 1 || len(s.Services) != 1 || len(s.Paused) != 1 || strings.Contains(rec.Body.String(), "other") {
		t.Errorf("shows %s", rec.Body)
	}
}

// An operator who specifies a service sees its broadcasts, and still the state of the server.
func TestStatusForAnOperatorWhoNamesAServiceHasTheDatabase(t *testing.T) {
	a := newWorld().api()
	for name, test := range map[string]struct {
		secret   string
		database bool
	}{"the operator": {adminSecret, true}, "a key of the service": {newsSecret, false}} {
		var s wire.Status
		rec := ask(t, a, "GET", "/v1/status?service=news", "", "Authorization", "Bearer "+test.secret)
		if err := json.Unmarshal(rec.Body.Bytes(), &s); err != nil {
			t.Fatal(err)
		}
		if len(s.Broadcasts) != 1 || (s.Database != nil) != test.database {
			t.Errorf("%s is shown %s", name, rec.Body)
		}
	}
}

func TestControlReachesWhatItNames(t *testing.T) {
	w := newWorld()
	a := w.api()
	for _, body := range []string{
		`{"scope":{"kind":"broadcast","name":"usgs/1"},"reason":"typo"}`,
		`{"scope":{"kind":"channel","name":"mail"}}`,
		`{"scope":{"kind":"channel","name":"news/mail"}}`,
		`{"scope":{"kind":"all","name":"ignored"}}`,
	} {
		if rec := ask(t, a, "POST", "/v1/cancel", body); rec.Code != 204 || rec.Body.Len() > 0 {
			t.Errorf("%s: %d %s", body, rec.Code, rec.Body)
		}
	}
	want := []string{"cancel broadcast " + newsEvent.String() + " typo", "cancel channel news/mail ", "cancel channel news/mail ", "cancel all  "}
	for i := range want {
		if w.controls[i] != want[i] {
			t.Errorf("%q reached as %q", want[i], w.controls[i])
		}
	}
}

func TestSecondPutIsNotACreation(t *testing.T) {
	a := newWorld().api()
	first := ask(t, a, "PUT", "/v1/subscriptions/mine", oneSub)
	if first.Code != 201 || first.Header().Get("Location") != "/v1/subscriptions/mine" {
		t.Errorf("first: %d, Location %q", first.Code, first.Header().Get("Location"))
	}
	if second := ask(t, a, "PUT", "/v1/subscriptions/mine", oneSub); second.Code != 200 {
		t.Errorf("second: %d", second.Code)
	}
	if end := ask(t, a, "DELETE", "/v1/subscriptions/mine?reason=moved", ""); end.Code != 204 {
		t.Errorf("end: %d %s", end.Code, end.Body)
	}
}

func TestApplyTwiceAnswersAnEmptyList(t *testing.T) {
	a := newWorld().api()
	ask(t, a, "POST", "/v1/apply", "service: news\n")
	if rec := ask(t, a, "POST", "/v1/apply", "service: news\n"); strings.TrimSpace(rec.Body.String()) != `{"changes":[]}` {
		t.Errorf("second answer is %s", rec.Body)
	}
}

func TestUnsubscribePageChangesNothingAndRunsNothing(t *testing.T) {
	w := newWorld()
	a := w.api()
	rec := ask(t, a, "GET", "/u/good", "", "Authorization", "")
	if len(w.tokens) != 0 || rec.Code != 200 {
		t.Errorf("GET acted: %v, %d", w.tokens, rec.Code)
	}
	h := rec.Header()
	if !strings.Contains(h.Get("Content-Security-Policy"), "default-src 'none'") || h.Get("Referrer-Policy") != "no-referrer" || h.Get("Cache-Control") != "no-store" ||
		h.Get("Set-Cookie") != "" || strings.Contains(rec.Body.String(), "<script") {
		t.Errorf("headers are %v", h)
	}
	for _, want := range []string{`lang="en"`, "<h1>", "<main", `name="viewport"`, "<title>"} {
		if !strings.Contains(rec.Body.String(), want) {
			t.Errorf("page lacks %s", want)
		}
	}
	for range 2 { // a mail program may click twice
		if rec := ask(t, a, "POST", "/u/good", "List-Unsubscribe=One-Click", "Authorization", "", "Content-Type", "application/x-www-form-urlencoded"); rec.Code != 200 {
			t.Errorf("POST: %d", rec.Code)
		}
	}
	if len(w.tokens) != 2 {
		t.Errorf("acted %d times", len(w.tokens))
	}
	if rec := ask(t, a, "POST", "/u/forged", ""); rec.Code != 404 || !strings.Contains(rec.Body.String(), "does not work") {
		t.Errorf("forged: %d %s", rec.Code, rec.Body)
	}
	w.fail = &fanfare.Error{Code: fanfare.DiskFull}
	if rec := ask(t, a, "POST", "/u/good", ""); rec.Code != 507 || !strings.Contains(rec.Body.String(), "Nothing was changed") {
		t.Errorf("full disk: %d %s", rec.Code, rec.Body)
	}
}

func TestRequestIDIsTakenOnlyWhenHarmless(t *testing.T) {
	a := newWorld().api()
	if id := ask(t, a, "GET", "/healthz", "", "X-Request-Id", "abc-1.2_Z").Header().Get("X-Request-Id"); id != "abc-1.2_Z" {
		t.Errorf("id became %q", id)
	}
	for _, bad := range []string{"a b", "x\"y", strings.Repeat("a", 65)} {
		if id := ask(t, a, "GET", "/healthz", "", "X-Request-Id", bad).Header().Get("X-Request-Id"); id == bad || len(id) != 16 {
			t.Errorf("%q became %q", bad, id)
		}
	}
}

func TestOpenAPIDescribesEveryRoute(t *testing.T) {
	a := newWorld().api()
	rec := ask(t, a, "GET", "/openapi.json", "", "Authorization", "")
	var spec struct {
		OpenAPI string `json:"openapi"`
		Paths   map[string]map[string]struct {
			OperationID string           `json:"operationId"`
			Summary     string           `json:"summary"`
			Security    []map[string]any `json:"security"`
			Responses   map[string]any   `json:"responses"`
		} `json:"paths"`
		Components struct {
			Schemas map[string]any `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(rec.Body.Bytes(), &spec); err != nil {
		t.Fatalf("%v: %s", err, rec.Body)
	}
	if !strings.HasPrefix(spec.OpenAPI, "3.1") {
		t.Errorf("version is %s", spec.OpenAPI)
	}
	ids := map[string]bool{}
	for path, methods := range spec.Paths {
		for method, op := range methods {
			if op.OperationID == "" || op.Summary == "" || ids[op.OperationID] || op.Responses["default"] == nil || len(op.Responses) < 2 {
				t.Errorf("%s %s is described as %+v", method, path, op)
			}
			ids[op.OperationID] = true
			if (op.Security == nil) == strings.HasPrefix(path, "/v1/") {
				t.Errorf("%s %s: security is %v", method, path, op.Security)
			}
		}
	}
	if len(ids) < 25 { // every part adds its own
		t.Errorf("%d operations: %v", len(ids), ids)
	}
	for _, gone := range []string{"ErrorModel", "ErrorDetail"} {
		if spec.Components.Schemas[gone] != nil || strings.Contains(rec.Body.String(), "/"+gone) {
			t.Errorf("%s is not ours", gone)
		}
	}
	if spec.Components.Schemas["Problem"] == nil {
		t.Error("problems are not described")
	}
}
