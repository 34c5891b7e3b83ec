package main

import (
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestEachTestCountsOnce(t *testing.T) {
	tests := []struct {
		name           string
		outcomes       []outcome
		passed, failed int
	}{
		{"nothing", nil, 0, 0},
		{"in two runs", []outcome{{"p", "A", false}, {"p", "A", false}}, 1, 0},
		{"failed in one of two runs", []outcome{{"p", "A", true}, {"p", "A", false}}, 0, 1},
		{"same name in two packages", []outcome{{"p", "A", false}, {"q", "A", false}}, 2, 0},
		{"by its subtests", []outcome{{"p", "A/x", false}, {"p", "A/y", false}, {"p", "A", false}}, 2, 0},
		{"by its failed subtest", []outcome{{"p", "A/x", false}, {"p", "A/y", true}, {"p", "A", true}}, 1, 1},
		{"failed beside its subtests", []outcome{{"p", "A/x", false}, {"p", "A", true}}, 1, 1},
		{"nested", []outcome{{"p", "A/x/1", true}, {"p", "A/x", true}, {"p", "A", true}}, 0, 1},
		{"steps have no subtests", []outcome{{"step", "lint", false}, {"step", "lint/go", false}}, 2, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			passed, failed := count(test.outcomes)
			if passed != test.passed || failed != test.failed {
				t.Errorf("%d passed, %d failed; want %d and %d", passed, failed, test.passed, test.failed)
			}
		})
	}
}

func TestATestCountsOnEachOfItsPlaces(t *testing.T) {
	run := func() []outcome { return []outcome{{"p", "A", false}, {"p", "B", false}} }
	if passed, _ := count(slices.Concat(on("", run()), on("PostgreSQL", run()), on("PostgreSQL", run()))); passed != 4 {
		t.Errorf("two tests on two places are %d", passed)
	}
}

func TestOutcomesAreReadAsKept(t *testing.T) {
	file := filepath.Join(t.TempDir(), "new", "outcomes")
	want := []outcome{{"p", "A", false}, {"step", "go test x\ty", true}}
	for _, o := range want {
		if err := keep(file, []outcome{o}); err != nil {
			t.Fatal(err)
		}
	}
	got, err := read([]string{file})
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("read %v, %v; want %v", got, err, want)
	}
}

func TestDigestFindsWhatFailed(t *testing.T) {
	tests := []struct {
		name, events string
		want         []outcome
		output       string
	}{
		{"a test", `{"Action":"run","Package":"p","Test":"A"}
{"Action":"output","Package":"p","Test":"A","Output":"why A failed\n"}
{"Action":"fail","Package":"p","Test":"A"}
{"Action":"output","Package":"p","Output":"FAIL\n"}
{"Action":"fail","Package":"p"}`, []outcome{{"p", "A", true}}, "why A failed"},
		{"a build", `{"ImportPath":"p","Action":"build-output","Output":"p.go:1: undefined: x\n"}
{"ImportPath":"p","Action":"build-fail"}
{"Action":"fail","Package":"p","FailedBuild":"p"}`, []outcome{{"p", "(package)", true}}, "undefined: x"},
		{"a panic", `{"Action":"run","Package":"p","Test":"A"}
{"Action":"output","Package":"p","Test":"A","Output":"panic: oh\n"}
{"Action":"fail","Package":"p"}`, []outcome{{"p", "(package)", true}}, "panic: oh"},
		{"nothing, and says how much it did", `{"Action":"attr","Package":"p","Test":"A","Key":"pairs","Value":"7"}
{"Action":"pass","Package":"p","Test":"A"}
{"Action":"pass","Package":"p"}`, []outcome{{"p", "A", false}}, "A: 7 pairs"},
		{"nothing", `{"Action":"pass","Package":"p","Test":"A"}
{"Action":"skip","Package":"p","Test":"B"}
{"Action":"pass","Package":"p","Elapsed":0.5}`, []outcome{{"p", "A", false}}, "2 tests, 1 SKIPPED"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var output strings.Builder
			got, err := digest(strings.NewReader(test.events), &output)
			if err != nil || !slices.Equal(got, test.want) {
				t.Errorf("outcomes %v, %v; want %v", got, err, test.want)
			}
			if !strings.Contains(output.String(), test.output) {
				t.Errorf("output %q lacks %q", output.String(), test.output)
			}
		})
	}
}

func TestDigestRefusesWhatIsNotJSON(t *testing.T) {
	if _, err := digest(strings.NewReader("no\n"), io.Discard); err == nil {
		t.Error("no error")
	}
}
