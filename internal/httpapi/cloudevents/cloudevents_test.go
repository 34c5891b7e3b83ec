package cloudevents

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"fanfare.dev/fanfare"
)

const whole = `{"specversion":"1.0","id":"1","source":"https://usgs.gov/q","type":"quakes","subject":"Alaska","time":"2026-11-20T08:15:00Z",
	"datacontenttype":"application/json","dataschema":"https://x.org/s","data":{"mag":4.5},"traceparent":"00-1","sampled":true,"weight":7,"nothing":null}`

func TestStructuredEventKeepsItsAttributes(t *testing.T) {
	e, err := Decode([]byte(whole))
	if err != nil {
		t.Fatal(err)
	}
	if e.ID != "1" || e.Source != "https://usgs.gov/q" || e.Type != "quakes" || e.Subject != "Alaska" || string(e.Data) != `{"mag":4.5}` || !e.Time.Equal(time.Date(2026, 11, 20, 8, 15, 0, 0, time.UTC)) {
		t.Errorf("got %+v", e)
	}
	if len(e.Extensions) != 3 || string(e.Extensions["traceparent"]) != `"00-1"` || string(e.Extensions["sampled"]) != "true" || string(e.Extensions["weight"]) != "7" || e.DataSchema != "https://x.org/s" {
		t.Errorf("extensions are %s, the schema is %s", e.Extensions, e.DataSchema)
	}
}

// Data can have any type (core, "Event Data"; JSON event format, 3.1): conditions see
// text as a string, and bytes are only stored.
func TestDataThatIsNotJSONIsKept(t *testing.T) {
	structured := func(members string) (fanfare.Event, error) {
		return Decode([]byte(`{"specversion":"1.0","id":"1","source":"/s","type":"t",` + members + `}`))
	}
	binary := func(contentType, body string) (fanfare.Event, error) {
		return Binary(http.Header{"Ce-Specversion": {"1.0"}, "Ce-Id": {"1"}, "Ce-Source": {"/s"}, "Ce-Type": {"t"}, "Content-Type": {contentType}}, []byte(body))
	}
	for name, test := range map[string]struct {
		of                       func(a, b string) (fanfare.Event, error)
		a, b                     string
		data, bytes, contentType string
	}{
		"binary mode, XML":                {binary, "text/xml", `<a b="c"/>`, `"\u003ca b=\"c\"/\u003e"`, "", "text/xml"},
		"binary mode, JSON with charset":  {binary, "application/json; charset=utf-8", `{"a":1}`, `{"a":1}`, "", "application/json; charset=utf-8"},
		"binary mode, a suffix of JSON":   {binary, "application/vnd.x+json", `{"a":1}`, `{"a":1}`, "", "application/vnd.x+json"},
		"binary mode, bytes":              {binary, "image/png", "\x89PNG\xff", "", "\x89PNG\xff", "image/png"},
		"binary mode, no body":            {binary, "text/plain", "", "", "", "text/plain"},
		"structured, text":                {func(a, _ string) (fanfare.Event, error) { return structured(a) }, `"datacontenttype":"text/plain","data":"hello"`, "", `"hello"`, "", "text/plain"},
		"structured, text in Base64":      {func(a, _ string) (fanfare.Event, error) { return structured(a) }, `"datacontenttype":"text/plain","data_base64":"aGVsbG8="`, "", `"hello"`, "", "text/plain"},
		"structured, bytes in Base64":     {func(a, _ string) (fanfare.Event, error) { return structured(a) }, `"datacontenttype":"image/png","data_base64":"iVBOR/8="`, "", "", "\x89PNG\xff", "image/png"},
		"structured, JSON in Base64":      {func(a, _ string) (fanfare.Event, error) { return structured(a) }, `"data_base64":"eyJhIjoxfQ=="`, "", `{"a":1}`, "", ""},
		"structured, a JSON value anyway": {func(a, _ string) (fanfare.Event, error) { return structured(a) }, `"datacontenttype":"text/plain","data":{"a":1}`, "", `{"a":1}`, "", "text/plain"},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := test.of(test.a, test.b)
			if err != nil {
				t.Fatal(err)
			}
			if string(e.Data) != test.data || string(e.Binary) != test.bytes || e.ContentType != test.contentType {
				t.Errorf("data %s, bytes %q, type %q", e.Data, e.Binary, e.ContentType)
			}
		})
	}
	if _, err := binary("image/png", strings.Repeat("\xff", MaxDataBytes+1)); err == nil {
		t.Error("data over the limit was taken")
	}
	if _, err := binary("application/json", `{"a":`); err == nil {
		t.Error("broken JSON was taken")
	}
}

