package core

import (
	"encoding/json"
	"testing"
)

func patched(t *testing.T, record, patch string) (string, []string, *SetError) {
	t.Helper()
	before, err := parseAny(json.RawMessage(record))
	if err != nil {
		t.Fatal(err)
	}
	object, err := ParseObject([]byte(patch))
	if err != nil {
		t.Fatal(err)
	}
	result, touched, failed := ApplyPatch(before.(map[string]any), object)
	if text, _ := json.Marshal(before); string(text) != record {
		t.Errorf("the patch %s changed its record to %s", patch, text)
	}
	text, err := json.Marshal(result)
	if err != nil {
		t.Fatal(err)
	}
	return string(text), touched, failed
}

func TestSection53PatchesChangeWhatTheyName(t *testing.T) {
	const record = `{"keywords":{"$seen":true,"a/b":true,"c~d":true},"name":"x"}`
	for patch, want := range map[string]string{
		`{}`:                          record,
		`{"name":"y"}`:                `{"keywords":{"$seen":true,"a/b":true,"c~d":true},"name":"y"}`,
		`{"keywords/$seen":null}`:     `{"keywords":{"a/b":true,"c~d":true},"name":"x"}`,
		`{"keywords/a~1b":null}`:      `{"keywords":{"$seen":true,"c~d":true},"name":"x"}`,
		`{"keywords/c~0d":null}`:      `{"keywords":{"$seen":true,"a/b":true},"name":"x"}`,
		`{"keywords/none":null}`:      record,
		`{"keywords/new":true}`:       `{"keywords":{"$seen":true,"a/b":true,"c~d":true,"new":true},"name":"x"}`,
		`{"keywords":{"only":true}}`:  `{"keywords":{"only":true},"name":"x"}`,
		`{"name":null,"keywords":{}}`: `{"keywords":{},"name":null}`,
	} {
		if got, _, err := patched(t, record, patch); err != nil || got != want {
			t.Errorf("%s: got %s, %v, want %s", patch, got, err, want)
		}
	}
	if _, touched, _ := patched(t, record, `{"keywords/a":true,"keywords/b":true,"name":"z"}`); len(touched) != 2 || touched[0] != "keywords" || touched[1] != "name" {
		t.Errorf("touched %v", touched)
	}
}

func TestSection53RefusesPatchesWithoutASense(t *testing.T) {
	for _, patch := range []string{
		`{"keywords":{},"keywords/x":true}`, `{"keywords/x/y":true}`, `{"name/x":1}`, `{"missing/x":1}`, `{"list/0":1}`, `{"keywords/x":{},"keywords/x/y":1}`,
	} {
		if got, _, err := patched(t, `{"keywords":{},"list":[1],"name":"x"}`, patch); err == nil || err.Type != SetInvalidPatch {
			t.Errorf("%s: got %s, %v", patch, got, err)
		}
	}
}

func FuzzApplyPatch(f *testing.F) {
	f.Add([]byte(`{"a":{"b":1}}`), []byte(`{"a/b":null,"c":[1]}`))
	f.Add([]byte(`{"a":{"b~/":{}}}`), []byte(`{"a/b~0~1/x":2}`))
	f.Fuzz(func(t *testing.T, record, patch []byte) {
		before, err := parseAny(record)
		object, ok := before.(map[string]any)
		if err != nil || !ok {
			return
		}
		changes, err := ParseObject(patch)
		if err != nil {
			return
		}
		text, _ := json.Marshal(before)
		_, _, _ = ApplyPatch(object, changes)
		if after, _ := json.Marshal(before); string(after) != string(text) {
			t.Fatalf("%s became %s", text, after)
		}
	})
}
