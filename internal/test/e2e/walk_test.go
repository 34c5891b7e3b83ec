package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/sink"
	"fanfare.dev/fanfare/internal/test/issuer"
)

// ours are the names and ids of the first service that stand for the parameters
// of paths. A route with another parameter has to get its entry here.
func ours(s *server, event string) map[string]string {
	message := s.http.message("", `{"channel":"email","to":"reader@example.org","content":{"subject":"hello","text":"secret text"}}`)
	s.http.completed(message.Event) // what changes by itself is over
	s.http.must(201, "PUT", "/v1/mailboxes/owner@example.org", plain, "{}")
	password := into[struct{ ID string }](s.t, s.http.must(201, "POST", "/v1/mailboxes/owner@example.org/app-passwords", plain, `{"name":"phone"}`)).ID
	s.http.must(201, "PUT", "/v1/mailboxes/owner@example.org/aliases/sales@example.org", plain, "")
	return map[string]string{
		"/v1/captured/{id}": "dlv-20261120-40041-17", "number": "1",
		"alias":   "sales@example.org",
		"address": "owner@example.org", "/v1/mailboxes/owner@example.org/app-passwords/{id}": password,
		"/v1/broadcasts/{id}/recall": event, "/v1/broadcasts/{id}/expiry": event,
		"topic": "story", "template": "story", "channel": "email", "rule": "near", "version": "1", "service": "news", "name": "story", "key": "ACME",
		"/v1/sends/{id}": into[struct{ ID string }](s.t, s.http.must(201, "POST", "/v1/sends", plain, `{"name":"secret title","channel":"email","template":"story","data":{"title":"secret title"}}`)).ID, "row": "2",
		"subscriber": "reader@example.org", "token": "not-signed", "destination": "example.org",
		"worker": "pricing", "client": "risk", "agent": "host1", "request": "1",
		"session":         into[struct{ ID string }](s.t, s.http.must(201, "POST", "/v1/sessions", plain, `{"worker":"pricing"}`)).ID,
		"/v1/events/{id}": event, "/v1/events/{id}/deliveries": event,
		"/v1/deliveries/{id}":          s.http.deliveries(event, "")[0].ID,
		"/v1/subscriptions/{id}":       "mine",
		"/v1/subscribers/{id}":         "reader",
		"/v1/sign-ins/{id}":            "sin-k3j5h2m7q4r6",
		"/v1/keys/{id}":                into[struct{ ID string }](s.t, s.http.must(201, "POST", "/v1/keys", plain, `{"service":"news","name":"of the first"}`)).ID,
		"/v1/messages/{id}":            message.ID,
		"/v1/parked/{id}":              "prk-20261120-1",
		"/v1/tasks/{id}":               into[struct{ ID string }](s.t, s.http.must(201, "POST", "/v1/tasks", plain, `{"action":"retry-parked"}`)).ID,
		"/v1/messages/{id}/deliveries": event,
	}
}

// filled puts ids of the first service in the place of a path's parameters.
func filled(path string, ids map[string]string) (string, error) {
	for {
		before, rest, ok := strings.Cut(path, "{")
		if !ok {
			return path, nil
		}
		name, after, _ := strings.Cut(rest, "}")
		value := ids[before+"{"+name+"}"+after]
		if value == "" {
			value = ids[before+"{"+name+"}"]
		}
		if value == "" && name != "id" {
			value = ids[name]
		}
		if value == "" {
			return "", fmt.Errorf("nobody knows a %s for %s: add an entry to ours", name, path)
		}
		path = before + value + after
	}
}

