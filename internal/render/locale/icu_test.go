package locale_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare/internal/render/locale"
)

// testdata/icu.mjs writes the table with ICU.
func TestFormatsEqualThoseOfICU(t *testing.T) {
	path := "testdata/icu.txt"
	if all := os.Getenv("ICU_TABLE"); all != "" {
		path = all
	}
	table, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]*locale.Locale{}
	right, wrong := 0, 0
	for line := range strings.Lines(string(table)) {
		columns := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		kind, tag, of, want := columns[0], columns[1], columns[2], columns[3]
		if known[tag] == nil {
			known[tag] = locale.Find(tag)
		}
		got := answer(t, known[tag], kind, of)
		if strings.Contains(kind, "date") || kind == "time" { // node.js has plain spaces where CLDR has thin ones, in some
			thin := strings.NewReplacer("\u202f", " ", "\u2009", " ")
			got, want = thin.Replace(got), thin.Replace(want)
		}
		if got != want {
			wrong++
			if wrong <= 20 || path != "testdata/icu.txt" {
				t.Errorf("%s of %s in %s: %q, and ICU says %q", kind, of, tag, got, want)
			}
			continue
		}
		right++
	}
	t.Logf("%d answers are those of ICU, %d are not", right, wrong)
	if right == 0 {
		t.Error("the table is empty")
	}
}

func answer(t *testing.T, l *locale.Locale, kind, of string) string {
	t.Helper()
	kind, how, _ := strings.Cut(kind, " ")
	if strings.Contains(kind, "date") || kind == "time" {
		moment, err := time.Parse(time.RFC3339, of)
		if err != nil {
			t.Fatal(err)
		}
		style, _ := locale.ParseStyle(how)
		switch kind {
		case "date":
			return l.Date(moment, style)
		case "datetime":
			return l.DateTime(moment, style)
		}
		return l.Time(moment)
	}
	d, ok := locale.ParseDecimal(of)
	if !ok {
		t.Fatalf("%q is not a number", of)
	}
	switch kind {
	case "plural":
		return l.Plural(d)
	case "number":
		return l.Number(d)
	}
	return l.Money(d, how, locale.CurrencyDigits(how))
}
