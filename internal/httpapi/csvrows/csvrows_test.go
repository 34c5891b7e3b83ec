package csvrows

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"
	"time"
)

type base struct {
	ID string `json:"id"`
}

type inner struct {
	Name string    `json:"name"`
	At   time.Time `json:"at,omitzero"`
	Next *inner    `json:"next,omitempty"`
}

type outer struct {
	base
	Count   int             `json:"count"`
	Price   float64         `json:"price,omitempty"`
	On      bool            `json:"on"`
	Inner   inner           `json:"inner"`
	Pointer *inner          `json:"pointer,omitempty"`
	List    []string        `json:"list,omitempty"`
	Map     map[string]int  `json:"map"`
	Raw     json.RawMessage `json:"raw,omitempty"`
	Hidden  string          `json:"-"`
	Plain   string
	private int
}

func TestColumnsAreTheMembersInJSON(t *testing.T) {
	c := ColumnsOf(reflect.TypeFor[outer]())
	want := []string{"id", "count", "price", "on", "inner.name", "inner.at", "inner.next", "pointer.name", "pointer.at", "pointer.next", "list", "map", "raw", "Plain"}
	if got := c.Names(); !slices.Equal(got, want) {
		t.Fatalf("columns are %q", got)
	}
	at := time.Date(2026, 11, 20, 8, 0, 0, 5, time.UTC)
	for name, test := range map[string]struct {
		value outer
		want  []string
	}{
		"empty": {outer{}, []string{"", "0", "", "false", "", "", "", "", "", "", "", "", "", ""}},
		"full": {
			outer{base: base{"a"}, Count: -3, Price: 1.5, On: true, Inner: inner{Name: "=1+1", At: at, Next: &inner{Name: "x"}}, Pointer: &inner{Name: "é\"<"}, List: []string{"=x", "y"}, Map: map[string]int{"a": 1}, Raw: json.RawMessage(`{"a":[1]}`), Hidden: "h", Plain: "-p", private: 1},
			[]string{"a", "-3", "1.5", "true", "'=1+1", "2026-11-20T08:00:00.000000005Z", `{"name":"x"}`, "é\"<", "", "", `["=x","y"]`, `{"a":1}`, `{"a":[1]}`, "'-p"},
		},
	} {
		got, err := c.Row(reflect.ValueOf(test.value))
		if err != nil || !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func TestFormulasAreNeutral(t *testing.T) {
	for text, want := range map[string]string{"=1": "'=1", "+1": "'+1", "-1": "'-1", "@a": "'@a", "\t=": "'\t=", "\r=": "'\r=", "\n=": "'\n=", "a=": "a=", "": "", "1": "1"} {
		if got := Neutral(text); got != want {
			t.Errorf("%q becomes %q", text, got)
		}
	}
}
