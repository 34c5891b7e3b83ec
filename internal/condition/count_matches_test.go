package condition

import (
	"testing"
)

func TestCountMatchesEvaluatesAFilterOnEvents(t *testing.T) {
	x := newQuakes(t)
	events := []Event{{Data: []byte(`{"mag":1,"place":"a"}`), Attributes: Attributes{Source: "/a"}}, {Data: []byte(`{"mag":3,"place":"b"}`), Attributes: Attributes{Source: "/b"}}, {Data: []byte(`{"place":"c"}`)}, {Data: []byte(`{`)}}
	for filter, want := range map[string]int{"mag > 2.0": 1, "place != 'a'": 2, "": 4, "has(event.mag)": 2, "mag + 1.0 > 2.5": 1, "nonsense": 0,
		"ce.source == '/b'": 1, "ce.source != '/a'": 1} {
		if got := x.CountMatches(quakes, filter, events); got != want {
			t.Errorf("%q is met by %d, want %d", filter, got, want)
		}
	}
}
