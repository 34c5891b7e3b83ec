package mongoexport_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/compat/notifybc/mongoexport"
)

func TestDocumentsBecomePlainJSON(t *testing.T) {
	for in, want := range map[string]string{
		`{"_id":{"$oid":"5f1d7b2e9c8a4b0012345678"},"__v":0,"a":"x"}`:                          `{"a":"x","id":"5f1d7b2e9c8a4b0012345678"}`,
		`{"_id":"tok","created":{"$date":"2020-07-26T12:46:06.123Z"}}`:                         `{"created":"2020-07-26T12:46:06.123Z","id":"tok"}`,
		`{"_id":"1","d":{"$date":{"$numberLong":"1595767566123"}}}`:                            `{"d":"2020-07-26T12:46:06.123Z","id":"1"}`,
		`{"_id":"1","d":{"$date":1595767566123}}`:                                              `{"d":"2020-07-26T12:46:06.123Z","id":"1"}`,
		`{"_id":"1","d":{"$date":"2020-07-26T05:46:06.123-0700"}}`:                             `{"d":"2020-07-26T12:46:06.123Z","id":"1"}`,
		`{"_id":"1","n":[{"$numberInt":"5"},{"$numberLong":"-7"},{"$numberDouble":"1.5"},2]}`:  `{"id":"1","n":[5,-7,1.5,2]}`,
		`{"_id":"1","n":{"$numberLong":"9007199254740993"},"m":{"$numberDouble":"NaN"}}`:       `{"id":"1","m":null,"n":9007199254740993}`,
		`{"_id":"1","data":{"deep":[{"at":{"$date":{"$numberLong":"0"}}}],"$odd":1,"x":2}}`:    `{"data":{"$odd":1,"deep":[{"at":"1970-01-01T00:00:00.000Z"}],"x":2},"id":"1"}`,
		`{"_id":"1","u":{"$undefined":true},"b":{"$binary":{"base64":"YQ==","subType":"00"}}}`: `{"b":"YQ==","id":"1","u":null}`,
	} {
		got, err := mongoexport.Document([]byte(in))
		text, _ := json.Marshal(got)
		if err != nil || string(text) != want {
			t.Errorf("%s:\n got %s, %v\nwant %s", in, text, err, want)
		}
	}
	for in, want := range map[string]string{
		`{"_id":{"$oid":"5f1d7b2e9c8a4b0012345678"},"__v":0,"a":{"b":1.50},"n":null,"d":[{"$date":"2020-07-26T12:46:06Z"}]}`: `{"a":{"b":1.50},"d":["2020-07-26T12:46:06.000Z"],"id":"5f1d7b2e9c8a4b0012345678"}`,
		`{"_id":"1","u":{"\u0024numberInt":"5"},"x":{"$undefined":true}}`:                                                    `{"id":"1","u":5}`,
	} {
		got, err := mongoexport.Members([]byte(in))
		text, _ := json.Marshal(got)
		if err != nil || string(text) != want {
			t.Errorf("%s:\n got %s, %v\nwant %s", in, text, err, want)
		}
	}
	for _, in := range []string{`{`, `[]`, `{}`, `{"_id":5}`, `{"_id":"1","d":{"$date":"soon"}}`} {
		if got, err := mongoexport.Members([]byte(in)); err == nil {
			t.Errorf("%s is accepted as %v", in, got)
		}
	}
	for _, in := range []string{`{`, `[]`, `5`, `{}`, `{"_id":5}`, `{"_id":{"$oid":"xyz"}}`, `{"_id":"1","d":{"$date":"soon"}}`, `{"_id":"1","n":{"$numberLong":"x"}}`, `{"_id":"1"} {}`,
		`{"_id":"1","a":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`} {
		if got, err := mongoexport.Document([]byte(in)); err == nil {
			t.Errorf("%.60s is accepted as %v", in, got)
		}
	}
}

func TestReaderReadsLinesAndArrays(t *testing.T) {
	for in, want := range map[string]string{
		"":                                      "",
		"{\"a\":1}\n\n {\"b\":2}\r\n{\"c\":3}":  `1:{"a":1} 3:{"b":2} 4:{"c":3}`,
		"\xef\xbb\xbf{\"a\":1}\n":               `1:{"a":1}`,
		"[{\"a\":\"}\\\"{\"},\n{\"b\":{}}\n]\n": "1:{\"a\":\"}\\\"{\"} 2:{\"b\":{}}",
		"[ ]":                                   "",
		"[{\"a\":1}":                            `1:{"a":1} 1:the array does not end`,
		"[5]":                                   "1:an element of the array is not an object",
	} {
		r := mongoexport.NewReader(strings.NewReader(in))
		var got []string
		for {
			document, line, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				document = []byte(err.Error())
			}
			got = append(got, fmt.Sprintf("%d:%s", line, document))
		}
		if text := strings.Join(got, " "); text != want {
			t.Errorf("%q: %s, want %s", in, text, want)
		}
		if r.Offset() > int64(len(in)) {
			t.Errorf("%q: offset %d", in, r.Offset())
		}
	}
}

func FuzzDocument(f *testing.F) {
	f.Add([]byte(`{"_id":{"$oid":"5f1d7b2e9c8a4b0012345678"},"d":{"$date":{"$numberLong":"1"}},"n":[{"$numberDouble":"1"}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		document, err := mongoexport.Document(raw)
		if err != nil {
			return
		}
		if _, err := json.Marshal(document); err != nil {
			t.Fatal(err)
		}
		if document["id"] == "" {
			t.Fatal("no id")
		}
	})
}
