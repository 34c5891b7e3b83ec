package demo

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
)

// The demonstration promises 200,000 to 300,000 mails. This counts them the plain
// way: each condition against each event, one mail per event and person.
func TestTheWeekMakesAQuarterOfAMillionMails(t *testing.T) {
	events := readEvents(t)
	people := map[string]map[string]bool{} // condition -> people
	lines := map[string]Line{}             // condition -> a line that has it
	total := 0
	for line := range Subscriptions(100_000, 1) {
		total++
		key := fmt.Sprint(line.Rule, line.Params, line.Filter)
		if line.Params != nil {
			key = fmt.Sprint(line.Rule, *line.Params)
		}
		if people[key] == nil {
			people[key], lines[key] = map[string]bool{}, line
		}
		people[key][line.To] = true
	}
	if total != 100_000 {
		t.Fatalf("%d lines, want 100000", total)
	}
	if len(people) < 3000 {
		t.Errorf("%d different conditions, want at least 3000", len(people))
	}
	recipients := make([]map[string]bool, len(events))
	for key, line := range lines {
		wanted := condition(t, line)
		for i, e := range events {
			if !wanted(e) {
				continue
			}
			if recipients[i] == nil {
				recipients[i] = map[string]bool{}
			}
			for person := range people[key] {
				recipients[i][person] = true
			}
		}
	}
	mails, most := 0, 0
	for _, r := range recipients {
		mails += len(r)
		most = max(most, len(r))
	}
	t.Logf("%d conditions, %d mails, at most %d for one event", len(people), mails, most)
	if mails < 200_000 || mails > 300_000 {
		t.Errorf("%d mails, want 200000 to 300000", mails)
	}
}

func TestTheSameSeedGivesTheSamePeople(t *testing.T) {
	encode := func(seed uint64) string {
		var b strings.Builder
		for line := range Subscriptions(1000, seed) {
			if err := json.NewEncoder(&b).Encode(line); err != nil {
				t.Fatal(err)
			}
		}
		return b.String()
	}
	if encode(7) != encode(7) {
		t.Error("two runs with one seed differ")
	}
	if encode(7) == encode(8) {
		t.Error("two seeds give the same")
	}
	for line := range strings.Lines(encode(7)) {
		if strings.Contains(line, `"rule"`) == strings.Contains(line, `"filter"`) {
			t.Errorf("neither rule nor filter, or both: %s", line)
		}
	}
}

func TestTheSequenceCanBeLeftEarly(t *testing.T) {
	n := 0
	for range Subscriptions(1000, 1) {
		if n++; n == 3 {
			break
		}
	}
	if n != 3 {
		t.Errorf("%d lines", n)
	}
}

type event struct {
	Mag     float64 `json:"mag"`
	Place   string  `json:"place"`
	Depth   float64 `json:"depth"`
	Tsunami int     `json:"tsunami"`
	Sig     int     `json:"sig"`
}

// condition says in Go what the line says in CEL.
func condition(t *testing.T, l Line) func(event) bool {
	t.Helper()
	near := func(mag float64, place string) func(event) bool {
		place = strings.ToLower(place)
		return func(e event) bool { return e.Mag >= mag && strings.Contains(strings.ToLower(e.Place), place) }
	}
	switch l.Rule {
	case "near":
		return near(l.Params.MinMag, l.Params.Place)
	case "strong":
		return func(e event) bool { return e.Mag >= l.Params.MinMag }
	}
	var mag float64
	var n int
	var place string
	scan := func(format string, into ...any) bool {
		_, err := fmt.Sscanf(l.Filter, format, into...)
		return err == nil
	}
	switch {
	case scan("contains_ci(event.place, %q) && event.mag >= %f", &place, &mag):
		return near(mag, place)
	case scan("event.mag >= %f && event.depth < %d", &mag, &n):
		return func(e event) bool { return e.Mag >= mag && e.Depth < float64(n) }
	case scan("event.tsunami == 1 && event.mag >= %f", &mag):
		return func(e event) bool { return e.Tsunami == 1 && e.Mag >= mag }
	case scan("event.depth > %d && event.mag >= %f", &n, &mag):
		return func(e event) bool { return e.Depth > float64(n) && e.Mag >= mag }
	case scan("event.sig >= %d", &n):
		return func(e event) bool { return e.Sig >= n }
	}
	t.Fatalf("unknown filter %s", l.Filter)
	return nil
}

func readEvents(t *testing.T) []event {
	t.Helper()
	f, err := os.Open("../../examples/earthquakes/earthquakes.ndjson")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var events []event
	for s := bufio.NewScanner(f); s.Scan(); {
		var e event
		if err := json.Unmarshal(s.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
	return events
}
