package demo

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"fanfare.dev/fanfare/examples/earthquakes"
)

// An expectation is the required result of a demonstration.
type expectation struct {
	subscriptions, people, conditions int // numbers of different values
	events, reached                   int
	matches, mails, strongest         int
}

// expect counts without an index: it tests each condition with each event, and counts one mail per
// event and person.
func expect(t *testing.T, n int) (want expectation) {
	t.Helper()
	people := map[string]map[string]bool{} // condition -> people
	lines := map[string]Line{}             // condition -> a line with it
	everybody := map[string]bool{}
	for line := range earthquakesExample().subscriptions(n, seed) {
		key := line.condition()
		if people[key] == nil {
			people[key], lines[key] = map[string]bool{}, line
		}
		people[key][line.To] = true
		everybody[line.To] = true
	}
	want.people, want.conditions = len(everybody), len(people)
	wanted := map[string]func(event) bool{}
	for key, line := range lines {
		wanted[key] = condition(t, line)
		want.subscriptions += len(people[key])
	}
	strength := -10.0
	for _, e := range readEvents(t) {
		recipients := map[string]bool{}
		for key, wants := range wanted {
			if !wants(e) {
				continue
			}
			want.matches += len(people[key])
			for person := range people[key] {
				recipients[person] = true
			}
		}
		want.events++
		want.mails += len(recipients)
		if len(recipients) > 0 {
			want.reached++
		}
		if e.Mag > strength {
			strength, want.strongest = e.Mag, len(recipients)
		}
	}
	return want
}

type event struct {
	Mag     float64 `json:"mag"`
	Place   string  `json:"place"`
	Depth   float64 `json:"depth"`
	Tsunami int     `json:"tsunami"`
	Sig     int     `json:"sig"`
	Lat     float64 `json:"lat"`
	Lon     float64 `json:"lon"`
}

// condition returns the CEL condition of a line as Go code.
func condition(t *testing.T, l Line) func(event) bool {
	t.Helper()
	near := func(mag float64, place string) func(event) bool {
		place = strings.ToLower(place)
		return func(e event) bool { return e.Mag >= mag && strings.Contains(strings.ToLower(e.Place), place) }
	}
	params, _ := l.Params.(quakeParams)
	switch l.Rule {
	case "near":
		return near(params.MinMag, params.Place)
	case "around":
		return func(e event) bool { return e.Mag >= params.MinMag && params.distance(e) <= float64(params.Km) }
	case "strong":
		return func(e event) bool { return e.Mag >= params.MinMag }
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

// distance returns the great-circle distance in km, by the law of cosines.
func (c *circle) distance(e event) float64 {
	const degree, radius = math.Pi / 180, 6371.0088
	return radius * math.Acos(min(1, math.Sin(c.Lat*degree)*math.Sin(e.Lat*degree)+
		math.Cos(c.Lat*degree)*math.Cos(e.Lat*degree)*math.Cos((c.Lon-e.Lon)*degree)))
}

func readEvents(t *testing.T) []event {
	t.Helper()
	f, err := earthquakes.Files().Open("earthquakes.ndjson")
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
