package jsonobject

import (
	"encoding/json"
	"maps"
	"testing"
)

// same compares Split with encoding/json.
func same(t *testing.T, text string) {
	t.Helper()
	var want map[string]json.RawMessage
	wrong := json.Unmarshal([]byte(text), &want)
	got, err := Split([]byte(text))
	if (err == nil) != (wrong == nil) || err != nil && err.Error() != wrong.Error() {
		t.Fatalf("%q: got %v, want %v", text, err, wrong)
	}
	if wrong != nil {
		return
	}
	if (got == nil) != (want == nil) || !maps.EqualFunc(got, want, func(a, b json.RawMessage) bool { return string(a) == string(b) }) {
		t.Errorf("%q: got %q, want %q", text, got, want)
	}
}

var texts = []string{
	``, ` `, `null`, `[]`, `1`, `"x"`, `{}`, ` { } `, `{"a":1}`, `{"a":1,"a":2}`, `{"a" : -1.5e3 , "b":[1,{"c":"]}"}] ,"d":{"e":[{}]},"f":"\"}\\", "g":true,"h":null}`, "{\n\t\"a\"\r:\n1\n}\n",
	`{"\u0061\n":"\u0062"}`, "{\"\xff\":1}", "{\"a\":\"\xff\"}", `{"a":1`, `{"a":1}}`, `{"a":1,}`, `{"a"}`, `{a:1}`, `{"":""}`, `{"a":"\\"}`, `{"a":"\\\""}`, `{"a":[[["\"]"]]]}`, `{"a":tru}`, `{"a":01}`, `{"$oid":"x"}`,
}

func TestSplitReturnsWhatEncodingJSONDoes(t *testing.T) {
	for _, text := range texts {
		same(t, text)
	}
}

func FuzzSplit(f *testing.F) {
	for _, text := range texts {
		f.Add(text)
	}
	f.Fuzz(same)
}

func BenchmarkSplit(b *testing.B) {
	text := []byte(`{"serviceName":"myService","channel":"email","userChannelId":"user@example.com","state":"confirmed","unsubscriptionCode":"12345","confirmationRequest":{"confirmationCodeRegex":"\\d{5}","sendRequest":true},"data":{"province":"BC"}}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Split(text); err != nil {
			b.Fatal(err)
		}
	}
}
