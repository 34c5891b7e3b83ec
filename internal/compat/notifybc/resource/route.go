package resource

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/netip"

	"fanfare.dev/fanfare/internal/compat/notifybc/query"
	"fanfare.dev/fanfare/internal/compat/notifybc/roles"
)

// maxBodyBytes is the maximum size of a request body.
const maxBodyBytes = 100 << 10

// A Route handles the requests of a method and a path.
type Route struct {
	Method, Path string // the path follows the root of the API; {name} matches a segment
	Who          func(*roles.Caller) bool
	Handle       func(*Request) (Answer, error)
}

// A Request is a request with its caller.
type Request struct {
	*http.Request
	Caller roles.Caller
	Client netip.Addr // as far as proxies are trusted
}

// An Answer is a status and a body, which is JSON; nil: no body.
type Answer struct {
	Status int
	Body   any
}

// OK is an answer with a body.
func OK(body any) (Answer, error) { return Answer{http.StatusOK, body}, nil }

// Done is the answer to a change that returns nothing.
func Done() (Answer, error) { return Answer{Status: http.StatusNoContent}, nil }

// Counted is the answer with a number of records.
func Counted(n int) (Answer, error) { return OK(map[string]any{"count": n}) }

// Everyone accepts all callers.
func Everyone(*roles.Caller) bool { return true }

// Admins accepts administrators of both kinds.
func Admins(c *roles.Caller) bool { return c.IsAdmin() }

// SuperAdmins accepts super-administrators.
func SuperAdmins(c *roles.Caller) bool { return c.Role == roles.SuperAdmin }

// Bad refuses data.
func Bad(message string) error {
	return &roles.Refusal{Status: http.StatusBadRequest, Message: message}
}

// Missing refuses a request for a record that does not exist.
func Missing() error { return &roles.Refusal{Status: http.StatusNotFound} }

// Refused refuses a request in a handler.
func Refused() error { return &roles.Refusal{Status: http.StatusForbidden} }

// Body reads the JSON object in the body of a request; without a body, it is empty.
func (r *Request) Body() (map[string]any, error) {
	b, err := io.ReadAll(io.LimitReader(r.Request.Body, maxBodyBytes+1))
	if err != nil {
		return nil, Bad("the body cannot be read")
	}
	if len(b) > maxBodyBytes {
		return nil, &roles.Refusal{Status: http.StatusRequestEntityTooLarge, Message: "request entity too large"}
	}
	if len(bytes.TrimSpace(b)) == 0 {
		return map[string]any{}, nil
	}
	var v any
	if err := json.Unmarshal(b, &v); err != nil {
		return nil, &roles.Refusal{Status: http.StatusBadRequest, Message: err.Error(), Kind: "Bad Request"}
	}
	object, ok := v.(map[string]any)
	if !ok {
		return nil, Bad("the body must be an object")
	}
	return object, nil
}

// Query reads filter and where.
func (r *Request) Query() (*query.Query, error) {
	q, err := query.Parse(r.URL.Query())
	if e, ok := errors.AsType[*query.Error](err); ok {
		return nil, Bad(e.Message)
	}
	return q, err
}

// Text returns a text of a body; it refuses one that is no text, too long, or has control characters, and "" if it is required.
func Text(body map[string]any, name string, required bool, maxBytes int) (string, error) {
	v, ok := body[name]
	if !ok || v == nil {
		if required {
			return "", Bad(name + " is required")
		}
		return "", nil
	}
	text, ok := v.(string)
	switch {
	case !ok:
		return "", Bad(name + " must be a string")
	case required && text == "":
		return "", Bad(name + " is required")
	case len(text) > maxBytes:
		return "", Bad(name + " is too long")
	}
	for _, c := range text {
		if c < ' ' || c == 0x7f {
			return "", Bad(name + " must not contain control characters")
		}
	}
	return text, nil
}
