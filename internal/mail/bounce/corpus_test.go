package bounce

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fanfare.dev/fanfare"
)

type wanted struct {
	outcome   Outcome
	class     fanfare.Class
	status    string
	code      int
	recipient string
}

func TestReportsAreClassified(t *testing.T) {
	for _, c := range corpus {
		t.Run(c.name, func(t *testing.T) {
			raw, err := os.ReadFile(filepath.Join("testdata/corpus", c.name+".eml"))
			if err != nil {
				t.Fatal(err)
			}
			reports := Parse(raw)
			var got []wanted
			for _, r := range reports {
				got = append(got, wanted{r.Outcome, r.Class, r.Status, r.Code, r.Recipient})
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("it is read as\n\t%+v, want\n\t%+v\nsaid: %q", got, c.want, reports[0].Text)
			}
		})
	}
}

func TestTableHasEachFileOfTheCorpus(t *testing.T) {
	files, err := filepath.Glob("testdata/corpus/*.eml")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 60 || len(files) != len(corpus) {
		t.Errorf("%d files, %d in the table", len(files), len(corpus))
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".eml")
		if !slices.ContainsFunc(corpus, func(c struct {
			name string
			want []wanted
		}) bool {
			return c.name == name
		}) {
			t.Errorf("%s is not in the table", name)
		}
	}
}
