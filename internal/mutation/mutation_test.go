package mutation

import (
	"cmp"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A mutation replaces a line, or a part of one, of a file of internal/match.
type mutation struct {
	wrong    string // what is wrong then
	file     string
	from, to string
	worlds   string // of the oracle, where it shows soon; "" is "few"
}

var mutations = []mutation{
	{"at least is more than", "ir.go", "return x >= y", "return x > y", ""},
	{"a row alone in its bucket is left out at its bound", "ir.go", "return order >= 0", "return order > 0", ""},
	{"the rows at the bound of a run are left out", "bucket.go", "including := op == greaterOrEqual || op == less", "including := op == less", ""},
	{"a row is on all ways of its guard but the first", "plan.go", "for _, w := range p.guards[guard] {\n\t\tat.insert(w, row)", "for _, w := range p.guards[guard][1:] {\n\t\tat.insert(w, row)", ""},
	{"the gram of a text is looked for one byte further on", "needles.go", "best, at = g, i", "best, at = g, i+1", "rows"},
	{"an event does not look into the cells before its own", "cells.go", "own[axis] - float64(corner>>axis&1) + 0", "own[axis] - float64(corner>>axis&0) + 0", ""},
	{"what is on the edge of a range is not in it", "ranges.go", "!(b.low[i] <= b.high[i])", "!(b.low[i] < b.high[i])", ""},
	{"what was found out about an event is believed of the next", "frame.go", "if f.epoch++; f.epoch == maxEpoch {", "if f.epoch = 1; f.epoch == maxEpoch {", ""},
	{"a row that was removed stays on its ways", "rows.go", "r.plan.remove(at, row)", "", "rows"},
	{"a subscription that was removed stays with its filter", "filter.go", "fl.places.Remove(uint32(p))", "", ""},
	{"a text that nobody has any more keeps its number", "texts.go", "delete(t.numbers, one.text)", "", "some"},
	{"a value that others still read gives up its slot", "path.go", "if use.count--; use.count == 0 {", "if use.count--; use.count <= 1 {", ""},
	{"the rows of a rule that is redefined are forgotten", "define.go", "r.each(func(row uint32) { p.insert(at, row) })", "r.each(func(uint32) { _, _ = p, at })", ""},
	{"minus zero is not zero", "way.go", "math.Float64bits(number + 0), ok", "math.Float64bits(number), ok", ""},
	{"an integer beyond the doubles is taken for one", "skeleton.go", "whole && math.Abs(v) >= maxPlainInt", "whole && math.Abs(v) >= 1e300", "predicates"},
	{"an integer meets a double as an integer", "value.go", "return float64(x) == y", "return x == int64(y)", "predicates"},
	{"a value that stood on a level crosses it", "cross.go", "before < 0 && after >= 0", "before <= 0 && after >= 0", ""},
	{"the rows whose level is reached from below are left out", "cross_way.go", "end{was, true}, end{now, true}", "end{was, true}, end{now, false}", ""},
	{"what compounds share a pair of guards are left out", "guards.go", "long = append(long, key)", "", "alike"},
	{"no two values of an event are said together", "lookout.go", "o.both.say(markOf(pairKey(a, b)))", "_, _ = a, b", "alike"},
	{"what an event answers is taken for what it is asked", "lookout.go", "if s.meets(f, fl.parts, asked) {", "if s.meets(f, fl.parts, o.asked) {", "alike"},
	{"the marks of ranges miss the one that begins where the value is", "sign.go", "at++\n\t\t}\n\t\treturn s[:at]", "_ = at\n\t\t}\n\t\treturn s[:at]", "predicates"},
	{"the attributes are those of an event before", "frame.go", "f.event, f.attributes, f.texts, f.page, f.sub = nil, nil, nil, nil, subscriptionParams{}", "f.event, f.texts, f.page, f.sub = nil, nil, nil, subscriptionParams{}", ""},
	{"a variable that hides a field leads to rows as the field does", "probe.go", "|| b.event.fields[variable] != nil", "", ""},
}

// TestTheOracleFindsEveryMutation builds internal/match with each of the mutations and
// demands that its oracle fails.
func TestTheOracleFindsEveryMutation(t *testing.T) {
	source, err := filepath.Abs(filepath.Join("..", "match"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mutations {
		t.Run(m.wrong, func(t *testing.T) {
			t.Parallel()
			if out := m.oracle(t, source); !strings.Contains(out, "--- FAIL: TestHitsAreThoseOfNaiveEvaluation") {
				t.Errorf("%s: %q for %q: the oracle did not fail\n%s", m.file, m.to, m.from, out)
			}
		})
	}
}

// oracle runs the oracle over the mutated package and returns what it said. One lane of it
// does: with one seed both would draw the same.
func (m *mutation) oracle(t *testing.T, source string) string {
	t.Helper()
	file := filepath.Join(source, m.file)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), m.from); n != 1 {
		t.Fatalf("%s has %q %d times, want once: which line is it now?", m.file, m.from, n)
	}
	dir := t.TempDir()
	mutated, overlay := filepath.Join(dir, m.file), filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(mutated, []byte(strings.Replace(string(text), m.from, m.to, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {file: mutated}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(overlay, replace, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "test", "-overlay", overlay, "-vet=off", "-ldflags=-s -w", "-timeout=4m", "-run", "^TestHitsAreThoseOfNaiveEvaluation$/^lanes$/^0$",
		source, "-args", "-rapid.nofailfile", "-rapid.seed=1")
	cmd.Env = append(os.Environ(), "FANFARE_TEST_FIRST=1", "FANFARE_TEST_PAIRS=2000000", "FANFARE_TEST_WORLDS="+cmp.Or(m.worlds, "few"))
	out, err := cmd.CombinedOutput()
	if err == nil {
		return string(out)
	}
	if strings.Contains(string(out), "[build failed]") {
		t.Fatalf("%s: %q for %q does not compile\n%s", m.file, m.to, m.from, out)
	}
	return string(out)
}
