package core

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// An Invocation is a call of a method or a response to it (RFC 8620, section 3.2).
type Invocation struct {
	Name      string
	Arguments json.RawMessage // an object
	CallID    string
}

// MarshalJSON writes the tuple.
func (i Invocation) MarshalJSON() ([]byte, error) {
	return json.Marshal([3]any{i.Name, i.Arguments, i.CallID})
}

// A Request is a Request object (RFC 8620, section 3.3).
type Request struct {
	ID         string // RFC 8887, section 4.3.2; only over a WebSocket
	Using      []string
	Calls      []Invocation
	CreatedIDs map[string]ID // nil: the request has none
	Login      Login
}

// A Login is what a request was authenticated with.
type Login struct {
	Credential string    // names the password or token
	Until      time.Time // when it ends; zero: never
}

// A Response is a Response object (RFC 8620, section 3.4).
type Response struct {
	Type         string        `json:"@type,omitempty"`     // over a WebSocket
	RequestID    string        `json:"requestId,omitempty"` // over a WebSocket
	Responses    []Invocation  `json:"methodResponses"`
	CreatedIDs   map[string]ID `json:"createdIds,omitempty"`
	SessionState string        `json:"sessionState"`
}

// CheckText returns an error of the type notJSON unless text is I-JSON.
func CheckText(text []byte) *RequestError {
	if err := checkIJSON(text); err != nil {
		return &RequestError{Type: NotJSON, Status: http.StatusBadRequest, Detail: err.Error()}
	}
	return nil
}

// ParseRequest reads a Request object.
func ParseRequest(text []byte) (*Request, *RequestError) {
	if err := CheckText(text); err != nil {
		return nil, err
	}
	refuse := func(format string, args ...any) (*Request, *RequestError) {
		return nil, &RequestError{Type: NotRequest, Status: http.StatusBadRequest, Detail: fmt.Sprintf(format, args...)}
	}
	members, err := ParseObject(text)
	if err != nil {
		return refuse("a request must be an object with using and methodCalls")
	}
	r := &Request{}
	var calls [][]json.RawMessage
	haveUsing, haveCalls := false, false
	for _, m := range members {
		switch m.Name {
		case "using":
			haveUsing = !isNull(m.Value)
			err = json.Unmarshal(m.Value, &r.Using)
		case "methodCalls":
			haveCalls = !isNull(m.Value)
			err = json.Unmarshal(m.Value, &calls)
		case "createdIds":
			err = json.Unmarshal(m.Value, &r.CreatedIDs)
		case "id":
			err = json.Unmarshal(m.Value, &r.ID)
		}
		if err != nil {
			return refuse("%s has the wrong type", m.Name)
		}
	}
	if !haveUsing || !haveCalls {
		return refuse("a request must have the properties using and methodCalls")
	}
	if slices.Contains(r.Using, "") {
		return refuse("using has an empty name")
	}
	for i, tuple := range calls {
		var c Invocation
		if len(tuple) != 3 || json.Unmarshal(tuple[0], &c.Name) != nil || json.Unmarshal(tuple[2], &c.CallID) != nil || isNull(tuple[0]) || isNull(tuple[2]) || !isObject(tuple[1]) {
			return refuse("methodCalls[%d] must be an array of a name, an object with arguments, and an id", i)
		}
		c.Arguments = tuple[1]
		r.Calls = append(r.Calls, c)
	}
	return r, nil
}

func isNull(value json.RawMessage) bool { return string(bytes.TrimSpace(value)) == "null" }

func isObject(value json.RawMessage) bool {
	value = bytes.TrimSpace(value)
	return len(value) > 0 && value[0] == '{'
}

// A Member is a member of a JSON object.
type Member struct {
	Name  string
	Value json.RawMessage
}

// An Object is a JSON object with its members in the order of the text.
type Object []Member

// UnmarshalJSON reads an object. null is an object without members.
func (o *Object) UnmarshalJSON(text []byte) (err error) {
	if isNull(text) {
		*o = nil
		return nil
	}
	*o, err = ParseObject(text)
	return err
}

// MarshalJSON writes an object.
func (o Object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := json.Marshal(m.Name)
		if err != nil {
			return nil, err
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(m.Value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// Get returns the value of a member.
func (o Object) Get(name string) (json.RawMessage, bool) {
	for _, m := range o {
		if m.Name == name {
			return m.Value, true
		}
	}
	return nil, false
}

// ParseObject reads the members of an object.
func ParseObject(text []byte) (Object, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	if token != json.Delim('{') {
		return nil, &json.UnmarshalTypeError{Value: "value", Offset: d.InputOffset()}
	}
	o := Object{}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, err
		}
		m := Member{Name: name.(string)}
		if err := d.Decode(&m.Value); err != nil {
			return nil, err
		}
		o = append(o, m)
	}
	_, err = d.Token()
	return o, err
}

func parseList(text json.RawMessage) (list []json.RawMessage, err error) {
	if isNull(text) || len(text) == 0 {
		return nil, &json.UnmarshalTypeError{Value: "null"}
	}
	err = json.Unmarshal(text, &list)
	return list, err
}
