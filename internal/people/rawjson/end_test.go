package rawjson

import (
	"encoding/json"
	"strings"
	"testing"
)

var jsonValues = []string{
	`{}`, `[]`, `{"a":[1,-0,0.5,1e9,-2.5E+10,1e-2],"b":{"":null}}`, "{ \"a\" :\t[ true , false\r\n] }", `{"\"\\\/\b\f\n\r\t\u00eF":"é` + "\xff" + `"}`,
	``, `{`, `{"a"`, `{"a":`, `{"a":1`, `{"a":1,`, `{"a":1,}`, `{a:1}`, `{"a" 1}`, `[1,]`, `[,1]`, `[1 2]`, `{"a":[}]`, `{"a":{]}`, `{"a":"x`,
	`{"a":"\x"}`, `{"a":"\u12g4"}`, `{"a":"\u12`, `{"a":"\`, "{\"a\":\"\x1f\"}", `{"a":01}`, `{"a":-}`, `{"a":1.}`, `{"a":.5}`, `{"a":1e}`, `{"a":+1}`, `{"a":1e+}`,
	`{"a":tru}`, `{"a":nul`, `{"a":True}`, `{"a":}`, `[ ]`, `{ }`, `[[],{}]`, "\x00", `{"a":1}`,
	strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000), strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001),
}

func TestEndAgreesWithTheLibrary(t *testing.T) {
	for _, v := range jsonValues {
		compareEnd(t, []byte(v))
	}
}

// FuzzEnd compares End with json.Valid, for the whole text if it is a value, otherwise for the
// prefix that End found.
func FuzzEnd(f *testing.F) {
	for _, v := range jsonValues {
		if len(v) < 1000 {
			f.Add([]byte(v))
		}
	}
	f.Fuzz(compareEnd)
}

func compareEnd(t *testing.T, b []byte) {
	from := SkipSpace(b, 0)
	end := End(b, from, 1)
	if whole := end >= 0 && SkipSpace(b, end) == len(b); whole != json.Valid(b) {
		t.Fatalf("%.80q: the value ends at %d of %d, and valid is %v", b, end, len(b), json.Valid(b))
	}
	if end >= 0 && !json.Valid(b[:end]) {
		t.Fatalf("%.80q: %.80q is no value", b, b[:end])
	}
}