// A new route cannot open one service to another by mistake: all that the
// document has are walked with ids of one service and keys of another, of every
// scope, with the cookie of an administrator of others, and with none.
func TestNoRouteReachesAnotherService(t *testing.T) {
	t.Parallel()
	i := issuer.Start(t)
	s, r := newsroom(t, sink.Config{}, "", issuerFile(t, i)...)
	s.http.must(201, "PUT", "/v1/subscribers/reader", plain, `{"addresses":[{"kind":"mail","address":"reader@example.org"}]}`)
	s.http.must(201, "PUT", "/v1/subscriptions/mine", plain, `{"topic":"story","channel":"email","to":"reader@example.org"}`)
	event := s.http.publish(`{"title":"secret title"}`)
	s.http.completed(event)
	s.http.must(201, "PUT", "/v1/workers/pricing", plain, `{"title":"secret title"}`)
	ids := ours(s, event)
	other := *s.http
	other.service = "games"
	other.must(200, "POST", "/v1/apply", yaml, strings.Replace(news(r.addr, ""), "service: news", "service: games", 1))

	d := described(s)
	keys := map[string]*caller{"none": s.http.with("")}
	for _, scope := range []string{"admin", "publish", "subscribe", "read", "secrets", "approve", "sessions", "work"} {
		made := other.must(201, "POST", "/v1/keys", plain, `{"service":"games","name":"walk","scopes":["`+scope+`"]}`)
		keys[scope] = s.http.with(into[struct{ Key string }](t, made).Key)
	}
	s.grant(i, "games", map[string]string{"players": "admin"})
	s.grant(i, "sports", map[string]string{"fans": "admin"})
	keys["a cookie"], keys["a cookie of several"] = s.signIn(i, "players"), s.signIn(i, "players", "fans")
	before := everythingOf(s, d, ids)
	for _, op := range d.operations() {
		path, err := filled(op.path, ids)
		if err != nil {
			t.Error(err)
			continue
		}
		ends := url.Values{}
		if op.id == "follow-status" {
			ends.Set("once", "true") // the stream would go on
		}
		mediaType, body := bodyOf(d, op)
		for _, scope := range slices.Sorted(maps.Keys(keys)) {
			status, text, _ := keys[scope].send(op.method, path+"?"+ends.Encode(), mediaType, body)
			where := fmt.Sprintf("%s %s with %s: %d", op.method, path, scope, status)
			if op.spec["security"] == nil {
				if status >= 500 {
					t.Errorf("%s: %s", where, text)
				}
				continue
			}
			switch {
			case scope == "none" && status != 401:
				t.Errorf("%s, not 401: %s", where, text)
			case path != op.path && status < 400 && !sharedByName(op):
				t.Errorf("%s: it reached what is another's: %s", where, text)
			case status >= 500:
				t.Errorf("%s: %s", where, text)
			}
			for _, secret := range []string{"secret title", "secret text", `"service":"news"`, event} {
				if strings.Contains(text, secret) && !strings.Contains(path+body, secret) {
					t.Errorf("%s: it tells %s: %s", where, secret, text)
				}
			}
			if strings.Contains(op.path, "/v1/") && status < 400 {
				named, text, _ := keys[scope].send(op.method, path+"?service=news&"+ends.Encode(), mediaType, body)
				if named < 400 {
					t.Errorf("%s ?service=news: %d %s", where, named, text)
				}
			}
		}
	}
	after := everythingOf(s, d, ids)
	for path, was := range before {
		if after[path] != was {
			t.Errorf("%s of the first service was changed:\n%s\nis now\n%s", path, was, after[path])
		}
	}
}

// sharedByName reports whether a route names what every service may have under
// the same name: the key's own is meant then, or made.
func sharedByName(op operation) bool {
	if strings.Contains(op.path, "{service}") {
		return false
	}
	for _, own := range []string{"{topic}", "{template}", "{channel}", "{rule}", "{name}", "{worker}", "{address}"} {
		if strings.Contains(op.path, own) {
			return true
		}
	}
	// Made, or ended, under that id in the service of the key; erasing an unknown person is no error. A subscriber
	// that was created there has no consent.
	return op.method == "PUT" || op.method == "DELETE" || strings.HasSuffix(op.path, "/erase") || op.id == "list-consents"
}

// bodyOf is the body of the operation's first example.
func bodyOf(d *document, op operation) (mediaType, body string) {
	for _, s := range d.samples() {
		if s.op.id == op.id {
			return s.MediaType, strings.ReplaceAll(s.body, "evt-20261120-1001", "evt-20261120-1000")
		}
	}
	return "", ""
}

// everythingOf reads whatever can be read of the first service, but for what
// changes by itself.
func everythingOf(s *server, d *document, ids map[string]string) map[string]string {
	s.t.Helper()
	state := map[string]string{}
	for _, op := range d.operations() {
		if op.method != "GET" || op.spec["security"] == nil || op.path == "/v1/status" || op.path == "/v1/live" || op.path == "/v1/rates" || op.path == "/v1/backup" || op.path == "/v1/mailbox-search-index" {
			continue
		}
		path, err := filled(op.path, ids)
		if err != nil {
			continue // told by the walk
		}
		_, text, header := s.http.send("GET", path, "", "")
		var v any
		if json.Unmarshal([]byte(text), &v) == nil {
			text = string(settled(v))
		}
		state[path] = text + header.Get("ETag")
	}
	if len(state) < 5 {
		s.t.Fatalf("only %d things can be read", len(state))
	}
	return state
}

// settled is a value without what is different each time that it is read.
func settled(v any) []byte {
	var strip func(any)
	strip = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			delete(v, "request_id")
			delete(v, "last_used")
			if _, isSignIn := v["used_at"]; isSignIn {
				delete(v, "used_at")
				delete(v, "expires_at")
			}
			for _, member := range v {
				strip(member)
			}
		case []any:
			for _, member := range v {
				strip(member)
			}
		}
	}
	strip(v)
	text, _ := json.Marshal(v)
	return text
}
