package lang

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"fanfare.dev/fanfare"
)

func paramsOf(t testing.TB, types map[string]string) []Param {
	t.Helper()
	params, err := ReadParamTypes("/rules/0", types)
	if err != nil {
		t.Fatal(err)
	}
	return params
}

var plainTypes = map[string]string{"n": "number", "s": "string", "b": "boolean", "l": "strings", "m": "number"}

func plainSeeds() []string {
	return []string{
		`{"n":1,"s":"a","b":true,"l":["x","y"],"m":-2.5e3}`,
		` { "m" : 0.5 , "l" : [ ] , "b" : false , "s" : "" , "n" : -0 } `,
		`{"n":1,"s":"a\\u0041","b":true,"l":[],"m":2}`, `{"n":1,"s":"a","b":true,"l":["\\n"],"m":2}`,
		`{"n":01,"s":"a","b":true,"l":[],"m":2}`, `{"n":1.,"s":"a","b":true,"l":[],"m":2}`, `{"n":+1,"s":"a","b":true,"l":[],"m":2}`,
		`{"n":1e999,"s":"a","b":true,"l":[],"m":2}`, `{"n":1,"s":"a","b":truex,"l":[],"m":2}`, `{"n":1,"s":"a","b":true,"l":[,],"m":2}`,
		`{"n":1,"n":1,"s":"a","b":true,"l":[],"m":2}`, `{"n":1,"s":"a","b":true,"l":["a",],"m":2}`, `{"n":1,"s":"a","b":true,"m":2,"l":[}`, `{"n":1,"s":"a","b":true,"m":2,"l":["a"}`, `{"n":1,"s":"a","b":true,"l":[],"m":2,"x":1}`,
		`{"n":1,"s":"a","b":true,"l":[],"m":2}}`, `{"n":1,"s":null,"b":true,"l":[],"m":2}`, `{"n":0x1,"s":"a","b":true,"l":[],"m":2}`,
		"{\"n\":1,\"s\":\"\xff\",\"b\":true,\"l\":[],\"m\":2}", `{}`, `[]`, ``, `{"n":1`,
		`{"n":1,"s":"é <&> \u2028","b":true,"l":["<é>"],"m":1E-7}`,
	}
}

func TestReadSimpleParamsAgreesWithReadAnyParams(t *testing.T) {
	params := paramsOf(t, plainTypes)
	taken := 0
	for _, raw := range plainSeeds() {
		if agrees(t, raw, params) {
			taken++
		}
	}
	if taken != 2 { // the first two
		t.Errorf("%d are read plainly", taken)
	}
	if v, ok := readSimpleParams([]byte(`{}`), nil); !ok || v.Numbers != nil || v.Texts != nil {
		t.Errorf("no params: %+v, %v", v, ok)
	}
}

// The test has more params than the simple reader can track.
func TestARepeatedParamIsNotSimple(t *testing.T) {
	types, twice := map[string]string{}, "{"
	for n := range 65 {
		types[fmt.Sprintf("p%02d", n)] = "number"
		twice += fmt.Sprintf(`"p%02d":%d,`, max(n, 1), n) // no p00, and p01 twice
	}
	params := paramsOf(t, types)
	last := params[64].Name
	for _, raw := range []string{
		strings.TrimSuffix(twice, ",") + "}",
		strings.Replace(strings.TrimSuffix(twice, ",")+"}", `"p01":0`, `"`+last+`":0`, 1), // and the last one of them all
	} {
		if v, ok := readSimpleParams([]byte(raw), params); ok {
			t.Errorf("%s is read as %+v", raw, v)
		}
	}
}

func agrees(t *testing.T, raw string, params []Param) (taken bool) {
	plain, ok := readSimpleParams([]byte(raw), params)
	full, err := readAnyParams(json.RawMessage(raw), params)
	if ok && (err != nil || !slices.Equal(plain.Numbers, full.Numbers) || !reflect.DeepEqual(plain.Texts, full.Texts)) {
		t.Errorf("%q: read plainly as %+v, fully as %+v, %v", raw, plain, full, err)
	}
	return ok
}

func FuzzReadSimpleParams(f *testing.F) {
	for _, seed := range plainSeeds() {
		f.Add(seed)
	}
	params := paramsOf(f, plainTypes)
	f.Fuzz(func(t *testing.T, raw string) { agrees(t, raw, params) })
}

func BenchmarkReadParams(b *testing.B) {
	params := paramsOf(b, map[string]string{"min_mag": "number", "place": "string"})
	raw := json.RawMessage(`{"min_mag":4.5,"place":"Alaska"}`)
	for name, read := range map[string]func(json.RawMessage, []Param) (ParamValues, error){"plain": ReadParams, "full": readAnyParams} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := read(raw, params); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestAMissingParamDoesNotHideAnUnknownOne(t *testing.T) {
	params := paramsOf(t, map[string]string{"city": "string", "limit": "number"})
	_, err := ReadParams(json.RawMessage(`{"city":"Oslo","limits":3}`), params)
	var first *fanfare.Error
	if !errors.As(err, &first) || first.Pointer != "/params/limit" {
		t.Fatalf("the error is %v", err)
	}
	if len(first.Details) != 1 || first.Details[0].Pointer != "/params/limits" {
		t.Errorf("the details are %v", first.Details)
	}
}
