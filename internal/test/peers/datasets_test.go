//go:build peers

package peers

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare"
)

// A dataset is a file of examples/datasets, and the topic to which its events are
// published.
type dataset struct {
	name      string
	key       string // of the topic; "" for none
	hasSchema bool   // the topic has the schema that the events show
	rules     []ruleOfSet

	events []fanfare.Event
	raw    [][]byte         // the data of each event
	data   []map[string]any // the same, read
	schema json.RawMessage
}

// A ruleOfSet is a rule of the topic. params says of each param how a value for it
// is drawn.
type ruleOfSet struct {
	name, when string
	params     map[string]param
}

// A param is the type of a param, and how a value is drawn for it out of the events.
type param struct {
	kind string
	draw func(r *rand.Rand, d *dataset) any
}

// text draws the text that a field has in one of the events.
func text(field string) param {
	return param{"string", func(r *rand.Rand, d *dataset) any { return d.pick(r, field, isText) }}
}

// word draws a word out of a field.
func word(field string) param {
	return param{"string", func(r *rand.Rand, d *dataset) any {
		words := strings.Fields(d.pick(r, field, isText).(string))
		return words[r.IntN(len(words))]
	}}
}

// number draws the number that a field has in one of the events, or one beside it.
func number(field string, beside float64) param {
	return param{"number", func(r *rand.Rand, d *dataset) any {
		n, err := d.pick(r, field, isNumber).(json.Number).Float64()
		if err != nil {
			panic(err) // the files are those of this repository
		}
		if r.IntN(2) == 0 {
			return n
		}
		return n + beside*float64(r.IntN(21)-10)
	}}
}

// some draws one to three texts of a field, which may be a list of texts.
func some(field string) param {
	return param{"strings", func(r *rand.Rand, d *dataset) any {
		var all []string
		for range 1 + r.IntN(3) {
			switch v := d.pick(r, field, func(v any) bool { return isText(v) || isList(v) }).(type) {
			case string:
				all = append(all, v)
			case []any:
				all = append(all, v[r.IntN(len(v))].(string))
			}
		}
		slices.Sort(all)
		return slices.Compact(all)
	}}
}

// oneOf draws one of these.
func oneOf(kind string, values ...any) param {
	return param{kind, func(r *rand.Rand, _ *dataset) any { return values[r.IntN(len(values))] }}
}

func isText(v any) bool { s, ok := v.(string); return ok && strings.TrimSpace(s) != "" }

func isNumber(v any) bool { _, ok := v.(json.Number); return ok }

func isList(v any) bool { list, ok := v.([]any); return ok && len(list) > 0 }

// pick returns the value of a field in one of the events where it is as it must
// be. A field inside another has both names, with a bar between.
func (d *dataset) pick(r *rand.Rand, field string, fits func(any) bool) any {
	for {
		var v any = d.data[r.IntN(len(d.data))]
		for _, name := range strings.Split(field, "|") {
			fields, _ := v.(map[string]any)
			v = fields[name]
		}
		if fits(v) {
			return v
		}
	}
}

