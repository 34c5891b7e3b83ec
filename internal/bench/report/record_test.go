package report

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func example() Record {
	r := Record{
		ID: "N1", Params: map[string]any{"scale": 1.0, "seed": uint64(1), "sink": "builtin"}, Unit: "mails/s", Value: 40_000,
		P50Millis: 10, P99Millis: 20, CPUSeconds: 24.5, RSSMiB: 305, Durability: "fsync", At: time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC),
		Machine: "2 x something", Published: &Published{233, "233/s"},
	}
	r.SetLimit(60_000)
	r.AddStage("import", 1500*time.Microsecond)
	return r
}

func TestARecordHasTheMembersThatExperimentsPromise(t *testing.T) {
	line, err := json.Marshal(example())
	if err != nil {
		t.Fatal(err)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(line, &members); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"id", "params", "unit", "value", "limit", "ratio", "p50_ms", "p99_ms", "cpu_s", "cpu_us", "rss_mb", "steal", "others", "lost", "duplicates", "durability", "at", "machine", "stages", "published"} {
		if _, ok := members[name]; !ok {
			t.Errorf("no member %s in %s", name, line)
		}
		delete(members, name)
	}
	if len(members) > 0 {
		t.Errorf("unknown members: %v", members)
	}
}

func TestRecordsComeBackFromTheirFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "records.jsonl")
	for _, id := range []string{"N1", "N5"} {
		r := example()
		r.ID = id
		if err := r.AppendTo(path); err != nil {
			t.Fatal(err)
		}
	}
	all, err := ReadRecords(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 2 || all[1].ID != "N5" || all[0].Ratio != 40_000.0/60_000 || all[0].Stages[0] != (Stage{"import", 1.5}) {
		t.Errorf("got %+v", all)
	}
}

func TestTheMedianIsTheMiddleOfTheRuns(t *testing.T) {
	var runs []Record
	for _, v := range []float64{30, 10, 20} {
		runs = append(runs, Record{Value: v})
	}
	middle, spread := Median(runs)
	if middle.Value != 20 || spread != 1 {
		t.Errorf("got %v and %v", middle.Value, spread)
	}
}

func TestPercentilesAreOfSortedValues(t *testing.T) {
	var all []float64
	for i := range 1000 {
		all = append(all, float64(i))
	}
	for p, want := range map[float64]float64{0: 0, 50: 500, 99: 990, 100: 999} {
		if got := Percentile(all, p); got != want {
			t.Errorf("p%v: got %v, want %v", p, got, want)
		}
	}
	if Percentile(nil, 50) != 0 {
		t.Error("of nothing there is no percentile")
	}
}

func TestFiguresAreReadable(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.0451: "0.045", 9.87: "9.9", 98.94: "98.9", 99.94: "99.94", 233: "233", 1234567.8: "1,234,568", -1000: "-1,000"} {
		if got := Figure(v); got != want {
			t.Errorf("%v: got %q, want %q", v, got, want)
		}
	}
}

func TestTheTableHasThePublishedFigureBesideOurs(t *testing.T) {
	var b strings.Builder
	r := example()
	WriteTable(&b, []Record{r, {ID: "I1", Unit: "subscriptions/s", Value: 200_000}})
	WriteRecord(&b, &r)
	for _, want := range []string{"40,000", "60,000", "0.67", "233/s", "172 times that", "200,000"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in\n%s", want, b.String())
		}
	}
}

func TestTheReportIsOnePageThatNeedsNothing(t *testing.T) {
	other := example()
	other.Durability, other.Lost, other.Machine = "relaxed", 3, "<b>& others"
	later := example()
	later.Value = 41_000
	var b strings.Builder
	if err := WriteHTML(&b, []Record{example(), other, later, {ID: "R1", Unit: "ms", Value: 20}}); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	for _, want := range []string{"<svg", "41,000", "233/s", "Share of the limit", "import", "&lt;b&gt;&amp; others", `class="n bad">3`} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is not in the page", want)
		}
	}
	for _, never := range []string{"http:", "https:", "<script", "src=", "NaN", "Inf"} {
		if strings.Contains(page, never) {
			t.Errorf("%q is in the page", never)
		}
	}
	if err := WriteHTML(&b, nil); err != nil {
		t.Errorf("of nothing: %v", err)
	}
}

func TestTheReportKeepsTheLatestOfEachKind(t *testing.T) {
	older, newer, relaxed := example(), example(), example()
	newer.Value, relaxed.Durability = 2, "relaxed"
	got := latest([]Record{older, relaxed, newer})
	if len(got) != 2 || got[0].Value != 2 || got[1].Durability != "relaxed" {
		t.Errorf("got %+v", got)
	}
}
