// Package resourcetest sends requests to the routes of a package of the NotifyBC API, for its tests.
package resourcetest

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/compat/notifybc/resource"
	"fanfare.dev/fanfare/internal/compat/notifybc/roles"
)

// The callers of tests.
var (
	SuperAdmin = roles.Caller{SecurityID: "127.0.0.1", Strategy: "ip", Role: roles.SuperAdmin}
	Admin      = roles.Caller{SecurityID: "0123456789abcdef01234567", Strategy: "accessToken", Role: roles.Admin}
	User       = roles.Caller{SecurityID: "ann", Strategy: "siteMinder", Role: roles.User}
	Anonymous  = roles.Caller{Role: roles.Anonymous}
)

// A Router sends requests to routes.
type Router struct {
	T      testing.TB
	Routes []resource.Route
	From   string // the address of the client
}

// Do sends a request, and returns the status and the decoded body.
func (w *Router) Do(by roles.Caller, method, target, body string) (status int, decoded any) {
	w.T.Helper()
	var answer resource.Answer
	var err error
	mux := http.NewServeMux()
	for _, route := range w.Routes {
		mux.HandleFunc(route.Method+" "+route.Path, func(_ http.ResponseWriter, r *http.Request) {
			if !route.Who(&by) {
				err = roles.Forbidden()
				return
			}
			answer, err = route.Handle(&resource.Request{Request: r, Caller: by, Client: netip.MustParseAddr(w.From)})
		})
	}
	recorder := httptest.NewRecorder()
	mux.ServeHTTP(recorder, httptest.NewRequestWithContext(w.T.Context(), method, target, strings.NewReader(body)))
	if recorder.Code != http.StatusOK {
		w.T.Fatalf("%s %s: no route", method, target)
	}
	if refusal, ok := errors.AsType[*roles.Refusal](err); ok {
		answer = resource.Answer{Status: refusal.Status, Body: refusal.Body()}
	} else if err != nil {
		w.T.Fatalf("%s %s: %v", method, target, err)
	}
	text, err := json.Marshal(answer.Body)
	if err == nil {
		err = json.Unmarshal(text, &decoded)
	}
	if err != nil {
		w.T.Fatal(err)
	}
	return answer.Status, decoded
}

// Want sends a request, checks the status, and returns the body if it is an object.
func (w *Router) Want(status int, by roles.Caller, method, target, body string) map[string]any {
	w.T.Helper()
	got, answer := w.Do(by, method, target, body)
	if got != status {
		w.T.Fatalf("%s %s %s: status %d, body %v; want %d", method, target, body, got, answer, status)
	}
	object, _ := answer.(map[string]any)
	return object
}
