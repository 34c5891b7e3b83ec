package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"mime"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/sink"
)

// An exampleRun goes through an example as its README tells a person to, and
// holds what each person got against what a plain reading of the files demands.
type exampleRun struct {
	name, topic, idField, timeField string
	events                          string // file
	// wants says whether a line of subscriptions.ndjson wants an event, and with
	// which subject; the lower rank of several decides the subject.
	wants func(t *testing.T, line wish, event map[string]any) (want bool, rank int, subject string)
}

// A wish is a line of subscriptions.ndjson.
type wish struct {
	To, Rule, Filter string
	Params           map[string]any
}

func (w wish) list(name string) (list []string) {
	for _, one := range w.Params[name].([]any) {
		list = append(list, one.(string))
	}
	return list
}

func (x exampleRun) run(t *testing.T, subscriptions int) {
	t.Parallel()
	r := newRelay(t, sink.Config{})
	s := serve(t)
	dir := filepath.Join(t.TempDir(), x.name)
	written := s.mustRun("", "demo", "files", dir, "--example", x.name, "--subscriptions", fmt.Sprint(subscriptions))
	if want := filepath.Join(dir, x.events); !strings.Contains(written, want) {
		t.Errorf("%s is not among the files: %s", want, written)
	}
	document, err := os.ReadFile(filepath.Join(dir, "fanfare.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	here := strings.Replace(string(document), "127.0.0.1:2525", r.addr, 1)
	if err := os.WriteFile(filepath.Join(dir, "fanfare.yaml"), []byte(here), 0o600); err != nil {
		t.Fatal(err)
	}
	s.mustRun("", "apply", "-f", filepath.Join(dir, "fanfare.yaml"))
	s.mustRun("", "import", "subscriptions", filepath.Join(dir, "subscriptions.ndjson"))
	s.mustRun("", "publish", x.topic, filepath.Join(dir, x.events), "--id-field", x.idField, "--time-field", x.timeField, "--wait")

	want := x.expect(t, dir)
	if mails := count(want); mails < subscriptions/2 || r.total() != mails {
		t.Errorf("%d mails, want %d", r.total(), mails)
	}
	people := map[string]bool{}
	for person := range want {
		people[person] = true
	}
	r.mu.Lock()
	for person := range r.mails {
		people[person] = true
	}
	r.mu.Unlock()
	wrong := 0
	for _, person := range slices.Sorted(maps.Keys(people)) {
		var got []string
		for _, mail := range r.of(person) {
			got = append(got, subjectOf(t, mail))
		}
		slices.Sort(got)
		if slices.Sort(want[person]); !slices.Equal(got, want[person]) {
			if wrong++; wrong <= 5 {
				t.Errorf("%s got %q, want %q", person, got, want[person])
			}
		}
	}
	if wrong > 5 {
		t.Errorf("%d people in all got something else", wrong)
	}
}

// expect holds every wish against every event: one mail for each event and person.
func (x exampleRun) expect(t *testing.T, dir string) map[string][]string {
	t.Helper()
	wishes := map[string][]wish{}
	for _, w := range readLines[wish](t, filepath.Join(dir, "subscriptions.ndjson")) {
		wishes[w.To] = append(wishes[w.To], w)
	}
	want := map[string][]string{}
	for _, event := range readLines[map[string]any](t, filepath.Join(dir, x.events)) {
		for person, all := range wishes {
			best, subject := 99, ""
			for _, w := range all {
				if yes, rank, text := x.wants(t, w, event); yes && rank < best {
					best, subject = rank, text
				}
			}
			if subject != "" {
				want[person] = append(want[person], subject)
			}
		}
	}
	return want
}

func count(want map[string][]string) (n int) {
	for _, subjects := range want {
		n += len(subjects)
	}
	return n
}

func readLines[T any](t *testing.T, path string) (all []T) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var one T
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		all = append(all, one)
	}
	return all
}

func subjectOf(t *testing.T, mail string) string {
	t.Helper()
	subject, err := new(mime.WordDecoder).DecodeHeader(field(mail, "Subject"))
	if err != nil {
		t.Fatal(err)
	}
	return subject
}

