package conditiontest

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"fanfare.dev/fanfare/internal/condition"
)

// Event draws an event. Occasionally a field is missing, null or of another type, occurs twice,
// or is surrounded by blanks.
func (g *Generator) Event() condition.Event {
	var members []string
	for i := range g.profile.fields {
		f := &g.profile.fields[i]
		if len(f.path) > 1 || g.intn(8) == 7 {
			continue
		}
		members = append(members, quoteJSON(f.path[0])+g.blank()+":"+g.blank()+g.value(f))
		if g.oneIn(60) {
			members = append(members, quoteJSON(f.path[0])+":"+g.value(f))
		}
	}
	e := condition.Event{Data: []byte("{" + strings.Join(members, ","+g.blank()) + "}")}
	if g.oneIn(200) {
		e.Data = []byte(pick(g, []string{"null", "[1]", `"a"`, "5", "{}"}))
	}
	e.Attributes = condition.Attributes{ID: fmt.Sprint(g.intn(1000)), Source: pick(g, []string{"/harbour", "a", ""}), Type: pick(g, []string{"note", "db1", "a"}), Subject: pick(g, []string{"", "", "ab"})}
	if !g.oneIn(6) {
		e.Attributes.Time = time.Date(2026, 3, 27+g.intn(4), g.intn(24), 30*g.intn(2), 0, 500_000_000*g.intn(2), time.UTC)
	}
	if g.oneIn(2) {
		e.Attributes.Extensions = map[string]json.RawMessage{"tenant": json.RawMessage(pick(g, []string{`"blue"`, `"a"`, "5", "true"})), "weight": json.RawMessage("7"), "id": json.RawMessage(`"x"`)}
	}
	return e
}

// value draws the value of a field, as JSON.
func (g *Generator) value(f *field) string {
	switch g.intn(25) {
	case 23:
		return "null"
	case 24:
		return pick(g, pick(g, g.profile.fields).values)
	}
	return pick(g, f.values)
}

func (g *Generator) blank() string {
	if g.oneIn(30) {
		return pick(g, []string{" ", "\n", "\t "})
	}
	return ""
}

func quoteJSON(text string) string {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err) // a text always is JSON
	}
	return string(quoted)
}