// datasets are the real events, of four characters. Two topics have a schema,
// and two have none.
func datasets(t *testing.T) []*dataset {
	t.Helper()
	all := []*dataset{
		{name: "penguins", rules: []ruleOfSet{
			{"heavy", `event["Island"] == sub.island && event["Body Mass (g)"] >= sub.grams && event["Sex"] != sub.not`,
				map[string]param{"island": text("Island"), "grams": number("Body Mass (g)", 25), "not": oneOf("string", "MALE", "FEMALE")}},
			{"remarked", `contains_ci(event.Comments, sub.word)`, map[string]param{"word": word("Comments")}},
			{"bird", `event["Individual ID"] in sub.ids && event.studyName == sub.study`,
				map[string]param{"ids": some("Individual ID"), "study": text("studyName")}},
			{"beak", `event["Culmen Length (mm)"] > sub.from && event["Culmen Length (mm)"] <= sub.to || event["Date Egg"] == sub.day && event.Comments == null`,
				map[string]param{"from": number("Culmen Length (mm)", 0.1), "to": number("Culmen Length (mm)", 0.1), "day": text("Date Egg")}},
		}},
		{name: "languages", hasSchema: true, rules: []ruleOfSet{
			{"called", `name in sub.names || event.aliases.exists(a, a in sub.names)`, map[string]param{"names": some("aliases")}},
			{"files", `event.type == sub.type && extensions.exists(e, e in sub.endings)`,
				map[string]param{"type": text("type"), "endings": some("extensions")}},
			{"every", `sub.endings.all(e, e in event.extensions) && starts_with_ci(aceMode, sub.start)`,
				map[string]param{"endings": some("extensions"), "start": oneOf("string", "t", "C", "text", "JAVA", "ma")}},
			{"group", `has(event.group) ? event.group == sub.group : name.startsWith(sub.start)`,
				map[string]param{"group": text("group"), "start": word("name")}},
			{"numbered", `languageId >= sub.from && languageId < sub.to && !(has(event.wrap) && event.wrap == sub.wrap)`,
				map[string]param{"from": number("languageId", 1), "to": number("languageId", 5), "wrap": oneOf("boolean", true, false)}},
		}},
		{name: "flights", key: "carrier", hasSchema: true, rules: []ruleOfSet{
			{"late", `carrier == sub.carrier && arr_delay >= sub.minutes`,
				map[string]param{"carrier": text("carrier"), "minutes": number("arr_delay", 5)}},
			{"rising", `carrier == sub.carrier && crosses_above(event.dep_delay, sub.minutes) && dest in sub.to`,
				map[string]param{"carrier": text("carrier"), "minutes": number("dep_delay", 1), "to": some("dest")}},
			{"evening", `origin == sub.origin && timestamp(time_hour).getHours(sub.zone) == sub.hour && dest == sub.dest`,
				map[string]param{"origin": text("origin"), "zone": oneOf("string", "America/New_York", "Europe/Berlin", "+05:30"), "hour": number("hour", 1), "dest": text("dest")}},
			{"stormy", `weather.wind_speed >= sub.speed && weather.humid < sub.humid && tailnum == sub.tail`,
				map[string]param{"speed": number("weather|wind_speed", 0.5), "humid": number("weather|humid", 1), "tail": text("tailnum")}},
			{"cancelled", `dep_time == null && dest == sub.dest && ce.time.getMonth() == sub.month`,
				map[string]param{"dest": text("dest"), "month": number("month", 1)}},
		}},
		{name: "airports", rules: []ruleOfSet{
			{"around", `geo.within(event.latitude, event.longitude, sub.lat, sub.lon, sub.km)`,
				map[string]param{"lat": number("latitude", 0.01), "lon": number("longitude", 0.01), "km": oneOf("number", 0, 5, 25.5, 60)}},
			{"named", `event.state == sub.state && contains_ci(event.name, sub.word)`,
				map[string]param{"state": text("state"), "word": word("name")}},
			{"band", `event.latitude >= sub.south && event.latitude < sub.south + 0.25 && event.city != sub.city`,
				map[string]param{"south": number("latitude", 0.02), "city": text("city")}},
			{"codes", `event.iata in sub.codes || event.city == sub.city && event.iata == 0`,
				map[string]param{"codes": some("iata"), "city": text("city")}},
		}},
	}
	for _, d := range all {
		d.load(t)
	}
	return all
}

// load reads the events of the set.
func (d *dataset) load(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "examples", "datasets", d.name+".ndjson"))
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for i := 0; lines.Scan(); i++ {
		raw := slices.Clone(lines.Bytes())
		data, err := readNumbers(raw)
		if err != nil {
			t.Fatalf("%s, line %d: %v", d.name, i+1, err)
		}
		event := fanfare.Event{ID: fmt.Sprintf("%s-%d", d.name, i), Source: "/datasets/" + d.name, Type: d.name, Time: at.Add(time.Duration(i) * 97 * time.Minute), Data: raw}
		if hour, ok := data.(map[string]any)["time_hour"].(string); ok {
			if at, err = time.Parse(time.RFC3339, hour); err != nil {
				t.Fatal(err)
			}
			event.Time = at.Add(time.Duration(i) * time.Millisecond) // no two at the same time
		}
		d.events, d.raw, d.data = append(d.events, event), append(d.raw, raw), append(d.data, data.(map[string]any))
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	if d.hasSchema {
		all := make([]any, len(d.data))
		for i, one := range d.data {
			all[i] = one
		}
		if d.schema, err = json.Marshal(inferSchema(all)); err != nil {
			t.Fatal(err)
		}
	}
}

// readNumbers reads JSON whose numbers stay as they are written.
func readNumbers(raw []byte) (v any, err error) {
	in := json.NewDecoder(bytes.NewReader(raw))
	in.UseNumber()
	return v, in.Decode(&v)
}

// inferSchema makes a JSON Schema of values, as somebody would who looks at the
// data: which fields there are, of which types, and which are always there. It
// allows no others.
func inferSchema(values []any) map[string]any {
	types := map[string]bool{}
	fields, items := map[string][]any{}, []any{}
	objects := 0
	for _, v := range values {
		switch v := v.(type) {
		case nil:
			types["null"] = true
		case bool:
			types["boolean"] = true
		case string:
			types["string"] = true
		case json.Number:
			if _, err := v.Int64(); err == nil {
				types["integer"] = true
			} else {
				types["number"] = true
			}
		case []any:
			types["array"] = true
			items = append(items, v...)
		case map[string]any:
			types["object"] = true
			objects++
			for name, one := range v {
				fields[name] = append(fields[name], one)
			}
		}
	}
	if types["number"] {
		delete(types, "integer")
	}
	names := make([]string, 0, len(types))
	for name := range types {
		names = append(names, name)
	}
	slices.Sort(names)
	schema := map[string]any{"type": names}
	if len(names) == 1 {
		schema["type"] = names[0]
	}
	if types["array"] && len(items) > 0 {
		schema["items"] = inferSchema(items)
	}
	if types["object"] {
		properties, required := map[string]any{}, []string{}
		for name, of := range fields {
			properties[name] = inferSchema(of)
			if len(of) == objects {
				required = append(required, name)
			}
		}
		slices.Sort(required)
		schema["properties"], schema["required"], schema["additionalProperties"] = properties, required, false
	}
	return schema
}
