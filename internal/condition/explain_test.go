package condition

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"fanfare.dev/fanfare"
)

// The test compares every part of every explanation with cel-go, and the whole with Match.
func TestTheExplanationAgreesWithTheMatch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		entry := w.drawEntry(t, scale{locals: 2, of: []entryKind{everyEventEntry, filterEntry, filterEntry, ruleEntry, ruleEntry}})
		w.add(t, []Entry{entry})
		event := drawEvent(t)
		data, hits := event.Data, w.hits(t, w.x, event)
		part, err := w.x.Explain(w.key, entry, event)
		if err != nil {
			t.Fatalf("%+v on %s: %v", entry, data, err)
		}
		if matched := len(hits) == 1; matched != (part.Result == fanfare.PartTrue) {
			t.Fatalf("%+v on %s: matched %v, explained as %+v", entry, data, matched, part)
		}

		c := w.x.topics[w.key].compiled.Load()
		sc, sub := c.filterScope, map[string]any(nil)
		if entry.Rule != "" {
			sc, sub = c.ruleScopes[c.ruleNumber(entry.Rule)], readSub(t, entry.Params)
		}
		var holds func(p fanfare.Part)
		holds = func(p fanfare.Part) {
			if p.Kind == fanfare.PartValue {
				if (p.Error == "") != (p.Result == fanfare.PartFound) || (p.Error == "") != (p.Value != nil) {
					t.Fatalf("a value with an error, or neither: %+v", p)
				}
				return
			}
			if naive := naive(t, sc, p.Text, event, sub); naive != (p.Result == fanfare.PartTrue) {
				t.Fatalf("%s on %s: %s, cel-go says %v", p.Text, data, p.Result, naive)
			}
			if tests := p.Kind == fanfare.PartTest; tests && (p.Error != "") != (p.Result == fanfare.PartError) {
				t.Fatalf("a test in error that says nothing, or one that says something without: %+v", p)
			}
			if naive := naive(t, sc, "!("+p.Text+")", event, sub); naive != (p.Result == fanfare.PartFalse) {
				t.Fatalf("!(%s) on %s: %s, cel-go says %v", p.Text, data, p.Result, naive)
			}
			for _, one := range p.Parts {
				holds(one)
			}
		}
		holds(part)
	})
}

// outline formats an explanation as a tree.
func outline(p fanfare.Part, depth int) string {
	line := fmt.Sprintf("%s%s %s", strings.Repeat("  ", depth), p.Result, p.Text)
	if p.Value != nil {
		line += " = " + string(p.Value)
	}
	if p.Error != "" {
		line += " (" + p.Error + ")"
	}
	line += "\n"
	for _, one := range p.Parts {
		line += outline(one, depth+1)
	}
	return line
}

func TestAnExplanationNamesTheDecidingParts(t *testing.T) {
	x := newQuakes(t, near)
	params := json.RawMessage(`{"min_mag":5,"place":"alaska"}`)
	for _, c := range []struct {
		entry      Entry
		data, want string
	}{
		{Entry{Rule: "near", Params: params}, `{"mag":4.2,"place":"Off Alaska"}`, `
false event.mag >= sub.min_mag && contains_ci(event.place, sub.place)
  false event.mag >= sub.min_mag
    value event.mag = 4.2
    value sub.min_mag = 5
  true contains_ci(event.place, sub.place)
    value event.place = "Off Alaska"
    value sub.place = "alaska"
`},
		{Entry{Filter: "mag > 3.0 || !(geo.lat < 10.0)"}, `{"geo":{}}`, `
error mag > 3.0 || !(geo.lat < 10.0)
  error mag > 3.0 (event.mag is missing)
    error mag (event.mag is missing)
  error !(geo.lat < 10.0)
    error geo.lat < 10.0 (event.geo.lat is missing)
      error geo.lat (event.geo.lat is missing)
`},
		{Entry{Filter: "mag > 3.0"}, `{"mag":null}`, `
error mag > 3.0 (null cannot be compared with a number)
  value mag = null
`},
		{Entry{Filter: "sig + 1 == 3 && event.type in ['a', 'b']"}, `{"sig":2,"type":"c"}`, `
false sig + 1 == 3 && event.type in ["a", "b"]
  true sig + 1 == 3
    value sig + 1 = 3
      value sig = 2
  false event.type in ["a", "b"]
    value event.type = "c"
`},
		{Entry{Filter: "tags.exists(t, t.name == 'x')"}, `{"tags":[{"name":"y"}]}`, `
false tags.exists(t, t.name == "x")
  value tags = [{"name":"y"}]
`},
		{Entry{Filter: "has(event.geo.lat)"}, `{"geo":{"lat":1}}`, `
true has(event.geo.lat)
  value event.geo = {"lat":1}
`},
		{Entry{Filter: "contains_ci(place, 'x')"}, `{"place":null}`, `
error contains_ci(place, "x") (contains_ci requires strings, but place is null)
  value place = null
`},
		{Entry{}, `{}`, "\ntrue true\n"},
	} {
		part, err := x.Explain(quakes, c.entry, Event{Data: json.RawMessage(c.data)})
		if err != nil {
			t.Errorf("%+v: %v", c.entry, err)
			continue
		}
		if got := "\n" + outline(part, 0); got != c.want {
			t.Errorf("%+v on %s:%s\nwant%s", c.entry, c.data, got, c.want)
		}
	}
	if _, err := x.Explain(quakes, Entry{Rule: "far"}, Event{}); asError(t, err).Pointer != "/rule" {
		t.Errorf("an unknown rule: %v", err)
	}
	if _, err := x.Explain(quakes, Entry{Filter: "mag >"}, Event{}); asError(t, err).Line != 1 {
		t.Errorf("a filter that is none: %v", err)
	}
}
