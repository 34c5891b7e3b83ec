package rawjson

import (
	"bytes"
	"encoding/json"
	"testing"
)

func canonicalSeeds() []string {
	return []string{
		`{"a":1}`, `{"min_mag":4.5,"place":"Alaska"}`, `{"a":-2.25,"b":true,"c":false,"d":[],"e":["x","y",1]}`, `{"a":"é<&>"}`, `{"a":"","a b":0}`,
		`{"a":0.5,"b":-0.000001,"c":123456789012345}`,
		`{ "a":1}`, `{"b":1,"a":2}`, `{"a":1,"a":2}`, `{"a":1.0}`, `{"a":1e3}`, `{"a":-0}`, `{"a":0.0000001}`, `{"a":0.000001}`, `{"a":1234567890123456}`, `{"a":0.1234567890123456}`,
		`{"a":"\\u0041"}`, `{"a":"\u2028"}`, `{"a":{"b":1}}`, `{"a":null}`, `{}`, `{"a!":1,"a":2}`, `{"a":1,"a!":2}`, `{"ab":1,"a":2}`, `{"a":[[1]]}`, `{"a":[1.50]}`,
	}
}

// TestIsCanonicalAcceptsOnlyWhatTheLibraryWrites encodes each accepted object again.
func TestIsCanonicalAcceptsOnlyWhatTheLibraryWrites(t *testing.T) {
	count := 0
	for _, object := range canonicalSeeds() {
		if accepted(t, []byte(object)) {
			count++
		}
	}
	if count < 6 {
		t.Errorf("only %d objects were accepted", count)
	}
}

func accepted(t *testing.T, object []byte) bool {
	t.Helper()
	if !json.Valid(object) || !isCanonical(object) {
		return false
	}
	var members map[string]any
	if err := json.Unmarshal(object, &members); err != nil {
		t.Errorf("%s was accepted: %v", object, err)
		return true
	}
	var written bytes.Buffer
	e := json.NewEncoder(&written)
	e.SetEscapeHTML(false)
	if err := e.Encode(members); err != nil || !bytes.Equal(bytes.TrimSpace(written.Bytes()), object) {
		t.Errorf("%s was accepted, the library writes %s", object, written.Bytes())
	}
	return true
}

func FuzzIsCanonical(f *testing.F) {
	for _, seed := range canonicalSeeds() {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, object []byte) { accepted(t, object) })
}
