package bench

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/bench/harness"
	"fanfare.dev/fanfare/internal/bench/report"
)

// A suite is a name for experiments that are run together.
type suite struct {
	name string
	ids  string // those of the plan, in order
}

func suites() []suite {
	return []suite{
		{"notifybc", "N1 N1b N1d N2 N3 N4 N5"},
		{"ssns", "S1 S2 S3 E1 E2 E3 E4 E5 E6 G1 G2 D1 D2 D3 D4 D5 D6 C1 C2 M1 P1 P2"},
		{"govuk", "L1 L2 L3 L4 L5 L6 L7 L8 L9 L9b L10"},
		{"telepathy", "T1 T2 T3 T4 T5"},
		{"james", "J1 J2 J3 J4 J5 J6"},
		{"import", "I1 I2 I3 I4 I4t"},
		{"history", "H1 H2"},
		{"cadence", "D1 D3 D4 G1 G2 L4 L10"},
		{"shaping", "L1 L2 L6 L7 L9 L9b D2 D4r D5 P1 F1 F1m"},
		{"server", "U1 U2 R1 RB1"},
		{"console", "W1 W2"},
		{"compatible", "X1 X2 X3 X4"},
		{"cluster", "K1 K2 K3 K4 N2 N3 D6"},
		{"matching", "B1 B1j B2 B3 B4 B5 B6 B7 B8 B9 B10"},
	}
}

// Missing returns the ids of the plan that cannot run yet, with what they need.
func Missing() map[string]string {
	later := map[string]string{}
	for why, ids := range map[string]string{
		"a simulated day":        "P2",
		"file and SQL providers": "E1 E2 E3 E4",
		"provider APIs":          "L3 L5 L8",
	} {
		for id := range strings.FieldsSeq(ids) {
			later[id] = why
		}
	}
	return later
}

func findSuite(name string) (suite, bool) {
	all := suites()
	i := slices.IndexFunc(all, func(s suite) bool { return strings.EqualFold(s.name, name) })
	if i < 0 {
		return suite{}, false
	}
	return all[i], true
}

func findExperiment(id string) (harness.Experiment, bool) {
	all := Experiments()
	i := slices.IndexFunc(all, func(e harness.Experiment) bool { return strings.EqualFold(e.ID, id) })
	if i < 0 {
		return harness.Experiment{}, false
	}
	return all[i], true
}

// choose returns the experiments with these ids. Of a suite and of all it returns those
// that can run; a single id that cannot run is an error. withDB tells whether there is a
// PostgreSQL. needDB are the experiments that were left out because there is none.
func choose(ids []string, withDB bool) (chosen []harness.Experiment, needDB []string, err error) {
	add := func(e harness.Experiment) {
		if e.NeedsDB && !withDB {
			needDB = append(needDB, e.ID)
		} else {
			chosen = append(chosen, e)
		}
	}
	for _, id := range ids {
		if strings.EqualFold(id, "all") {
			for _, e := range Experiments() {
				add(e)
			}
			continue
		}
		if s, ok := findSuite(id); ok {
			for id := range strings.FieldsSeq(s.ids) {
				if e, ok := findExperiment(id); ok {
					add(e)
				}
			}
			continue
		}
		if why, missing := Missing()[strings.ToUpper(id)]; missing {
			return nil, nil, &fanfare.Error{Code: fanfare.Invalid, Message: fmt.Sprintf("experiment %s cannot run yet: it needs %s", id, why), Hint: "fanfare bench list shows the experiments that can run"}
		}
		e, ok := findExperiment(id)
		if !ok {
			return nil, nil, &fanfare.Error{Code: fanfare.Invalid, Message: fmt.Sprintf("unknown experiment %q", id), Hint: "fanfare bench list shows the experiments"}
		}
		if e.NeedsDB && !withDB {
			return nil, nil, errNeedDB(e.ID)
		}
		add(e)
	}
	if len(chosen) == 0 && len(needDB) > 0 {
		return nil, nil, errNeedDB(needDB...)
	}
	return chosen, needDB, nil
}

// errNeedDB is the error for experiments that run only with a PostgreSQL.
func errNeedDB(ids ...string) error {
	return &fanfare.Error{Code: fanfare.Invalid, Message: strings.Join(ids, " ") + ": the nodes of a cluster share a PostgreSQL database", Hint: "pass its URL with --db, such as --db postgres://bench@127.0.0.1/bench"}
}

// sayNeedDB lists the experiments that were left out because there is no PostgreSQL.
func sayNeedDB(w io.Writer, ids []string) {
	if len(ids) > 0 {
		fmt.Fprintf(w, "left out, because they need PostgreSQL (--db): %s\n", strings.Join(ids, " "))
	}
}

// sayMissing lists the experiments of the chosen suites that cannot run yet, and what
// they need.
func sayMissing(w io.Writer, ids []string) {
	missing := Missing()
	for _, id := range ids {
		s, ok := findSuite(id)
		if !ok {
			continue
		}
		byReason := map[string][]string{}
		for id := range strings.FieldsSeq(s.ids) {
			if why, ok := missing[id]; ok {
				byReason[why] = append(byReason[why], id)
			}
		}
		for _, why := range slices.Sorted(maps.Keys(byReason)) {
			fmt.Fprintf(w, "%s: %s cannot run yet: needs %s\n", s.name, strings.Join(byReason[why], " "), why)
		}
	}
}

// tableOf returns the first suite that has an experiment.
func tableOf(id string) string {
	for _, s := range suites() {
		if slices.Contains(strings.Fields(s.ids), id) {
			return s.name
		}
	}
	return ""
}

// catalog returns the suites as tables of measurements.
func catalog() *report.Catalog {
	c := &report.Catalog{TableOf: tableOf, Describe: func(id string) string {
		e, ok := findExperiment(id)
		if ok && e.Published.Text != "" {
			return e.Shows + ". Published: " + e.Published.Text
		}
		return e.Shows
	}}
	for _, s := range suites() {
		c.Tables = append(c.Tables, s.name)
	}
	return c
}

// WriteMarkdown writes a table for each suite that has records.
func WriteMarkdown(w io.Writer, all []report.Record) error { return catalog().WriteMarkdown(w, all) }

// UpdatePage writes the tables into a Markdown page, between its two marks.
func UpdatePage(path string, all []report.Record) error { return catalog().UpdatePage(path, all) }