func TestExtensionsHaveALimit(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"specversion":"1.0","id":"1","source":"/s","type":"t"`)
	for i := range maxExtensions + 1 {
		if i == maxExtensions {
			if _, err := Decode([]byte(b.String() + "}")); err != nil {
				t.Fatal(err)
			}
		}
		fmt.Fprintf(&b, `,"ext%d":%d`, i, i)
	}
	_, err := Decode([]byte(b.String() + "}"))
	if wrong, ok := errors.AsType[*fanfare.Error](err); !ok || wrong.Code != fanfare.TooLarge {
		t.Errorf("got %v", err)
	}
}

func TestBadStructuredEventNamesTheAttribute(t *testing.T) {
	edit := func(from, to string) string {
		if !strings.Contains(whole, from) {
			t.Fatalf("%s is not in the event", from)
		}
		return strings.Replace(whole, from, to, 1)
	}
	for name, test := range map[string]struct {
		event, pointer string
		code           fanfare.Code
	}{
		"no version":          {edit(`"specversion":"1.0",`, ""), "/specversion", fanfare.Invalid},
		"old version":         {edit(`"1.0"`, `"0.3"`), "/specversion", fanfare.Invalid},
		"no id":               {edit(`"id":"1",`, ""), "/id", fanfare.Invalid},
		"empty id":            {edit(`"id":"1"`, `"id":""`), "/id", fanfare.Invalid},
		"null id":             {edit(`"id":"1"`, `"id":null`), "/id", fanfare.Invalid},
		"number as id":        {edit(`"id":"1"`, `"id":1`), "/id", fanfare.Invalid},
		"reserved id":         {edit(`"id":"1"`, `"id":"evt-20261120-1"`), "/id", fanfare.Invalid},
		"long id":             {edit(`"id":"1"`, `"id":"`+strings.Repeat("x", 2000)+`"`), "/id", fanfare.TooLarge},
		"control in id":       {edit(`"id":"1"`, `"id":"a\u0000"`), "/id", fanfare.Invalid},
		"line break":          {edit(`Alaska`, `Ala\r\nska`), "/subject", fanfare.Invalid},
		"noncharacter":        {edit(`Alaska`, `\uFFFF`), "/subject", fanfare.Invalid},
		"no source":           {edit(`"source":"https://usgs.gov/q",`, ""), "/source", fanfare.Invalid},
		"source is no URI":    {edit(`https://usgs.gov/q`, `http://[`), "/source", fanfare.Invalid},
		"empty subject":       {edit(`"Alaska"`, `""`), "/subject", fanfare.Invalid},
		"time is none":        {edit(`2026-11-20T08:15:00Z`, `yesterday`), "/time", fanfare.Invalid},
		"time without a zone": {edit(`2026-11-20T08:15:00Z`, `2026-11-20T08:15:00`), "/time", fanfare.Invalid},
		"content type":        {edit(`application/json`, `text;xml/`), "/datacontenttype", fanfare.Invalid},
		"schema is relative":  {edit(`https://x.org/s`, `s`), "/dataschema", fanfare.Invalid},
		"attribute's name":    {edit(`"sampled"`, `"Sampled"`), "/Sampled", fanfare.Invalid},
		"name with a slash":   {edit(`"sampled"`, `"a/b~"`), "/a~1b~0", fanfare.Invalid},
		"object as extension": {edit(`true`, `{"a":1}`), "/sampled", fanfare.Invalid},
		"both kinds of data":  {edit(`"weight":7`, `"data_base64":"e30="`), "/data_base64", fanfare.Invalid},
		"broken base64":       {edit(`"data":{"mag":4.5}`, `"data_base64":"!"`), "/data_base64", fanfare.Invalid},
		"base64 of no JSON":   {edit(`"data":{"mag":4.5}`, `"data_base64":"eHh4"`), "/data_base64", fanfare.Invalid},
		"too much data":       {edit(`4.5`, `"`+strings.Repeat("x", MaxDataBytes)+`"`), "/data", fanfare.TooLarge},
		"not an object":       {`[1]`, "", fanfare.Invalid},
		"null":                {`null`, "", fanfare.Invalid},
		"empty":               {``, "", fanfare.Invalid},
		"broken":              {`{"id":`, "", fanfare.Invalid},
		"not UTF-8":           {edit("Alaska", "\xff"), "", fanfare.Invalid},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := Decode([]byte(test.event))
			wrong, ok := errors.AsType[*fanfare.Error](err)
			if !ok {
				t.Fatalf("got %+v, %v", e, err)
			}
			if wrong.Pointer != test.pointer || wrong.Code != test.code {
				t.Errorf("%s at %q: %v", wrong.Code, wrong.Pointer, wrong)
			}
		})
	}
}

