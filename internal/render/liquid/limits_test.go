package liquid

import (
	"strings"
	"testing"
)

func TestFiltersThatReadWholeValuesAreCounted(t *testing.T) {
	for source, want := range map[string]string{
		"x | upcase | size":               "x | fanfare_count: fanfare_usage, 1 | upcase | size",
		`x | default: "a" | sort: "n"`:    `x | default: "a" | fanfare_count: fanfare_usage, 16 | sort: "n"`,
		"x | plus: 1 | round | times: 2":  "x | plus: 1 | round | times: 2",
		"x | split: ',' | first | append": "x | fanfare_count: fanfare_usage, 1 | split: ',' | first | fanfare_count: fanfare_usage, 1 | append",
	} {
		if got := rewrite(source, 1, false, 0).source; got != want {
			t.Errorf("%s becomes %s, want %s", source, got, want)
		}
	}
	deep := map[string]any{"a": []any{strings.Repeat("x", 1000), map[string]any{"b": strings.Repeat("x", 1000)}}}
	if n := deepSize(deep, maxProcessedBytes); n < 2000 || n > 2200 {
		t.Errorf("it has %d bytes", n)
	}
	e := &Usage{}
	for n := 0; ; n++ {
		if err := e.countProcessed(strings.Repeat("x", 1<<20), 1); err != nil {
			if n != maxProcessedBytes>>20-1 { // each counts for some bytes more
				t.Errorf("%v after %d MB", err, n)
			}
			break
		}
	}
}
