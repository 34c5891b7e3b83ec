package condition

import (
	"encoding/json"
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/condition/lang"
)

// A pattern of 4096 bytes can expand to a million parts, each of which is tried at every character
// of a text.
func TestRepetitionsCountForTheSizeOfARegularExpression(t *testing.T) {
	x := newQuakes(t)
	for pattern, refused := range map[string]bool{
		"^[0-9]+ km":                              false,
		strings.Repeat("storm|flood|", 150):       false,
		"(a?){200}":                               false,
		"(a?){1000}":                              true,
		"((a{10}){10}){10}":                       true,
		"(a?){400}(b?){400}":                      true,
		strings.Repeat("(.?){1000}", 300):         true,
		strings.Repeat(".?", lang.MaxRegexSize/2): true,
	} {
		for _, filter := range []string{"place.matches('%s')", "matches(place, '%s')", "tags.exists(t, t.name.matches('%s'))"} {
			err := x.CheckFilter(quakes, strings.ReplaceAll(filter, "%s", pattern))
			if refused != (err != nil) || refused && !strings.Contains(err.Error(), "more than 1000 parts") {
				t.Errorf("%.20s: %s: %v", pattern, filter, err)
			}
		}
	}
}

func TestALargeRegularExpressionThatIsComputedIsAnError(t *testing.T) {
	sought := Rule{Name: "sought", When: "place.matches(sub.pattern)", Params: map[string]string{"pattern": "string"}}
	x := newQuakes(t, sought)
	for pattern, matches := range map[string]bool{"^a{3}$": true, "(a?){1000}": false, "b": false, "(": false} {
		params, _ := json.Marshal(map[string]string{"pattern": pattern})
		mustAdd(t, x, quakes, Entry{Place: 1, Rule: "sought", Params: params})
		mustAdd(t, x, quakes, Entry{Place: 2, Filter: "place.matches('' + '" + pattern + "')"})
		if got := len(places(t, x, quakes, `{"place":"aaa"}`)) == 2; got != matches {
			t.Errorf("%s: %v", pattern, got)
		}
	}
}

func TestTheCostOfARegularExpressionGrowsWithItsSize(t *testing.T) {
	x := newQuakes(t)
	small, err1 := x.FilterCost(quakes, "place.matches('a')")
	large, err2 := x.FilterCost(quakes, "place.matches('(a?b?){100}')")
	if err1 != nil || err2 != nil || large.Nanos < 50*small.Nanos {
		t.Errorf("the small one costs %d, the large one %d (%v, %v)", small.Nanos, large.Nanos, err1, err2)
	}
}