func TestBatchNamesEveryBadMember(t *testing.T) {
	_, err := DecodeBatch([]byte(`[` + whole + `,{"specversion":"1.0"},7,` + strings.Replace(whole, "2026", "x", 1) + `]`))
	wrong, ok := errors.AsType[*fanfare.Error](err)
	if !ok || len(wrong.Details) != 3 || wrong.Details[0].Pointer != "/1/id" || wrong.Details[1].Pointer != "/2" || wrong.Details[2].Pointer != "/3/time" {
		t.Errorf("got %v", err)
	}
	for _, bad := range []string{`{}`, `null`, `[`, ``} {
		if _, err := DecodeBatch([]byte(bad)); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
	if all, err := DecodeBatch([]byte(`[]`)); err != nil || len(all) != 0 {
		t.Errorf("empty batch: %v", err)
	}
}

func TestBinaryModeNeedsWhatTheSpecificationRequires(t *testing.T) {
	for name, test := range map[string]struct {
		header map[string]string
		ok     bool
		check  func(fanfare.Event) bool
	}{
		"all": {map[string]string{"ce-specversion": "1.0", "ce-id": "1", "ce-source": "/s", "ce-type": "t", "ce-ext": "x"}, true, func(e fanfare.Event) bool {
			return e.ID == "1" && e.Type == "t" && string(e.Extensions["ext"]) == `"x"`
		}},
		"encoded":            {map[string]string{"ce-specversion": "1.0", "ce-id": "a%20%22b%22", "ce-source": "/s", "ce-type": "t"}, true, func(e fanfare.Event) bool { return e.ID == `a "b"` }},
		"quoted":             {map[string]string{"ce-specversion": "1.0", "ce-id": `"a \"b"`, "ce-source": "/s", "ce-type": "t"}, true, func(e fanfare.Event) bool { return e.ID == `a "b` }},
		"a bare percent":     {map[string]string{"ce-specversion": "1.0", "ce-id": `100%`, "ce-source": "/s", "ce-type": "t"}, true, func(e fanfare.Event) bool { return e.ID == `100%` }},
		"no type":            {map[string]string{"ce-specversion": "1.0", "ce-id": "1", "ce-source": "/s"}, false, nil},
		"wrong version":      {map[string]string{"ce-specversion": "2.0", "ce-id": "1", "ce-source": "/s", "ce-type": "t"}, false, nil},
		"data as attribute":  {map[string]string{"ce-data": "x"}, false, nil},
		"encoded line break": {map[string]string{"ce-id": "a%0d%0aBcc: x"}, false, nil},
		"attribute's name":   {map[string]string{"ce-my-ext": "x"}, false, nil},
		"plain":              {nil, true, func(e fanfare.Event) bool { return e.ID == "" && e.Type == "" }},
	} {
		t.Run(name, func(t *testing.T) {
			header := http.Header{}
			for k, v := range test.header {
				header.Set(k, v)
			}
			read := func(body []byte) (fanfare.Event, error) { return Plain(header, body, Mapping{}) }
			if IsBinary(header) {
				read = func(body []byte) (fanfare.Event, error) { return Binary(header, body) }
			}
			e, err := read([]byte(`{"a":1}`))
			if (err == nil) != test.ok || test.ok && (!test.check(e) || string(e.Data) != `{"a":1}`) {
				t.Errorf("got %+v, %v", e, err)
			}
		})
	}
	if _, err := Plain(http.Header{"Ce-Id": {"1", "2"}}, []byte(`{}`), Mapping{}); err == nil {
		t.Error("an attribute that stands twice was taken")
	}
	if e, err := Plain(http.Header{}, nil, Mapping{}); err != nil || e.Data != nil {
		t.Errorf("event without data: %+v, %v", e, err)
	}
}

func TestMappingFindsAttributesInTheData(t *testing.T) {
	for name, test := range map[string]struct {
		id, time, data string
		want           string // the id, or "" for an error
	}{
		"text":              {"/id", "", `{"id":"q1"}`, "q1"},
		"number":            {"/id", "", `{"id":17}`, "17"},
		"big number":        {"/id", "", `{"id":12345678901234567890}`, "12345678901234567890"},
		"deep":              {"/a/1/b~1c", "", `{"a":[0,{"b/c":"x"}]}`, "x"},
		"missing":           {"/id", "", `{"it":1}`, ""},
		"null":              {"/id", "", `{"id":null}`, ""},
		"object":            {"/id", "", `{"id":{}}`, ""},
		"index too high":    {"/a/7", "", `{"a":[1]}`, ""},
		"time":              {"/id", "/t", `{"id":"q1","t":"2020-01-01T00:00:00Z"}`, "q1"},
		"wrong time":        {"/id", "/t", `{"id":"q1","t":"2020"}`, ""},
		"data is not JSON":  {"/id", "", `{"id":`, ""},
		"data is no object": {"/id", "", `7`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			id, err1 := ParsePointer(test.id)
			at, err2 := ParsePointer(test.time)
			e, err := Mapping{id, at}.Event([]byte(test.data))
			if err1 != nil || err2 != nil || e.ID != test.want || (err == nil) != (test.want != "") {
				t.Errorf("got %q, %v", e.ID, err)
			}
		})
	}
}

