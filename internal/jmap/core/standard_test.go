package core

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
)

func window(t *testing.T, arguments string, most int) (*QueryResult, error) {
	t.Helper()
	var a QueryArguments
	if err := json.Unmarshal([]byte(arguments), &a); err != nil {
		t.Fatal(err)
	}
	return a.Window([]ID{"a", "b", "c", "d", "e"}, most)
}

func TestSection55ReturnsTheWindowThatWasAskedFor(t *testing.T) {
	for _, c := range []struct {
		arguments string
		most      int
		position  int
		ids       string
		limit     int
	}{
		{`{}`, 10, 0, "abcde", 0},
		{`{"position":2,"limit":2}`, 10, 2, "cd", 0},
		{`{"position":-2}`, 10, 3, "de", 0},
		{`{"position":-9,"limit":1}`, 10, 0, "a", 0},
		{`{"position":5}`, 10, 5, "", 0},
		{`{"position":99}`, 10, 99, "", 0},
		{`{"limit":0}`, 10, 0, "", 0},
		{`{"anchor":"c"}`, 10, 2, "cde", 0},
		{`{"anchor":"c","anchorOffset":-1,"limit":3,"position":4}`, 10, 1, "bcd", 0},
		{`{"anchor":"c","anchorOffset":-9,"limit":2}`, 10, 0, "ab", 0},
		{`{"anchor":"c","anchorOffset":2}`, 10, 4, "e", 0},
		{`{"limit":9}`, 3, 0, "abc", 3},
		{`{}`, 3, 0, "abc", 3},
		{`{"limit":2}`, 3, 0, "ab", 0},
	} {
		r, err := window(t, c.arguments, c.most)
		if err != nil {
			t.Errorf("%s: %v", c.arguments, err)
			continue
		}
		ids, limit := "", 0
		for _, id := range r.IDs {
			ids += string(id)
		}
		if r.Limit != nil {
			limit = *r.Limit
		}
		if r.Position != c.position || ids != c.ids || limit != c.limit || r.Total != nil || r.IDs == nil {
			t.Errorf("%s: got position %d, ids %q, limit %d", c.arguments, r.Position, ids, limit)
		}
	}
	if r, err := window(t, `{"calculateTotal":true,"limit":1}`, 10); err != nil || r.Total == nil || *r.Total != 5 {
		t.Errorf("total: %v, %v", r, err)
	}
	_, err := window(t, `{"anchor":"x"}`, 10)
	if failed, ok := errors.AsType[*MethodError](err); !ok || failed.Type != AnchorNotFound {
		t.Errorf("unknown anchor: %v", err)
	}
}

func TestSection55FiltersCombineTheirConditions(t *testing.T) {
	condition := func(text string) string { return `{"has":"` + text + `"}` }
	for _, c := range []struct {
		filter string
		want   string // of a, b, ab
	}{
		{condition("a"), "a ab"},
		{`{"operator":"AND","conditions":[` + condition("a") + `,` + condition("b") + `]}`, "ab"},
		{`{"operator":"OR","conditions":[` + condition("a") + `,` + condition("b") + `]}`, "a b ab"},
		{`{"operator":"NOT","conditions":[` + condition("a") + `,` + condition("b") + `]}`, ""},
		{`{"operator":"NOT","conditions":[` + condition("a") + `]}`, "b"},
		{`{"operator":"AND","conditions":[{"operator":"NOT","conditions":[` + condition("b") + `]},` + condition("a") + `]}`, "a"},
		{`{"operator":"AND","conditions":[]}`, "a b ab"},
		{`{"operator":"OR","conditions":[]}`, ""},
	} {
		var f Filter
		if err := json.Unmarshal([]byte(c.filter), &f); err != nil {
			t.Errorf("%s: %v", c.filter, err)
			continue
		}
		var found []string
		for _, record := range []string{"a", "b", "ab"} {
			if f.Matches(func(one *Filter) bool {
				value, _ := one.Condition.Get("has")
				return strings.Contains(record, strings.Trim(string(value), `"`))
			}) {
				found = append(found, record)
			}
		}
		if got := strings.Join(found, " "); got != c.want {
			t.Errorf("%s: got %q, want %q", c.filter, got, c.want)
		}
	}
}