func TestTheGOVUKExampleTellsWhomItsCriteriaName(t *testing.T) {
	exampleRun{
		name: "govuk", topic: "content-change", idField: "base_path", timeField: "public_updated_at", events: "content-changes.ndjson",
		wants: func(t *testing.T, w wish, event map[string]any) (want bool, rank int, subject string) {
			text := func(name string) string { return event[name].(string) }
			title := strings.Join(strings.Fields(text("title")), " ") // as a header has it
			var publishers []string
			if list, ok := event["links"].(map[string]any)["organisations"].([]any); ok {
				for _, o := range list {
					publishers = append(publishers, o.(map[string]any)["content_id"].(string))
				}
			}
			has := func(field, word string) bool {
				return strings.Contains(strings.ToLower(text(field)), strings.ToLower(word))
			}
			switch w.Rule {
			case "page":
				return text("base_path") == w.Params["base_path"], 0, "Page changed: " + title
			case "criteria":
				types, locales := w.list("document_types"), w.list("locales")
				oneOf, all := w.list("any_organisations"), w.list("all_organisations")
				want = (len(types) == 0 || slices.Contains(types, text("document_type"))) &&
					(len(locales) == 0 || slices.Contains(locales, text("locale"))) &&
					(len(oneOf) == 0 || slices.ContainsFunc(publishers, func(p string) bool { return slices.Contains(oneOf, p) })) &&
					!slices.ContainsFunc(all, func(id string) bool { return !slices.Contains(publishers, id) })
				return want, 1, "GOV.UK: " + title
			}
			var word, other string
			if n, _ := fmt.Sscanf(w.Filter, "contains_ci(event.title, %q) || contains_ci(event.description, %q)", &word, &other); n == 2 {
				return has("title", word) || has("description", other), 2, "GOV.UK: " + title
			}
			if n, _ := fmt.Sscanf(w.Filter, "contains_ci(event.title, %q) && event.document_type != %q", &word, &other); n == 2 {
				return has("title", word) && text("document_type") != other, 2, "GOV.UK: " + title
			}
			t.Fatalf("unknown filter %s", w.Filter)
			return
		},
	}.run(t, 2000)
}

func TestTheStocksExampleTellsWhosePriceIsReached(t *testing.T) {
	tape := tape{last: map[string]float64{}}
	exampleRun{
		name: "stocks", topic: "price", idField: "id", timeField: "date", events: "prices.ndjson",
		wants: func(t *testing.T, w wish, event map[string]any) (want bool, rank int, subject string) {
			symbol, price := event["symbol"].(string), event["price"].(float64)
			was, known := tape.before(event["id"].(string), symbol, price)
			about := func() bool { return w.Params["symbol"] == symbol }
			number := func(param string) float64 { return w.Params[param].(float64) }
			switch w.Rule {
			case "limit":
				return about() && known && was < number("trigger") && price >= number("trigger"), 0, fmt.Sprintf("%s has risen to %v", symbol, price)
			case "stop":
				return about() && known && was > number("trigger") && price <= number("trigger"), 1, fmt.Sprintf("%s has fallen to %v", symbol, price)
			case "move":
				percent := func(price float64) float64 { return (price - number("cost")) / number("cost") * 100 }
				before, now, level := percent(was), percent(price), number("percent")
				return about() && known && (before < level && now >= level || before > level && now <= level), 2, fmt.Sprintf("%s at %v", symbol, price)
			case "above":
				return about() && price >= number("trigger"), 3, fmt.Sprintf("%s has risen to %v", symbol, price)
			case "below":
				return about() && price <= number("trigger"), 4, fmt.Sprintf("%s has fallen to %v", symbol, price)
			}
			var name string
			var low, high float64
			if n, _ := fmt.Sscanf(w.Filter, "event.symbol == %q && event.price >= %f && event.price < %f", &name, &low, &high); n != 3 {
				t.Fatalf("unknown filter %s", w.Filter)
			}
			return symbol == name && low <= price && price < high, 5, fmt.Sprintf("%s at %v", symbol, price)
		},
	}.run(t, 2000)
}

// A tape knows the price before, of a share whose prices come one after the other.
type tape struct {
	last  map[string]float64
	at    string  // the event that came last
	prior float64 // the price before it
	known bool
}

// before is asked several times of each price.
func (p *tape) before(id, symbol string, price float64) (was float64, known bool) {
	if id != p.at {
		p.at = id
		p.prior, p.known = p.last[symbol]
		p.last[symbol] = price
	}
	return p.prior, p.known
}

// The prices that are published are those of the table.
func TestThePricesAreThoseOfTheTable(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "stocks")
	if ran := run(t, nil, "", "demo", "files", dir, "--example", "stocks"); ran.code != 0 {
		t.Fatal(ran.err)
	}
	table, err := os.ReadFile(filepath.Join(dir, "stocks.csv"))
	if err != nil {
		t.Fatal(err)
	}
	events := readLines[struct {
		ID, Symbol, Date string
		Price            float64
	}](t, filepath.Join(dir, "prices.ndjson"))
	if rows := strings.Count(strings.TrimSpace(string(table)), "\n"); len(events) != rows {
		t.Errorf("%d events of %d rows", len(events), rows)
	}
	months := []string{"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"}
	for i, e := range events {
		var year, month int
		if _, err := fmt.Sscanf(e.Date, "%d-%d-01T00:00:00Z", &year, &month); err != nil || month < 1 || month > 12 {
			t.Fatalf("the date of %+v", e)
		}
		row := fmt.Sprintf("\n%s,%s 1 %d,%v\n", e.Symbol, months[month-1], year, e.Price)
		if !strings.Contains(string(table)+"\n", row) {
			t.Errorf("there is no row %q", row)
		}
		if i > 0 && e.Date < events[i-1].Date {
			t.Errorf("%s comes after %s", e.ID, events[i-1].ID)
		}
	}
	if ran := run(t, nil, "", "demo", "files", dir, "--example", "stocks"); ran.code != 1 || !strings.Contains(ran.err, "not empty") {
		t.Errorf("into a folder that holds something: %d %s", ran.code, ran.err)
	}
}