func TestJSONTypesAreKnown(t *testing.T) {
	for mediaType, want := range map[string]bool{"application/json": true, "Application/JSON; charset=utf-8": true, "application/geo+json": true, "text/json": true,
		"text/plain": false, "application/x-www-form-urlencoded": false, "application/xml": false, "": false} {
		if IsJSON(mediaType) != want {
			t.Errorf("%q is %v", mediaType, !want)
		}
	}
}

func FuzzDecodeTakesOnlyWholeEvents(f *testing.F) {
	f.Add([]byte(whole))
	f.Add([]byte(`{"specversion":"1.0","id":"1","source":"/","type":"t","data_base64":"e30="}`))
	f.Add([]byte(`{"specversion":"1.0","id":"\ud800","source":"/","type":"t"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := Decode(b)
		if err != nil {
			if _, ok := errors.AsType[*fanfare.Error](err); !ok {
				t.Errorf("%T is not for users", err)
			}
			return
		}
		if e.ID == "" || e.Source == "" || e.Type == "" || strings.ContainsAny(e.ID+e.Source+e.Type+e.Subject, "\r\n\x00") || !utf8.ValidString(e.ID+e.Subject) {
			t.Errorf("took %+v", e)
		}
		if e.Data != nil && (!json.Valid(e.Data) || !utf8.Valid(e.Data) || len(e.Data) > MaxDataBytes) {
			t.Errorf("took data %q", e.Data)
		}
		if _, err := json.Marshal(e); err != nil {
			t.Errorf("cannot be kept: %v", err)
		}
	})
}

func FuzzPlainTakesOnlyCleanHeaders(f *testing.F) {
	f.Add("ce-id", "a%20b", []byte(`{"id":1}`), "/id")
	f.Fuzz(func(t *testing.T, name, value string, body []byte, pointer string) {
		p, err := ParsePointer(pointer)
		if err != nil {
			return
		}
		e, err := Plain(http.Header{http.CanonicalHeaderKey(name): {value}}, body, Mapping{ID: p})
		if err == nil && (strings.ContainsAny(e.ID+e.Source+e.Type+e.Subject, "\r\n\x00") || e.Data != nil && !json.Valid(e.Data)) {
			t.Errorf("took %+v", e)
		}
	})
}
