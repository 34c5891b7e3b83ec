package people_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/people"
)

const putLine = `{"id":"a-1","topic":"load","channel":"email","to":"person1@example.com","filter":"contains_ci(title,'vancouver')","data":{"name":"Person 1","links":["https://example.org/a/1"]}}`

func TestDecodePutReadsWhatTheLibraryReads(t *testing.T) {
	lines := []string{
		putLine, `{}`, ` { "to" : "a@b.c" , "topic" : null, "data": null } `,
		`{"filter":"title == \"x\\u00e9\u00e9\ud83d\ude00\"","params":{"a":[1,{"b":"}"}]},"attributes":{ "x" : "\"" }}`,
		`{"to":"jürgen@example.org","time_zone":"Europe/Berlin","locale":"de","rule":"near"}`,
	}
	for _, line := range lines {
		var got, want people.SubscriptionPut
		if err := people.DecodeSubscription([]byte(line), &got); err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		if err := json.Unmarshal([]byte(line), &want); err != nil {
			t.Fatal(err)
		}
		sameNull(&want)
		if !reflect.DeepEqual(got.Plain(), want) {
			t.Errorf("%s:\n got %+v\nwant %+v", line, got, want)
		}
	}
}

// sameNull converts null in the same way as DecodeSubscription.
func sameNull(p *people.SubscriptionPut) {
	for _, raw := range []*json.RawMessage{&p.Params, &p.Data, &p.Attributes} {
		if string(*raw) == "null" {
			*raw = nil
		}
	}
}

func TestDecodePutKeepsNothingOfTheLine(t *testing.T) {
	line := []byte(putLine)
	var p people.SubscriptionPut
	if err := people.DecodeSubscription(line, &p); err != nil {
		t.Fatal(err)
	}
	clear(line)
	if p.To != "person1@example.com" || !bytes.HasPrefix(p.Data, []byte(`{"name"`)) {
		t.Errorf("%+v", p)
	}
}

func TestDecodePutNamesWhatIsWrong(t *testing.T) {
	cases := []struct{ line, pointer, text string }{
		{`{"mail":"x"}`, "/mail", "unknown field"},
		{`{"chanel":"x"}`, "/chanel", "did you mean channel?"},
		{`{"to":"a","to":"b"}`, "/to", "twice"},
		{`{"to":5}`, "/to", "must be a string"},
		{`{"to":"a` + "\n" + `b"}`, "/to", "valid JSON string"},
		{`{"to":"\x"}`, "/to", "valid JSON string"},
		{`{"to":"` + "\xff" + `"}`, "/to", "valid JSON string"},
		{`{"data":[1]}`, "/data", "must be an object"},
		{`{"data":{"a":1,}}`, "/data", "not valid JSON"},
		{`{"data":{"a":1`, "/data", "not valid JSON"},
		{`[]`, "", "must be a JSON object"},
		{``, "", "must be a JSON object"},
		{`{"to":"a"`, "", "not valid JSON"},
		{`{"to":"a",}`, "", "not valid JSON"},
		{`{"to" "a"}`, "", "colon"},
		{`{"to":"a"} x`, "", "data after the object"},
		{`{"to":"` + strings.Repeat("x", 1<<20) + `"}`, "", "at most"},
	}
	for _, c := range cases {
		var p people.SubscriptionPut
		err := people.DecodeSubscription([]byte(c.line), &p)
		e, ok := errors.AsType[*fanfare.Error](err)
		if !ok || e.Pointer != c.pointer || !strings.Contains(e.Error(), c.text) {
			t.Errorf("%.80s: %v", c.line, err)
		}
	}
}

// FuzzDecodePut checks that encoding/json accepts everything that DecodeSubscription accepts,
// with the same result.
func FuzzDecodePut(f *testing.F) {
	f.Add([]byte(putLine))
	f.Add([]byte(`{"to":"\ud83d","data":{"a":"\\"}}`))
	f.Add([]byte(`{"filter":null,"params":{}}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		var got, want people.SubscriptionPut
		if people.DecodeSubscription(line, &got) != nil {
			return
		}
		if err := json.Unmarshal(line, &want); err != nil {
			t.Fatalf("%q was taken, but: %v", line, err)
		}
		sameNull(&want)
		for _, p := range []*people.SubscriptionPut{&got, &want} {
			for _, raw := range []*json.RawMessage{&p.Params, &p.Data, &p.Attributes} {
				if len(*raw) == 0 {
					*raw = nil
				}
			}
		}
		if !reflect.DeepEqual(got.Plain(), want) {
			t.Fatalf("%q:\n got %+v\nwant %+v", line, got, want)
		}
	})
}

func BenchmarkDecodePut(b *testing.B) {
	line := []byte(putLine)
	var p people.SubscriptionPut
	b.ReportAllocs()
	for b.Loop() {
		if err := people.DecodeSubscription(line, &p); err != nil {
			b.Fatal(err)
		}
	}
}
