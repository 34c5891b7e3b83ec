package expr

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/condition/lang"
)

// scanned are JSON texts and invalid texts.
var scanned = []string{
	`{"a":1,"b":"text","c":[1,{"a":2}],"d":{"a":{"b":3},"b":null},"e":true}`,
	`{"a":1,"a":2,"d":{"b":1},"d":{"a":1}}`, `{"a":-0.5e+3,"b":1e999,"c":12345678901234567890}`, ` { "a" : false , "b" : [ ] , "c" : { } } `,
	"{\"\\u0061\":\"x\\n\\\"\\ud83d\\ude00\\ud800\",\"b\":\"\xff\",\"\xc3\xa4\":1}", `{"b":"日本","a":"\/\b\f\r\t\\"}`,
	`[1,2]`, `"a"`, `null`, `0`, ``, ` `, `{"a":01}`, `{"a":1,}`, `{"a":}`, `{"a" 1}`, `{a:1}`, `{"a":1}x`, `{"a":"\x"}`, `{"a":tru}`, `{"a":nul}`,
	"{\"a\":\"\n\"}", `{"a":1.}`, `{"a":-}`, `{"a":"\u12g4"}`, `{"a":[1,]}`, `{"a":[1 2]}`, `{"a":"`, `{"a":"\`, `{"a`, `{`, `{"a":{"b":1}`,
	`{"a":` + strings.Repeat("[", 9_999) + strings.Repeat("]", 9_999) + `}`, `{"a":` + strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000) + `}`,
	`{"a":` + strings.Repeat(`{"a":`, 9_999) + "1" + strings.Repeat("}", 9_999) + `}`, `{"a":` + strings.Repeat(`{"a":`, 10_000) + "1" + strings.Repeat("}", 10_000) + `}`,
}

// scanPaths are the paths to read; some of their members are not in the text.
func scanPaths() (list []*Path, all PathTable) {
	for _, steps := range [][]string{{"a"}, {"b"}, {"c"}, {"d", "a"}, {"d", "a", "b"}, {"d", "b"}, {"ä"}, {"gone"}, {}} {
		list = append(list, &Path{Source: Source{Steps: steps}})
	}
	all.Link(list)
	return list, all
}

var scanShape = &lang.SchemaType{Kind: lang.KindMap, Open: true, Fields: map[string]*lang.SchemaType{
	"a": {Kind: lang.KindDouble}, "c": {Kind: lang.KindList, Items: &lang.SchemaType{Kind: lang.KindInt}}, "d": {Kind: lang.KindMap, Fields: map[string]*lang.SchemaType{"b": {Kind: lang.KindInt}}},
}}

// checkScan compares the values that a scan reads with those of decode.
func checkScan(t *testing.T, text string) {
	t.Helper()
	list, all := scanPaths()
	for _, s := range []*lang.SchemaType{nil, scanShape} {
		whole, want := DecodeData([]byte(text), s)
		var d Document
		if got := d.Scan([]byte(text), s, all.Members.Used, all.Members.Size); (got == nil) != (want == nil) {
			t.Fatalf("%.60q: %v, want %v", text, got, want)
		}
		if want != nil {
			return
		}
		for _, p := range list {
			got, gotState := d.Follow(p)
			if value, state := p.Follow(whole); !reflect.DeepEqual(got, value) || gotState != state {
				t.Fatalf("%.60q: %v is %#v (%d), want %#v (%d)", text, p.Steps, got, gotState, value, state)
			}
		}
	}
}

func TestAScanReadsWhatDecodeReads(t *testing.T) {
	for _, text := range scanned {
		checkScan(t, text)
	}
	random := rand.New(rand.NewPCG(1, 2))
	const bytes = "{}[]\",:0123456789-+.eE\\ \nabtrfuln\x00\xff\xc3\xa4"
	for range 100_000 {
		text := []byte(scanned[random.IntN(len(scanned))])
		if len(text) > 200 {
			continue
		}
		for range 1 + random.IntN(3) {
			at, c := random.IntN(len(text)+1), bytes[random.IntN(len(bytes))]
			switch {
			case at == len(text) || random.IntN(3) == 0:
				text = append(text[:at:at], append([]byte{c}, text[at:]...)...)
			case random.IntN(2) == 0:
				text[at] = c
			default:
				text = append(text[:at], text[at+1:]...)
			}
		}
		checkScan(t, string(text))
	}
}

// FuzzScan reads any bytes as an event's data.
func FuzzScan(f *testing.F) {
	for _, text := range scanned {
		f.Add(text)
	}
	f.Fuzz(checkScan)
}

// BenchmarkScan reads two of the members of an event of 300 bytes.
func BenchmarkScan(b *testing.B) {
	text := []byte(`{"symbol":"S01234","price":123.45,"exchange":"XNAS","currency":"USD","time":"2026-11-20T15:04:05.123456Z","volume":123456,` +
		`"open":120.5,"high":125.25,"low":119.75,"close":123.45,"bid":123.44,"ask":123.46,"name":"A company with a rather long name, Inc.","venue":{"country":"US","city":"New York"},"flags":["a","b"]}`)
	list := []*Path{{Source: Source{Steps: []string{"symbol"}}}, {Source: Source{Steps: []string{"price"}}}}
	var all PathTable
	all.Link(list)
	var d Document
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if err := d.Scan(text, nil, all.Members.Used, all.Members.Size); err != nil {
			b.Fatal(err)
		}
		for _, p := range list {
			if _, state := d.Follow(p); state != present {
				b.Fatal(p.Steps)
			}
		}
	}
}
