package core

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestSection361RefusesTextThatIsNotARequest(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{`{"using":["a"],"methodCalls":[["Core/echo",{},"0"]]}`, ""},
		{`{"using":[],"methodCalls":[],"createdIds":{"k":"M1"},"unknown":1}`, ""},
		{`{"using":["a"],"methodCalls":[`, NotJSON},
		{``, NotJSON},
		{`{"using":["a"],"methodCalls":[]} x`, NotJSON},
		{"{\"using\":[\"\xff\"],\"methodCalls\":[]}", NotJSON},
		{`{"using":["a"],"using":["b"],"methodCalls":[]}`, NotJSON},
		{`{"using":["a"],"us\u0069ng":["b"],"methodCalls":[]}`, NotJSON},
		{`{"using":["a"],"methodCalls":[["Core/echo",{"a":1,"a":2},"0"]]}`, NotJSON},
		{`{"using":["\ud800"],"methodCalls":[]}`, NotJSON},
		{`{"using":["\udc00\ud800"],"methodCalls":[]}`, NotJSON},
		{`{"using":["\ud83d\ude00"],"methodCalls":[]}`, ""},
		{`{"using":["a"],"methodCalls":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`, NotJSON},
		{`[]`, NotRequest},
		{`"using"`, NotRequest},
		{`{}`, NotRequest},
		{`{"using":["a"]}`, NotRequest},
		{`{"methodCalls":[]}`, NotRequest},
		{`{"using":null,"methodCalls":[]}`, NotRequest},
		{`{"using":"a","methodCalls":[]}`, NotRequest},
		{`{"using":[1],"methodCalls":[]}`, NotRequest},
		{`{"using":["a"],"methodCalls":{}}`, NotRequest},
		{`{"using":["a"],"methodCalls":[["Core/echo",{}]]}`, NotRequest},
		{`{"using":["a"],"methodCalls":[["Core/echo",[],"0"]]}`, NotRequest},
		{`{"using":["a"],"methodCalls":[["Core/echo",null,"0"]]}`, NotRequest},
		{`{"using":["a"],"methodCalls":[["Core/echo",{},0]]}`, NotRequest},
		{`{"using":["a"],"methodCalls":[[null,{},"0"]]}`, NotRequest},
		{`{"using":["a"],"methodCalls":[],"createdIds":[]}`, NotRequest},
	} {
		_, err := ParseRequest([]byte(c.text))
		got := ""
		if err != nil {
			got = err.Type
			if err.Status != 400 || err.Detail == "" {
				t.Errorf("%.100s: status %d and detail %q", c.text, err.Status, err.Detail)
			}
		}
		if got != c.want {
			t.Errorf("%.100s: got %q (%v), want %q", c.text, got, err, c.want)
		}
	}
}

func TestSection361WritesProblemDocuments(t *testing.T) {
	text, err := json.Marshal(&RequestError{Type: LimitExceeded, Status: 400, Detail: "too large", Limit: "maxSizeRequest"})
	if err != nil || string(text) != `{"type":"urn:ietf:params:jmap:error:limit","status":400,"detail":"too large","limit":"maxSizeRequest"}` {
		t.Errorf("got %s, %v", text, err)
	}
}

// twice looks for a repeated name by the tokens of the standard library.
func twice(text []byte) bool {
	d := json.NewDecoder(strings.NewReader(string(text)))
	type level struct {
		object, value bool
		names         map[string]bool
	}
	var stack []*level
	for {
		token, err := d.Token()
		if err != nil {
			return false
		}
		top := len(stack) - 1
		if delim, ok := token.(json.Delim); ok && (delim == '}' || delim == ']') {
			stack = stack[:top]
			continue
		}
		if top >= 0 && stack[top].object {
			if !stack[top].value {
				name := token.(string)
				if stack[top].names[name] {
					return true
				}
				stack[top].names[name] = true
			}
			stack[top].value = !stack[top].value
		}
		if delim, ok := token.(json.Delim); ok {
			stack = append(stack, &level{object: delim == '{', names: map[string]bool{}})
		}
	}
}

func FuzzParseRequest(f *testing.F) {
	for _, seed := range []string{
		`{"using":["urn:ietf:params:jmap:core"],"methodCalls":[["Core/echo",{"hello":true},"b3ff"]]}`,
		`{"a":{"b":[1,-2.5e3,null,true,"\u00e9\ud83d\ude00"]},"a":[]}`,
		`{"using":["\ud800x"],"methodCalls":[[]],"createdIds":null}`,
		` [ { "x" : "\\" , "y" : [ ] } ] `,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := ParseRequest(text)
		if err != nil {
			return
		}
		if !json.Valid(text) || twice(text) {
			t.Fatalf("accepted %q", text)
		}
		for _, c := range r.Calls {
			var object map[string]any
			if json.Unmarshal(c.Arguments, &object) != nil {
				t.Fatalf("accepted the arguments %q", c.Arguments)
			}
		}
	})
}

func TestSection12IDsHaveTheirCharacters(t *testing.T) {
	for id, want := range map[ID]bool{"M1": true, "a-_Z9": true, "": false, "a b": false, "é": false, "#a": false, ID(strings.Repeat("x", 255)): true, ID(strings.Repeat("x", 256)): false} {
		if id.Valid() != want {
			t.Errorf("%q is valid: %v", id, !want)
		}
	}
}

func TestSection14DatesHaveTheirForm(t *testing.T) {
	for text, want := range map[string]bool{
		"2014-10-30T06:12:00Z": true, "2014-10-30T06:12:00.5Z": true, "2014-10-30T14:12:00+08:00": false, "2014-10-30T06:12:00z": false,
		"2014-10-30 06:12:00Z": false, "2014-13-30T06:12:00Z": false, "": false,
	} {
		if _, err := ParseUTC(text); (err == nil) != want {
			t.Errorf("%q as a UTCDate: %v", text, err)
		}
	}
	if at, err := ParseDate("2014-10-30T14:12:00+08:00"); err != nil || UTC(at) != "2014-10-30T06:12:00Z" {
		t.Errorf("got %v, %v", at, err)
	}
}
