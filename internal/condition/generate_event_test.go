package condition

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"fanfare.dev/fanfare/internal/condition/expr"
)

func drawValue(t *rapid.T, depth int) string {
	kinds := 5
	if depth > 0 {
		kinds = 8
	}
	switch rapid.IntRange(0, kinds-1).Draw(t, "value") {
	case 0:
		return "null"
	case 1:
		return pick(t, []string{"true", "false"})
	case 2, 3:
		return pick(t, sampleNumbers)
	case 4:
		return quote(pick(t, sampleTexts))
	case 5:
		return "[" + drawValue(t, depth-1) + "," + drawValue(t, depth-1) + "]"
	}
	return drawObject(t, depth-1)
}

// drawEvent draws an event, and mostly a previous one.
func drawEvent(t *rapid.T) Event {
	e := expr.Event{Data: drawData(t), Attributes: expr.Attributes{ID: "1", Source: pick(t, sampleTexts), Type: pick(t, sampleTexts), Subject: pick(t, sampleTexts)}}
	if !oneIn(t, 5) {
		e.Previous = drawData(t)
	}
	if !oneIn(t, 5) {
		e.Attributes.Time, _ = time.Parse(time.RFC3339, pick(t, sampleTimes))
	}
	if rapid.Bool().Draw(t, "extended") {
		e.Attributes.Extensions = map[string]json.RawMessage{"ext": json.RawMessage(pick(t, []string{"2", `"a"`, `"Vancouver"`, "true"})), "subject": json.RawMessage(`"no"`)}
	}
	return e
}

// drawData draws the data of an event, mostly an object.
func drawData(t *rapid.T) json.RawMessage {
	if oneIn(t, 30) {
		return json.RawMessage(drawValue(t, 1))
	}
	return json.RawMessage(drawObject(t, 2))
}

func drawObject(t *rapid.T, depth int) string {
	var members []string
	for _, name := range []string{"n", "m", "s", "p", "b", "at", "o", "list"} {
		var v string
		switch odd := rapid.IntRange(0, 19).Draw(t, "odd"); {
		case odd == 19:
			continue
		case odd == 18:
			v = drawValue(t, depth)
		case name == "n" || name == "m":
			v = pick(t, sampleNumbers)
		case name == "s" || name == "p":
			text := pick(t, sampleTexts)
			if odd > 14 {
				text += pick(t, sampleTexts)
			}
			v = quote(text)
		case name == "at":
			v = quote(pick(t, sampleTimes))
		case name == "b":
			v = pick(t, []string{"true", "false"})
		case name == "list":
			v = pick(t, []string{"[1,2]", "[]", `["a","ab"]`, `["Vancouver","a",""]`, `["a",2]`, `[{"s":"a"},{"s":"Vancouver"},{}]`, `[{"s":"ab"},{"s":2}]`})
		case name == "o" && depth > 0:
			v = drawObject(t, depth-1)
		default:
			v = "{}"
		}
		members = append(members, quote(name)+":"+v)
	}
	if oneIn(t, 15) { // said twice, the last one counts, however it is written
		members = slices.Insert(members, 0, pick(t, []string{`"n":2`, `"\u0073":"a"`, `"o":{"n":2}`}))
	}
	return "{" + strings.Join(members, ",") + "}"
}
