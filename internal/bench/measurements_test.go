package bench

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare/internal/bench/report"
)

// measuredRuns are three runs of N1 from one call of bench, on a machine of which
// other tenants took a part.
func measuredRuns(call time.Time, values ...float64) (all []report.Record) {
	for i, v := range values {
		r := report.Record{ID: "N1", Unit: "mails/s", Value: v, Ratio: v / 100_000, At: call.Add(time.Duration(i) * time.Minute), Call: call, Durability: "fsync",
			Machine: "2 x CPU", Params: map[string]any{"scale": 1.0, "seed": 1.0}, Steal: 0.02 * float64(i), Others: 0.1, Goals: goalsAt("N1", 1)}
		all = append(all, r)
	}
	return all
}

func TestTheTablesShowMedianAndSpreadAndTheNewestRunFirst(t *testing.T) {
	older := time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)
	all := append(measuredRuns(older, 30_000, 31_000, 36_100), measuredRuns(older.AddDate(0, 0, 3), 44_000, 46_000, 45_000)...)
	all = append(all, measuredRuns(older.AddDate(0, 0, 1), 20_000)...)
	var b strings.Builder
	if err := WriteMarkdown(&b, all); err != nil {
		t.Fatal(err)
	}
	var rows []string
	for line := range strings.Lines(b.String()) {
		if strings.HasPrefix(line, "| 2026") {
			rows = append(rows, line)
		}
	}
	if len(rows) != 3 {
		t.Fatalf("%d rows:\n%s", len(rows), b.String())
	}
	for i, want := range [][]string{
		{"| 2026-11-23, A, 3 runs | N1 | 45,000 mails/s | 4 % |", "| 0 to 4 % | 10 % |", "≥ 40,000 mails/s, value/limit ≥ 0.65 **missed**"},
		{"| 2026-11-21, A, 1 run | N1 | 20,000 mails/s | only 1 run |", "≥ 40,000 mails/s **missed**"},
		{"| 2026-11-20, A, 3 runs | N1 | 31,000 mails/s | 20 % |", "≥ 40,000 mails/s **missed**"},
	} {
		for _, part := range want {
			if !strings.Contains(rows[i], part) {
				t.Errorf("row %d has no %q: %s", i, part, rows[i])
			}
		}
	}
	if !strings.Contains(b.String(), "### Suite notifybc") || !strings.Contains(b.String(), "- N1: a broadcast to 1,000,000 subscriptions") {
		t.Error(b.String())
	}
}

func TestAGoalIsJudgedInTheSizeOfThePlanAlone(t *testing.T) {
	for scale, want := range map[float64]int{0.01: 0, 1: 2, 10: 0} {
		if got := len(goalsAt("C2", scale)); got != want {
			t.Errorf("at scale %v C2 has %d goals, want %d", scale, got, want)
		}
	}
	if got := goalsAt("B1", 10)[0].AtLeast; got != 1e6 {
		t.Errorf("at ten million the goal of B1 is %v", got)
	}
}

func TestEveryGoalIsOfAnExperiment(t *testing.T) {
	for _, all := range []map[string][]report.Goal{goals, goalsOfTenMillion} {
		for id := range all {
			if _, ok := findExperiment(id); !ok {
				t.Errorf("there is no experiment %s", id)
			}
		}
	}
	for _, e := range Experiments() {
		if tableOf(e.ID) == "" {
			t.Errorf("%s is in no suite, and so in no table", e.ID)
		}
	}
}

// updated returns a page after its tables were written.
func updated(t *testing.T, page string, all []report.Record) (string, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(path, []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	wrong := UpdatePage(path, all)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text), wrong
}

func TestTheTablesReplaceThoseOfAPage(t *testing.T) {
	const end = "<!-- End of the tables. -->\n\n## Older runs\n"
	page := "# Measurements\n\n<!-- The tables up to the next mark are made by make measure. -->\nold\n" + end
	all := measuredRuns(time.Now(), 1, 2, 3)
	got, err := updated(t, page, all)
	if err != nil || strings.Contains(got, "old\n") || !strings.Contains(got, "### Suite notifybc") || !strings.HasSuffix(got, end) {
		t.Errorf("%v:\n%s", err, got)
	}
	if again, err := updated(t, got, all); err != nil || again != got {
		t.Errorf("a second time it is another page: %v", err)
	}
	if _, err := updated(t, "# Measurements\n", nil); err == nil {
		t.Error("a page without marks was taken")
	}
}

// The page in the repository shows the records in the repository.
func TestThePageOfMeasurementsIsUpToDate(t *testing.T) {
	const name = "../../docs/explanation/measurements"
	all, err := report.ReadRecords(name + ".jsonl")
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	page, err := os.ReadFile(name + ".md")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := updated(t, string(page), all); err != nil || got != string(page) {
		t.Errorf("the page does not show the records (%v): run bin/fanfare bench report --into %s.md %s.jsonl", err, name, name)
	}
}
