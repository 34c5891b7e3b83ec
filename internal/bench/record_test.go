package bench

import (
	"encoding/json"
	"path/filepath"
	"slices"
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
	r.limit(60_000)
	r.stage("import", 1500*time.Microsecond)
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
	for _, name := range []string{"id", "params", "unit", "value", "limit", "ratio", "p50_ms", "p99_ms", "cpu_s", "rss_mb", "lost", "duplicates", "durability", "at", "machine", "stages", "published"} {
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
		if err := r.appendTo(path); err != nil {
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
	middle, spread := median(runs)
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
		if got := percentile(all, p); got != want {
			t.Errorf("p%v: got %v, want %v", p, got, want)
		}
	}
	if percentile(nil, 50) != 0 {
		t.Error("of nothing there is no percentile")
	}
}

func TestAMetricIsFoundByItsWholeName(t *testing.T) {
	text := "# TYPE fanfare_a counter\nfanfare_a_total 1\nfanfare_a 2.5e+06\nfanfare_b{x=\"fanfare_c 9\"} 3\n"
	for name, want := range map[string]float64{"fanfare_a": 2.5e6, "fanfare_a_total": 1, "fanfare_c": 0} {
		if got := metricOf(text, name); got != want {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
}

func TestFiguresAreReadable(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.0451: "0.045", 9.87: "9.9", 99.94: "99.9", 233: "233", 1234567.8: "1,234,568", -1000: "-1,000"} {
		if got := figure(v); got != want {
			t.Errorf("%v: got %q, want %q", v, got, want)
		}
	}
}

func TestTheTableHasThePublishedFigureBesideOurs(t *testing.T) {
	var b strings.Builder
	r := example()
	writeTable(&b, []Record{r, {ID: "I1", Unit: "subscriptions/s", Value: 200_000}})
	writeRecord(&b, &r)
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
	if err := WriteReport(&b, []Record{example(), other, later, {ID: "R1", Unit: "ms", Value: 20}}); err != nil {
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
	if err := WriteReport(&b, nil); err != nil {
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

func TestExperimentsHaveDifferentIDs(t *testing.T) {
	var ids []string
	for _, e := range Experiments() {
		if slices.Contains(ids, e.ID) || e.Shows == "" || e.run == nil {
			t.Errorf("experiment %q is there twice, or is not whole", e.ID)
		}
		ids = append(ids, e.ID)
	}
	if all, err := choose([]string{"all"}); err != nil || len(all) != len(ids) {
		t.Errorf("all: %d of %d, %v", len(all), len(ids), err)
	}
	if one, err := choose([]string{"n1B"}); err != nil || one[0].ID != "N1b" {
		t.Errorf("got %+v, %v", one, err)
	}
	if _, err := choose([]string{"N99"}); err == nil {
		t.Error("N99 was found")
	}
}

func TestOptionsThatMakeNoSenseAreRefused(t *testing.T) {
	good := Options{Scale: 1, Runs: 1, Durability: "fsync", Sink: "builtin"}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*Options){
		"scale":      func(o *Options) { o.Scale = 0 },
		"runs":       func(o *Options) { o.Runs = 0 },
		"durability": func(o *Options) { o.Durability = "sometimes" },
		"base":       func(o *Options) { o.Base = -1 },
		"tls":        func(o *Options) { o.Sink, o.TLS = "smtp-sink", true },
		"sink":       func(o *Options) { o.Sink = "somewhere" },
	} {
		o := good
		spoil(&o)
		if err := o.Validate(); err == nil || !strings.Contains(err.Error(), "--"+name) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
