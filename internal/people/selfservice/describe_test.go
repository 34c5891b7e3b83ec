package selfservice

import (
	"bytes"
	"encoding/json"
	"testing"
)

func TestValuesAreWrittenForPeople(t *testing.T) {
	say := func(name string) string { return map[string]string{"yes": "Ja", "no": "Nein"}[name] }
	for value, want := range map[string]string{
		`"Ulm"`: "Ulm", `3`: "3", `2.50`: "2.50", `1e6`: "1000000", `1500000`: "1500000", `12345678901234567890`: "12345678901234567890",
		`true`: "Ja", `false`: "Nein", `["a","b"]`: "a, b", `[]`: "", `null`: "", `{"a":1}`: "",
	} {
		t.Run(value, func(t *testing.T) {
			d := json.NewDecoder(bytes.NewReader([]byte(value)))
			d.UseNumber()
			var v any
			if err := d.Decode(&v); err != nil {
				t.Fatal(err)
			}
			if got := valueText(v, say); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}
