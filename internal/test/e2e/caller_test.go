package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"fanfare.dev/fanfare"
)

// plainHTTP speaks to all servers of the tests.
var plainHTTP = &http.Client{Timeout: patience}

// A caller speaks HTTP to one server with one key.
type caller struct {
	t       *testing.T
	url     string
	key     string
	service string // "": none is named
	http    *http.Client
}

// with is the same caller with another key, which needs no service named.
func (c *caller) with(key string) *caller {
	other := *c
	other.key, other.service = key, ""
	return &other
}

// The types of bodies.
const (
	plain      = "application/json"
	lines      = "application/x-ndjson"
	yaml       = "application/yaml"
	cloudevent = "application/cloudevents+json"
	cloudbatch = "application/cloudevents-batch+json"
)

// send makes one request. Headers are pairs of name and value.
func (c *caller) send(method, path, contentType, body string, headers ...string) (int, string, http.Header) {
	c.t.Helper()
	status, text, header, err := c.try(method, path, contentType, body, headers...)
	if err != nil {
		c.t.Fatalf("%s %s: %v", method, path, err)
	}
	return status, text, header
}

// try is send where the server may be gone.
func (c *caller) try(method, path, contentType, body string, headers ...string) (int, string, http.Header, error) {
	r, err := http.NewRequestWithContext(c.t.Context(), method, c.url+path, strings.NewReader(body))
	if err != nil {
		return 0, "", nil, err
	}
	if c.key != "" {
		r.Header.Set("Authorization", "Bearer "+c.key)
	}
	if c.service != "" {
		r.Header.Set("X-Fanfare-Service", c.service)
	}
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := c.http.Do(r)
	if err != nil {
		return 0, "", nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), response.Header, err
}

// must is send where the status is known; it returns the body.
func (c *caller) must(status int, method, path, contentType, body string, headers ...string) string {
	c.t.Helper()
	got, text, _ := c.send(method, path, contentType, body, headers...)
	if got != status {
		c.t.Fatalf("%s %s: got %d, want %d: %s", method, path, got, status, text)
	}
	return text
}

// refused is must for an answer that is a problem document.
func (c *caller) refused(status int, method, path, contentType, body string, headers ...string) member {
	c.t.Helper()
	return into[member](c.t, c.must(status, method, path, contentType, body, headers...))
}

// A member is a problem, or one of its members, as the API writes it.
type member struct {
	Code    string   `json:"code"`
	Detail  string   `json:"detail"`
	Pointer string   `json:"pointer"`
	Line    int      `json:"line"`
	Column  int      `json:"column"`
	Hint    string   `json:"hint"`
	Errors  []member `json:"errors"`
}

// into reads JSON that must be valid.
func into[T any](t *testing.T, text string) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("not the JSON that was expected: %v: %s", err, text)
	}
	return v
}

// publish sends one event of the topic "story" and returns its id.
func (c *caller) publish(data string) string {
	c.t.Helper()
	answer := into[accepted](c.t, c.must(202, "POST", "/v1/topics/story/events", plain, data))
	return answer.Events[0].ID
}

type accepted struct {
	Events []struct {
		ID        string `json:"id"`
		Duplicate bool   `json:"duplicate"`
	} `json:"events"`
}

// subscribe puts one subscription and returns its id.
func (c *caller) subscribe(subscription string) string {
	c.t.Helper()
	status, text, _ := c.send("POST", "/v1/subscriptions", plain, subscription)
	if status != 200 && status != 201 {
		c.t.Fatalf("subscription %s: got %d: %s", subscription, status, text)
	}
	return into[struct{ ID string }](c.t, text).ID
}

// broadcast returns what an event set off.
func (c *caller) broadcast(event string) fanfare.Broadcast {
	c.t.Helper()
	return into[fanfare.Broadcast](c.t, c.must(200, "GET", "/v1/events/"+event, "", ""))
}

// completed waits until all that an event set off is settled.
func (c *caller) completed(event string) fanfare.Broadcast {
	c.t.Helper()
	var b fanfare.Broadcast
	eventuallyWith(c.t, event+" is completed", func() bool {
		status, text, _ := c.send("GET", "/v1/events/"+event, "", "")
		if status != 200 {
			return false // not frozen yet
		}
		b = into[fanfare.Broadcast](c.t, text)
		return !b.Stages.Completed.IsZero()
	}, func() string { text, _ := json.Marshal(b); return string(text) })
	return b
}

// deliveries lists who got an event, and how.
func (c *caller) deliveries(event, query string) []fanfare.Delivery {
	c.t.Helper()
	page := into[struct{ Deliveries []fanfare.Delivery }](c.t, c.must(200, "GET", "/v1/events/"+event+"/deliveries?limit=1000"+query, "", ""))
	return page.Deliveries
}

// allDeliveries lists all deliveries of an event, page by page.
func (c *caller) allDeliveries(event string) (all []fanfare.Delivery) {
	c.t.Helper()
	for cursor := ""; ; {
		page := into[struct {
			Deliveries []fanfare.Delivery
			Next       string
		}](c.t, c.must(200, "GET", "/v1/events/"+event+"/deliveries?limit=1000&cursor="+cursor, "", ""))
		all = append(all, page.Deliveries...)
		if cursor = page.Next; cursor == "" {
			return all
		}
	}
}

// decode reads one JSON value.
func decode(from io.Reader, v any) error { return json.NewDecoder(from).Decode(v) }
