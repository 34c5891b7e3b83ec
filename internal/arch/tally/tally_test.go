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
		{"in two runs", []outcome{{pkg: "p", test: "A", failed: false}, {pkg: "p", test: "A", failed: false}}, 1, 0},
		{"failed in one of two runs", []outcome{{pkg: "p", test: "A", failed: true}, {pkg: "p", test: "A", failed: false}}, 0, 1},
		{"same name in two packages", []outcome{{pkg: "p", test: "A", failed: false}, {pkg: "q", test: "A", failed: false}}, 2, 0},
		{"by its subtests", []outcome{{pkg: "p", test: "A/x", failed: false}, {pkg: "p", test: "A/y", failed: false}, {pkg: "p", test: "A", failed: false}}, 2, 0},
		{"by its failed subtest", []outcome{{pkg: "p", test: "A/x", failed: false}, {pkg: "p", test: "A/y", failed: true}, {pkg: "p", test: "A", failed: true}}, 1, 1},
		{"failed beside its subtests", []outcome{{pkg: "p", test: "A/x", failed: false}, {pkg: "p", test: "A", failed: true}}, 1, 1},
		{"nested", []outcome{{pkg: "p", test: "A/x/1", failed: true}, {pkg: "p", test: "A/x", failed: true}, {pkg: "p", test: "A", failed: true}}, 0, 1},
		{"steps have no subtests", []outcome{{pkg: "step", test: "lint", failed: false}, {pkg: "step", test: "lint/go", failed: false}}, 2, 0},
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
	run := func() []outcome {
		return []outcome{{pkg: "p", test: "A", failed: false}, {pkg: "p", test: "B", failed: false}}
	}
	if passed, _ := count(slices.Concat(on("", run()), on("PostgreSQL", run()), on("PostgreSQL", run()))); passed != 4 {
		t.Errorf("two tests on two places are %d", passed)
	}
}

func TestOutcomesAreReadAsKept(t *testing.T) {
	file := filepath.Join(t.TempDir(), "new", "outcomes")
	want := []outcome{{pkg: "p", test: "A"}, {pkg: "p", test: "B", unstable: true}, {pkg: "step", test: "go test x\ty", failed: true}}
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
{"Action":"fail","Package":"p"}`, []outcome{{pkg: "p", test: "A", failed: true}}, "why A failed"},
		{"a build", `{"ImportPath":"p","Action":"build-output","Output":"p.go:1: undefined: x\n"}
{"ImportPath":"p","Action":"build-fail"}
{"Action":"fail","Package":"p","FailedBuild":"p"}`, []outcome{{pkg: "p", test: "(package)", failed: true}}, "undefined: x"},
		{"a panic", `{"Action":"run","Package":"p","Test":"A"}
{"Action":"output","Package":"p","Test":"A","Output":"panic: oh\n"}
{"Action":"fail","Package":"p"}`, []outcome{{pkg: "p", test: "(package)", failed: true}}, "panic: oh"},
		{"nothing, and says how much it did", `{"Action":"attr","Package":"p","Test":"A","Key":"pairs","Value":"7"}
{"Action":"pass","Package":"p","Test":"A"}
{"Action":"pass","Package":"p"}`, []outcome{{pkg: "p", test: "A", failed: false}}, "A: 7 pairs"},
		{"nothing", `{"Action":"pass","Package":"p","Test":"A"}
{"Action":"skip","Package":"p","Test":"B"}
{"Action":"pass","Package":"p","Elapsed":0.5}`, []outcome{{pkg: "p", test: "A", failed: false}}, "2 tests, 1 SKIPPED"},
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
