package condition

import (
	"testing"
)

func TestTheGuardOfAConditionIsNamed(t *testing.T) {
	x := newQuakes(t, near)
	for filter, want := range map[string]string{
		`place == 'x'`: "the value of event.place",
		`mag > 5.0`:    "the range of event.mag",
		`place != 'x'`: "",
		``:             "",
		`contains_ci(place,'x') || event.type == 'y'`: "the text in event.place or the value of event.type",
	} {
		if got, err := x.IndexedBy(quakes, filter, "", nil); got != want || err != nil {
			t.Errorf("%s is found by %q, %v; want %q", filter, got, err, want)
		}
	}
	if got, err := x.IndexedBy(quakes, "", "near", []byte(`{"min_mag":1,"place":"x"}`)); got != "the text in event.place and the range of event.mag" || err != nil {
		t.Errorf("the rule is found by %q, %v", got, err)
	}
}