func TestSection55RefusesFiltersWithoutASense(t *testing.T) {
	deep := `{}`
	for range 20 {
		deep = `{"operator":"NOT","conditions":[` + deep + `]}`
	}
	for _, text := range []string{`[]`, `1`, `{"operator":"XOR","conditions":[]}`, `{"operator":"AND"}`, `{"operator":"AND","conditions":null}`, `{"operator":"AND","conditions":{}}`,
		`{"operator":"AND","conditions":[1]}`, `{"operator":"AND","conditions":[],"x":1}`, deep, `{"operator":"OR","conditions":[{}` + strings.Repeat(`,{}`, 300) + `]}`} {
		var f Filter
		if err := json.Unmarshal([]byte(text), &f); err == nil {
			t.Errorf("accepted %.100s", text)
		}
	}
}

func TestSection51LimitsTheRecordsOfAGet(t *testing.T) {
	c := &Call{Limits: &Limits{MaxObjectsInGet: 2}, created: map[string]ID{"k": "M3"}}
	ids := []ID{"M1", "M1", "#k"}
	a := GetArguments{IDs: &ids}
	if failed, ok := errors.AsType[*MethodError](a.Check(c, nil)); !ok || failed.Type != RequestTooLarge {
		t.Errorf("three ids: %v", failed)
	}
	ids = []ID{"M1", "#k"}
	if err := a.Check(c, nil); err != nil || !slices.Equal(*a.IDs, []ID{"M1", "M3"}) {
		t.Errorf("two ids: %v, %v", *a.IDs, err)
	}
	properties := []string{"subject", "colour"}
	a.Properties = &properties
	if failed, ok := errors.AsType[*MethodError](a.Check(c, []string{"subject"})); !ok || failed.Type != InvalidArguments {
		t.Errorf("an unknown property: %v", failed)
	}
}

func TestSection53LimitsTheRecordsOfASet(t *testing.T) {
	c := &Call{Limits: &Limits{MaxObjectsInSet: 3}}
	object := Object{{"x", json.RawMessage(`{}`)}}
	a := SetArguments{Create: object, Update: object, Destroy: []ID{"M1"}}
	if err := a.Check(c); err != nil {
		t.Errorf("three records: %v", err)
	}
	a.Destroy = append(a.Destroy, "M2")
	if failed, ok := errors.AsType[*MethodError](a.Check(c)); !ok || failed.Type != RequestTooLarge {
		t.Errorf("four records: %v", failed)
	}
	a = SetArguments{Create: Object{{"x", json.RawMessage(`[]`)}}}
	if failed, ok := errors.AsType[*MethodError](a.Check(c)); !ok || failed.Type != InvalidArguments {
		t.Errorf("an array: %v", failed)
	}
}

func TestSection53NamesTheWrongProperties(t *testing.T) {
	var record struct {
		Name  string `json:"name"`
		Order *Int   `json:"sortOrder"`
	}
	properties, err := ParseObject([]byte(`{"name":1,"sortOrder":3,"id":"x","NAME":"y"}`))
	if err != nil {
		t.Fatal(err)
	}
	failed := DecodeProperties(properties, &record)
	if failed == nil || failed.Type != SetInvalidProperties || !slices.Equal(failed.Properties, []string{"name", "id", "NAME"}) {
		t.Fatalf("got %v", failed)
	}
	text, _ := json.Marshal(failed)
	if !strings.Contains(string(text), `"properties":["name","id","NAME"]`) || !strings.Contains(string(text), `"type":"invalidProperties"`) {
		t.Errorf("got %s", text)
	}
}
